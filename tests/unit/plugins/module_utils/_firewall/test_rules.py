# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What firewalld gets, what counts as a difference to what it runs, and how it is led from one to the other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import rules

PORTS = ["29400-29599/tcp"]
SETTINGS = {"target": "CONTINUE", "priority": -10, "ingress_zones": ["ANY"], "egress_zones": ["HOST"]}


def wanted(peers: list[str], ports: list[str] | None = None, **options: Any) -> rules.Wanted:
    return rules.parse_wanted(peers, PORTS if ports is None else ports, **options)


def test_peers_are_sorted_by_number_and_split_by_family() -> None:
    found = wanted(["192.0.2.10", "2001:DB8::2", "192.0.2.9", "192.0.2.9"])
    assert found.peers == {4: ("192.0.2.9", "192.0.2.10"), 6: ("2001:db8::2",)}
    assert found.families() == [4, 6]


def test_a_port_twice_is_one_rule() -> None:
    texts = [rule.text() for rule in wanted(["192.0.2.1"], ["5/tcp", "5-5/tcp", "6-7/udp"]).rules[rules.PEERS]]
    source = 'rule family="ipv4" source ipset="gpu-peers"'
    assert texts == [
        f'{source} port port="5" protocol="tcp" accept',
        f'{source} port port="6-7" protocol="udp" accept',
    ]


def test_all_input_problems_at_once() -> None:
    with pytest.raises(rules.InputError) as caught:
        wanted(
            ["192.0.2.1/24", "x", "0.0.0.0", "::1", "ff02::1", "fe80::1%eth0", "::ffff:192.0.2.1"],
            ["1", "0/tcp", "9-5/tcp", "65536/tcp", "5/icmp"],
            ssh_ports=[22, 70000],
            confirm_seconds=5,
        )
    assert [(problem.variable, problem.value) for problem in caught.value.problems] == [
        ("cluster_firewall_peers[0]", "'192.0.2.1/24'"),
        ("cluster_firewall_peers[1]", "'x'"),
        ("cluster_firewall_peers[2]", "'0.0.0.0'"),
        ("cluster_firewall_peers[3]", "'::1'"),
        ("cluster_firewall_peers[4]", "'ff02::1'"),
        ("cluster_firewall_peers[5]", "'fe80::1%eth0'"),
        ("cluster_firewall_peers[6]", "'::ffff:192.0.2.1'"),
        ("cluster_firewall_ports[0]", "'1'"),
        ("cluster_firewall_ports[1]", "'0/tcp'"),
        ("cluster_firewall_ports[2]", "'9-5/tcp'"),
        ("cluster_firewall_ports[3]", "'65536/tcp'"),
        ("cluster_firewall_ports[4]", "'5/icmp'"),
        ("cluster_firewall_ssh_ports", "[22, 70000]"),
        ("cluster_firewall_confirm_seconds", "5"),
    ]
    assert "cluster_firewall_ports[2] = '9-5/tcp': expected a port or a range with its protocol" in str(caught.value)


def test_nothing_to_open_is_refused() -> None:
    with pytest.raises(rules.InputError) as caught:
        wanted([], [], ssh_ports=[])
    assert [problem.variable for problem in caught.value.problems] == [
        "cluster_firewall_peers",
        "cluster_firewall_ports",
        "cluster_firewall_ssh_ports",
    ]
    assert "cluster_firewall_mode: trust" in str(caught.value)


def policy(found: rules.Wanted, name: str) -> ElementTree.Element:
    return ElementTree.fromstring(rules.wanted_files(found)[f"policies/{name}.xml"] or "")


