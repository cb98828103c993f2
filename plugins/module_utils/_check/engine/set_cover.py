# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad links explained by as few causes as possible.  Pure: links and ports in, causes out; no texts.

Greedy: the cause that explains most of what is open comes first, what it explains is subtracted, port by port, and so
on until only single links are left.  Everything is done twice, once with inbound and once with outbound before the
other in a tie; the answer with fewer causes counts.

What a cause would explain only gets less. So all causes that may be chosen wait in a queue, by what they would have
explained when last looked at; only the first is looked at again, and one that no longer fits is gone for good.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Callable, Optional

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import intervals
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.intervals import Spans
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Ends

# A node is blamed for a row or column of the mesh when at least this share of it is bad. A node that is really blocked
# fails for all peers, one that is not fails only for those that are, so the exact value matters little.
NODE_SHARE = 0.6
# A group claims more than a node does: nearly all its links must be bad, and NODE_SHARE of those of each end.
GROUP_SHARE = 0.9
# With fewer open links no group is looked for.
GROUP_LINKS = 4

ALL = "all"
NODE = "node"
LINK = "link"
GROUP = "group"
ALIKE = "alike"

INBOUND = "inbound"
OUTBOUND = "outbound"
BOTH = "both"
# Only of a group: between it and the others, or among its own nodes.
INTO = "into"
OUT_OF = "out of"
ACROSS = "across"
WITHIN = "within"


@dataclass(frozen=True)
class Label:
    """A property that hosts share, such as rack=r3.  text: how it is written."""

    name: str
    value: str

    @property
    def text(self) -> str:
        """``rack=r3``; of ``group:blue`` only ``group=blue`` (host_labels.py)."""
        return f"{self.name.partition(':')[0]}={self.value}"


# Whether a link belongs to a group, from whether its source and its target do.
_WANTED: Mapping[str, Callable[[bool, bool], bool]] = {
    INBOUND: lambda source, target: target,
    OUTBOUND: lambda source, target: source,
    ACROSS: lambda source, target: source != target,
    INTO: lambda source, target: target and not source,
    OUT_OF: lambda source, target: source and not target,
    WITHIN: lambda source, target: source and target,
}
# Links by the values that one label has at their two ends.
_Buckets = dict[tuple[Optional[str], Optional[str]], list[Ends]]


@dataclass(frozen=True)
class Cause:
    """One explanation.

    kind: one of the constants above.  nodes: whom it is about, of a link first the source.  direction: see above; of a
    link empty or ``both``.  labels: one of a group, two when it is about the links from the first to the second.
    links: those it explains; of: how many links of this kind there are.  ports: what is blocked on them.
    """

    kind: str
    nodes: tuple[str, ...]
    direction: str
    links: tuple[Ends, ...]
    of: int
    ports: Spans = ()
    labels: tuple[Label, ...] = ()

    @property
    def share(self) -> float:
        """How much of what the cause would close is closed, above 0, at most 1."""
        return len(self.links) / max(1, self.of)


def explain(
    bad: Mapping[Ends, Spans],
    observed: Iterable[Ends],
    hosts: Sequence[str],
    labels: Mapping[str, Mapping[str, str]] | None = None,
    points: Mapping[Ends, Sequence[int]] | None = None,
) -> list[Cause]:
    """The causes of ``bad``, the widest first.

    bad: link to its blocked ports.  observed: all links that were looked at.  hosts: in the order of the report.
    labels: host to its labels.  points: link to the ports that were seen failing for sure; what a cause leaves open on
    a link asks for another cause only when it holds one of them (default: all of ``bad``).
    """
    every = set(observed)
    groups = list(_groups(bad, every, hosts, labels or {}))
    found = [_Greedy(bad, every, hosts, groups, points, first).run() for first in (INBOUND, OUTBOUND)]
    return _alike(_both_ways(min(found, key=len)), len(hosts))


