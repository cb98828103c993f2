# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports rules block: the ends of intervals, hooks, jumps, sets, and what is not known."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import blocked, ruleset
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.blocked import Block

Json = dict[str, Any]

PEER = "192.0.2.1"
OTHER = "192.0.2.9"
HERE = "192.0.2.2"
PEER6, HERE6 = "2001:db8::1", "2001:db8::2"

DPORT: Json = {"payload": {"protocol": "tcp", "field": "dport"}}
SPORT: Json = {"payload": {"protocol": "tcp", "field": "sport"}}
SADDR: Json = {"payload": {"protocol": "ip", "field": "saddr"}}
DADDR: Json = {"payload": {"protocol": "ip", "field": "daddr"}}
SADDR6: Json = {"payload": {"protocol": "ip6", "field": "saddr"}}
STATE: Json = {"ct": {"key": "state"}}
FLAGS: Json = {"payload": {"protocol": "tcp", "field": "flags"}}
IIFNAME: Json = {"meta": {"key": "iifname"}}
OIFNAME: Json = {"meta": {"key": "oifname"}}
MARK: Json = {"meta": {"key": "mark"}}
DROP: Json = {"drop": None}
ACCEPT: Json = {"accept": None}
RETURN: Json = {"return": None}
COUNTER: Json = {"counter": {"packets": 3, "bytes": 180}}
LIMIT: Json = {"limit": {"rate": 10, "burst": 5, "per": "second"}}
ADMIN: Json = {"reject": {"type": "icmpx", "expr": "admin-prohibited"}}
RESET: Json = {"reject": {"type": "tcp reset"}}


def match(left: Any, right: Any, op: str = "==") -> Json:
    return {"match": {"op": op, "left": left, "right": right}}


def between(first: int, last: int) -> Json:
    return {"range": [first, last]}


ESTABLISHED = match(STATE, ["established", "related"], "in")
DATA_PORTS = match(DPORT, between(40000, 50000))


def chain(name: str = "input", hook: str = "", prio: int = 0, policy: str = "accept", **more: Any) -> Json:
    base = {"type": "filter", "hook": hook, "prio": prio, "policy": policy} if hook else {}
    return {"chain": {"family": "inet", "table": "t", "name": name, **base, **more}}


def rule(*expr: Json, chain: str = "input", **more: Any) -> Json:
    return {"rule": {"family": "inet", "table": "t", "chain": chain, "expr": list(expr), **more}}


def jump(target: str, kind: str = "jump") -> Json:
    return {kind: {"target": target}}


INPUT = [chain(hook="input"), rule(ESTABLISHED, ACCEPT)]
TEXT = "inet t input: tcp dport 40000-50000"


def inbound(*objects: Json, source: str = PEER, interface: str = "fab0", **more: Any) -> list[tuple[int, int, str]]:
    """What comes in, without the texts of the rules."""
    destination = HERE6 if ":" in source else HERE
    found = blocked.blocked_ports(
        objects, source=source, destination=destination, interface=interface, direction="inbound", **more
    )
    return [(block.first, block.last, block.verdict) for block in found]


def outbound(*objects: Json, destination: str = PEER, interface: str = "fab0") -> list[tuple[int, int, str]]:
    found = blocked.blocked_ports(
        objects, source=HERE, destination=destination, interface=interface, direction="outbound"
    )
    return [(block.first, block.last, block.verdict) for block in found]


ALL_DROPPED = [(1, 65535, "drop")]
DATA_DROPPED = [(40000, 50000, "drop")]
ALL_UNKNOWN = [(1, 65535, "unknown")]


# --- verdicts and intervals -------------------------------------------------------------------------------------------


def test_no_rules_block_nothing() -> None:
    assert inbound() == [] and outbound() == []


@pytest.mark.parametrize(
    ("verdict", "seen"),
    [
        (DROP, "drop"),
        (ADMIN, "reject"),
        ({"reject": {"type": "icmp", "expr": "host-prohibited"}}, "reject"),
        (RESET, "reset"),
        # A connect sees "refused", as with a reset.
        ({"reject": {"type": "icmpx", "expr": "port-unreachable"}}, "reset"),
        ({"reject": None}, "reset"),
    ],
)
def test_how_a_rule_blocks(verdict: Json, seen: str) -> None:
    assert inbound(*INPUT, rule(DATA_PORTS, COUNTER, verdict)) == [(40000, 50000, seen)]


