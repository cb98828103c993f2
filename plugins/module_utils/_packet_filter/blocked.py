# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports a host's own rules block for new TCP connections.  Pure.

A connection is followed through all hooks: its first packet, the answer, and what both ends send afterwards.  Rules are
walked with the set of all ports at once.  Where it is not known whether a rule applies, ports go both ways; what
happens to them on all ways is their outcome, and where ways differ it is ``unknown``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import packet, ports, ruleset, text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.conditions import Condition, fits
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.packet import INBOUND, Packet, Truth
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.ruleset import (
    DROP,
    REJECT,
    RESET,
    UNKNOWN,
    Chain,
    Rule,
    Ruleset,
    Verdict,
    VerdictMap,
)

#: The kernel allows jumps 16 deep (NFT_JUMP_STACK_SIZE of linux/netfilter/nf_tables.h).
DEEPEST = 16
#: What a peer sees of ports that are blocked in several ways: one rejection is enough to see that it is one.
STRONGEST = (REJECT, RESET, DROP)

INCOMING = ("ingress", "prerouting", "input")
OUTGOING = ("output", "postrouting", "egress")


@dataclass(frozen=True)
class Block:
    """Ports ``first`` to ``last`` that are blocked, how, and the text of the rule.

    verdict: ``drop`` (no answer, or connections that stall), ``reject`` (an ICMP error: unreachable), ``reset``
    (refused, as by a closed port) or ``unknown`` (the rules are not understood, or depend on what nobody knows before).
    """

    first: int
    last: int
    verdict: str
    rule: str

    def as_dict(self) -> dict[str, Any]:
        return {"first": self.first, "last": self.last, "verdict": self.verdict, "rule": self.rule}


class Outcome(NamedTuple):
    """What a rule does to ports on one of their ways."""

    verdict: str
    ports: int
    rule: str