@dataclass(frozen=True)
class _Candidate:
    """A cause that may be chosen.

    bad: its bad links, whether explained already or not.  every: of a group, every link it has.  Both are in parts, for
    there are many candidates and the lists are long.
    """

    kind: str
    nodes: tuple[str, ...]
    direction: str
    bad: tuple[Sequence[Ends], ...]
    of: int
    labels: tuple[Label, ...] = ()
    every: tuple[Sequence[Ends], ...] = ()

    @property
    def subject(self) -> tuple[object, ...]:
        return (self.kind, self.nodes, self.direction, self.labels)

    @property
    def links(self) -> Iterator[Ends]:
        return itertools.chain.from_iterable(self.bad)

    @property
    def size(self) -> int:
        return sum(len(part) for part in self.bad)

    def is_enough(self, links: int) -> bool:
        """Whether it may be blamed for so many bad links."""
        return links >= {ALL: 1.0, NODE: NODE_SHARE, GROUP: GROUP_SHARE}[self.kind] * self.of


class _Greedy:
    """One pass over everything that is bad."""

    def __init__(
        self,
        bad: Mapping[Ends, Spans],
        observed: set[Ends],
        hosts: Sequence[str],
        groups: Iterable[_Candidate],
        points: Mapping[Ends, Sequence[int]] | None,
        first: str,
    ) -> None:
        self.bad = dict(bad)
        self.open = dict(bad)
        self.place = {host: number for number, host in enumerate(hosts)}
        self.points = points
        # By subject: what it explained.
        self.explained: dict[tuple[object, ...], set[Ends]] = {}
        whole = _Candidate(ALL, tuple(hosts), BOTH, (list(bad),), len(observed))
        candidates = itertools.chain([whole], _nodes(bad, observed, hosts, first), groups)
        # The most links first; of two that explain the same, the first one counts.
        self.queue = [
            (-candidate.size, number, candidate)
            for number, candidate in enumerate(candidates)
            if candidate.is_enough(candidate.size)
        ]
        heapq.heapify(self.queue)

    def run(self) -> list[Cause]:
        chosen: dict[tuple[object, ...], Cause] = {}
        while self.open:
            best, links = self._best()
            if best is None:
                break
            cause = self._take(best, links)
            known = chosen.get(best.subject)
            # The same again, for ports that differ from link to link.
            chosen[best.subject] = self._together(known, cause) if known else cause
        causes = list(chosen.values())
        for link in sorted(self.open, key=self._order):
            causes.append(Cause(LINK, link, "", (link,), 1, self.open[link]))
        return causes

    def _together(self, one: Cause, other: Cause) -> Cause:
        links = sorted({*one.links, *other.links}, key=self._order)
        return replace(one, links=tuple(links), ports=intervals.merged(one.ports + other.ports))

    def _order(self, link: Ends) -> tuple[int, int]:
        return (self.place[link[0]], self.place[link[1]])

    def _best(self) -> tuple[_Candidate | None, list[Ends]]:
        """The candidate that would explain most, if any is left, and its links."""
        while self.queue:
            known, number, candidate = heapq.heappop(self.queue)
            fresh = sum(1 for link in candidate.links if link in self.open)
            # One link is no majority, between two nodes either.
            if fresh < 2:
                continue
            if fresh < -known:
                heapq.heappush(self.queue, (-fresh, number, candidate))
                continue
            links = self._not_again(candidate)
            if self._fits(candidate, links):
                heapq.heappush(self.queue, (-fresh, number, candidate))
                return candidate, links
        return None, []

    def _not_again(self, candidate: _Candidate) -> list[Ends]:
        """Its links without those that it explained before and that are explained now."""
        before = self.explained.get(candidate.subject, set())
        return [link for link in candidate.links if link in self.open or link not in before]

    def _fits(self, candidate: _Candidate, links: Sequence[Ends]) -> bool:
        if candidate.kind == ALL:
            return len(self.open) == candidate.of
        if not candidate.is_enough(len(links)):
            return False
        return candidate.kind != GROUP or (len(self.open) >= GROUP_LINKS and _everywhere(links, candidate.every))

    def _take(self, best: _Candidate, links: Sequence[Ends]) -> Cause:
        """Make it a cause, and subtract what it explains."""
        fresh = [link for link in links if link in self.open]
        # A node searches a few of its peers only; of the others the probed ports are known, which are no measure.
        exact = [link for link in fresh if self._searched(link)]
        ports = intervals.shared([self.open[link] for link in exact or fresh], NODE_SHARE)
        if not ports:
            ports = intervals.merged(span for link in fresh for span in self.open[link])
        explained = [link for link in links if intervals.common(self.bad[link], ports)]
        self.explained.setdefault(best.subject, set()).update(explained)
        for link in links:
            if link in self.open:
                left = self._left(link, ports)
                if left:
                    self.open[link] = left
                else:
                    del self.open[link]
        return Cause(
            best.kind,
            best.nodes,
            best.direction,
            tuple(sorted(explained, key=self._order)),
            best.of,
            ports,
            best.labels,
        )

    def _searched(self, link: Ends) -> bool:
        """Whether more is known of the link than its probed ports."""
        if self.points is None:
            return True
        return bool(intervals.without(self.bad[link], [(port, port) for port in self.points.get(link, ())]))

    def _left(self, link: Ends, ports: Spans) -> Spans:
        left = intervals.without(self.open[link], ports)
        if self.points is None:
            return left
        return left if any(intervals.holds(left, port) for port in self.points.get(link, ())) else ()