def test_the_text_says_where_the_rule_is() -> None:
    found = blocked.blocked_ports(
        [*INPUT, rule(DATA_PORTS, COUNTER, ADMIN)],
        source=PEER,
        destination=HERE,
        interface="fab0",
        direction="inbound",
    )
    assert found == [Block(40000, 50000, "reject", f"{TEXT} reject with icmpx admin-prohibited")]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (match(DPORT, 40000), [(40000, 40000)]),
        (match(DPORT, 40000, "!="), [(1, 39999), (40001, 65535)]),
        (match(DPORT, 1024, "<"), [(1, 1023)]),
        (match(DPORT, 1024, "<="), [(1, 1024)]),
        (match(DPORT, 1024, ">"), [(1025, 65535)]),
        (match(DPORT, 1024, ">="), [(1024, 65535)]),
        (match(DPORT, {"set": [22, between(100, 200), 201]}), [(22, 22), (100, 201)]),
        (match(DPORT, {"set": [22, between(100, 200)]}, "!="), [(1, 21), (23, 99), (201, 65535)]),
        (match({"payload": {"protocol": "th", "field": "dport"}}, 7), [(7, 7)]),
        (match({"payload": {"base": "th", "offset": 16, "len": 16}}, 7), [(7, 7)]),
        (match({"payload": {"protocol": "udp", "field": "dport"}}, 7), []),
        (match({"payload": {"protocol": "icmp", "field": "type"}}, "echo-request"), []),
        (match({"meta": {"key": "l4proto"}}, "tcp"), [(1, 65535)]),
        (match({"meta": {"key": "l4proto"}}, {"set": ["icmp", "ipv6-icmp"]}), []),
        (match({"meta": {"key": "nfproto"}}, "ipv4"), [(1, 65535)]),
        (match({"meta": {"key": "nfproto"}}, "ipv6"), []),
        (match({"meta": {"key": "protocol"}}, "ip"), [(1, 65535)]),
        (match({"payload": {"protocol": "ip", "field": "protocol"}}, 6), [(1, 65535)]),
        (match({"payload": {"protocol": "ip6", "field": "nexthdr"}}, 6), []),
        (match(STATE, "new"), [(1, 65535)]),
        (match(STATE, ["new", "untracked"], "in"), [(1, 65535)]),
        (match(STATE, {"set": ["invalid"]}), []),
        (match(STATE, "invalid", "in"), []),
        (match({"ct": {"key": "status"}}, "dnat", "in"), []),
        (match(FLAGS, "syn", "in"), [(1, 65535)]),
        (match({"&": [FLAGS, ["fin", "syn", "rst", "ack"]]}, "syn"), [(1, 65535)]),
        (match({"&": [FLAGS, {"|": ["fin", "syn"]}]}, {"|": ["fin", "syn"]}), []),
        (match(MARK, 0), [(1, 65535)]),
        (match({"&": [MARK, 255]}, 1), []),
        (match(IIFNAME, "fab0"), [(1, 65535)]),
        (match(IIFNAME, "fab*"), [(1, 65535)]),
        (match(IIFNAME, {"set": ["eth0", "lo"]}), []),
        (match(IIFNAME, "lo", "!="), [(1, 65535)]),
        (match(OIFNAME, "fab0"), []),
        (match(SADDR, PEER), [(1, 65535)]),
        (match(SADDR, {"prefix": {"addr": "192.0.2.0", "len": 24}}), [(1, 65535)]),
        (match(SADDR, {"prefix": {"addr": "192.0.2.0", "len": 24}}, "!="), []),
        (match(SADDR, between("192.0.2.2", "192.0.2.7")), []),  # type: ignore[arg-type]
        (match(DADDR, HERE), [(1, 65535)]),
        (match(SADDR6, PEER6, "!="), []),
        (match({"meta": {"key": "length"}}, 1400, ">"), []),
        (match({"fib": {"result": "type", "flags": ["daddr"]}}, "local"), [(1, 65535)]),
        (match({"exthdr": {"name": "frag"}}, True), []),
    ],
)
def test_a_condition_holds_exactly_for(condition: Json, expected: list[tuple[int, int]]) -> None:
    new = match(STATE, "new", "in")
    assert inbound(chain(hook="input"), rule(new, condition, DROP)) == [(*one, "drop") for one in expected]


@pytest.mark.parametrize(
    "condition",
    [
        LIMIT,
        {"quota": {"val": 5}},
        {"ct count": {"val": 100}},
        match({"numgen": {"mode": "random", "mod": 2}}, 0),
        match({"meta": {"key": "skuid"}}, 1000),
        match({"meta": {"key": "hour"}}, between(1, 2)),
        match({"payload": {"protocol": "ip", "field": "ttl"}}, 64),
        match({"payload": {"base": "nh", "offset": 96, "len": 8}}, 192),
        match({"payload": {"protocol": "ether", "field": "saddr"}}, "02:00:00:00:00:01"),
        match({"something new": {"key": 5}}, 5),
        match(DPORT, {"something new": 5}),
        match(STATE, ["established", "new"]),
        match(SADDR, "@there_is_no_such_set"),
        match({"ct": {"key": "mark"}}, 1, "unheard of"),
        {"xt": {"type": "match", "name": "recent"}},
        {"statement": "of a later version"},
    ],
)
def test_what_nobody_knows_beforehand_is_unknown(condition: Json) -> None:
    new = match(STATE, "new", "in")
    assert inbound(chain(hook="input"), rule(new, condition, DROP)) == ALL_UNKNOWN


