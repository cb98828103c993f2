# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cause in the mesh is called, what was seen, and what is ruled out.  Pure; the words of mesh_findings.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import intervals
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.intervals import Spans
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import mesh_links, set_cover
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import (
    Ends,
    Failure,
    Link,
    Links,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.set_cover import Cause
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

#: Host to the ranges of its port plan, each with name, first and last.
Ranges = Mapping[str, Sequence[Mapping[str, Any]]]

HOW_IT_LOOKED = {
    probe_ports.TIMEOUT: "dropped (no answer)",
    probe_ports.UNREACHABLE: "rejected",
}
# More names than this do not help anybody.
NAMES = 8


def names(hosts: Sequence[str]) -> str:
    """``n1, n2 and n3``; after a few only how many more there are."""
    shown = list(hosts[:NAMES])
    if len(hosts) > NAMES:
        shown.append(f"{len(hosts) - NAMES} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def where(cause: Cause) -> str:
    """Between whom: completes "connections ...", "payloads ..."."""
    if cause.kind == set_cover.LINK:
        ends = cause.nodes
        return f"between {names(ends)}" if cause.direction == set_cover.BOTH else f"from {ends[0]} to {ends[1]}"
    if cause.kind == set_cover.ALL:
        return f"between all {len(cause.nodes)} nodes"
    if len(cause.labels) == 2:
        first, second = (f"the nodes with {label.text}" for label in cause.labels)
        return f"between {first} and {second}" if cause.direction == set_cover.BOTH else f"from {first} to {second}"
    who = f"the nodes with {cause.labels[0].text}" if cause.labels else names(cause.nodes)
    return {
        set_cover.INBOUND: f"to {who}",
        set_cover.OUTBOUND: f"from {who}",
        set_cover.BOTH: f"to and from {who}",
        set_cover.ACROSS: f"between {who} and all others",
        set_cover.INTO: f"from all others to {who}",
        set_cover.OUT_OF: f"from {who} to all others",
        set_cover.WITHIN: f"among {who}",
    }[cause.direction]


def closed(cause: Cause, total: int) -> str:
    """What is closed; total: number of nodes that were looked at."""
    if cause.kind == set_cover.ALL:
        return f"all {len(cause.nodes)} nodes block each other on the data network"
    if cause.kind == set_cover.LINK:
        if cause.direction == set_cover.BOTH:
            return f"the links between {names(cause.nodes)} are closed in both directions"
        return f"the link {cause.nodes[0]} -> {cause.nodes[1]} is closed"
    if cause.kind == set_cover.GROUP:
        crossing = f"all failing links cross {cause.labels[0].text}: " if cause.direction == set_cover.ACROSS else ""
        return f"{crossing}connections {where(cause)} fail on the data network"
    direction = "inbound and outbound" if cause.direction == set_cover.BOTH else cause.direction
    alike = f"{len(cause.nodes)} of {total} nodes are alike: " if cause.kind == set_cover.ALIKE else ""
    return f"{alike}{direction} connections of {names(cause.nodes)} fail on the data network"


def spans(ranges: Sequence[Mapping[str, Any]]) -> Spans:
    """The ports of these ranges."""
    return intervals.merged((int(one["first"]), int(one["last"])) for one in ranges)


def in_plan(ports: Spans, ranges: Sequence[Mapping[str, Any]]) -> str:
    """Of which ranges they are: `` (ephemeral)``, or `` (all of rendezvous and mpi)``."""
    met = [one for one in ranges if intervals.common(ports, spans([one]))]
    if not met:
        return ""
    whole = "all of " if spans(met) == ports else ""
    return f" ({whole}{names([str(one['name']) for one in met])})"


def blocked(cause: Cause, links: Links, ranges: Ranges, doubtful: Container[Ends] = ()) -> str:
    """Which ports are blocked, and how: exact intervals where somebody searched, else the ports that were tried.

    doubtful: links that another cause explains too, whose answer may be that one's.
    """
    searched = [ends for ends in cause.links if links[ends].searched]
    exact = [links[ends] for ends in searched if ends not in doubtful] or [links[ends] for ends in searched]
    if not exact:
        return probes([one for ends in cause.links for one in failing(links[ends], mesh_links.CLOSED, cause.ports)])
    of_target = ranges.get(exact[0].target, ())
    rejected, dropped = (
        [intervals.common(link.blocked.get(result, ()), cause.ports) for link in exact]
        for result in (probe_ports.UNREACHABLE, probe_ports.TIMEOUT)
    )
    # One rejection among timeouts is enough to know a rule that rejects: ICMP is rate limited.
    rejects = intervals.merged(span for spans in rejected for span in spans)
    drops = intervals.shared(dropped, set_cover.NODE_SHARE) or intervals.merged(
        span for spans in dropped for span in spans
    )
    drops = intervals.without(drops, rejects)
    words = [
        f"ports {intervals.text(ports)}{in_plan(ports, of_target)} {HOW_IT_LOOKED[result]}"
        for ports, result in sorted([(rejects, probe_ports.UNREACHABLE), (drops, probe_ports.TIMEOUT)])
        if ports
    ]
    # What the search missed, and what the node's own kernel refused.
    missed = [
        one
        for link in exact
        for one in failing(link, mesh_links.CLOSED, intervals.without(cause.ports, rejects + drops))
    ]
    return ", ".join(words + ([probes(missed)] if missed else []))


def failing(link: Link, trouble: str, ports: Spans) -> list[Failure]:
    """The ports of a link with this trouble that a cause explains."""
    return [one for one in link.failing(trouble) if intervals.holds(ports, one.port)]


def probes(failures: Sequence[Failure]) -> str:
    """``6 probes of the ephemeral and mpi ports rejected, ...``."""
    count = Counter(HOW_IT_LOOKED.get(one.result, one.result) for one in failures)
    of = {
        how: sorted({one.range for one in failures if HOW_IT_LOOKED.get(one.result, one.result) == how})
        for how in count
    }
    return ", ".join(f"{number} probes of the {names(of[how])} ports {how}" for how, number in sorted(count.items()))


def evidence(cause: Cause, links: Links, trouble: str) -> list[str]:
    """What was counted."""
    own = [links[ends] for ends in cause.links]
    bad = [one for link in own for one in failing(link, trouble, cause.ports)]
    ports = sorted({one.port for one in bad})
    lines = [
        f"{len(own)} of {cause.of} {'peers' if cause.kind == set_cover.NODE else 'links'}",
        f"{len(bad)} of {sum(link.probes for link in own)} probes",
        f"failing ports: {intervals.text([(port, port) for port in ports], 20)}",
    ]
    searchers = [link for link in own if link.searched] if trouble == mesh_links.CLOSED else []
    if searchers:
        sources = names(list(dict.fromkeys(link.source for link in searchers)))
        span = intervals.text(intervals.merged(span for link in searchers for span in link.searched))
        lines.append(f"searched from {sources}, ports {span}, without listeners: the intervals are exact")
    return lines


def undecided(cause: Cause, trouble: str) -> str:
    """What else it may be, between two nodes."""
    source, target = cause.nodes
    what = f"it may be {source}, {target}, or what lies between them"
    if cause.kind == set_cover.LINK and trouble == mesh_links.CLOSED:
        what = f"{source} may not let it out, {target} may not let it in, or something between them filters"
    return f"between two nodes nobody is in the majority: {what}"


def answers(cause: Cause, links: Links) -> list[str]:
    """Whether a node's own calls from the blocked ports stay without an answer, and those from other ports don't."""
    back = [links[ends[::-1]] for ends in cause.links if ends[::-1] in links]
    unheard = {(link.source, port) for link in back for port in link.unheard}
    # One may be a packet that was lost by chance.
    if len(unheard) < 2 or not all(intervals.holds(cause.ports, port) for _source, port in unheard):
        return []
    callers = names(list(dict.fromkeys(link.source for link in back if link.unheard)))
    return [
        f"no answer to {len(unheard)} calls that {callers} made from own ports among these, and an answer to the same "
        "calls from other ports: what drops here keeps no state, so it drops answers too"
    ]


def draw(cause: Cause, ranges: Ranges) -> list[str]:
    """How likely a job meets a block that covers only a part of the ports that the kernel draws from."""
    targets = dict.fromkeys(target for _source, target in cause.links)
    for target in targets:
        for one in ranges.get(target, ()):
            if one["name"] == "ephemeral":
                whole = ((int(one["first"]), int(one["last"])),)
                share = intervals.count(intervals.common(cause.ports, whole)) / intervals.count(whole)
                if 0.001 < share < 0.999:
                    return [
                        f"{share:.1%} of the ephemeral ports of {target}: whether a job meets it depends on its ports"
                    ]
                return []
    return []


def ruled_out(cause: Cause, links: Links, trouble: str, ranges: Ranges) -> list[str]:
    """What works, and so is not the cause."""
    own = [links[ends] for ends in cause.links]
    found = [f"ssh: {names(cause.nodes)} answered the controller"]
    if any(link.probes > len(link.failures) for link in own):
        found.append("addresses and routes: other ports of the same links are open")
    bad = {one.range for link in own for one in link.failures}
    blocked_ports = intervals.merged(span for link in own for spans in link.blocked.values() for span in spans)
    good = [
        str(one["name"])
        for one in ranges.get(own[0].target, ())
        if one["name"] not in bad
        and not intervals.common(blocked_ports, [(int(one["first"]), int(one["last"]))])
        and all(link.probes > len(link.failures) for link in own)
    ]
    if good:
        found.append(f"the ports of {names(good)}: none of them failed")
    if trouble == mesh_links.CLOSED and any(link.bytes_per_second for link in own):
        found.append("the MTU: 1 MiB arrives on a port that is open")
    if cause.kind == set_cover.NODE and cause.direction in (set_cover.INBOUND, set_cover.OUTBOUND):
        end, other = (0, "outbound") if cause.direction == set_cover.INBOUND else (1, "inbound")
        back = [link for ends, link in links.items() if ends[end] == cause.nodes[0]]
        if back and not any(link.failing(trouble) for link in back):
            found.append(f"{other} connections of {cause.nodes[0]}: all of them work")
    return found
