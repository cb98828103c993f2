# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the packet filter of a host, and what it does to each peer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import deadline
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import look
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.look import Peer

INPUT = {"chain": {"family": "inet", "table": "t", "name": "i", "type": "filter", "hook": "input", "prio": 0}}
STATE = {"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": "established"}}
DPORT = {"payload": {"protocol": "tcp", "field": "dport"}}


def rule(*expr: dict[str, Any]) -> dict[str, Any]:
    return {"rule": {"family": "inet", "table": "t", "chain": "i", "expr": list(expr)}}


ESTABLISHED = rule(STATE, {"accept": None})
PORTS = rule({"match": {"op": "==", "left": DPORT, "right": {"range": [29500, 40000]}}}, {"drop": None})
PEERS = {
    "n2": Peer("192.0.2.12", "192.0.2.11", "fab0", "fab0"),
    "n3": Peer("192.0.2.13", "192.0.2.11", "fab0", "fab0"),
}
RANGES = [(29400, 29599), (32768, 60999)]


class Programs:
    """Stands for the commands of a host."""

    def __init__(self, **printed: str) -> None:
        self.printed = {name.replace("_", "-"): text for name, text in printed.items()}

    def __call__(self, argv: Sequence[str]) -> str:
        if argv[0] not in self.printed:
            raise deadline.CommandError(f"{argv[0]} is not installed")
        return self.printed[argv[0]]


def nft(*objects: dict[str, Any]) -> str:
    return json.dumps({"nftables": [{"metainfo": {"json_schema_version": 1}}, *objects]})


def test_blocks_within_the_plan_by_direction_and_peer(tmp_path: Path) -> None:
    found = look.packet_filter(PEERS, RANGES, command=Programs(nft=nft(INPUT, ESTABLISHED, PORTS)), root=str(tmp_path))
    text = "inet t i: tcp dport 29500-40000 drop"
    blocks = [
        {"first": 29500, "last": 29599, "verdict": "drop", "rule": text},
        {"first": 32768, "last": 40000, "verdict": "drop", "rule": text},
    ]
    assert found == {
        "readable": True,
        "why": "",
        "judged": [[29400, 29599], [32768, 60999]],
        "inbound": {"n2": blocks, "n3": blocks},
        "outbound": {},
    }


def test_a_peer_without_blocks_is_left_out(tmp_path: Path) -> None:
    saddr = {"payload": {"protocol": "ip", "field": "saddr"}}
    one = rule({"match": {"op": "==", "left": saddr, "right": "192.0.2.13"}}, {"drop": None})
    found = look.packet_filter(PEERS, RANGES, command=Programs(nft=nft(INPUT, ESTABLISHED, one)), root=str(tmp_path))
    assert list(found["inbound"]) == ["n3"] and found["outbound"] == {}


def test_a_peer_of_another_ip_version_is_not_judged(tmp_path: Path) -> None:
    peers = {"n2": Peer("2001:db8::1", "192.0.2.11", "fab0")}
    drop = rule({"drop": None})
    found = look.packet_filter(peers, RANGES, command=Programs(nft=nft(INPUT, drop)), root=str(tmp_path))
    assert found["readable"] and found["inbound"] == {}


def test_outbound_connections_leave_by_the_route(tmp_path: Path) -> None:
    out = {"chain": {"family": "inet", "table": "t", "name": "i", "type": "filter", "hook": "output", "prio": 0}}
    oif = {"match": {"op": "==", "left": {"meta": {"key": "oifname"}}, "right": "eth9"}}
    new = {"match": {"op": "==", "left": {"ct": {"key": "state"}}, "right": "new"}}
    peers = {"n2": Peer("192.0.2.12", "192.0.2.11", "fab0", "eth9"), "n3": Peer("192.0.2.13", "192.0.2.11", "fab0")}
    command = Programs(nft=nft(out, rule(new, oif, {"drop": None})))
    assert list(look.packet_filter(peers, RANGES, command=command, root=str(tmp_path))["outbound"]) == ["n2"]


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ({}, "nft is not installed"),
        ({"nft": "garbage"}, "nft printed nothing that is known here"),
        ({"nft": '{"other": []}'}, "nft printed nothing that is known here"),
        ({"nft": '{"nftables": [{"rule": 5}]}'}, "nft printed nothing that is known here"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, printed: dict[str, str], why: str) -> None:
    found = look.packet_filter(PEERS, RANGES, command=Programs(**printed), root=str(tmp_path))
    assert not found["readable"] and found["why"].startswith(why)
    assert found["inbound"] == {} and found["outbound"] == {}


