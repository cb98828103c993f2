# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``nft -j list ruleset`` prints, made ready for many questions.  Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import fields, packet, text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.builder import (
    Builder,
    NamedSet,
    Unreadable,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.conditions import Condition, Constant

ACCEPT = "accept"
DROP = "drop"
REJECT = "reject"
RESET = "reset"
UNKNOWN = "unknown"
CONTINUE = "continue"
RETURN = "return"
JUMP = "jump"
GOTO = "goto"
#: From here on nobody knows what connection tracking says, or what mark the packet has; the target says which.
BLUR = "blur"
#: Nobody knows what the statement does: it may end the way of the packet, or not.
UNJUDGED = "unjudged"

#: The target of a verdict that gives the packet another destination.
SENT_ON = "sent on"

FAMILIES = {4: ("ip", "inet", "netdev"), 6: ("ip6", "inet", "netdev")}

#: Statements that a packet passes whatever they do.
_HARMLESS = (
    "counter",
    "log",
    "set",
    "map",
    "dup",
    "flow",
    "ct helper",
    "ct timeout",
    "ct expectation",
    "last",
    "secmark",
)
#: Statements that let a packet pass or not by what came before it.
_CHANCE = ("limit", "quota", "ct count", "meter")
#: Statements that send the packet elsewhere.
_ELSEWHERE = ("dnat", "redirect", "queue", "tproxy", "synproxy", "fwd")
#: Flags of a table that is not dormant. Of one that is, nft before 1.1 prints a word that is none (json.c).
_AWAKE = {"owner", "persist"}
#: Targets of iptables that a packet passes (iptables-extensions(8)).
_XT_HARMLESS = ("LOG", "NFLOG", "ULOG", "AUDIT", "TRACE", "CHECKSUM", "TCPMSS", "CLASSIFY", "DSCP", "TOS", "TTL", "HL")
_XT_MARKS = ("MARK", "CONNMARK", "CONNSECMARK", "SECMARK")
#: The answer to these is "connection refused" (icmp_err_convert and tcp_v4_err of Linux), as that of a closed port.
_REFUSING = ("port-unreachable",)


@dataclass(frozen=True)
class Verdict:
    """What happens to a packet."""

    kind: str
    target: str = ""


@dataclass(frozen=True)
class VerdictMap:
    """Verdicts by condition; no two of them hold at once.  rest: for what none of them holds."""

    pairs: tuple[tuple[Condition, Verdict], ...]
    rest: Verdict | None = None


Step = Union[Condition, Verdict, VerdictMap]


@dataclass(frozen=True)
class Rule:
    """The steps of a rule in order, and its text."""

    steps: tuple[Step, ...]
    text: str


@dataclass
class Chain:
    """A chain; a base chain has a hook."""

    family: str
    table: str
    name: str
    hook: str = ""
    kind: str = ""
    priority: int = 0
    policy: str = ACCEPT
    devices: tuple[str, ...] = ()
    rules: list[Rule] = field(default_factory=list)

    @property
    def place(self) -> tuple[str, str]:
        return self.family, self.table


@dataclass(frozen=True)
class Ruleset:
    """Base chains in the order in which packets meet them, all chains by place and name, conditions on addresses.

    below: interface to the interfaces that it is made of (bond, VLAN, bridge).
    bridges: interfaces that are a bridge.
    """

    bases: tuple[Chain, ...]
    chains: Mapping[tuple[tuple[str, str], str], Chain]
    dependent: tuple[Condition, ...]
    below: Mapping[str, Sequence[str]]
    bridges: frozenset[str]

    def residuals(self, way: packet.Way) -> tuple[Any, ...]:
        """What is left of all conditions on addresses; equal for all peers that are treated alike."""
        return tuple(condition.residual(way) for condition in self.dependent)


def compiled(
    objects: Iterable[Mapping[str, Any]],
    *,
    below: Mapping[str, Sequence[str]] | None = None,
    bridges: Iterable[str] = (),
) -> Ruleset:
    """Read the list under ``nftables``, in which tables, and chains of a table, stand in the order of their making.

    The kernel puts a new hook before those of equal priority (nf_hook_entries_grow in net/netfilter/core.c).
    """
    found = _Objects(objects)
    latest_first = reversed([chain for chain in found.chains.values() if chain.hook])
    awake = [chain for chain in latest_first if chain.place not in found.dormant]
    bases = sorted(awake, key=lambda chain: chain.priority)
    return Ruleset(tuple(bases), found.chains, tuple(found.dependent), dict(below or {}), frozenset(bridges))


class _Objects:
    """Reads the objects one by one."""

    def __init__(self, objects: Iterable[Mapping[str, Any]]) -> None:
        self.chains: dict[tuple[tuple[str, str], str], Chain] = {}
        self.dependent: list[Condition] = []
        self.dormant: set[tuple[str, str]] = set()
        sets: dict[tuple[str, str], dict[str, NamedSet]] = {}
        rules = []
        for holder in objects:
            for kind, value in holder.items():
                if kind == "table" and set(_flags(value)) - _AWAKE:
                    self.dormant.add((value["family"], value["name"]))
                elif kind == "chain":
                    self._chain(value)
                elif kind in ("set", "map"):
                    place = (value["family"], value["table"])
                    sets.setdefault(place, {})[value["name"]] = _named_set(value)
                elif kind == "rule":
                    rules.append(value)
        builders: dict[tuple[str, str], Builder] = {}
        for value in rules:
            place = (value["family"], value["table"])
            if place not in builders:
                builders[place] = Builder(sets.get(place, {}))
                builders[place].dependent = self.dependent
            chain = self.chains.get((place, value["chain"]))
            if chain is not None:
                chain.rules.append(_rule(value, builders[place]))

    def _chain(self, value: Mapping[str, Any]) -> None:
        devices = value.get("dev", ())
        chain = Chain(
            value["family"],
            value["table"],
            value["name"],
            hook=value.get("hook", ""),
            kind=value.get("type", ""),
            priority=value["prio"] if isinstance(value.get("prio"), int) else 0,
            policy=value.get("policy", ACCEPT),
            devices=(devices,) if isinstance(devices, str) else tuple(devices),
        )
        self.chains[chain.place, chain.name] = chain


