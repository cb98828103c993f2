# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the nodes' own rules block to findings, and to answers for other findings.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import (
    CLUSTER,
    DIRECTION,
    GROUP,
    Finding,
    Subject,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.packet import INBOUND, OUTBOUND
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.ruleset import (
    DROP,
    REJECT,
    RESET,
    UNKNOWN,
)

Static = Mapping[str, Mapping[str, Any]]
Interval = tuple[int, int]

PERMITS = "permits"
BLOCKS = "blocks"

IDS = {INBOUND: "GC-FW-001", OUTBOUND: "GC-FW-002"}
VERBS = {DROP: "drops", REJECT: "rejects", RESET: "refuses"}
#: A rule is the same everywhere, so that the texts of a few are enough.
MOST_RULES = 4
EVERYTHING = ((ports.FIRST, ports.LAST),)


@dataclass(frozen=True)
class Permit:
    """What the rules of both ends say to connections from one member to another.

    answer: ``permits``, ``blocks`` or ``unknown``.  With ``blocks``: the host whose rule it is, in which direction of
    that host, which of the ports, how (``drop``, ``reject``, ``reset``), and the rule.  With ``unknown``: why, in
    ``rule``; suspects: hosts and what there is on them that may block, and that nobody can judge.
    """

    answer: str
    host: str = ""
    direction: str = ""
    verdict: str = ""
    rule: str = ""
    ports: tuple[Interval, ...] = ()
    suspects: tuple[tuple[str, str], ...] = ()


#: For an inventory that narrows what the playbooks hand over.
FIX_OVERRIDE = (
    "where the inventory sets cluster_firewall_ports, remove that first: it replaces the ports of gpu_cluster_ports, "
    "and gpu_cluster_ports.extra_ports is the place for further ones"
)


@dataclass(frozen=True)
class Remedy:
    """What opens ports that a rule blocks.  variables: those of this collection that do it, by host; may be empty."""

    fix: str
    command: str = ""
    variables: dict[str, dict[str, Any]] = field(default_factory=dict)
    look: str = ""


@dataclass(frozen=True)
class _Held:
    """What one host blocks in one direction: the ports, how, by which rules, for which peers."""

    ports: tuple[Interval, ...]
    verdicts: tuple[str, ...]
    rules: tuple[str, ...]
    peers: tuple[str, ...]
    everybody: bool


def permits(static: Static, source: str, target: str, wanted: Iterable[Interval]) -> Permit:
    """Whether the hosts' own rules let connections from ``source`` to these ports of ``target`` through.

    Only the ranges of the plan were judged; for other ports the answer is ``unknown``.
    """
    asked = _set(wanted)
    doubt: Permit | None = None
    suspects: list[tuple[str, str]] = []
    for host, direction, peer in ((target, INBOUND, source), (source, OUTBOUND, target)):
        found = static.get(host, {}).get("packet_filter") or {}
        if not found.get("readable"):
            why = found.get("why") or "not read"
            doubt = doubt or Permit(UNKNOWN, host, direction, rule=why)
            suspects += [(host, why)] if found.get("why") else []
            continue
        for program in static[host].get("packet_programs", ()):
            doubt = doubt or Permit(UNKNOWN, host, direction, rule=program)
            suspects.append((host, program))
        for block in found.get(direction, {}).get(peer, []):
            here = ports.span(block["first"], block["last"]) & asked
            if here and block["verdict"] != UNKNOWN:
                return Permit(BLOCKS, host, direction, block["verdict"], block["rule"], tuple(ports.intervals(here)))
            if here:
                doubt = doubt or Permit(UNKNOWN, host, direction, rule=block["rule"])
                suspects.append((host, block["rule"]))
        if asked & ~_set(found.get("judged", EVERYTHING)):
            doubt = doubt or Permit(UNKNOWN, host, direction, rule="ports outside of the plan were not looked at")
    return replace(doubt, suspects=tuple(suspects)) if doubt else Permit(PERMITS)


def blocks_everybody(static: Static, host: str, direction: str, wanted: Iterable[Interval]) -> bool:
    """Whether the host's own rules block some of these ports for every other member."""
    held = _held(static, host, direction, _set(wanted))
    return held is not None and held.everybody


def remedy(hosts: Sequence[str], direction: str, rule: str, *, everybody: bool = True) -> Remedy:
    """What opens the ports of the plan on hosts that block them by ``rule`` (its text).

    everybody: whether they block them for all members; where they let others in, it is not the ports that are wrong.
    """
    family, table, chain = [*rule.partition(":")[0].split(), "", "", ""][:3]
    role = fixes.site("cluster_firewall", hosts)
    if table == "firewalld" and " fib " in rule:
        return Remedy(
            "firewalld's reverse-path filter for IPv6 drops what comes in by another interface than answers leave by; "
            "give each rail its own subnet, or let the role make the filter loose",
            role,
            {host: {"cluster_firewall_ipv6_rpfilter": "loose"} for host in hosts},
        )
    if table == "firewalld" and direction == INBOUND and chain.startswith("filter_IN"):
        fix = "open the ports of the plan to the members with the role cluster_firewall"
        if not everybody:
            return Remedy(f"{fix}; others are let in: see that cluster_firewall_peers has the addresses of all", role)
        # Never the ports as a variable: an inventory that repeats the plan contradicts the next one.
        return Remedy(f"{fix}; {FIX_OVERRIDE}", role)
    owner = "firewalld, in a part of it that" if table == "firewalld" else f"the table '{family} {table}', which"
    return Remedy(
        f"remove the rule, or let the members through before it: it belongs to {owner} this collection does not manage",
        look=fixes.look(hosts, f"nft -a list chain {family} {table} {chain}"),
    )


