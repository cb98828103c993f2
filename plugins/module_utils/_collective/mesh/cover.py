# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad links explained by as few causes as possible.  Pure: links and ports in, causes out; no texts.

Greedy: the cause that explains most of what is open comes first, what it explains is subtracted, port by port, and so
on until only single links are left.  Everything is done twice, once with inbound and once with outbound before the
other in a tie; the answer with fewer causes counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Callable, Optional

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.mesh import intervals
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.mesh.intervals import Spans
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.mesh.links import Ends

# A node is blamed for a row or column of the mesh when at least this share of it is bad. A node that is really blocked
# fails for all peers, one that is not fails only for those that are, so the exact value matters little.
NODE_SHARE = 0.6
# A group claims more than a node does: nearly all its links must be bad, and NODE_SHARE of those of each end.
GROUP_SHARE = 0.9

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
_LabelsOfEnds = tuple[Optional[Label], Optional[Label]]


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
    found = [_Greedy(bad, every, hosts, labels or {}, points, first).run() for first in (INBOUND, OUTBOUND)]
    return _alike(_both_ways(min(found, key=len)), len(hosts))


@dataclass(frozen=True)
class _Candidate:
    """A cause that may be chosen: its bad links, whether explained already or not, and of a group every link it has."""

    kind: str
    nodes: tuple[str, ...]
    direction: str
    links: tuple[Ends, ...]
    of: int
    labels: tuple[Label, ...] = ()
    every: tuple[Ends, ...] = ()

    @property
    def subject(self) -> tuple[object, ...]:
        return (self.kind, self.nodes, self.direction, self.labels)


class _Greedy:
    """One pass over everything that is bad."""

    def __init__(
        self,
        bad: Mapping[Ends, Spans],
        observed: set[Ends],
        hosts: Sequence[str],
        labels: Mapping[str, Mapping[str, str]],
        points: Mapping[Ends, Sequence[int]] | None,
        first: str,
    ) -> None:
        self.bad = dict(bad)
        self.open = dict(bad)
        self.observed = observed
        self.hosts = hosts
        self.place = {host: number for number, host in enumerate(hosts)}
        self.of = [Counter(link[end] for link in observed) for end in (0, 1)]
        self.points = points
        self.first = first
        self.explained_by: dict[Ends, set[tuple[object, ...]]] = {}
        self.by_label = {
            name: {host: Label(name, own[name]) for host, own in labels.items() if host in self.place and name in own}
            for name in sorted({name for own in labels.values() for name in own}, key=lambda name: (":" in name, name))
        }
        self.of_label = {name: _buckets(observed, hosts_of) for name, hosts_of in self.by_label.items()}

    def run(self) -> list[Cause]:
        chosen: dict[tuple[object, ...], Cause] = {}
        while self.open:
            best = self._best()
            if best is None:
                break
            cause = self._take(best)
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

    def _best(self) -> _Candidate | None:
        best: tuple[int, _Candidate] | None = None
        for candidate in self._candidates():
            fresh = sum(1 for link in candidate.links if link in self.open)
            # One link is no majority, between two nodes either.
            if fresh < 2:
                continue
            if best is None or fresh > best[0]:
                best = (fresh, candidate)
        return best[1] if best else None

    def _candidates(self) -> Iterator[_Candidate]:
        """All that would explain enough; of two that explain the same, the first one counts."""
        usable = [self._usable(end) for end in (0, 1)]
        if len(self.open) == len(self.observed):
            yield _Candidate(ALL, tuple(self.hosts), BOTH, tuple(self.open), len(self.observed))
        directions = [(INBOUND, 1), (OUTBOUND, 0)]
        for direction, end in directions if self.first == INBOUND else reversed(directions):
            for host in self.hosts:
                of = self.of[end][host]
                candidate = _Candidate(NODE, (host,), direction, tuple(usable[end].get(host, ())), of)
                links = self._not_again(candidate)
                if links and len(links) >= NODE_SHARE * of:
                    yield replace(candidate, links=links)
        yield from self._groups()

    def _usable(self, end: int) -> dict[str, list[Ends]]:
        found: dict[str, list[Ends]] = {}
        for link in self.bad:
            found.setdefault(link[end], []).append(link)
        return found

    def _not_again(self, candidate: _Candidate) -> tuple[Ends, ...]:
        """Its links without those that it explained before and that are explained now."""
        return tuple(
            link
            for link in candidate.links
            if link in self.open or candidate.subject not in self.explained_by.get(link, ())
        )

    def _groups(self) -> Iterator[_Candidate]:
        if len(self.open) < 4:
            return
        for name, label_of in self.by_label.items():
            bad = _buckets(self.bad, label_of)
            for candidate in _group_candidates(label_of, bad, self.of_label[name], len(self.hosts)):
                links = self._not_again(candidate)
                if len(links) >= GROUP_SHARE * candidate.of and _everywhere(links, candidate.every):
                    yield replace(candidate, links=links)

    def _take(self, best: _Candidate) -> Cause:
        """Make it a cause, and subtract what it explains."""
        fresh = [link for link in best.links if link in self.open]
        # A node searches a few of its peers only; of the others the probed ports are known, which are no measure.
        exact = [link for link in fresh if self._searched(link)]
        ports = intervals.shared([self.open[link] for link in exact or fresh], NODE_SHARE)
        if not ports:
            ports = intervals.merged(span for link in fresh for span in self.open[link])
        explained = []
        for link in best.links:
            if intervals.common(self.bad[link], ports):
                explained.append(link)
                self.explained_by.setdefault(link, set()).add(best.subject)
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