def _nodes(bad: Iterable[Ends], observed: Iterable[Ends], hosts: Sequence[str], first: str) -> Iterator[_Candidate]:
    """Every node in both directions."""
    ends = (0, 1)
    of = [Counter(link[end] for link in observed) for end in ends]
    found: list[dict[str, list[Ends]]] = [{}, {}]
    for link in bad:
        for end in ends:
            found[end].setdefault(link[end], []).append(link)
    directions = [(INBOUND, 1), (OUTBOUND, 0)]
    for direction, end in directions if first == INBOUND else reversed(directions):
        for host in hosts:
            yield _Candidate(NODE, (host,), direction, (found[end].get(host, []),), of[end][host])


def _groups(
    bad: Iterable[Ends], observed: Iterable[Ends], hosts: Sequence[str], labels: Mapping[str, Mapping[str, str]]
) -> Iterator[_Candidate]:
    """Every group of every label for which enough is bad."""
    known = set(hosts)
    for name in sorted({name for own in labels.values() for name in own}, key=lambda name: (":" in name, name)):
        value_of = {host: own[name] for host, own in labels.items() if host in known and name in own}
        for one in _group_candidates(name, value_of, _buckets(bad, value_of), _buckets(observed, value_of), len(hosts)):
            if one.is_enough(one.size):
                yield one


def _buckets(links: Iterable[Ends], value_of: Mapping[str, str]) -> _Buckets:
    found: _Buckets = {}
    for link in links:
        found.setdefault((value_of.get(link[0]), value_of.get(link[1])), []).append(link)
    return found


def _touching(buckets: _Buckets) -> dict[str | None, _Buckets]:
    """The buckets of each value, at either end."""
    found: dict[str | None, _Buckets] = {}
    for ends, links in buckets.items():
        for value in ends:
            found.setdefault(value, {})[ends] = links
    return found


def _chosen(buckets: _Buckets, kind: str, value: str) -> tuple[list[Ends], ...]:
    """The links of one kind of a group."""
    return tuple(
        links for (source, target), links in buckets.items() if _WANTED[kind](source == value, target == value)
    )