def findings(static: Static, plan: Mapping[str, Any], mesh: Iterable[Finding] = ()) -> list[Finding]:
    """What the nodes' own rules block of the port plan.

    static: host to the result of the static stage.  plan: the port plan as a dictionary.  mesh: what the probes found;
    what they named is left out, since they saw more.
    """
    seen = list(mesh)
    found: list[Finding] = []
    for direction in (INBOUND, OUTBOUND):
        alike: dict[_Held, list[str]] = {}
        for host in static:
            held = _held(static, host, direction, _set(plan_ranges(plan)))
            if held is not None and not _named(seen, host, direction, held):
                # Where everybody is blocked, hosts are alike although each has other peers.
                alike.setdefault(held, []).append(host)
        found += [_finding(direction, hosts, held, static, plan) for held, hosts in alike.items()]
    return found


def notes(static: Static) -> list[str]:
    """One sentence for each reason why rules were not judged."""
    reasons: dict[str, list[str]] = {}
    for host, result in static.items():
        found = result.get("packet_filter") or {}
        if not found:
            continue
        if not found.get("readable"):
            reasons.setdefault(f"could not be read: {found.get('why', '')}", []).append(host)
            continue
        blocks = [block for way in (INBOUND, OUTBOUND) for held in found.get(way, {}).values() for block in held]
        certain = {block["rule"] for block in blocks if block["verdict"] != UNKNOWN}
        # A rule without connection tracking may drop answers as well: it is named for what it surely blocks.
        unknown = {block["rule"] for block in blocks} - certain
        for rule in sorted(unknown):
            reasons.setdefault(f"cannot be judged beforehand: {rule}", []).append(host)
    return [f"the packet filter of {', '.join(hosts)} {reason}" for reason, hosts in reasons.items()]


def plan_ranges(plan: Mapping[str, Any]) -> list[Interval]:
    """The TCP ports of the plan, merged and in order."""
    spans = [plan[name] for name in ("rendezvous", "ephemeral", "mpi") if name in plan]
    spans += [span for span in plan.get("extra_ports", []) if span.get("protocol", "tcp") == "tcp"]
    return list(ports.intervals(_set((span["first"], span["last"]) for span in spans)))


def _set(spans: Iterable[Sequence[int]]) -> int:
    found = ports.NONE
    for first, last in spans:
        found |= ports.span(first, last)
    return found


def _held(static: Static, host: str, direction: str, wanted: int) -> _Held | None:
    """What a host surely blocks of the wanted ports; None: nothing."""
    blocked: dict[str, list[tuple[int, str, str]]] = {}
    for peer, blocks in ((static[host].get("packet_filter") or {}).get(direction) or {}).items():
        for block in blocks:
            here = ports.span(block["first"], block["last"]) & wanted
            if here and block["verdict"] != UNKNOWN and peer != host:
                blocked.setdefault(peer, []).append((here, block["verdict"], block["rule"]))
    if not blocked:
        return None
    rows = [row for found in blocked.values() for row in found]
    together = ports.NONE
    for here, _verdict, _rule in rows:
        together |= here
    everybody = set(blocked) >= set(static) - {host}
    return _Held(
        tuple(ports.intervals(together)),
        tuple(sorted({verdict for _here, verdict, _rule in rows})),
        tuple(dict.fromkeys(rule for _here, _verdict, rule in rows)),
        () if everybody else tuple(blocked),
        everybody,
    )


def _named(mesh: Iterable[Finding], host: str, direction: str, held: _Held) -> bool:
    """Whether a finding of the mesh is about the same, or names the same rules."""
    for one in mesh:
        about = one.about
        same = host in (*one.hosts, *about.nodes) and about.direction in ("", direction)
        if same and one.severity == ERROR and (not about.ports or _set(about.ports) & _set(held.ports)):
            return True
        if host in one.hosts and all(any(rule in line for line in one.evidence) for rule in held.rules):
            return True
    return False


def _finding(direction: str, hosts: Sequence[str], held: _Held, static: Static, plan: Mapping[str, Any]) -> Finding:
    verb = VERBS[held.verdicts[0]] if len(held.verdicts) == 1 else "blocks"
    subject = f"all {len(hosts)} nodes" if len(hosts) == len(static) > 1 else ", ".join(hosts)
    who = "all members" if held.everybody else ", ".join(held.peers)
    way = f"connections from {who} to" if direction == INBOUND else f"connections to {who} on"
    where = ", ".join(f"{first}-{last}" if first != last else str(first) for first, last in held.ports)
    cure = remedy(hosts, direction, held.rules[0], everybody=held.everybody)
    evidence = [f"rule on {hosts[0]}: {rule}" for rule in held.rules[:MOST_RULES]]
    if len(held.rules) > MOST_RULES:
        evidence.append(f"and {len(held.rules) - MOST_RULES} more rules")
    kind = DIRECTION if len(hosts) == 1 else CLUSTER if len(hosts) == len(static) else GROUP
    return Finding(
        IDS[direction],
        tuple(hosts),
        f"the packet filter of {subject} {verb} new TCP {way} ports {where}",
        cure.fix,
        tuple(evidence),
        subject=Subject(kind, tuple(hosts), direction, held.ports),
        ruled_out=("the network between the nodes: no packet was sent, the rules of the node say so",),
        variables=cure.variables,
        command=cure.command,
        look=cure.look,
        reproduce=fixes.check(only_look=True),
    )
