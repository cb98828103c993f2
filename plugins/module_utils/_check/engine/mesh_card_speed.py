# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links compared with the speed that their cards negotiated, and what to say where speeds cannot be judged.  Pure.

The only measure where all links are slow alike, or where there are too few of them to compare. A card that is not a
physical one (veth, bridge, bond) names a speed that means nothing, or none.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    finding,
    fixes,
    mesh_format,
    mesh_link_quality,
    set_cover,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Ends, Links
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.set_cover import Cause

#: One connection of 1 MiB begins slowly and is read by one Python process: it does not fill a fast card.
FILLED_MBPS = 10_000
#: Slower than this part of the card, or of FILLED_MBPS. Own choice, without a source.
LEAST_PART = 1 / 20
FIX = (
    "look at the errors that the card counts, at its cable and the switch's port, and at the settings of TCP on the "
    "nodes; then at what else uses the network or the processors"
)
NEXT = (
    "set cluster_check_limits to what the network has to reach, or keep reports in cluster_check_report_dir: the next "
    "run is compared with them"
)
_KINDS = {set_cover.LINK: finding.LINK, set_cover.NODE: finding.NODE, set_cover.ALL: finding.CLUSTER}

Looked = Mapping[str, Mapping[str, Any]]


def speeds(looked: Looked, interfaces: Mapping[str, str]) -> dict[str, int]:
    """Host to the speed of its physical card on the data network, in Mbit/s.  interfaces: host to its name."""
    found = {}
    for host, said in looked.items():
        card = said.get("interfaces", {}).get(interfaces.get(host, ""), {})
        if card.get("physical") and card.get("speed_mbps"):
            found[host] = int(card["speed_mbps"])
    return found


def findings(
    hosts: Sequence[str],
    links: Links,
    cards: Mapping[str, int],
    told: Sequence[Finding],
    labels: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Finding]:
    """Warnings, as few as possible.  cards: what ``speeds`` gave.  told: findings that name slow nodes already."""
    judged = {
        ends: link.bytes_per_second
        for ends, link in links.items()
        if link.bytes_per_second and all(host in cards for host in ends)
    }
    bad = {ends: ((0, 0),) for ends, rate in judged.items() if rate * 8 < _least(cards, ends)}
    causes = set_cover.explain(bad, judged, hosts, labels) if bad else []
    known = {host for one in told if one.id == "GC-NET-007" for host in one.hosts}
    return [_finding(cause, judged, cards, hosts) for cause in causes if not known.intersection(cause.nodes)]


def _least(cards: Mapping[str, int], ends: Ends) -> float:
    """In bit/s."""
    return LEAST_PART * min(FILLED_MBPS, *(cards[host] for host in ends)) * 1e6


def _finding(cause: Cause, judged: Mapping[Ends, float], cards: Mapping[str, int], hosts: Sequence[str]) -> Finding:
    rate = statistics.median(judged[ends] for ends in cause.links)
    card = min(cards[host] for ends in cause.links for host in ends)
    everybody = cause.kind == set_cover.ALL
    return Finding(
        "GC-NET-007",
        () if everybody else cause.nodes,
        f"the data network is slow {mesh_format.where(cause)}: {rate / 1e6:.3g} MB/s, on cards of {_gbit(card)}",
        FIX,
        (
            f"{len(cause.links)} of {cause.of} links, below {LEAST_PART:.0%} of the card or of {_gbit(FILLED_MBPS)}, "
            "which one connection reaches",
        ),
        Subject(_KINDS.get(cause.kind, finding.GROUP), cause.nodes, label=", ".join(one.text for one in cause.labels)),
        confidence=round(0.6 * cause.share, 2),
        look=fixes.look(cause.nodes[: fixes.LISTED], "ip -s -s link"),
        reproduce=fixes.check([host for host in hosts if host in {one for ends in cause.links[:2] for one in ends}]),
    )


def _gbit(mbps: int) -> str:
    return f"{mbps / 1000:g} Gbit/s"


def notes(hosts: Sequence[str], links: Links, cards: Mapping[str, int], limited: bool) -> list[str]:
    """How speeds were judged, where the links are too few to show it.  limited: whether the site sets a limit."""
    measured = [link for link in links.values() if link.bytes_per_second]
    if limited or not measured or _enough(hosts):
        return []
    rough = (
        f"the speeds of {len(measured)} links were not judged by each other, except for a factor of "
        f"{mesh_link_quality.ONE_WAY_FACTOR if len(hosts) == 2 else mesh_link_quality.VERY_SLOW_FACTOR:g}: that needs "
        "four nodes"
    )
    if all(host in cards for host in hosts):
        return [f"{rough}; they were compared with the speed of the cards, {_gbit(min(cards.values()))}"]
    return [f"{rough}; nor by the speed of the cards, which are virtual or do not tell it: {NEXT}"]


def _enough(hosts: Sequence[str]) -> bool:
    others = len(hosts) - 1
    return others * (others - 1) >= mesh_link_quality.LEAST_REFERENCE