def _group_candidates(
    name: str, value_of: Mapping[str, str], bad: _Buckets, observed: _Buckets, total: int
) -> Iterator[_Candidate]:
    """Every group of this label in every direction, the smaller groups first; then the links between two groups."""
    members: dict[str, list[str]] = {}
    for host, value in value_of.items():
        members.setdefault(value, []).append(host)
    bad_of, observed_of = _touching(bad), _touching(observed)
    for value in sorted(members, key=lambda one: (len(members[one]), one)):
        nodes = tuple(members[value])
        if value not in bad_of or not 2 <= len(nodes) < total:
            continue
        others = total - len(nodes)
        for kind in (INBOUND, OUTBOUND, ACROSS, INTO, OUT_OF, WITHIN):
            if (others < 2 and kind in (ACROSS, INTO, OUT_OF)) or (len(nodes) < 3 and kind == WITHIN):
                continue
            links = _chosen(bad_of[value], kind, value)
            if links:
                yield _group(nodes, kind, links, _chosen(observed_of[value], kind, value), Label(name, value))
    for (source, target), there in bad.items():
        if source is None or target is None or source == target or len(members) < 3:
            continue
        if min(len(members[source]), len(members[target])) < 2:
            continue
        nodes = tuple(members[source] + members[target])
        both = Label(name, source), Label(name, target)
        back, all_back = bad.get((target, source), []), observed.get((target, source), [])
        all_there = observed[(source, target)]
        yield _group(nodes, BOTH, (there, back), (all_there, all_back), *both)
        yield _group(nodes, "", (there,), (all_there,), *both)


def _group(
    nodes: tuple[str, ...],
    direction: str,
    bad: tuple[Sequence[Ends], ...],
    every: tuple[Sequence[Ends], ...],
    *labels: Label,
) -> _Candidate:
    return _Candidate(GROUP, nodes, direction, bad, sum(len(part) for part in every), labels, every)


def _everywhere(bad: Sequence[Ends], every: Sequence[Sequence[Ends]]) -> bool:
    """Whether each source and each target has its share of what is bad; one that has none is in the wrong group."""
    for end in (0, 1):
        count = Counter(link[end] for link in bad)
        of = Counter(link[end] for part in every for link in part)
        if any(count[node] < NODE_SHARE * total for node, total in of.items()):
            return False
    return True


def _both_ways(causes: Sequence[Cause]) -> list[Cause]:
    """One cause for a node inbound and outbound, and for both directions of a link, where the ports are the same."""
    result: list[Cause] = []
    numbers: dict[tuple[object, ...], int] = {}
    for cause in causes:
        number = numbers.get(_opposite(cause)) if cause.kind in (NODE, LINK) else None
        if number is None:
            numbers[cause.kind, cause.nodes, cause.direction, cause.ports] = len(result)
            result.append(cause)
            continue
        other = result[number]
        links = tuple(dict.fromkeys(other.links + cause.links))
        result[number] = replace(other, direction=BOTH, links=links, of=other.of + cause.of)
    return result


def _opposite(cause: Cause) -> tuple[object, ...]:
    """What tells the same of the other direction of a link or of a node."""
    if cause.kind == LINK:
        return (LINK, cause.nodes[::-1], "", cause.ports)
    return (NODE, cause.nodes, INBOUND if cause.direction == OUTBOUND else OUTBOUND, cause.ports)


def _alike(causes: Sequence[Cause], total: int) -> list[Cause]:
    """One cause in place of many when most nodes, and three at least, have the same trouble."""
    same: dict[tuple[str, Spans], list[Cause]] = {}
    for cause in causes:
        if cause.kind == NODE:
            same.setdefault((cause.direction, cause.ports), []).append(cause)
    result = list(causes)
    for (direction, ports), members in same.items():
        if len(members) < 3 or 2 * len(members) <= total:
            continue
        merged = Cause(
            ALIKE,
            tuple(node for cause in members for node in cause.nodes),
            direction,
            tuple(dict.fromkeys(link for cause in members for link in cause.links)),
            sum(cause.of for cause in members),
            ports,
        )
        result[result.index(members[0])] = merged
        result = [one for one in result if (one.kind, one.direction, one.ports) != (NODE, direction, ports)]
    return result