class _Walk:
    """One packet, for all ports, through the hooks of one direction."""

    def __init__(self, rules: Ruleset, asked: Packet, blurred: dict[str, int]) -> None:
        self.rules, self.asked, self.blurred = rules, asked, blurred
        self.outcomes: list[Outcome] = []
        #: What rules of the hook ``input`` let in, and what rules send elsewhere, such as to a container.
        self.admitted: list[Outcome] = []
        self.sent_on: list[Outcome] = []
        self.hook = ""
        self.accepted = ports.NONE
        self.place = ("", "")

    def run(self, alive: int) -> int:
        """The ports among ``alive`` that may get through."""
        for hook in INCOMING if self.asked.incoming else OUTGOING:
            for chain in self.rules.bases:
                if chain.hook != hook or not alive:
                    continue
                if chain.family in ("arp", "bridge"):
                    self._beside(chain, alive)
                elif chain.family in ruleset.FAMILIES[self.asked.way.version]:
                    alive = self._base(chain, alive)
        return alive

    def _base(self, chain: Chain, alive: int) -> int:
        self.hook = chain.hook
        applies = self._applies(chain)
        if applies == packet.NO or (chain.kind == "nat" and not self.asked.kind.new):
            return alive
        self.accepted, self.place = ports.NONE, chain.place
        rest = self._chain(chain, alive, 0)
        if chain.policy == DROP and rest:
            self._outcome(DROP, rest, text.policy(chain.family, chain.table, chain.name, DROP))
            rest = ports.NONE
        if applies == packet.YES:
            return self.accepted | rest
        # A chain of an interface below ours: it sees the packets in another form, or only some of them.
        return alive

    def _applies(self, chain: Chain) -> Truth:
        """Whether a chain sees the packets at all: those of one device see only what passes it."""
        if not chain.devices:
            return packet.YES
        name = self.asked.way.interface
        if not name:
            return packet.UNKNOWN
        if _is_one_of(name, chain.devices):
            return packet.YES
        return packet.UNKNOWN if any(_is_one_of(one, chain.devices) for one in self._all_below(name)) else packet.NO

    def _all_below(self, name: str) -> set[str]:
        found: set[str] = set()
        left = [name]
        while left:
            for one in self.rules.below.get(left.pop(), ()):
                if one not in found:
                    found.add(one)
                    left.append(one)
        return found

    def _beside(self, chain: Chain, alive: int) -> None:
        """Rules for ARP, and for frames of a bridge: TCP depends on them, in a way that is not followed here."""
        name = self.asked.way.interface
        if chain.family == "bridge" and name and not ({name, *self._all_below(name)} & self.rules.bridges):
            return
        reached = [one for one in self.rules.chains.values() if one.place == chain.place]
        for rule in (rule for one in reached for rule in one.rules):
            if any(_may_block(step) for step in rule.steps):
                self._outcome(UNKNOWN, alive, rule.text)
                return
        if chain.policy == DROP:
            self._outcome(UNKNOWN, alive, text.policy(chain.family, chain.table, chain.name, DROP))

    def _chain(self, chain: Chain, alive: int, depth: int) -> int:
        """The ports that come out at the end of a chain, or return from it."""
        returned = ports.NONE
        for rule in chain.rules:
            if not alive:
                break
            alive, back = self._rule(rule, alive, depth)
            returned |= back
        return alive | returned

    def _rule(self, rule: Rule, alive: int, depth: int) -> tuple[int, int]:
        """The ports that go on to the next rule, and those that return."""
        surely, maybe, returned = alive, alive, ports.NONE
        for step in rule.steps:
            if not maybe:
                break
            if isinstance(step, Condition):
                found = self._truth(step)
                surely, maybe = surely & found.surely, maybe & found.maybe
            elif isinstance(step, VerdictMap):
                gone, back = self._map(step, rule, Truth(surely, maybe), depth)
                return alive & ~gone, returned | back
            else:
                gone, back = self._verdict(step, rule, Truth(surely, maybe), depth)
                alive, surely, returned = alive & ~gone, surely & ~gone, returned | back
                if step.kind == ruleset.UNJUDGED:
                    surely = ports.NONE
        return alive, returned

    def _truth(self, condition: Condition) -> Truth:
        surely, maybe = condition.truth(self.asked)
        for what in condition.depends:
            changed = self.blurred.get(what, ports.NONE)
            surely, maybe = surely & ~changed, maybe | changed
        return Truth(surely, maybe)

    def _map(self, step: VerdictMap, rule: Rule, reached: Truth, depth: int) -> tuple[int, int]:
        gone = returned = ports.NONE
        covered, touched = ports.NONE, ports.NONE
        for condition, verdict in step.pairs:
            found = self._truth(condition)
            here = Truth(reached.surely & found.surely, reached.maybe & found.maybe)
            covered, touched = covered | found.surely, touched | found.maybe
            if here.maybe:
                ended, back = self._verdict(verdict, rule, here, depth)
                gone, returned = gone | ended, returned | back
        if step.rest is not None:
            here = Truth(reached.surely & ~touched, reached.maybe & ~covered)
            ended, back = self._verdict(step.rest, rule, here, depth)
            gone, returned = gone | ended, returned | back
        return gone, returned

    def _verdict(self, verdict: Verdict, rule: Rule, reached: Truth, depth: int) -> tuple[int, int]:
        """What a verdict does: the ports that surely do not go on to the next rule, and those that may return."""
        surely, maybe = reached
        if verdict.target == ruleset.SENT_ON:
            self.sent_on.append(Outcome(ruleset.ACCEPT, maybe, rule.text))
        if verdict.kind == ruleset.ACCEPT:
            self.accepted |= maybe
            if self.hook == "input":
                self.admitted.append(Outcome(ruleset.ACCEPT, maybe, rule.text))
        elif verdict.kind == ruleset.RETURN:
            return surely, maybe
        elif verdict.kind == ruleset.BLUR:
            self.blurred[verdict.target] = self.blurred.get(verdict.target, ports.NONE) | maybe
            return ports.NONE, ports.NONE
        elif verdict.kind == ruleset.CONTINUE:
            return ports.NONE, ports.NONE
        elif verdict.kind == ruleset.UNJUDGED:
            self._outcome(UNKNOWN, maybe, rule.text)
            return ports.NONE, ports.NONE
        elif verdict.kind in (ruleset.JUMP, ruleset.GOTO):
            return self._other_chain(verdict, rule, reached, depth)
        else:
            self._outcome(verdict.kind, maybe, rule.text)
        return surely, ports.NONE

    def _other_chain(self, verdict: Verdict, rule: Rule, reached: Truth, depth: int) -> tuple[int, int]:
        surely, maybe = reached
        target = self.rules.chains.get((self.place, verdict.target))
        if target is None or depth >= DEEPEST:
            self._outcome(UNKNOWN, maybe, rule.text)
            return ports.NONE, ports.NONE
        out = self._chain(target, maybe, depth + 1)
        if verdict.kind == ruleset.GOTO:
            return surely, out
        return surely & ~out, ports.NONE

    def _outcome(self, verdict: str, reached: int, rule: str) -> None:
        if reached:
            self.outcomes.append(Outcome(verdict, reached, rule))


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fits(name, one) for one in patterns)


def _may_block(step: Any) -> bool:
    if isinstance(step, VerdictMap):
        return True
    return isinstance(step, Verdict) and step.kind in (DROP, REJECT, RESET, UNKNOWN, ruleset.UNJUDGED)


