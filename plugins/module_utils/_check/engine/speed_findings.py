# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What breaks a limit that the site set (speed_limits.py): an all_reduce, or links.  Pure.

A collective is as slow as its slowest part for everybody, so its times accuse nobody.  Links that break a limit are
explained by as few causes as possible, as those that are closed are; where all of them break it, it is the cluster.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import human_bytes, human_rate
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    fixes,
    mesh_findings,
    mesh_format,
    mesh_medians,
    set_cover,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import (
    CLUSTER,
    Finding,
    Subject,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Ends, Link, Links
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ranks_results import SizeResult
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.set_cover import Cause
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.speed_limits import (
    VARIABLE,
    Limits,
    SizeLimit,
)

FIX_SIZES = (
    "look at the findings about links, nodes and versions first; then compare with the report of a run that was fast "
    f"enough; where the network gives no more, {VARIABLE} asks for too much"
)
FIX_LINKS = (
    "look at the speed that the card negotiated, at the errors it counts, at its cable and at the switch's port; "
    f"where the network gives no more, {VARIABLE} asks for too much"
)


@dataclass(frozen=True)
class Measure:
    """A number of a link that has a limit.  what: completes "... between n1 and n2".  low: whether less is worse."""

    limit: str
    what: str
    low: bool
    of: Callable[[Link], float | None]
    tell: Callable[[float], str]


MEASURES = (
    Measure(
        "bytes_per_second_min",
        "the rate of one connection",
        True,
        lambda link: link.bytes_per_second,
        human_rate,
    ),
    Measure(
        "connect_milliseconds_max",
        "the time to connect",
        False,
        lambda link: link.milliseconds,
        lambda one: f"{one:.3g} ms",
    ),
    Measure(
        "retransmits_max",
        "the number of segments sent again for 1 MiB",
        False,
        lambda link: link.retransmits,
        lambda one: f"{one:g}",
    ),
)


def of_sizes(limits: Limits, sizes: Sequence[SizeResult]) -> list[Finding]:
    """One finding for all sizes that are too slow: they share their cause."""
    measured = {one.size_bytes: one for one in sizes}
    broken = [
        text
        for limit in limits.sizes
        if limit.measured_bytes in measured
        for text in _broken(limit, measured[limit.measured_bytes])
    ]
    if not broken:
        return []
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    return [
        Finding(
            "GC-PERF-001",
            (),
            f"the all_reduce is slower than {VARIABLE} allows: {broken[0]}{more}",
            FIX_SIZES,
            tuple(broken),
            Subject(CLUSTER),
            ruled_out=("wrong results because of it: each sum is judged by itself",),
            reproduce=fixes.check(),
        )
    ]


def _broken(limit: SizeLimit, size: SizeResult) -> list[str]:
    """What is beyond its limit: the bandwidth, the time, or both."""
    name = human_bytes(size.size_bytes)
    found = []
    if limit.busbw_gb_per_s_min is not None and size.busbw_gb_per_s < limit.busbw_gb_per_s_min:
        found.append(f"{name} has busbw {size.busbw_gb_per_s:.3g} GB/s, at least {limit.busbw_gb_per_s_min:g} wanted")
    if limit.milliseconds_max is not None and size.seconds * 1e3 > limit.milliseconds_max:
        found.append(f"{name} takes {size.seconds * 1e3:.3g} ms, at most {limit.milliseconds_max:g} wanted")
    return found


def of_links(
    limits: Limits, hosts: Sequence[str], links: Links, labels: Mapping[str, Mapping[str, str]] | None = None
) -> list[Finding]:
    """As few causes as possible for each limit.  hosts: those that probed, in rank order."""
    found = []
    for measure in MEASURES:
        limit = getattr(limits.links, measure.limit)
        if limit is None:
            continue
        values = _values(measure, links)
        bad = [ends for ends, value in values.items() if (value < limit if measure.low else value > limit)]
        causes = set_cover.explain(dict.fromkeys(bad, ((0, 0),)), values, hosts, labels) if bad else []
        ordered = mesh_medians.Ordered(values if causes else {})
        found += [_finding(cause, measure, limit, hosts, values, ordered) for cause in causes]
    return found


def _values(measure: Measure, links: Links) -> dict[Ends, float]:
    given = {ends: measure.of(link) for ends, link in links.items()}
    return {ends: value for ends, value in given.items() if value is not None}


def _finding(
    cause: Cause,
    measure: Measure,
    limit: float,
    hosts: Sequence[str],
    values: Mapping[Ends, float],
    ordered: mesh_medians.Ordered,
) -> Finding:
    worst = sorted(cause.links, key=lambda ends: values[ends], reverse=not measure.low)
    own = [values[ends] for ends in cause.links]
    others = ordered.without(cause.links)
    everybody = cause.kind == set_cover.ALL
    relation, wanted = ("below", "at least") if measure.low else ("above", "at most")
    usual = [f"between the others: {measure.tell(others.median())} (median)"] if len(others) else []
    return Finding(
        "GC-PERF-002",
        () if everybody else cause.nodes,
        f"{measure.what} {mesh_format.where(cause)} is {relation} its limit: {measure.tell(values[worst[0]])}, "
        f"{wanted} {measure.tell(limit)} wanted",
        FIX_LINKS,
        (
            f"{len(own)} of {cause.of} links, the worst {worst[0][0]} -> {worst[0][1]}, "
            f"median {measure.tell(statistics.median(own))}",
            *usual,
            f"the limit: {VARIABLE}.links.{measure.limit} is {limit:g}",
        ),
        replace(mesh_findings.subject(cause), ports=()),
        confidence=round(0.95 * cause.share, 2),
        look=fixes.look(cause.nodes[: fixes.LISTED], "ip -s -s link"),
        reproduce=fixes.check(() if everybody else mesh_findings.few(hosts, cause)),
    )


def notes(limits: Limits, links: Links, sizes: Sequence[SizeResult]) -> list[str]:
    """Limits with which not everything was compared: what has no number breaks none."""
    found = []
    for measure in MEASURES:
        missing = len(links) - len(_values(measure, links))
        if missing and getattr(limits.links, measure.limit) is not None:
            found.append(f"{VARIABLE}.links.{measure.limit}: {missing} of {len(links)} links have no value to compare")
    have = {one.size_bytes for one in sizes}
    without = [human_bytes(one.size_bytes) for one in limits.sizes if one.measured_bytes not in have]
    if without and have:
        found.append(f"{VARIABLE}.sizes: {', '.join(without)} was not measured in this run")
    return found