def test_an_unknown_condition_does_no_harm_where_both_ways_end_alike() -> None:
    assert inbound(*INPUT, rule(LIMIT, {"log": {"prefix": "x"}}), rule(LIMIT, ACCEPT)) == []
    assert inbound(*INPUT, rule(DATA_PORTS, LIMIT, DROP), rule(DATA_PORTS, DROP)) == DATA_DROPPED
    assert inbound(*INPUT, rule(DATA_PORTS, LIMIT, ACCEPT), rule(DATA_PORTS, DROP)) == [(40000, 50000, "unknown")]


def test_ports_that_are_blocked_either_way_are_rejected_when_one_way_rejects() -> None:
    """Reject as long as the limit allows, then drop: one rejection is enough for a peer to see what it is."""
    assert inbound(*INPUT, rule(DATA_PORTS, LIMIT, ADMIN), rule(DATA_PORTS, DROP)) == [(40000, 50000, "reject")]


def test_a_field_of_the_other_ip_version_does_not_match_and_one_that_is_unknown_may() -> None:
    for operator in ("==", "!="):
        hop_limit = match({"payload": {"protocol": "ip6", "field": "hoplimit"}}, 255, operator)
        assert inbound(*INPUT, rule(hop_limit, DROP)) == []
        assert inbound(*INPUT, rule(hop_limit, DROP), source=PEER6) == ALL_UNKNOWN


# --- rules as nft prints them -----------------------------------------------------------------------------------------

#: Text of a rule to what ``nft -j list chain`` of nft 1.0.6 printed of it, each loaded once into a kernel (6.18).
RECORDED: dict[str, list[Json]] = json.loads((Path(__file__).parent / "data/rules_1.0.6.json").read_text())
EVERYTHING = (
    "ct state new,untracked drop",
    "tcp flags syn drop",
    "tcp flags == syn drop",
    "tcp flags & syn != 0 drop",
    "tcp flags { syn, syn|ack } drop",
    'iifname { eth0, "fab*" } drop',
    "ip protocol tcp drop",
    "ip saddr & 255.255.255.0 == 192.0.2.0 drop",
    "ip saddr 192.0.2.0/24 drop",
    "ct direction original drop",
    "reject with icmp host-prohibited",
    "reject with tcp reset",
    "reject",
    'log prefix "x" drop',
    "ip version 4 drop",
    "ct state vmap { new : drop, established : accept }",
)
NOTHING = (
    "ct state != new drop",
    "ct state ! new drop",
    "tcp flags != syn drop",
    "tcp flags ! syn drop",
    "tcp flags & (fin|syn|rst|ack) != syn drop",
    "tcp flags & (fin|syn) == (fin|syn) drop",
    "meta mark and 0xff == 1 drop",
    "meta mark 1-5 drop",
    "ct mark 3 drop",
    "fib daddr . iif type != { local, broadcast, multicast } drop",
    "meta pkttype != host drop",
    "meta l4proto != tcp drop",
    "ip6 nexthdr tcp drop",
    "ct status dnat drop",
    "ct direction reply drop",
    "meta nfproto ipv6 drop",
    "ip length > 1400 drop",
    "exthdr frag exists drop",
    "icmp type echo-request drop",
    "udp dport 5 drop",
    "ip saddr != { 192.0.2.1 } drop",
)
SOME = {
    "meta l4proto { tcp, udp } th dport 5-7 drop": [(5, 7, "drop")],
    "ip saddr { 192.0.2.0/24, 198.51.100.1-198.51.100.9 } tcp dport 7 drop": [(7, 7, "drop")],
    "ip saddr . tcp dport { 192.0.2.1 . 5-9, 192.0.2.0/24 . 11 } drop": [(5, 9, "drop"), (11, 11, "drop")],
    "@th,16,16 7 drop": [(7, 7, "drop")],
    "tcp dport != { 5, 7 } drop": [(1, 4, "drop"), (6, 6, "drop"), (8, 65535, "drop")],
    "tcp dport > 65000 drop": [(65001, 65535, "drop")],
}
HOW = {"reject with icmp host-prohibited": "reject", "reject with tcp reset": "reset", "reject": "reset"}


@pytest.mark.parametrize("text", RECORDED)
def test_a_recorded_rule_for_new_connections(text: str) -> None:
    """What is in none of the lists above depends on what nobody knows beforehand."""
    found = inbound(chain(hook="input"), rule(match(STATE, "new", "in"), *RECORDED[text]))
    expected = SOME.get(text, ALL_UNKNOWN)
    if text in EVERYTHING:
        expected = [(1, 65535, HOW.get(text, "drop"))]
    elif text in NOTHING:
        expected = []
    assert found == expected


