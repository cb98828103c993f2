# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is at fault when the ranks of a cluster go wrong together: pairs of nodes, round by round.  Pure.

All pairs of a round run at the same time, and no node is in two of them.

1. All nodes in pairs.  The nodes of a pair that passes are known good.
2. Every other node with a known good partner, until it has passed once, or has failed with two partners.
3. Where all nodes that share a label fail with all others: these among each other.
4. Where nothing fails: neighbours in rank order, between which a ring has its data, and in a small cluster all pairs.
5. Where a pair fails whose nodes pass with others, or none passes: every node with every other one (circle method).

    while step := next_round(nodes, rounds, labels, named):
        rounds.append(...)
    found = conclude(nodes, rounds, labels)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import set_cover
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.set_cover import Label

Pair = tuple[str, str]
Labels = Mapping[str, Mapping[str, str]]

PASSED = "passed"
FAILED = "failed"
LOST = "lost"
SLOW = "slow"

ALL_NODES = "all nodes"
SUSPECTS = "suspects with known good partners"
AMONG = "nodes of one label among each other"
NEIGHBOURS = "neighbours in rank order"
CIRCLE = "every node with every other one"

#: The circle method is left to so many nodes, which are one round less.
CIRCLE_NODES = 8
#: When no pair at all has passed in so many rounds, none will.
NONE_PASSED = 5
#: More rounds than the passes and one circle need are not run.
MOST_ROUNDS = 16
#: What cover.py needs to know of a link that is bad: here it is no question of ports.
_SPANS = ((1, 1),)


@dataclass(frozen=True)
class Tried:
    """One pair of a round.

    result: ``PASSED``, ``FAILED``, ``SLOW`` where both were at work when their time was over, which tells nothing of
    them, or ``LOST`` where a node gave no answer or its worker died, which tells nothing of the other.  lost: those
    nodes.  why: what its ranks said.
    """

    nodes: Pair
    result: str
    why: str = ""
    lost: tuple[str, ...] = ()


Rounds = Sequence[Sequence[Tried]]


@dataclass(frozen=True)
class Step:
    """What to try next.  name: why these pairs."""

    name: str
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Culprit:
    """One explanation of failed pairs.

    kind: a constant of cover.py: a node, a link (these two with each other only), a group, or all.  nodes: whom it is
    about.  labels: of a group: one, or the two between which pairs fail.  direction: of a group, as cover.py has it.
    failed, passed: the pairs that it would make fail, by what they did.
    """

    kind: str
    nodes: tuple[str, ...]
    failed: tuple[Pair, ...]
    passed: tuple[Pair, ...] = ()
    labels: tuple[Label, ...] = ()
    direction: str = ""


def next_round(nodes: Sequence[str], rounds: Rounds, labels: Labels, named: bool = False) -> Step | None:
    """The pairs to try next, or None when nothing more can be learned.

    nodes: all participants, in rank order.  labels: host to its labels.  named: whether the ranks have named somebody
    already; when all pairs pass then, there is nothing left to look for.
    """
    if not rounds:
        return Step(ALL_NODES, tuple(first_pairs(nodes))) if len(nodes) > 1 else None
    known = _Known(nodes, rounds)
    if len(rounds) >= MOST_ROUNDS or len(known.left) < 2:
        return None
    for name, pairs in _choices(known, rounds, labels, named):
        if pairs:
            return Step(name, tuple(pairs))
    return None


def first_pairs(nodes: Sequence[str]) -> list[Pair]:
    """All nodes in pairs of nodes that lie far apart, without the last one of an odd number.

    Neighbours in an inventory share a rack more often than not, and the way between racks is to be used too.
    """
    half = len(nodes) // 2
    return [(nodes[number], nodes[number + half]) for number in range(half)]