def _flags(value: Mapping[str, Any]) -> Sequence[str]:
    """The flags of an object: a list, or the only one of them."""
    flags = value.get("flags", [])
    return [flags] if isinstance(flags, str) else list(flags)


def _rule(value: Mapping[str, Any], builder: Builder) -> Rule:
    statements = value.get("expr", [])
    steps: list[Step] = []
    for statement in statements:
        steps += _steps(statement, builder)
    return Rule(tuple(steps), text.rule(value["family"], value["table"], value["chain"], statements))


def _steps(statement: Any, builder: Builder) -> list[Step]:
    if not isinstance(statement, dict) or len(statement) != 1:
        return [Verdict(UNJUDGED)]
    ((key, value),) = statement.items()
    if key == "match":
        return [builder.match(value)]
    if key == "vmap":
        return [_verdict_map(value, builder)]
    if key in _CHANCE or (isinstance(value, dict) and value.get("stmt")):
        return [Constant(packet.UNKNOWN)]
    if key == "mangle":
        return _mangle(value)
    if key == "xt":
        return _xt(value)
    if key in _HARMLESS:
        return []
    if key == "notrack":
        return [Verdict(BLUR, fields.TRACKING)]
    if key in ("snat", "masquerade"):
        return [Verdict(ACCEPT)]
    if key in _ELSEWHERE:
        return [Verdict(UNKNOWN, SENT_ON if key in ("dnat", "redirect") else "")]
    return [verdict(statement)]


def _mangle(value: Mapping[str, Any]) -> list[Step]:
    """Changes of a packet: one whose address or port changes cannot be followed."""
    changed = value.get("key")
    keys = set(changed) if isinstance(changed, dict) else set()
    if keys & {"meta", "ct"}:
        return [Verdict(BLUR, fields.MARK)]
    return [] if keys & {"tcp option", "exthdr"} else [Verdict(UNKNOWN)]


def _xt(value: Any) -> list[Step]:
    """Parts of rules of iptables that nft cannot print; only their name is known."""
    if not isinstance(value, dict) or value.get("type") not in ("match", "target"):
        return [Verdict(UNJUDGED)]
    name = value.get("name", "")
    if value["type"] == "match":
        return [] if name == "comment" else [Constant(packet.UNKNOWN)]
    if name in _XT_MARKS:
        return [Verdict(BLUR, fields.MARK)]
    if name in _XT_HARMLESS:
        return []
    if name in ("SNAT", "MASQUERADE"):
        return [Verdict(ACCEPT)]
    if name in ("CT", "NOTRACK"):
        return [Verdict(BLUR, fields.TRACKING)]
    return [Verdict(UNJUDGED, SENT_ON if name in ("DNAT", "REDIRECT") else "")]


def verdict(statement: Any) -> Verdict:
    """A verdict statement, also one of a map."""
    ((key, value),) = statement.items() if isinstance(statement, dict) and len(statement) == 1 else (("", None),)
    if key in (ACCEPT, DROP, CONTINUE, RETURN):
        return Verdict(key)
    if key in (JUMP, GOTO) and isinstance(value, dict):
        return Verdict(key, str(value.get("target", "")))
    return Verdict(_rejection(value)) if key == REJECT else Verdict(UNJUDGED)


def _rejection(value: Any) -> str:
    """How the peer sees a rejection.  Without more words nft rejects with "port unreachable" (nft(8))."""
    how = value if isinstance(value, dict) else {}
    if how.get("type") == "tcp reset":
        return RESET
    return RESET if how.get("expr", "port-unreachable") in _REFUSING else REJECT


def _verdict_map(value: Mapping[str, Any], builder: Builder) -> Step:
    """One condition for all keys with the same verdict: a map of a thousand addresses has few verdicts."""
    try:
        rest: Verdict | None = None
        keys: dict[str, list[Any]] = {}
        for element in builder.elements(value.get("data")):
            key, found = element
            if key == "*" or key == {"elem": {"val": "*"}}:
                rest = verdict(found)
            else:
                keys.setdefault(json.dumps(found, sort_keys=True), []).append(key)
        pairs = [(builder.among(value.get("key"), keys[found]), verdict(json.loads(found))) for found in keys]
    except (Unreadable, TypeError, ValueError):
        return Verdict(UNJUDGED)
    return VerdictMap(tuple(pairs), rest)


def _named_set(value: Mapping[str, Any]) -> NamedSet:
    """Packets add to a dynamic set, and a set with a limit of its own counts them."""
    held = value.get("elem", [])
    statements = value.get("stmt", [])
    counting = [one for one in statements if set(one) != {"counter"}]
    certain = "dynamic" not in _flags(value) and not counting
    return NamedSet(tuple(held) if isinstance(held, list) else (held,), certain)