def test_the_lists_name_recorded_rules() -> None:
    assert {*EVERYTHING, *NOTHING, *SOME} <= set(RECORDED)


# --- chains -----------------------------------------------------------------------------------------------------------


def test_the_first_verdict_counts_and_the_policy_is_the_last() -> None:
    rules = [chain(hook="input", policy="drop"), rule(ESTABLISHED, ACCEPT)]
    assert inbound(*rules) == ALL_DROPPED
    assert inbound(*rules, rule(match(DPORT, 22), ACCEPT), rule(match(DPORT, 22), ADMIN)) == [
        (1, 21, "drop"),
        (23, 65535, "drop"),
    ]


def test_jump_comes_back_and_goto_does_not() -> None:
    common = [chain(hook="input"), rule(ESTABLISHED, ACCEPT), chain("a"), chain("b")]
    inner = [rule(DATA_PORTS, RETURN, chain="a"), rule(match(DPORT, between(1, 100)), DROP, chain="a")]
    after = rule(ADMIN)
    assert inbound(*common, rule(jump("a")), *inner, after) == [(1, 100, "drop"), (101, 65535, "reject")]
    assert inbound(*common, rule(jump("a", "goto")), *inner, after) == [(1, 100, "drop")]
    # goto from a chain that was jumped to returns to where that chain was jumped from.
    nested = [rule(jump("a")), rule(jump("b", "goto"), chain="a"), rule(DROP, chain="a")]
    assert inbound(*common, *nested, rule(match(DPORT, 7), DROP, chain="b"), after) == [
        (1, 6, "reject"),
        (7, 7, "drop"),
        (8, 65535, "reject"),
    ]


def test_return_in_a_base_chain_leads_to_the_policy() -> None:
    rules = [chain(hook="input", policy="drop"), rule(ESTABLISHED, ACCEPT), rule(DATA_PORTS, RETURN), rule(ACCEPT)]
    assert inbound(*rules) == DATA_DROPPED


def test_accept_ends_a_base_chain_and_not_the_next_one() -> None:
    first = [chain("first", "input", prio=-5), rule(ACCEPT, chain="first")]
    assert inbound(*INPUT, rule(DATA_PORTS, DROP), *first) == DATA_DROPPED


def test_the_chain_with_the_lower_priority_comes_first() -> None:
    late = [*INPUT, rule(DATA_PORTS, DROP)]
    early = [chain("early", "input", prio=-5), rule(match(STATE, "new"), DATA_PORTS, ADMIN, chain="early")]
    assert inbound(*late, *early) == [(40000, 50000, "reject")]


def test_of_chains_with_one_priority_the_last_one_comes_first() -> None:
    """The kernel puts a new hook before those of equal priority (nf_hook_entries_grow in net/netfilter/core.c)."""
    new = match(STATE, "new")
    first = [chain("a", "input"), rule(new, DATA_PORTS, DROP, chain="a")]
    second = [chain("b", "input", table="u"), rule(new, DATA_PORTS, ADMIN, chain="b", table="u")]
    third = [chain("c", "input", prio=1), rule(new, DATA_PORTS, RESET, chain="c")]
    assert inbound(*first, *second, *third) == [(40000, 50000, "reject")]
    assert inbound(*second, *first, *third) == DATA_DROPPED


# nft 1.0.6 reads the word from memory that it has freed already, and printed this one for a dormant table "z".
@pytest.mark.parametrize("flags", ["dormant", ["dormant"], ["dormant", "owner"], "z"])
def test_a_dormant_table_blocks_nothing(flags: Any) -> None:
    asleep = {"table": {"family": "inet", "name": "t", "handle": 1, "flags": flags}}
    other = [chain("x", "input", table="u"), rule(match(DPORT, 7), DROP, chain="x", table="u")]
    rules = [*INPUT, rule(DATA_PORTS, DROP), *other]
    assert inbound(asleep, *rules) == [(7, 7, "drop")]
    awake = {"table": {"family": "inet", "name": "t", "handle": 1, "flags": ["owner"]}}
    assert inbound(awake, *rules) == [(7, 7, "drop"), (40000, 50000, "drop")]


def test_every_hook_on_the_way_counts_and_no_other() -> None:
    new = match(STATE, "new")
    for hook in ("prerouting", "input", "ingress"):
        more: Json = {"dev": "fab0"} if hook == "ingress" else {}
        assert inbound(chain("x", hook, **more), rule(new, DATA_PORTS, DROP, chain="x")) == DATA_DROPPED, hook
    for hook in ("output", "postrouting"):
        assert outbound(chain("x", hook), rule(new, DATA_PORTS, DROP, chain="x")) == DATA_DROPPED, hook
        assert inbound(chain("x", hook), rule(new, DATA_PORTS, DROP, chain="x")) == [], hook
    assert inbound(chain("x", "forward"), rule(DROP, chain="x")) == []