def _buckets(links: Iterable[Ends], label_of: Mapping[str, Label]) -> dict[_LabelsOfEnds, list[Ends]]:
    """Links by the labels of their two ends."""
    found: dict[_LabelsOfEnds, list[Ends]] = {}
    for link in links:
        found.setdefault((label_of.get(link[0]), label_of.get(link[1])), []).append(link)
    return found


def _chosen(buckets: Mapping[_LabelsOfEnds, list[Ends]], kind: str, label: Label) -> list[Ends]:
    """The links of one kind of a group."""
    return [
        link
        for (source, target), links in buckets.items()
        if _WANTED[kind](source == label, target == label)
        for link in links
    ]


def _group_candidates(
    label_of: Mapping[str, Label],
    bad: Mapping[_LabelsOfEnds, list[Ends]],
    observed: Mapping[_LabelsOfEnds, list[Ends]],
    total: int,
) -> Iterator[_Candidate]:
    """Every group of this label in every direction, the smaller groups first; then the links between two groups."""
    members: dict[Label, list[str]] = {}
    for host, label in label_of.items():
        members.setdefault(label, []).append(host)
    for label in sorted(members, key=lambda one: (len(members[one]), one.value)):
        nodes = tuple(members[label])
        if not 2 <= len(nodes) < total:
            continue
        others = total - len(nodes)
        for kind in (INBOUND, OUTBOUND, ACROSS, INTO, OUT_OF, WITHIN):
            if (others < 2 and kind in (ACROSS, INTO, OUT_OF)) or (len(nodes) < 3 and kind == WITHIN):
                continue
            links = _chosen(bad, kind, label)
            if links:
                yield _group(nodes, kind, links, _chosen(observed, kind, label), label)
    for (source, target), links in bad.items():
        if source is None or target is None or source == target or len(members) < 3:
            continue
        if min(len(members[source]), len(members[target])) < 2:
            continue
        nodes = tuple(members[source] + members[target])
        back = bad.get((target, source), [])
        one_way = observed[(source, target)]
        yield _group(nodes, BOTH, links + back, one_way + observed.get((target, source), []), source, target)
        yield _group(nodes, "", links, one_way, source, target)


def _group(
    nodes: tuple[str, ...], direction: str, links: Sequence[Ends], every: Sequence[Ends], *labels: Label
) -> _Candidate:
    return _Candidate(GROUP, nodes, direction, tuple(links), len(every), labels, tuple(every))


def _everywhere(bad: Iterable[Ends], every: Iterable[Ends]) -> bool:
    """Whether each source and each target has its share of what is bad; one that has none is in the wrong group."""
    for end in (0, 1):
        count = Counter(link[end] for link in bad)
        if any(count[node] < NODE_SHARE * of for node, of in Counter(link[end] for link in every).items()):
            return False
    return True


def _both_ways(causes: Sequence[Cause]) -> list[Cause]:
    """One cause for a node inbound and outbound, and for both directions of a link, where the ports are the same."""
    result: list[Cause] = []
    for cause in causes:
        for number, other in enumerate(result):
            if cause.kind == other.kind and cause.ports == other.ports and _are_opposite(cause, other):
                links = other.links + tuple(link for link in cause.links if link not in other.links)
                result[number] = replace(other, direction=BOTH, links=links, of=other.of + cause.of)
                break
        else:
            result.append(cause)
    return result


def _are_opposite(one: Cause, other: Cause) -> bool:
    if one.kind == LINK:
        return not other.direction and one.nodes == other.nodes[::-1]
    return one.kind == NODE and one.nodes == other.nodes and {one.direction, other.direction} == {INBOUND, OUTBOUND}


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
        result = [cause for cause in result if cause not in members]
    return result
