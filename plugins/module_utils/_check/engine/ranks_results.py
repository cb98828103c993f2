# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the ranks reported: in their order, and as times per size.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import human_bytes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import bandwidth

Results = Mapping[str, Mapping[str, Any]]
Rank = dict[str, Any]


@dataclass(frozen=True)
class SizeResult:
    """One buffer size: median over iterations of the slowest rank.  Bandwidths in GB/s (10**9 bytes).

    low_seconds, high_seconds: the 95 % confidence interval of that median.
    """

    size_bytes: int
    seconds: float
    algbw_gb_per_s: float
    busbw_gb_per_s: float
    iterations: int
    seconds_by_rank: dict[str, float]
    low_seconds: float = 0.0
    high_seconds: float = 0.0


def table(the_plan: Mapping[str, Any], collect: Results) -> list[Rank]:
    """All ranks of the plan in order, with what they reported."""
    ranks = []
    for host in the_plan["hosts"]:
        reported = {rank["local_rank"]: rank for rank in collect.get(host, {}).get("ranks", [])}
        for local_rank, rank in enumerate(the_plan["ranks"][host]):
            one = reported.get(local_rank, {"events": [], "exit_code": None, "process_state": "", "stderr_tail": ""})
            ranks.append(
                {
                    "rank": rank,
                    "host": host,
                    "hostname": collect.get(host, {}).get("hostname", ""),
                    "state": collect.get(host, {}).get("state", "lost"),
                    "exit_code": one["exit_code"],
                    "process_state": one["process_state"],
                    "events": one["events"],
                    "stderr_tail": one["stderr_tail"],
                    **({"start": one["start"]} if "start" in one else {}),
                }
            )
    return ranks


def events(rank: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """The events of one kind that a rank wrote."""
    return [event for event in rank["events"] if event["event"] == kind]


def reproduce(hosts: Sequence[str], ranks: Sequence[Mapping[str, Any]]) -> str:
    """The smallest run that may show the same: the culprits, and one more node when there is only one."""
    others = [rank["host"] for rank in ranks if rank["host"] not in hosts]
    few = [*hosts, *others[: max(0, 2 - len(hosts))]]
    return fixes.check(few if hosts else ())


def sizes(ranks: Sequence[Mapping[str, Any]], world_size: int) -> list[SizeResult]:
    """The sizes that every rank finished."""
    by_size: dict[int, dict[int, list[float]]] = {}
    for rank in ranks:
        for event in events(rank, "size"):
            by_size.setdefault(event["size_bytes"], {})[rank["rank"]] = event["seconds"]
    return [_size(size, seconds, world_size) for size, seconds in sorted(by_size.items()) if len(seconds) == world_size]


def notes(collect: Results) -> list[str]:
    """Sizes that were left out: larger ones are no faster, or there was no time for them."""
    told = [rank for result in collect.values() for rank in result.get("ranks", [])]
    plateau = {(one["size_bytes"], one["left_out"]) for rank in told for one in events(rank, "plateau")}
    gain = f"less than {bandwidth.PLATEAU_GAIN:.0%} faster than the size before it (cluster_check_plateau)"
    # All ranks agree upon it, so that one says what all do.
    late = {(one["size_bytes"], one["left_out"]): one for rank in told for one in events(rank, "no_time")}
    return [
        *(f"sizes left out: {left}, because {human_bytes(size)} is {gain}" for size, left in sorted(plateau)),
        *(
            f"sizes left out: {left}, because {human_bytes(size)} takes {one['needed_seconds']:.3g} s or more, and the "
            f"ranks had {one['left_seconds']:.3g} s left (cluster_check_deadline_seconds)"
            for (size, left), one in sorted(late.items())
        ),
    ]


def _size(size: int, seconds: Mapping[int, Sequence[float]], world_size: int) -> SizeResult:
    slowest = bandwidth.slowest_per_iteration(list(seconds.values()))
    typical = bandwidth.median_seconds(list(seconds.values()))
    low, high = bandwidth.median_interval(slowest)
    algbw = bandwidth.algbw_gb_per_s(size, typical)
    return SizeResult(
        size_bytes=size,
        seconds=typical,
        algbw_gb_per_s=algbw,
        busbw_gb_per_s=algbw * bandwidth.busbw_factor(world_size),
        iterations=len(slowest),
        seconds_by_rank={str(rank): bandwidth.median_seconds([times]) for rank, times in sorted(seconds.items())},
        low_seconds=low,
        high_seconds=high,
    )


def fit(results: Sequence[SizeResult]) -> dict[str, float] | None:
    """``alpha_seconds`` and ``beta_bytes_per_second`` over all sizes."""
    found = bandwidth.fit([(one.size_bytes, one.seconds) for one in results])
    return dict(found._asdict()) if found else None