def test_a_chain_of_another_family_or_device_does_not_count() -> None:
    new = match(STATE, "new")
    six = [chain("x", "input", family="ip6"), rule(new, DROP, chain="x", family="ip6")]
    assert inbound(*six) == [] and inbound(*six, source=PEER6) == ALL_DROPPED
    device = [chain("x", "ingress", family="netdev", dev="eth7"), rule(new, DROP, chain="x", family="netdev")]
    assert inbound(*device) == [] and inbound(*device, interface="eth7") == ALL_DROPPED
    assert inbound(*device, interface="") == ALL_UNKNOWN


def test_a_device_below_the_interface_may_drop() -> None:
    """The rules of a bond's or VLAN's card see other packets, so they are no certain block, and no certain pass."""
    objects = [
        chain("x", "ingress", family="netdev", dev=["eth7"]),
        rule(DATA_PORTS, DROP, chain="x", family="netdev"),
    ]
    rules = ruleset.compiled(objects, below={"fab0": ["bond0"], "bond0": ["eth6", "eth7"]})
    found = blocked.Asker(rules).blocked(source=PEER, destination=HERE, interface="fab0", direction="inbound")
    assert [(one.first, one.last, one.verdict) for one in found] == [(40000, 50000, "unknown")]


@pytest.mark.parametrize("policy", ["accept", "drop"])
def test_rules_for_arp_and_bridges_are_not_followed(policy: str) -> None:
    """Only where they can block anything, and those of bridges only on a bridge."""
    arp = [chain("x", "input", family="arp", policy=policy)]
    assert inbound(*arp) == (ALL_UNKNOWN if policy == "drop" else [])
    bridge = [
        chain("x", "prerouting", family="bridge"),
        rule(jump("y"), chain="x", family="bridge"),
        chain("y", family="bridge"),
        rule(DROP if policy == "drop" else ACCEPT, chain="y", family="bridge"),
    ]
    assert inbound(*bridge) == []
    rules = ruleset.compiled(bridge, bridges=["fab0"])
    found = blocked.Asker(rules).blocked(source=PEER, destination=HERE, interface="fab0", direction="inbound")
    assert [one.verdict for one in found] == (["unknown"] if policy == "drop" else [])


# --- the answers ------------------------------------------------------------------------------------------------------


def test_a_drop_without_connection_tracking_hits_the_answers_too() -> None:
    """What this host opens from a port between 40000 and 50000 gets no answer: that is luck, so nothing is claimed."""
    rules = [chain(hook="input"), rule(DATA_PORTS, DROP)]
    assert inbound(*rules) == DATA_DROPPED
    assert outbound(*rules) == ALL_UNKNOWN
    assert outbound(*INPUT, rule(DATA_PORTS, DROP)) == []


def test_answers_that_may_not_leave_are_a_block() -> None:
    output = [chain("output", "output", policy="drop"), rule(match(DPORT, 22), ACCEPT, chain="output")]
    assert inbound(*output) == ALL_DROPPED
    tracked = rule(match(STATE, "established", "in"), ACCEPT, chain="output")
    assert inbound(*output, tracked) == []
    assert outbound(*output, tracked) == [(1, 21, "drop"), (23, 65535, "drop")]


def test_packets_that_connection_tracking_does_not_see_are_in_no_known_state() -> None:
    raw = [chain("raw", "prerouting", prio=-300), rule(DATA_PORTS, {"notrack": None}, chain="raw")]
    assert inbound(
        *raw, chain(hook="input", policy="drop"), rule(match(STATE, "new"), ACCEPT), rule(ESTABLISHED, ACCEPT)
    ) == [(40000, 50000, "unknown")]


def test_an_answer_has_no_known_state_either_when_the_request_had_none() -> None:
    raw = [chain("raw", "prerouting", prio=-300), rule(DATA_PORTS, {"notrack": None}, chain="raw")]
    answers = [chain("out", "output", policy="drop"), rule(ESTABLISHED, ACCEPT, chain="out")]
    assert inbound(*raw, *answers) == [(40000, 50000, "unknown")]
    assert inbound(*raw, chain(hook="input", policy="drop"), rule(ESTABLISHED, ACCEPT)) == [
        (1, 39999, "drop"),
        (40000, 50000, "unknown"),
        (50001, 65535, "drop"),
    ]


def test_a_rejected_answer_is_no_answer_to_the_peer() -> None:
    output = [chain("out", "output"), rule(match(STATE, "established"), match(SPORT, 7), ADMIN, chain="out")]
    assert inbound(*output) == [(7, 7, "drop")]


