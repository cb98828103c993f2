# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What firewalld gets, and what counts as a difference to what it runs."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _firewall_peers as core


def test_peers_are_sorted_by_number_and_split_by_family() -> None:
    wanted = core.parse_wanted(["10.0.0.10", "fd00::2", "10.0.0.9", "10.0.0.9"], ["1/tcp"])
    assert wanted.peers == {4: ("10.0.0.9", "10.0.0.10"), 6: ("fd00::2",)}
    assert wanted.families() == [4, 6]


def test_a_port_twice_is_one_rule() -> None:
    assert core.parse_wanted(["10.0.0.1"], ["5/tcp", "5-5/tcp", "6-7/udp"]).ports == (("5", "tcp"), ("6-7", "udp"))


def test_all_input_problems_at_once() -> None:
    with pytest.raises(core.InputError) as caught:
        core.parse_wanted(["10.0.0.1/24", "x"], ["1", "0/tcp", "9-5/tcp", "65536/tcp", "5/icmp"])
    assert caught.value.problems == [
        "peers[0]: expected an IP address without prefix, found '10.0.0.1/24'",
        "peers[1]: expected an IP address without prefix, found 'x'",
        "ports[0]: expected a port such as '29500/tcp' or '29400-29599/tcp', found '1'",
        "ports[1]: expected a port such as '29500/tcp' or '29400-29599/tcp', found '0/tcp'",
        "ports[2]: expected a port such as '29500/tcp' or '29400-29599/tcp', found '9-5/tcp'",
        "ports[3]: expected a port such as '29500/tcp' or '29400-29599/tcp', found '65536/tcp'",
        "ports[4]: expected a port such as '29500/tcp' or '29400-29599/tcp', found '5/icmp'",
    ]
    with pytest.raises(core.InputError, match="peers: expected at least one address"):
        core.parse_wanted([], [])


def test_the_files_of_a_cluster_with_one_family() -> None:
    files = core.wanted_files(core.parse_wanted(["10.0.0.2", "10.0.0.1"], ["29400-29599/tcp", "4791/udp"]))
    assert set(files) == {"ipsets/gpu-peers.xml", "ipsets/gpu-peers6.xml", "policies/gpu-cluster-peers.xml"}
    assert files["ipsets/gpu-peers6.xml"] is None
    ipset = ElementTree.fromstring(files["ipsets/gpu-peers.xml"] or "")
    assert (ipset.get("type"), [entry.text for entry in ipset.iter("entry")]) == ("hash:ip", ["10.0.0.1", "10.0.0.2"])
    assert list(ipset.iter("option")) == []
    policy = ElementTree.fromstring(files["policies/gpu-cluster-peers.xml"] or "")
    assert policy.attrib == {"priority": "-10", "target": "CONTINUE"}
    assert [(zone.tag, zone.get("name")) for zone in policy if zone.tag.endswith("-zone")] == [
        ("ingress-zone", "ANY"),
        ("egress-zone", "HOST"),
    ]
    rules = list(policy.iter("rule"))
    assert [rule.get("family") for rule in rules] == ["ipv4", "ipv4"]
    assert [rule.find("source").get("ipset") for rule in rules] == ["gpu-peers", "gpu-peers"]  # type: ignore[union-attr]
    assert [rule.find("port").attrib for rule in rules] == [  # type: ignore[union-attr]
        {"port": "29400-29599", "protocol": "tcp"},
        {"port": "4791", "protocol": "udp"},
    ]
    assert all(rule.find("accept") is not None for rule in rules)


def test_the_files_of_a_cluster_with_ipv6() -> None:
    files = core.wanted_files(core.parse_wanted(["fd00::1"], ["5/tcp"]))
    assert files["ipsets/gpu-peers.xml"] is None
    ipset = ElementTree.fromstring(files["ipsets/gpu-peers6.xml"] or "")
    assert [option.attrib for option in ipset.iter("option")] == [{"name": "family", "value": "inet6"}]
    policy = ElementTree.fromstring(files["policies/gpu-cluster-peers.xml"] or "")
    assert [rule.get("family") for rule in policy.iter("rule")] == ["ipv6"]


def test_no_rule_is_without_a_source() -> None:
    files = core.wanted_files(core.parse_wanted(["10.0.0.1", "fd00::1"], ["1-65535/tcp", "5/udp"]))
    policy = ElementTree.fromstring(files["policies/gpu-cluster-peers.xml"] or "")
    rules = list(policy.iter("rule"))
    assert len(rules) == 4
    assert all(rule.find("source") is not None for rule in rules)


WANTED = core.wanted_runtime(core.parse_wanted(["10.0.0.1", "10.0.0.2"], ["5/tcp"]))
RULE = 'rule family="ipv4" source ipset="gpu-peers" port port="5" protocol="tcp" accept'


def test_the_running_rules_are_the_wanted_ones() -> None:
    found = core.Runtime(
        entries={"gpu-peers": frozenset({"10.0.0.2", "10.0.0.1"}), "gpu-peers6": None}, rules=frozenset({RULE})
    )
    assert core.runtime_differences(WANTED, found) == []


@pytest.mark.parametrize(
    ("entries", "rules", "differences"),
    [
        (
            {"gpu-peers": frozenset({"10.0.0.1", "10.0.0.9"}), "gpu-peers6": None},
            frozenset({RULE}),
            ["ipset gpu-peers: missing ['10.0.0.2'], too many ['10.0.0.9']"],
        ),
        (
            {"gpu-peers": None, "gpu-peers6": frozenset()},
            None,
            [
                "ipset gpu-peers: missing ['10.0.0.1', '10.0.0.2'], too many nothing",
                "ipset gpu-peers6: missing nothing, too many nothing",
                f"policy gpu-cluster-peers is not loaded: missing ['{RULE}'], too many nothing",
            ],
        ),
        (
            {"gpu-peers": frozenset({"10.0.0.2", "10.0.0.1"}), "gpu-peers6": None},
            frozenset({RULE, "rule accept"}),
            ["policy gpu-cluster-peers: missing nothing, too many ['rule accept']"],
        ),
    ],
)
def test_every_difference_is_a_sentence(
    entries: dict[str, frozenset[str] | None], rules: frozenset[str] | None, differences: list[str]
) -> None:
    assert core.runtime_differences(WANTED, core.Runtime(entries=entries, rules=rules)) == differences