def test_the_files_of_a_cluster_with_one_family() -> None:
    found = wanted(["192.0.2.2", "192.0.2.1"], ["29400-29599/tcp", "4791/udp"])
    files = rules.wanted_files(found)
    assert {name for name, text in files.items() if text} == {"ipsets/gpu-peers.xml", "policies/gpu-cluster-peers.xml"}
    assert {name for name, text in files.items() if text is None} == {
        "ipsets/gpu-peers6.xml",
        "policies/gpu-cluster-ssh.xml",
    }
    ipset = ElementTree.fromstring(files["ipsets/gpu-peers.xml"] or "")
    assert (ipset.get("type"), [one.text for one in ipset.iter("entry")]) == ("hash:ip", ["192.0.2.1", "192.0.2.2"])
    assert list(ipset.iter("option")) == []
    tree = policy(found, rules.PEERS)
    assert tree.attrib == {"priority": "-10", "target": "CONTINUE"}
    assert [(zone.tag, zone.get("name")) for zone in tree if zone.tag.endswith("-zone")] == [
        ("ingress-zone", "ANY"),
        ("egress-zone", "HOST"),
    ]
    held = list(tree.iter("rule"))
    assert [rule.get("family") for rule in held] == ["ipv4", "ipv4"]
    assert [rule.find("source").get("ipset") for rule in held] == ["gpu-peers", "gpu-peers"]  # type: ignore[union-attr]
    assert [rule.find("port").attrib for rule in held] == [  # type: ignore[union-attr]
        {"port": "29400-29599", "protocol": "tcp"},
        {"port": "4791", "protocol": "udp"},
    ]
    assert all(rule.find("accept") is not None for rule in held)


def test_the_files_of_a_cluster_with_ipv6_in_trust_mode() -> None:
    found = wanted(["2001:db8::1"], [], mode="trust")
    files = rules.wanted_files(found)
    assert files["ipsets/gpu-peers.xml"] is None
    ipset = ElementTree.fromstring(files["ipsets/gpu-peers6.xml"] or "")
    assert [option.attrib for option in ipset.iter("option")] == [{"name": "family", "value": "inet6"}]
    (rule,) = policy(found, rules.PEERS).iter("rule")
    assert rule.get("family") == "ipv6" and rule.find("port") is None
    assert [one.text() for one in found.rules[rules.PEERS]] == ['rule family="ipv6" source ipset="gpu-peers6" accept']


@pytest.mark.parametrize("mode", ["ports", "trust"])
def test_no_rule_for_peers_is_without_a_source(mode: str) -> None:
    found = wanted(["192.0.2.1", "2001:db8::1"], ["1-65535/tcp", "5/udp"], mode=mode)
    held = list(policy(found, rules.PEERS).iter("rule"))
    assert len(held) == {"ports": 4, "trust": 2}[mode]
    assert all(rule.find("source") is not None for rule in held)


def test_ssh_gets_its_own_policy_and_only_its_ports() -> None:
    found = wanted(["192.0.2.1"], ssh_ports=[2222, 22, 22], with_ssh=True)
    held = list(policy(found, rules.SSH).iter("rule"))
    assert [rule.find("port").attrib for rule in held] == [  # type: ignore[union-attr]
        {"port": "22", "protocol": "tcp"},
        {"port": "2222", "protocol": "tcp"},
    ]
    assert [one.text() for one in found.rules[rules.SSH]] == [
        'rule port port="22" protocol="tcp" accept',
        'rule port port="2222" protocol="tcp" accept',
    ]


@pytest.mark.parametrize(
    ("open_ssh", "running", "written", "opened"),
    [
        ("auto", True, False, False),
        ("auto", True, True, True),
        ("auto", False, False, True),
        ("always", True, False, True),
        ("never", False, True, False),
    ],
)
def test_when_ssh_is_opened(open_ssh: str, running: bool, written: bool, opened: bool) -> None:
    assert rules.wants_ssh(open_ssh, running=running, written=written) is opened


RULE = 'rule family="ipv4" source ipset="gpu-peers" port port="29400-29599" protocol="tcp" accept'
EXPECTED = rules.wanted_runtime(wanted(["192.0.2.1", "192.0.2.2"]))


def runtime(entries: Any = None, held: Any = None, **more: Any) -> rules.Runtime:
    """What runs, the wanted state where nothing is said."""
    return rules.Runtime(
        entries={"gpu-peers": frozenset({"192.0.2.1", "192.0.2.2"}), "gpu-peers6": None, **(entries or {})},
        rules={rules.PEERS: frozenset({RULE}), rules.SSH: None, **(held or {})},
        **more,
    )


def test_the_running_rules_are_the_wanted_ones() -> None:
    assert rules.differences(EXPECTED, runtime()) == [] and not rules.needs_reload(EXPECTED, runtime())
    assert rules.commands(runtime(), EXPECTED) == []