def test_translation_sees_only_the_first_packet() -> None:
    nat = [
        chain("nat", "prerouting", prio=-100, type="nat"),
        rule(match(STATE, "established"), {"redirect": {"port": 7}}, chain="nat"),
    ]
    assert inbound(*nat) == []


def test_large_packets_that_are_dropped_are_not_a_permission() -> None:
    assert inbound(*[chain(hook="input")], rule(match({"meta": {"key": "length"}}, 1400, ">"), DROP)) == ALL_UNKNOWN


def test_the_port_of_the_client_is_one_that_the_kernel_gives() -> None:
    assert inbound(*INPUT, rule(match(SPORT, between(1, 1023)), DROP)) == []
    assert inbound(*INPUT, rule(match(SPORT, 1023, ">"), DROP)) == ALL_DROPPED
    assert inbound(*INPUT, rule(match(SPORT, between(1024, 5000)), DROP)) == ALL_UNKNOWN


# --- sets and maps ----------------------------------------------------------------------------------------------------


def named(name: str, *elements: Any, kind: str = "set", **more: Any) -> Json:
    return {kind: {"family": "inet", "table": "t", "name": name, "type": "ipv4_addr", "elem": list(elements), **more}}


def test_named_sets_of_addresses() -> None:
    held = named(
        "peers",
        "192.0.2.1",
        {"elem": {"val": "192.0.2.3", "timeout": 60}},
        {"prefix": {"addr": "198.51.100.0", "len": 24}},
    )
    rules = [
        held,
        chain(hook="input", policy="drop"),
        rule(ESTABLISHED, ACCEPT),
        rule(match(SADDR, "@peers"), DATA_PORTS, ACCEPT),
    ]
    rest = [(1, 39999, "drop"), (50001, 65535, "drop")]
    assert inbound(*rules) == rest and inbound(*rules, source="192.0.2.3") == rest
    assert inbound(*rules, source="198.51.100.77") == rest
    assert inbound(*rules, source=OTHER) == ALL_DROPPED


def test_an_empty_set_matches_nothing_and_one_that_packets_fill_may() -> None:
    objects = {"set": {"family": "inet", "table": "t", "name": "s", "type": "ipv4_addr"}}
    assert inbound(objects, *INPUT, rule(match(SADDR, "@s"), DROP)) == []
    dynamic = named("s", PEER, flags=["dynamic"])
    assert inbound(dynamic, *INPUT, rule(match(SADDR, "@s"), DROP)) == ALL_UNKNOWN
    limited = named("s", PEER, stmt=[{"limit": {"rate": 1}}])
    assert inbound(limited, *INPUT, rule(match(SADDR, "@s"), DROP)) == ALL_UNKNOWN


def test_addresses_joined_with_ports() -> None:
    held = named(
        "open",
        {"concat": [PEER, 29500]},
        {"concat": [PEER, between(40000, 50000)]},
        {"concat": [{"prefix": {"addr": "192.0.2.8", "len": 30}}, 7]},
    )
    rules = [held, *INPUT, rule(match({"concat": [SADDR, DPORT]}, "@open"), DROP)]
    assert inbound(*rules) == [(29500, 29500, "drop"), (40000, 50000, "drop")]
    assert inbound(*rules, source=OTHER) == [(7, 7, "drop")]
    assert inbound(*rules, source="192.0.2.77") == []
    assert inbound(*rules, source=PEER6) == []


def test_verdict_maps() -> None:
    states = {
        "vmap": {"key": STATE, "data": {"set": [["established", ACCEPT], ["related", ACCEPT], ["invalid", DROP]]}}
    }
    ports_map = named("m", [22, ACCEPT], [between(40000, 50000), jump("x")], ["*", DROP], kind="map", map="verdict")
    rules = [
        ports_map,
        chain(hook="input"),
        chain("x"),
        rule(states),
        rule({"vmap": {"key": DPORT, "data": "@m"}}),
        rule(match(DPORT, 45000), ADMIN, chain="x"),
    ]
    assert inbound(*rules) == [(1, 21, "drop"), (23, 39999, "drop"), (45000, 45000, "reject"), (50001, 65535, "drop")]


def test_a_verdict_map_by_interface_or_address() -> None:
    by_name = {"vmap": {"key": IIFNAME, "data": {"set": [["lo", ACCEPT], ["fab0", jump("x")]]}}}
    by_address = {"vmap": {"key": SADDR, "data": {"set": [[PEER, DROP], [OTHER, ACCEPT]]}}}
    rules = [*INPUT, chain("x"), rule(by_name), rule(by_address, chain="x"), rule(ADMIN, chain="x")]
    assert inbound(*rules) == ALL_DROPPED
    assert inbound(*rules, source=OTHER) == []
    assert inbound(*rules, source="192.0.2.77") == [(1, 65535, "reject")]
    assert inbound(*rules, interface="eth0") == []