def test_a_warning_before_the_list_does_not_matter(tmp_path: Path) -> None:
    printed = "# Warning: table ip filter is managed by iptables-nft, do not touch!\n" + nft(INPUT)
    assert look.packet_filter(PEERS, RANGES, command=Programs(nft=printed), root=str(tmp_path))["readable"]


LEGACY_RULE = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -j DROP\nCOMMIT\n"
LEGACY_POLICY = "*filter\n:INPUT DROP [0:0]\nCOMMIT\n"
LEGACY_EMPTY = "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n"


@pytest.mark.parametrize(
    ("family", "saved", "why"),
    [
        ("ip", LEGACY_RULE, "rules of the old iptables are in force"),
        ("ip6", LEGACY_POLICY, "rules of the old ip6tables are in force"),
        ("ip", LEGACY_EMPTY, ""),
        ("ip", None, "tables of the old iptables are loaded (filter) and cannot be read"),
    ],
)
def test_rules_of_the_old_iptables_are_noticed(tmp_path: Path, family: str, saved: str | None, why: str) -> None:
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / f"proc/net/{family}_tables_names").write_text("filter\n")
    printed = {"nft": nft(INPUT)} | ({} if saved is None else {f"{family}tables_legacy_save": saved})
    found = look.packet_filter(PEERS, RANGES, command=Programs(**printed), root=str(tmp_path))
    assert found["readable"] == (not why) and found["why"].startswith(why)


def test_interfaces_below_others_and_bridges_are_read(tmp_path: Path) -> None:
    for folder in ("fab0/lower_bond0", "bond0/lower_eth1", "br0/bridge", "br0/lower_eth2", "eth1", "eth2"):
        (tmp_path / "sys/class/net" / folder).mkdir(parents=True)
    rules = look.read(Programs(nft=nft(INPUT)), str(tmp_path))
    assert not isinstance(rules, look.Unreadable)
    assert rules.below == {"fab0": ["bond0"], "bond0": ["eth1"], "br0": ["eth2"]}
    assert rules.bridges == {"br0"}


def test_a_real_command_has_a_deadline_and_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "SECONDS", 1)
    with pytest.raises(deadline.CommandError, match="sleep did not end within 1 s"):
        look.run(["sleep", "5"])
    with pytest.raises(deadline.CommandError, match="no-such-program is not installed"):
        look.run(["no-such-program"])


LINKS = json.dumps([{"ifname": "fab0", "addr_info": [{"local": "192.0.2.11", "scope": "global", "prefixlen": 24}]}])


def test_what_strangers_get_to(tmp_path: Path) -> None:
    ports = ["29400-29599/tcp"]
    shut = Programs(nft=nft(INPUT, ESTABLISHED, rule({"drop": None})))
    assert look.not_for_members_only(LINKS, ports, [], command=shut, root=str(tmp_path)) == []
    (sentence,) = look.not_for_members_only(LINKS, ports, [], command=Programs(nft=nft()), root=str(tmp_path))
    assert "fab0" in sentence and "29400-29599" in sentence


@pytest.mark.parametrize(
    "programs",
    [
        Programs(),
        Programs(nft="no JSON"),
        Programs(nft=nft({"rule": {"family": "inet", "table": "t", "chain": "i"}}, {"chain": {}})),
    ],
)
def test_what_strangers_get_to_where_the_rules_are_not_known(tmp_path: Path, programs: Programs) -> None:
    (sentence,) = look.not_for_members_only(LINKS, [], [], command=programs, root=str(tmp_path))
    assert sentence.startswith("nobody knows whether others than the members get to the ports")
