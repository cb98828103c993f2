# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the mesh to its findings: what is closed, reset, silent, foreign, slow or passes by order of addresses.  Pure.

Each kind of trouble is explained by itself (cover.py), so that a node with a firewall and one with a wrong MTU are two
findings, and nobody else is accused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import intervals
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    finding,
    fixes,
    gloo_dial_order,
    mesh_fixes,
    mesh_format,
    mesh_link_quality,
    mesh_links,
    mesh_lost_requests,
    mesh_unsent,
    set_cover,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_fixes import Remedy
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_format import Ranges
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import (
    Ends,
    Links,
    Results,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.set_cover import Cause

#: How sure a cause is: the hosts' own rules tell it; most probes do; one of two nodes has a filter that nobody can
#: judge; nothing tells which of two nodes it is.
TOLD, PROBED, SUSPECTED, UNDECIDED = 0.99, 0.95, 0.8, 0.5


def findings(
    hosts: Sequence[str],
    probe: Results,
    *,
    static: Results | None = None,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    ranges: Ranges | None = None,
    addresses: Mapping[str, str] | None = None,
    plan: Mapping[str, Any] | None = None,
    known: Collection[Ends] = (),
    links: Links | None = None,
) -> list[Finding]:
    """Judge the links between ``hosts``, which are those that probed, in rank order.

    probe: host to the answer to the step probe.  static: host to that to static.  labels: host to its labels.  ranges:
    host to the ``ranges`` of its launch.  addresses: host to its address on the data network.
    plan: the port plan of the role common.  known: links that something else explains, which are left out.  What is
    not given is not used: the findings say less then.  links: what ``mesh_links.read`` gives, where somebody has it.
    """
    every = mesh_links.read(hosts, probe) if links is None else links
    links = {ends: link for ends, link in every.items() if ends not in known}
    found = mesh_unsent.findings(hosts, links, addresses or {})
    unsent = mesh_unsent.explained(links)
    links = {ends: link for ends, link in links.items() if ends not in unsent}
    for trouble in mesh_links.TROUBLES:
        bad = {ends: _ports(link, trouble, ranges or {}) for ends, link in links.items() if link.failing(trouble)}
        points = {ends: [one.port for one in links[ends].failing(trouble)] for ends in bad}
        causes = set_cover.explain(bad, links, hosts, labels, points) if bad else []
        if len(hosts) == 2:
            causes = [_between_two(cause, trouble, links, ranges or {}, static, plan) for cause in causes]
        named = Counter(ends for cause in causes for ends in cause.links)
        doubtful = {ends for ends, count in named.items() if count > 1}
        judged = [
            (cause, mesh_fixes.remedy(cause, trouble, links, ranges or {}, static, plan, two=len(hosts) == 2))
            for cause in causes
        ]
        # What a rule tells stands before what nothing tells.
        for cause, remedy in _once(sorted(judged, key=lambda one: not one[1].sure)):
            found.append(_finding(cause, remedy, trouble, links, hosts, ranges or {}, doubtful))
    found += gloo_dial_order.findings(hosts, links, addresses or {})
    slow = mesh_link_quality.findings(hosts, links, labels)
    # Where whole payloads lose packets, requests do too.
    told = [one.hosts for one in slow]
    lost = [one for one in mesh_lost_requests.findings(hosts, links, labels) if one.hosts not in told]
    return [*found, *slow, *lost]


def _between_two(
    cause: Cause,
    trouble: str,
    links: Links,
    ranges: Ranges,
    static: Results | None,
    plan: Mapping[str, Any] | None,
) -> Cause:
    """Of two nodes nobody is in the majority: one is accused only where it answered, or where its own rules tell.

    An answer accuses only where the way back has none of this trouble: with both, something between them may give it.
    """
    if trouble in (mesh_links.SILENT, mesh_links.FOREIGN):
        back = links.get((cause.nodes[1], cause.nodes[0]))
        one_way = cause.kind == set_cover.LINK and not (back and back.failing(trouble))
        told = (cause.nodes[1], set_cover.INBOUND) if one_way else None
    else:
        told = mesh_fixes.told(cause, trouble, links, ranges, static, plan)
    return replace(cause, kind=set_cover.NODE, nodes=(told[0],), direction=told[1]) if told else cause


def _once(judged: Sequence[tuple[Cause, Remedy]]) -> list[tuple[Cause, Remedy]]:
    """Without the causes whose only rules are those of another cause.

    A rule that keeps no state drops the answers to a node's own connections as well: it is one fault.
    """
    kept: list[tuple[Cause, Remedy]] = []
    for cause, remedy in judged:
        rules = {*remedy.rules, *remedy.suspects}
        for number, (first, had) in enumerate(kept):
            if rules and rules <= {*had.rules, *had.suspects} and set(cause.nodes) & set(first.nodes):
                said = f"the same rule closes further links: {mesh_format.where(cause)}"
                kept[number] = (first, replace(had, evidence=(*had.evidence, said)))
                break
        else:
            kept.append((cause, remedy))
    return kept


def _ports(link: mesh_links.Link, trouble: str, ranges: Ranges) -> intervals.Spans:
    """The ports of a link that have this trouble and should not: what is closed outside of the plan is as it should."""
    found = link.spans(trouble)
    planned = mesh_format.spans(ranges.get(link.target, ()))
    tried = [(one.port, one.port) for one in link.failing(trouble)]
    return intervals.merged([*intervals.common(found, planned), *tried]) if planned else found


def _finding(
    cause: Cause,
    remedy: Remedy,
    trouble: str,
    links: Links,
    hosts: Sequence[str],
    ranges: Ranges,
    doubtful: Container[Ends],
) -> Finding:
    evidence = mesh_format.evidence(cause, links, trouble)
    if trouble == mesh_links.CLOSED:
        evidence += mesh_format.answers(cause, links) + mesh_format.draw(cause, ranges)
    accused = remedy.accused
    # Where both ends permit it, neither of them is the cause.
    undecided = len(hosts) == 2 and cause.kind != set_cover.NODE and not remedy.ruled_out and not accused
    if undecided:
        evidence.append(mesh_format.undecided(cause, trouble))
    sure = UNDECIDED if undecided else SUSPECTED if remedy.suspects and cause.kind == set_cover.LINK else PROBED
    return Finding(
        id=_id(cause, trouble),
        hosts=(accused,) if accused and cause.kind == set_cover.LINK else cause.nodes,
        cause=_cause(cause, trouble, links, ranges, len(hosts), doubtful),
        fix=remedy.fix,
        evidence=(*evidence, *remedy.evidence),
        # Which port stalled says nothing: only one is tried with large payloads.
        subject=replace(subject(cause), ports=()) if trouble == mesh_links.STALLED else subject(cause),
        confidence=TOLD if remedy.sure else round(sure * cause.share, 2),
        ruled_out=(*mesh_format.ruled_out(cause, links, trouble, ranges), *remedy.ruled_out),
        variables=remedy.variables,
        command=remedy.command,
        look=remedy.look,
        reproduce=fixes.check(few(hosts, cause)),
    )


def _id(cause: Cause, trouble: str) -> str:
    if trouble != mesh_links.CLOSED:
        return {
            mesh_links.REFUSED: "GC-NET-009",
            mesh_links.STALLED: "GC-NET-005",
            mesh_links.SILENT: "GC-NET-011",
            mesh_links.FOREIGN: "GC-NET-008",
        }[trouble]
    if cause.kind == set_cover.LINK:
        return "GC-NET-003"
    if cause.kind == set_cover.GROUP:
        return "GC-NET-004"
    return "GC-NET-002" if cause.direction == set_cover.OUTBOUND else "GC-NET-001"


def _cause(cause: Cause, trouble: str, links: Links, ranges: Ranges, total: int, doubtful: Container[Ends]) -> str:
    if trouble == mesh_links.CLOSED:
        return f"{mesh_format.closed(cause, total)}: {mesh_format.blocked(cause, links, ranges, doubtful)}"
    bad = [one for ends in cause.links for one in mesh_format.failing(links[ends], trouble, cause.ports)]
    ports = f"port{'s' if intervals.count(cause.ports) > 1 else ''} {intervals.text(cause.ports)}"
    between = mesh_format.where(cause)
    if trouble == mesh_links.STALLED:
        passed = min(one.passed_bytes for one in bad)
        stalled = min((one.stalled_bytes for one in bad if one.stalled_bytes), default=0)
        return (
            f"payloads above {passed} bytes do not get through {between}: {passed} bytes pass, {stalled} bytes stall, "
            "as with a smaller MTU on the path"
        )
    if trouble == mesh_links.SILENT:
        return f"connections {between} are accepted, and not even {_least(bad)} bytes are answered ({ports})"
    if trouble == mesh_links.FOREIGN:
        said = sorted({one.said for one in bad if one.said})
        return f"something that is not this check answers connections {between} on {ports}" + (
            f", and says {said[0]!r}" if said else ""
        )
    tried = ", ".join(sorted({one.range for one in bad}))
    return f"connections {between} are refused (reset) although a worker listens there: {ports} ({tried})"


def _least(bad: Sequence[mesh_links.Failure]) -> int:
    return min((one.stalled_bytes for one in bad if one.stalled_bytes), default=64)


def subject(cause: Cause) -> Subject:
    """What a report shows the finding at."""
    label = ", ".join(label.text for label in cause.labels)
    if cause.kind == set_cover.LINK:
        return Subject(finding.GROUP if cause.direction else finding.LINK, cause.nodes, "", cause.ports)
    if cause.kind == set_cover.NODE:
        if cause.direction == set_cover.BOTH:
            return Subject(finding.NODE, cause.nodes, "", cause.ports)
        return Subject(finding.DIRECTION, cause.nodes, cause.direction, cause.ports)
    if cause.kind == set_cover.ALL:
        return Subject(finding.CLUSTER, cause.nodes, "", cause.ports)
    direction = cause.direction if cause.direction in (set_cover.INBOUND, set_cover.OUTBOUND) else ""
    return Subject(finding.GROUP, cause.nodes, direction, cause.ports, label)


def reproduce(hosts: Sequence[str], ends: mesh_links.Ends) -> str:
    """The check of the two ends of a link, which measures it again."""
    return fixes.check([host for host in hosts if host in ends])


def few(hosts: Sequence[str], cause: Cause) -> list[str]:
    """Hosts that show the same again, in the order of ``hosts``: three, since between two nobody is in the majority."""
    first = list(dict.fromkeys([*(host for ends in cause.links for host in ends), *hosts]))[:3]
    return [host for host in hosts if host in first]