def test_an_unreadable_map_may_do_anything() -> None:
    assert inbound(*INPUT, rule({"vmap": {"key": DPORT, "data": "@nothing"}})) == ALL_UNKNOWN
    assert inbound(*INPUT, rule({"vmap": {"key": DPORT, "data": {"set": [5]}}})) == ALL_UNKNOWN


# --- statements -------------------------------------------------------------------------------------------------------


def test_marks_are_known_until_a_rule_gives_one() -> None:
    dropped = rule(match({"&": [MARK, 0x8000]}, 0x8000), DROP)
    assert inbound(*INPUT, dropped) == []
    given = [
        chain("m", "prerouting", prio=-150),
        rule(DATA_PORTS, {"mangle": {"key": MARK, "value": {"|": [MARK, 0x8000]}}}, chain="m"),
    ]
    assert inbound(*INPUT, dropped, *given) == [(40000, 50000, "unknown")]
    by_iptables = rule(DATA_PORTS, {"xt": {"type": "target", "name": "MARK"}}, chain="m")
    assert inbound(*INPUT, dropped, given[0], by_iptables) == [(40000, 50000, "unknown")]


def test_comments_of_iptables_are_no_condition() -> None:
    assert inbound(*INPUT, rule({"xt": {"type": "match", "name": "comment"}}, DATA_PORTS, DROP)) == DATA_DROPPED


def test_ports_that_are_sent_elsewhere_are_unknown() -> None:
    nat = [
        chain("nat", "prerouting", prio=-100, type="nat"),
        rule(match(DPORT, 8080), {"dnat": {"addr": OTHER}}, chain="nat"),
    ]
    assert inbound(*nat) == [(8080, 8080, "unknown")]
    assert inbound(chain("q", "input"), rule(DATA_PORTS, {"queue": {"num": 1}}, chain="q")) == [
        (40000, 50000, "unknown")
    ]


def test_masquerading_lets_pass() -> None:
    nat = [
        chain("nat", "postrouting", prio=100, type="nat"),
        rule({"masquerade": None}, chain="nat"),
        rule(DROP, chain="nat"),
    ]
    assert outbound(*nat) == []


@pytest.mark.parametrize(("name", "expected"), [("LOG", []), ("REJECT", ALL_UNKNOWN)])
def test_targets_of_iptables_are_known_by_name_only(name: str, expected: list[tuple[int, int, str]]) -> None:
    assert inbound(*INPUT, rule({"xt": {"type": "target", "name": name}})) == expected


# --- reverse-path filter ----------------------------------------------------------------------------------------------

FIB = {"fib": {"result": "oif", "flags": ["saddr", "iif", "mark"]}}


@pytest.mark.parametrize(
    ("leaves_by", "expected"),
    [("fab0", []), ("fab1", ["drop"]), (None, ["unknown"])],
    ids=["same", "other", "not known"],
)
def test_a_strict_reverse_path_filter(leaves_by: str | None, expected: list[str]) -> None:
    rules = ruleset.compiled([chain("x", "prerouting"), rule(match(FIB, False), DROP, chain="x")])
    found = blocked.Asker(rules).blocked(
        source=PEER6, destination=HERE6, interface="fab0", direction="inbound", answers_leave_by=leaves_by
    )
    assert [one.verdict for one in found] == expected


# --- a second opinion -------------------------------------------------------------------------------------------------


def concrete(rules: dict[str, list[tuple[Any, Any, str, str]]], name: str, port: int, source: int) -> str:
    """One port and one source through simple rules, as nft(8) describes it; "" at the end of a chain."""
    for ports, sources, verdict, target in rules[name]:
        if port not in ports or source not in sources:
            continue
        if verdict in ("accept", "drop"):
            return verdict
        if verdict == "return":
            return ""
        found = concrete(rules, target, port, source)
        if found or verdict == "goto":
            return found
    return ""


def random_rules(seed: random.Random) -> tuple[dict[str, list[tuple[Any, Any, str, str]]], list[Json]]:
    names = ["input", "a", "b", "c"]
    rules: dict[str, list[tuple[Any, Any, str, str]]] = {name: [] for name in names}
    objects = [chain("input", "input"), *(chain(name) for name in names[1:])]
    new = match(STATE, "new")
    for level, name in enumerate(names):
        for _rule in range(seed.randint(1, 5)):
            first = seed.randint(1, 60)
            last = min(first + seed.randint(0, 30), 64)
            low = seed.randint(1, 10)
            high = low + seed.randint(0, 5)
            verdict = seed.choice(["accept", "drop", "return", "jump", "goto"])
            target = seed.choice(names[level + 1 :]) if level + 1 < len(names) else ""
            if verdict in ("jump", "goto") and not target:
                verdict = "drop"
            rules[name].append((range(first, last + 1), range(low, high + 1), verdict, target))
            end = jump(target, verdict) if verdict in ("jump", "goto") else {verdict: None}
            addresses = {"range": [f"192.0.2.{low}", f"192.0.2.{high}"]}
            objects.append(rule(new, match(DPORT, between(first, last)), match(SADDR, addresses), end, chain=name))
    return rules, objects