def circle(nodes: Sequence[str]) -> list[list[Pair]]:
    """Rounds of disjoint pairs in which every node meets every other one once: one round less than nodes, if even."""
    seats: list[str | None] = [*nodes, None] if len(nodes) % 2 else [*nodes]
    rounds = []
    for _number in range(len(seats) - 1):
        facing = zip(seats[: len(seats) // 2], reversed(seats))
        rounds.append([(one, other) for one, other in facing if one is not None and other is not None])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return rounds


class _Known:
    """What follows from the rounds so far."""

    def __init__(self, nodes: Sequence[str], rounds: Rounds) -> None:
        tried = [one for each in rounds for one in each]
        gone = {host for one in tried for host in one.lost}
        self.left = [node for node in nodes if node not in gone]
        self.results: dict[frozenset[str], list[str]] = {}
        for one in tried:
            if one.result != LOST:
                self.results.setdefault(frozenset(one.nodes), []).append(one.result)
        self.good = {node for pair, results in self.results.items() if PASSED in results for node in pair}
        self.bad = [node for node in nodes if self._is_bad(node)]
        self.place = {node: number for number, node in enumerate(nodes)}

    def _is_bad(self, node: str) -> bool:
        """Whether it has failed with two partners and never passed; one of the two is known to pass with others."""
        failed = [pair for pair, results in self.results.items() if node in pair and FAILED in results]
        partners = [other for pair in failed for other in pair - {node}]
        return node not in self.good and len(partners) > 1 and any(other in self.good for other in partners)

    @property
    def open(self) -> list[str]:
        """Nodes of which it is not known yet whether they are good."""
        return [node for node in self.left if node not in self.good and node not in self.bad]

    def was_tried(self, one: str, other: str) -> bool:
        return frozenset((one, other)) in self.results

    def pairs(self, result: str, without: Iterable[str] = ()) -> list[Pair]:
        """The pairs that ended so the last time, in the order of the nodes."""
        out = set(without)
        found = [
            sorted(pair, key=lambda node: self.place[node])
            for pair, results in self.results.items()
            if results[-1] == result and not pair & out
        ]
        return sorted(((one, other) for one, other in found), key=lambda pair: [self.place[node] for node in pair])

    def failed_once(self) -> set[frozenset[str]]:
        """Pairs that failed when they were tried, which was once."""
        return {pair for pair, results in self.results.items() if results == [FAILED]}


def _choices(known: _Known, rounds: Rounds, labels: Labels, named: bool) -> Iterator[tuple[str, list[Pair]]]:
    """What may be tried, the most telling first; empty where that is done."""
    if known.open:
        yield SUSPECTS, _suspects(known)
        if not known.good and len(rounds) < NONE_PASSED:
            yield CIRCLE, _circle(known, known.left)
        return
    yield AMONG, _among(known, labels)
    between_good = known.pairs(FAILED, without=known.bad)
    if between_good:
        if any(cause.kind != set_cover.GROUP for cause in _explained(known, labels)):
            yield CIRCLE, _circle(known, _closest(known, between_good, labels))
    elif not known.bad and not named:
        yield NEIGHBOURS, _neighbours(known)
        if len(known.left) <= CIRCLE_NODES:
            yield CIRCLE, _circle(known, known.left)


def _suspects(known: _Known) -> list[Pair]:
    """Each open node with a known good one that it has not met, as many as there are partners."""
    free = [node for node in known.left if node in known.good]
    pairs: list[Pair] = []
    for node in known.open:
        partner = next((other for other in free if not known.was_tried(node, other)), None)
        if partner is not None:
            free.remove(partner)
            pairs.append((node, partner))
    return pairs


def _among(known: _Known, labels: Labels) -> list[Pair]:
    """Bad nodes with others of their label, where all nodes with that label fail with all others.

    It may be the way out of the group that fails, and no node.
    """
    busy: set[str] = set()
    pairs: list[Pair] = []
    for group in _groups(known.left, labels):
        if not _cut_off(known, set(group)):
            continue
        for node in group:
            if node in busy or node not in known.bad or any(known.was_tried(node, other) for other in group):
                continue
            partner = next((other for other in group if other != node and other not in busy), None)
            if partner is not None:
                busy.update((node, partner))
                pairs.append((node, partner))
    return pairs


def _groups(nodes: Sequence[str], labels: Labels) -> list[list[str]]:
    """The nodes of each label, of which there are at least two, and others without it."""
    found: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        for name, value in labels.get(node, {}).items():
            found.setdefault((name, value), []).append(node)
    return [found[label] for label in sorted(found) if 2 <= len(found[label]) < len(nodes)]


def _cut_off(known: _Known, group: set[str]) -> bool:
    """Whether every node of a group has failed with one outside of it, and none has passed with one."""
    failed: set[str] = set()
    for pair, results in known.results.items():
        inside = pair & group
        if len(inside) == 1:
            if PASSED in results:
                return False
            failed |= inside
    return failed >= group


def _neighbours(known: _Known) -> list[Pair]:
    """The next neighbours in rank order that have not met; the last one and the first are neighbours too."""
    busy: set[str] = set()
    pairs: list[Pair] = []
    for one, other in zip(known.left, [*known.left[1:], known.left[0]]):
        if one not in busy and other not in busy and not known.was_tried(one, other):
            busy.update((one, other))
            pairs.append((one, other))
    return pairs


def _circle(known: _Known, nodes: Sequence[str]) -> list[Pair]:
    """The next round of the circle method in which something is left to try.

    A pair that has failed once, though its nodes pass with others, is tried once more.
    """
    again = {pair for pair in known.failed_once() if pair <= known.good}
    for pairs in circle(nodes):
        left = [pair for pair in pairs if not known.was_tried(*pair) or frozenset(pair) in again]
        if left:
            return left
    return []


def _closest(known: _Known, failed: Sequence[Pair], labels: Labels) -> list[str]:
    """The nodes of failed pairs first, then those that share most labels with them; as many as a circle takes."""
    ends = {node for pair in failed for node in pair}
    shared = {label for node in ends for label in labels.get(node, {}).items()}

    def distance(node: str) -> tuple[bool, int, int]:
        return node not in ends, -len(shared & set(labels.get(node, {}).items())), known.place[node]

    fit = [node for node in known.left if node not in known.bad]
    chosen = sorted(fit, key=distance)[:CIRCLE_NODES]
    return [node for node in known.left if node in chosen]


def _explained(known: _Known, labels: Labels) -> list[set_cover.Cause]:
    """Failed pairs of nodes that pass with others, as links, groups, or nodes that fail with most."""
    failed = known.pairs(FAILED, without=known.bad)
    bad = {ends: _SPANS for pair in failed for ends in (pair, pair[::-1])}
    seen = [ends for pair in failed + known.pairs(PASSED) for ends in (pair, pair[::-1])]
    hosts = [node for node in known.place if node not in known.bad]
    return set_cover.explain(bad, seen, hosts, labels)


def conclude(nodes: Sequence[str], rounds: Rounds, labels: Labels) -> list[Culprit]:
    """What explains the failed pairs; empty when none failed, or when it was not found out."""
    known = _Known(nodes, rounds)
    failed = known.pairs(FAILED)
    if failed and not known.good:
        if known.pairs(SLOW):
            # Not every pair goes wrong, and no pair tells whose fault the others are.
            return []
        return [
            Culprit(set_cover.ALL, tuple(node for node in nodes if any(node in pair for pair in failed)), tuple(failed))
        ]
    found = [Culprit(set_cover.NODE, (node,), tuple(pair for pair in failed if node in pair)) for node in known.bad]
    passed = known.pairs(PASSED)
    for cause in _explained(known, labels):
        mine = {frozenset(ends) for ends in cause.links}
        found.append(
            Culprit(
                cause.kind,
                cause.nodes,
                tuple(pair for pair in failed if frozenset(pair) in mine),
                tuple(pair for pair in passed if cause.kind == set_cover.NODE and cause.nodes[0] in pair),
                cause.labels,
                cause.direction,
            )
        )
    return found


def undecided(nodes: Sequence[str], rounds: Rounds) -> list[str]:
    """Nodes of which the rounds did not tell whether they are good."""
    return _Known(nodes, rounds).open