def test_an_empty_object_that_is_not_wanted_any_more_is_no_difference() -> None:
    """firewalld forgets it when it loads its files the next time."""
    found = runtime({"gpu-peers6": frozenset()}, {rules.SSH: frozenset()})
    assert rules.differences(EXPECTED, found) == [] and not rules.needs_reload(EXPECTED, found)


@pytest.mark.parametrize(
    ("found", "differences", "reload", "commands"),
    [
        (
            runtime({"gpu-peers": frozenset({"192.0.2.1", "192.0.2.9"})}),
            ["ipset gpu-peers: missing ['192.0.2.2'], too many ['192.0.2.9']"],
            False,
            [
                ["--ipset=gpu-peers", "--add-entry=192.0.2.2"],
                ["--ipset=gpu-peers", "--remove-entry=192.0.2.9"],
            ],
        ),
        (
            runtime({"gpu-peers6": frozenset({"2001:db8::1"})}, {rules.PEERS: frozenset({RULE, "rule accept"})}),
            [
                "ipset gpu-peers6: missing nothing, too many ['2001:db8::1']",
                "policy gpu-cluster-peers: missing nothing, too many ['rule accept']",
            ],
            False,
            [
                ["--policy=gpu-cluster-peers", "--remove-rich-rule=rule accept"],
                ["--ipset=gpu-peers6", "--remove-entry=2001:db8::1"],
            ],
        ),
        (
            runtime({"gpu-peers": None}, {rules.PEERS: None}),
            [
                "ipset gpu-peers is not loaded: missing ['192.0.2.1', '192.0.2.2'], too many nothing",
                f"policy gpu-cluster-peers is not loaded: missing ['{RULE}'], too many nothing",
            ],
            True,
            None,
        ),
        (
            runtime(foreign_shape=("policy gpu-cluster-peers",)),
            ["policy gpu-cluster-peers is not of the kind that this role makes"],
            True,
            [],
        ),
    ],
    ids=["another member", "what an earlier plan opened", "nothing of ours runs", "not our kind"],
)
def test_every_difference_is_a_sentence_and_has_its_way(
    found: rules.Runtime, differences: list[str], reload: bool, commands: list[list[str]] | None
) -> None:
    assert rules.differences(EXPECTED, found) == differences
    assert rules.needs_reload(EXPECTED, found) is reload
    if commands is not None:
        assert rules.commands(found, EXPECTED) == commands


@pytest.mark.parametrize("count", [3, 64, 2000])
def test_the_number_of_commands_does_not_grow_with_the_cluster(count: int) -> None:
    peers = [f"198.18.{number // 250}.{number % 250 + 1}" for number in range(count)]
    found = runtime({"gpu-peers": frozenset({"192.0.2.1", "192.0.2.2"})})
    words = rules.commands(found, rules.wanted_runtime(wanted(peers)))
    assert len(words) == 2 and len(words[0]) == count + 1


def test_a_new_port_is_opened_before_an_old_one_is_closed() -> None:
    words = rules.commands(runtime(), rules.wanted_runtime(wanted(["192.0.2.1", "192.0.2.2"], ["5/tcp"])))
    assert [one[1].partition("=")[0] for one in words] == ["--add-rich-rule", "--remove-rich-rule"]


def test_what_runs_survives_json() -> None:
    found = runtime({"gpu-peers6": frozenset()})
    assert rules.Runtime.from_json(json.loads(json.dumps(found.as_json()))) == found


@pytest.mark.parametrize(
    ("changed", "ours"),
    [
        ({}, True),
        ({"services": [], "masquerade": False, "ports": []}, True),
        ({"priority": -1}, False),
        ({"target": "ACCEPT"}, False),
        ({"ingress_zones": ["public"]}, False),
        ({"services": ["http"]}, False),
        ({"masquerade": True}, False),
    ],
)
def test_the_kind_of_a_policy(changed: dict[str, Any], ours: bool) -> None:
    assert rules.has_our_shape({**SETTINGS, **changed}) is ours


CONF = "# IPv6_rpfilter=no\nDefaultZone=public\nIPv6_rpfilter=%s\nLogDenied=off\n"