def test_it_agrees_with_one_port_at_a_time_on_random_rules() -> None:
    start = random.randrange(10**9)
    print(f"seed {start}")
    for number in range(150):
        rules, objects = random_rules(random.Random(start + number))
        for source in (1, 5, 9):
            found = inbound(*objects, source=f"192.0.2.{source}")
            dropped = {port for first, last, _verdict in found for port in range(first, last + 1)}
            expected = {port for port in range(1, 66) if concrete(rules, "input", port, source) == "drop"}
            assert dropped == expected, f"seed {start + number}, source {source}"


def test_a_thousand_peers_cost_little() -> None:
    """Members in a set, each also with ports of its own in another: they are not told apart where nothing differs."""
    addresses = [f"198.51.{number // 250}.{number % 250 + 1}" for number in range(1000)]
    objects = [
        named("peers", *addresses),
        named("joined", *({"concat": [one, between(29400, 29599)]} for one in addresses)),
        chain(hook="input", policy="drop"),
        rule(ESTABLISHED, ACCEPT),
        *(rule(match(IIFNAME, f"eth{number}"), ACCEPT) for number in range(100)),
        *(rule(match(DPORT, number), match(SADDR, "@peers"), ACCEPT) for number in range(40000, 40100)),
        rule(match(SADDR, "@peers"), DATA_PORTS, ACCEPT),
        rule(match({"concat": [SADDR, DPORT]}, "@joined"), ACCEPT),
    ]
    start = time.process_time()
    asker = blocked.Asker(ruleset.compiled(objects))
    first = None
    for one in addresses:
        found = asker.blocked(source=one, destination=HERE, interface="fab0", direction="inbound")
        assert [(block.first, block.last) for block in found] == [(1, 29399), (29600, 39999), (50001, 65535)]
        first = first or found
        assert found is first
    assert time.process_time() - start < 0.5


# --- firewalld --------------------------------------------------------------------------------------------------------

FIREWALLD: list[Json] = json.loads((Path(__file__).parent / "data/firewalld_1.3.3.json").read_text())["nftables"]
#: On three members with the default port plan; sshd is open to everybody.
OUTSIDE_OF_THE_PLAN = [(1, 21), (23, 29399), (29600, 32767), (65000, 65535)]


def firewalld(source: str, *, leaves_by: str | None = None, direction: str = "inbound") -> list[Block]:
    ends = {"source": source, "destination": "2001:db8::14" if ":" in source else "192.0.2.14"}
    asker = blocked.Asker(ruleset.compiled(FIREWALLD))
    return asker.blocked(**ends, interface="fab0", direction=direction, answers_leave_by=leaves_by)


def test_firewalld_lets_members_in_by_our_policy_and_others_to_sshd_only() -> None:
    member, other = firewalld("192.0.2.15"), firewalld("192.0.2.77")
    assert [(one.first, one.last) for one in member] == OUTSIDE_OF_THE_PLAN
    assert [(one.first, one.last) for one in other] == [(1, 21), (23, 65535)]
    text = "inet firewalld filter_IN_public: reject with icmpx admin-prohibited"
    assert {(one.verdict, one.rule) for one in [*member, *other]} == {("reject", text)}
    assert firewalld("192.0.2.15", direction="outbound") == []


def test_the_reverse_path_filter_of_firewalld_is_for_ipv6() -> None:
    same, other = firewalld("2001:db8::15", leaves_by="fab0"), firewalld("2001:db8::15", leaves_by="fab1")
    assert [(one.first, one.last) for one in same] == [(1, 21), (23, 65535)]
    assert [(one.first, one.last, one.verdict) for one in other] == ALL_DROPPED and "fib saddr" in other[0].rule
    assert [one.verdict for one in firewalld("2001:db8::15") if one.first == 22] == ["unknown"]


def test_a_thousand_peers_and_firewalld() -> None:
    start = time.process_time()
    asker = blocked.Asker(ruleset.compiled(FIREWALLD))
    for number in range(1000):
        peer = f"198.51.{100 + number // 250}.{number % 250 + 1}"
        for source, destination, direction in ((peer, "192.0.2.14", "inbound"), ("192.0.2.14", peer, "outbound")):
            asker.blocked(source=source, destination=destination, interface="fab0", direction=direction)
    assert time.process_time() - start < 0.5
