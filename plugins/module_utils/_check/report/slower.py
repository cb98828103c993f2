# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became much slower since the report before: nodes, links, or the all_reduce.  Pure.

``drift.py`` tells every change; a finding needs more, since a busy machine makes one connection many times slower for a
moment.  Links that became slower are explained by as few causes as possible, as those that are closed are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import human_rate
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    finding,
    fixes,
    link_table,
    mesh_format,
    set_cover,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.link_table import Table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Ends
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.set_cover import Cause
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import drift, words
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: Several links of one node, and a single one. Between runs on healthy namespaces of two busy cores, one link of three
#: nodes differed by a factor of up to 10, one of eight by 38 when others used the cores.
NODE_FACTOR = 16.0
LINK_FACTOR = 30.0
#: With more nodes than these, what became slower on most links is subtracted: then it is the machine, or the cluster.
FEW_NODES = 3
#: ... and a link has to be so many times farther from it than links usually are (median absolute deviation).
LINK_SCATTER = 8.0
#: The best bandwidth of the sizes that are not ruled by latency; there the factor was up to 2.4. A slow link or node
#: has to show in it too, as far as there was such a size in both runs.
SIZES_FACTOR = 6.0
BESIDE_LINKS = 3.0
LARGE_BYTES = 1 << 20
FIX = (
    "look at what was changed since: settings of TCP, the speed that the card negotiated, its errors, cable and switch "
    "port, and other load; the report has the earlier numbers (report.html)"
)
_KINDS = {set_cover.LINK: finding.LINK, set_cover.NODE: finding.NODE, set_cover.ALL: finding.CLUSTER}


def findings(before: Report | None, now: Report) -> list[Finding]:
    """Warnings.  before: an earlier report whose shape was checked; None where there is none.

    Nodes that another finding calls slow are left out.
    """
    if before is None:
        return []
    known = {node for one in now["findings"] if one["id"] in words.SLOW_LINK_IDS for node in one["subject"]["nodes"]}
    found = [one for one in _links(before, now) if not known.intersection(one.about.nodes)]
    return found or ([] if known else _sizes(before, now))


def _links(before: Report, now: Report) -> list[Finding]:
    tables = Table.of(before["bytes_per_second"]), Table.of(now["bytes_per_second"])
    counts = link_table.changes(*tables)
    factors = {pair: pair[0] / pair[1] for pair in counts if min(pair) > 0}
    few = len(now["members"]) <= FEW_NODES
    if not factors or _refuted(before, now):
        return []
    typical = max(1.0, link_table.median(drift.counted(factors, counts)))
    common = 1.0 if few or min(factors.values()) >= NODE_FACTOR else typical
    if max(factors.values()) / common < NODE_FACTOR:
        return []
    # Link by link only where there is something to explain: a thousand nodes have a million of them.
    rates = {(source, target): (was, is_now) for source, target, was, is_now in link_table.changed(*tables, factors)}
    slower = {ends: factors[pair] / common for ends, pair in rates.items()}
    bad: dict[Ends, tuple[tuple[int, int], ...]] = {
        ends: ((0, 0),) for ends, factor in slower.items() if factor >= NODE_FACTOR
    }
    causes = set_cover.explain(bad, slower, now["members"], now["labels"])
    least = LINK_FACTOR if few else max(LINK_FACTOR, _scatter(factors, counts) ** LINK_SCATTER)
    return [_link(cause, rates, before, now["members"]) for cause in causes if _is_sure(cause, slower, least)]


def _scatter(factors: Mapping[drift.Pair, float], counts: Mapping[drift.Pair, int]) -> float:
    """How far links are from the median, as a factor."""
    logarithms = {pair: math.log(one) for pair, one in factors.items()}
    middle = link_table.median(drift.counted(logarithms, counts))
    return math.exp(
        link_table.median(drift.counted({pair: abs(one - middle) for pair, one in logarithms.items()}, counts))
    )


def _refuted(before: Report, now: Report) -> bool:
    """Whether the all_reduce, which takes the same links, is about as fast as before."""
    if not drift.comparable(before, now):
        return False
    was, is_now = _best(before["sizes"]), _best(now["sizes"])
    return is_now > 0 and was < BESIDE_LINKS * is_now


def _is_sure(cause: Cause, slower: Mapping[Ends, float], least: float) -> bool:
    """least: of a single link."""
    if len(cause.links) == 1 or cause.kind == set_cover.LINK:
        return min(slower[ends] for ends in cause.links) >= least
    return cause.share >= set_cover.GROUP_SHARE


def _link(cause: Cause, rates: Mapping[Ends, drift.Pair], before: Report, hosts: Sequence[str]) -> Finding:
    """rates: before and now."""
    was, is_now = (statistics.median(rates[ends][one] for ends in cause.links) for one in (0, 1))
    everybody = cause.kind == set_cover.ALL
    return Finding(
        "GC-PERF-003",
        () if everybody else cause.nodes,
        f"the data network became {was / is_now:.0f} times slower {mesh_format.where(cause)}: {human_rate(is_now)}, "
        f"{human_rate(was)} in run {before['run_id']}",
        FIX,
        (f"{len(cause.links)} of {cause.of} links; medians", f"the earlier run: {before['started']}"),
        Subject(_KINDS.get(cause.kind, finding.GROUP), cause.nodes, label=", ".join(one.text for one in cause.labels)),
        confidence=round(0.6 * cause.share, 2),
        look=fixes.look(cause.nodes[: fixes.LISTED], "ip -s -s link"),
        reproduce=fixes.check(
            () if everybody else [host for host in hosts if host in {one for ends in cause.links for one in ends}]
        ),
    )


def _sizes(before: Report, now: Report) -> list[Finding]:
    """The all_reduce, which is as slow for everybody."""
    if not drift.comparable(before, now):
        return []
    was, is_now = _best(before["sizes"]), _best(now["sizes"])
    if not is_now or was < SIZES_FACTOR * is_now:
        return []
    return [
        Finding(
            "GC-PERF-003",
            (),
            f"the all_reduce became {was / is_now:.0f} times slower: busbw {is_now:.3g} GB/s, {was:.3g} in run "
            f"{before['run_id']}",
            FIX,
            ("the best of all sizes from 1 MiB on", f"the earlier run: {before['started']}"),
            Subject(finding.CLUSTER),
            reproduce=fixes.check(),
        )
    ]


def _best(sizes: Sequence[Mapping[str, Any]]) -> float:
    return max((float(one["busbw_gb_per_s"]) for one in sizes if one["size_bytes"] >= LARGE_BYTES), default=0.0)