@pytest.mark.parametrize(
    ("before", "wish", "version", "after"),
    [
        ("yes", "keep", "1.3.4", "yes"),
        ("yes", "loose", "1.3.4", "no"),
        ("yes", "loose", "2.1.1", "no"),
        ("strict", "loose", "2.2.0", "loose"),
        ("loose", "loose", "2.3.1", "loose"),
        ("no", "loose", "1.3.4", "no"),
        ("no", "strict", "1.3.4", "yes"),
        ("strict", "strict", "2.3.1", "strict"),
        ("yes", "strict", "2.3.1", "yes"),
        ("loose", "strict", "2.3.1", "yes"),
    ],
)
def test_the_reverse_path_filter(before: str, wish: str, version: str, after: str) -> None:
    assert rules.with_rpfilter(CONF % before, wish, version) == CONF % after


def test_a_configuration_that_says_nothing_about_the_filter() -> None:
    assert rules.rpfilter_of("DefaultZone=public\n") == "strict"
    assert rules.with_rpfilter("DefaultZone=public\n", "strict", "2.3.1") == "DefaultZone=public\n"
    assert rules.with_rpfilter("DefaultZone=public", "loose", "2.3.1") == "DefaultZone=public\nIPv6_rpfilter=loose\n"
    assert rules.with_rpfilter("", "loose", "1.3.4") == "IPv6_rpfilter=no\n"


PEERS_FILE = f"policies/{rules.PEERS}.xml"
SSH_FILE = f"policies/{rules.SSH}.xml"


def files_of(*, peers: Sequence[str] = ("192.0.2.11",), **given: Any) -> dict[str, str | None]:
    return rules.wanted_files(rules.parse_wanted(peers, given.pop("ports", ["29500/tcp"]), **given))


@pytest.mark.parametrize(
    ("before", "after", "name", "kept"),
    [
        # open_ssh: never
        ({"with_ssh": True}, {}, SSH_FILE, 'port="22"'),
        # other ports of sshd
        ({"with_ssh": True}, {"with_ssh": True, "ssh_ports": [2222]}, SSH_FILE, 'port="22"'),
        # from trust to ports
        ({"mode": "trust"}, {}, PEERS_FILE, '"gpu-peers"/>\n    <accept/>'),
        # other ports
        ({"ports": ["29500/tcp"]}, {"ports": ["29501/tcp"]}, PEERS_FILE, 'port="29500"'),
        # a member that left, and the last one of a family
        ({"peers": ["192.0.2.11", "192.0.2.12"]}, {}, "ipsets/gpu-peers.xml", "192.0.2.12"),
        ({"peers": ["192.0.2.11", "2001:db8::1"]}, {}, "ipsets/gpu-peers6.xml", "2001:db8::1"),
        ({"peers": ["192.0.2.11", "2001:db8::1"]}, {}, PEERS_FILE, '"gpu-peers6"'),
    ],
)
def test_a_removal_waits_in_the_files(before: Any, after: Any, name: str, kept: str) -> None:
    """What let somebody in is in the files that a node boots with, until the change is confirmed."""
    old, new = files_of(**before), files_of(**after)
    interim = rules.until_confirmed(old, new)
    assert kept in (old[name] or "") and kept not in (new[name] or ""), "the case shows a removal"
    assert kept in (interim[name] or "")
    for text in (part for part in interim.values() if part is not None):
        ElementTree.fromstring(text)  # our own text
    for part, text in new.items():
        for item in rules.ITEMS.findall(text or ""):
            assert item in (interim[part] or ""), "what is added is there too"


def test_what_only_adds_is_written_as_it_is() -> None:
    old = files_of()
    new = files_of(peers=["192.0.2.11", "192.0.2.12"], ports=["29500/tcp", "29501/tcp"], with_ssh=True)
    assert rules.until_confirmed(old, new) == new
    assert rules.until_confirmed(dict.fromkeys(new), new) == new
    # A second time, from what waits, to the same: nothing is doubled.
    assert rules.until_confirmed(rules.until_confirmed(new, old), old) == rules.until_confirmed(new, old)


def test_rules_of_an_older_release_wait_too() -> None:
    """Its words around the rules may be others."""
    old, new = files_of(with_ssh=True), files_of(with_ssh=True, ssh_ports=[2222])
    old[SSH_FILE] = (old[SSH_FILE] or "").replace(rules.DESCRIPTIONS[rules.SSH], "Other words.")
    assert 'port="22"' in (rules.until_confirmed(old, new)[SSH_FILE] or "")
