# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talking to firewalld over D-Bus: what is sent back is what came, in the words of busctl."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import ChangeError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import bus, rules

# As busctl of systemd 252 prints the zone public of firewalld 2.3.1.
ZONE = {
    "short": {"type": "s", "data": "Public"},
    "services": {"type": "as", "data": ["ssh", "dhcpv6-client"]},
    "forward_ports": {"type": "a(ssss)", "data": [["80", "tcp", "8080", ""]]},
    "masquerade": {"type": "b", "data": False},
    "ingress_priority": {"type": "i", "data": -5},
}


class Answers:
    """busctl, with recorded answers by the words that they are for."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, words: Sequence[str]) -> tuple[int, str, str]:
        line = " ".join(words[4:])
        self.asked.append(line)
        for part, answer in self.answers.items():
            if part in line:
                if isinstance(answer, str):
                    return 1, "", answer
                return 0, json.dumps({"type": "?", "data": answer}), ""
        return 0, "", ""


def test_without_types() -> None:
    assert bus.plain(ZONE) == {
        "short": "Public",
        "services": ["ssh", "dhcpv6-client"],
        "forward_ports": [["80", "tcp", "8080", ""]],
        "masquerade": False,
        "ingress_priority": -5,
    }


def test_a_zone_in_words() -> None:
    words = bus.encode("a{sv}", {key: ZONE[key] for key in ("services", "forward_ports", "masquerade")})
    assert words == [
        *("3", "services", "as", "2", "ssh", "dhcpv6-client"),
        *("forward_ports", "a(ssss)", "1", "80", "tcp", "8080", ""),
        *("masquerade", "b", "false"),
    ]


def test_an_ipset_and_direct_rules_in_words() -> None:
    ipset = ["", "peers", "", "hash:ip", {"family": "inet6"}, ["2001:db8::1"]]
    assert bus.encode("(ssssa{ss}as)", ipset) == [
        "",
        "peers",
        "",
        "hash:ip",
        "1",
        "family",
        "inet6",
        "1",
        "2001:db8::1",
    ]
    direct = [[["ipv4", "filter", "mine"]], [["ipv4", "filter", "INPUT", 0, ["-p", "tcp"]]], []]
    assert bus.encode(bus.DIRECT_SIGNATURE, direct) == [
        *("1", "ipv4", "filter", "mine"),
        *("1", "ipv4", "filter", "INPUT", "0", "2", "-p", "tcp"),
        "0",
    ]


def test_options_of_direct_rules_are_not_options_of_busctl() -> None:
    answers = Answers({})
    seen: list[Sequence[str]] = []

    def run(words: Sequence[str]) -> tuple[int, str, str]:
        seen.append(words)
        return answers(words)

    bus.Bus(run).make_direct_permanent([[], [["ipv4", "filter", "INPUT", 0, ["-p"]]], []])
    assert list(seen[0]).index("--") < list(seen[0]).index("call") < list(seen[0]).index("-p")


def test_an_object_that_is_not_there_and_a_firewalld_that_does_not_answer() -> None:
    assert bus.Bus(Answers({"getZoneSettings2": "Call failed: INVALID_ZONE: x"})).running_one(bus.KINDS[0], "x") is None
    with pytest.raises(ChangeError, match=r"did not answer .* getZoneSettings2: Call failed: Connection timed out"):
        bus.Bus(Answers({"getZoneSettings2": "Call failed: Connection timed out"})).running_one(bus.KINDS[0], "x")


def ours(**changed: Any) -> rules.Runtime:
    policy = {
        "target": {"type": "s", "data": "CONTINUE"},
        "priority": {"type": "i", "data": -10},
        "ingress_zones": {"type": "as", "data": ["ANY"]},
        "egress_zones": {"type": "as", "data": ["HOST"]},
        "rich_rules": {"type": "as", "data": ["rule accept"]},
    }
    answers = {
        "getIPSetSettings s gpu-peers6": "INVALID_IPSET: gpu-peers6",
        "getIPSetSettings s gpu-peers": [["", "gpu-peers", "", "hash:ip", {}, ["192.0.2.1"]]],
        "getPolicySettings s gpu-cluster-ssh": "INVALID_POLICY: gpu-cluster-ssh",
        "getPolicySettings s gpu-cluster-peers": [policy],
    }
    return bus.Bus(Answers({**answers, **changed})).ours()


def test_what_runs_of_ours() -> None:
    found = ours()
    assert found.entries == {"gpu-peers": frozenset({"192.0.2.1"}), "gpu-peers6": None}
    assert found.rules == {rules.PEERS: frozenset({"rule accept"}), rules.SSH: None}
    assert found.foreign_shape == ()


def test_objects_of_another_kind_under_our_names() -> None:
    found = ours(
        **{
            "getIPSetSettings s gpu-peers6": [["", "", "", "hash:net", {"family": "inet6"}, []]],
            "getPolicySettings s gpu-cluster-peers": [{"target": {"type": "s", "data": "DROP"}}],
        }
    )
    assert found.foreign_shape == ("ipset gpu-peers6", "policy gpu-cluster-peers")


def test_what_a_file_says_and_the_running_zone_does_not_is_emptied() -> None:
    answers = Answers(
        {
            "getZoneByName": ["/zone/7"],
            "getSettings2": [{"ports": {"type": "a(ss)", "data": [["1", "tcp"]]}, "short": {"type": "s", "data": "P"}}],
        }
    )
    bus.Bus(answers).make_permanent(bus.KINDS[0], "public", {"services": {"type": "as", "data": ["ssh"]}})
    assert answers.asked[-1].endswith("update2 a{sv} 2 ports a(ss) 0 services as 1 ssh")


def test_what_has_no_file_gets_one() -> None:
    answers = Answers({"getIPSetByName": "INVALID_IPSET: x"})
    bus.Bus(answers).make_permanent(bus.KINDS[2], "x", ["", "", "", "hash:ip", {}, ["192.0.2.1"]])
    assert answers.asked[-1].endswith("addIPSet s(ssssa{ss}as) x    hash:ip 0 1 192.0.2.1")


def test_a_reload_has_a_minute() -> None:
    """firewall-cmd, as everything that sets no time, waits for 25 s."""
    seen: list[Sequence[str]] = []

    def run(words: Sequence[str]) -> tuple[int, str, str]:
        seen.append(words)
        return (0, "", "") if len(seen) == 1 else (1, "", "Call failed: Connection timed out")

    bus.Bus(run).reload()
    (words,) = seen
    assert "--timeout=60" in words and list(words[-5:]) == ["call", bus.NAME, bus.PATH, bus.NAME, "reload"]
    with pytest.raises(ChangeError, match=r"did not answer .* reload: Call failed: Connection timed out"):
        bus.Bus(run).reload()
