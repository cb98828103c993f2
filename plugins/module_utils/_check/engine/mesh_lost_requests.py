# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links on which some connection requests get no answer: the faults that come and go.  Pure.

Every port answers in the end, since the kernel repeats a lost SYN after 1 s; so neither the ports nor the median of the
connect times show it.  On a link that is closed for some ports, lost requests are no news: such links are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import human_seconds
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    finding,
    fixes,
    mesh_format,
    mesh_links,
    set_cover,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Ends, Links
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.set_cover import Cause

#: One packet may be lost anywhere; fewer than these, or a smaller share, are a note. Own choices, without a source.
LEAST_LOST = 3
LEAST_SHARE = 0.03
MOST_NOTES = 4
FIX = (
    "look for a limit of new connections in the packet filter, for a full listen queue, for drops that the card counts "
    "(`ip -s -s link`), and at the cable and the switch's port"
)
COMMAND = "nstat -az TcpExtListenDrops TcpExtListenOverflows TcpExtTCPReqQFullDrop IpInDiscards"
_KINDS = {set_cover.LINK: finding.LINK, set_cover.NODE: finding.NODE}


def findings(
    hosts: Sequence[str], links: Links, labels: Mapping[str, Mapping[str, str]] | None = None
) -> list[Finding]:
    """Warnings, as few as possible."""
    return [_finding(cause, hosts, links) for cause in _causes(hosts, links, labels) if _is_sure(cause, links)]


def notes(hosts: Sequence[str], links: Links, labels: Mapping[str, Mapping[str, str]] | None = None) -> list[str]:
    """What is too little for a finding."""
    few = [cause for cause in _causes(hosts, links, labels) if not _is_sure(cause, links)]
    more = [f"connection requests without an answer on {len(few) - MOST_NOTES} more links"] if few[MOST_NOTES:] else []
    return [f"{_said(cause, links)}; one alone may be chance" for cause in few[:MOST_NOTES]] + more


def _causes(hosts: Sequence[str], links: Links, labels: Mapping[str, Mapping[str, str]] | None) -> list[Cause]:
    counted = {ends: link for ends, link in links.items() if link.requests and not _is_closed(ends, links)}
    bad: dict[Ends, tuple[tuple[int, int], ...]] = {
        ends: ((0, 0),) for ends, link in counted.items() if link.lost_requests
    }
    return set_cover.explain(bad, counted, hosts, labels) if bad else []


def _is_closed(ends: Ends, links: Links) -> bool:
    """In either direction: a filter without state drops the answers too."""
    both = (links.get(ends), links.get((ends[1], ends[0])))
    return any(link is not None and link.failing(mesh_links.CLOSED) for link in both)


def _totals(cause: Cause, links: Links) -> tuple[int, int]:
    """The requests of its links: lost, and sent."""
    own = [links[ends] for ends in cause.links]
    return sum(link.lost_requests for link in own), sum(link.requests for link in own)


def _is_sure(cause: Cause, links: Links) -> bool:
    lost, sent = _totals(cause, links)
    return lost >= LEAST_LOST and lost >= LEAST_SHARE * sent


def _worst(cause: Cause, links: Links) -> Ends:
    return max(cause.links, key=lambda ends: links[ends].worst_milliseconds)


def _said(cause: Cause, links: Links) -> str:
    lost, sent = _totals(cause, links)
    worst = links[_worst(cause, links)]
    usual = human_seconds((worst.milliseconds or 0.0) / 1e3)
    return (
        f"{lost} of {sent} connection requests {mesh_format.where(cause)} got no answer: the slowest connect took "
        f"{human_seconds(worst.worst_milliseconds / 1e3)}, the median {usual}"
    )


def _finding(cause: Cause, hosts: Sequence[str], links: Links) -> Finding:
    by_loss = sorted(cause.links, key=lambda ends: -links[ends].lost_requests / links[ends].requests)
    everybody = cause.kind == set_cover.ALL
    return Finding(
        "GC-NET-013",
        () if everybody else cause.nodes,
        _said(cause, links),
        FIX,
        (
            f"{len(cause.links)} of {cause.of} links lost some, the worst {by_loss[0][0]} -> {by_loss[0][1]}: "
            f"{links[by_loss[0]].lost_requests} of {links[by_loss[0]].requests}",
        ),
        Subject(
            finding.CLUSTER if everybody else _KINDS.get(cause.kind, finding.GROUP),
            cause.nodes,
            label=", ".join(one.text for one in cause.labels),
        ),
        confidence=round(0.8 * cause.share, 2),
        ruled_out=("a closed port: each one answered in the end",),
        look=fixes.look(cause.nodes[: fixes.LISTED], COMMAND),
        reproduce=fixes.check(() if everybody else _enough(hosts, cause)),
    )


def _enough(hosts: Sequence[str], cause: Cause) -> list[str]:
    """Hosts that show it again, in the order of ``hosts``: three, since between two nobody is in the majority."""
    first = list(dict.fromkeys([*(host for ends in cause.links for host in ends), *hosts]))[:3]
    return [host for host in hosts if host in first]