def _followed(rules: Ruleset, way: packet.Way, direction: str) -> tuple[int, list[Outcome]]:
    """The ports that may get through all the way, and what may happen to ports."""
    coming = direction == INBOUND
    there, back = rules.residuals(way), rules.residuals(way.back())
    alive = ports.ALL
    blurred: dict[str, int] = {}
    outcomes: list[Outcome] = []
    for kind in (packet.REQUEST, packet.ANSWER, packet.DATA, packet.DATA_BACK):
        known = Packet(
            kind,
            way.back() if kind.reply else way,
            coming != kind.reply,
            back if kind.reply else there,
        )
        walk = _Walk(rules, known, blurred)
        alive = walk.run(alive)
        # What stops an answer is not seen by who waits for it.
        outcomes += [
            one if kind is packet.REQUEST or one.verdict == UNKNOWN else one._replace(verdict=DROP)
            for one in walk.outcomes
        ]
    return alive, outcomes


def _judged(open_ports: int, outcomes: Sequence[Outcome]) -> list[Block]:
    """From everything that may happen to the ports to what can be said about them."""
    by_verdict = dict.fromkeys((*STRONGEST, UNKNOWN), ports.NONE)
    for one in outcomes:
        by_verdict[one.verdict] |= one.ports
    stopped = by_verdict[DROP] | by_verdict[REJECT] | by_verdict[RESET]
    unsure = by_verdict[UNKNOWN] | (open_ports & stopped)
    left: dict[str, int] = {}
    taken = unsure
    for verdict in STRONGEST:
        left[verdict] = by_verdict[verdict] & ~taken
        taken |= left[verdict]
    left[UNKNOWN] = unsure
    found = []
    for one in outcomes:
        # Unsure ports are explained by the first rule that may stop them.
        for verdict in (one.verdict, UNKNOWN):
            here = one.ports & left[verdict]
            left[verdict] &= ~here
            found += [Block(first, last, verdict, one.rule) for first, last in ports.intervals(here)]
    return sorted(found, key=lambda block: block.first)


class Asker:
    """Answers for many peers; peers that the rules do not tell apart are worked out once."""

    def __init__(self, rules: Ruleset) -> None:
        self.rules = rules
        self.answers: dict[Any, list[Block]] = {}

    def blocked(
        self,
        *,
        source: str,
        destination: str,
        interface: str,
        direction: str,
        answers_leave_by: str | None = None,
    ) -> list[Block]:
        """All ports that are blocked on the way from ``source`` to ``destination``, in order."""
        start, end = ipaddress.ip_address(source), ipaddress.ip_address(destination)
        if start.version != end.version:
            raise ValueError(f"{source} and {destination} are of different IP versions")
        way = packet.Way(start.version, int(start), int(end), interface, answers_leave_by)
        alike = (
            start.version,
            interface,
            answers_leave_by,
            direction,
            self.rules.residuals(way),
            self.rules.residuals(way.back()),
        )
        if alike not in self.answers:
            self.answers[alike] = _judged(*_followed(self.rules, way, direction))
        return self.answers[alike]


def admitted(rules: Ruleset, *, source: str, destination: str, interface: str) -> list[tuple[str, bool, int]]:
    """What surely gets in from ``source``, as a rule, whether it sends the packets elsewhere, and a set of ports.

    The rule is empty for ports that none accepts and none stops.  What is sent elsewhere may be so: of some rules of
    iptables only the name is printed.  One that then seems to be about all ports says nothing.
    """
    start, end = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    way = packet.Way(start.version, int(start), int(end), interface, answers_leave_by=interface)
    walk = _Walk(rules, Packet(packet.REQUEST, way, True, rules.residuals(way)), {})
    left = walk.run(ports.ALL)
    for one in walk.outcomes:
        left &= ~one.ports
    found = [(one.rule, True, one.ports) for one in walk.sent_on if one.ports not in (ports.NONE, ports.ALL)]
    # The last chain that accepts decides.
    for one in reversed(walk.admitted):
        if left & one.ports:
            found.append((one.rule, False, left & one.ports))
            left &= ~one.ports
    return [*found, ("", False, left)] if left else found


def within(blocks: Iterable[Block], ranges: Iterable[tuple[int, int]]) -> list[Block]:
    """The parts of blocks that lie in one of the ranges (merged, in order)."""
    spans = list(ranges)
    return [
        Block(max(block.first, first), min(block.last, last), block.verdict, block.rule)
        for block in blocks
        for first, last in spans
        if block.first <= last and first <= block.last
    ]


def blocked_ports(
    objects: Iterable[Mapping[str, Any]],
    *,
    source: str,
    destination: str,
    interface: str,
    direction: str,
    first: int = ports.FIRST,
    last: int = ports.LAST,
) -> list[Block]:
    """The blocked ports between ``first`` and ``last`` for new TCP connections, in order.

    objects: the list under ``nftables``.  source and destination: addresses.  interface: where they come in, or go out.
    direction: ``inbound`` (to this host) or ``outbound``.  For more than one question use ``Asker``.
    """
    asker = Asker(ruleset.compiled(objects))
    found = asker.blocked(source=source, destination=destination, interface=interface, direction=direction)
    return within(found, [(first, last)])
