# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bandwidth of an all_reduce, as nccl-tests defines it.

Source of the formulas: NVIDIA nccl-tests, doc/PERFORMANCE.md.  GB/s is 10**9 bytes per second.  Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def algbw_gb_per_s(size_bytes: int, seconds: float) -> float:
    """Algorithm bandwidth: ``size / time``.  size_bytes: the buffer of one rank.  seconds: above 0."""
    return size_bytes / seconds / 1e9


def busbw_factor(world_size: int) -> float:
    """What an all_reduce over ``world_size`` ranks moves per link, relative to its buffer: ``2 (n - 1) / n``."""
    return 2 * (world_size - 1) / world_size


def slowest_per_iteration(seconds_by_rank: Sequence[Sequence[float]]) -> list[float]:
    """The time of each iteration, which is the time of its slowest rank.

    Rank 0 alone hides a straggler and a mean blurs it.  seconds_by_rank: one list per rank, equally long.
    """
    return [max(times) for times in zip(*seconds_by_rank)]


def median_seconds(seconds_by_rank: Sequence[Sequence[float]]) -> float:
    """The median over iterations of the slowest rank."""
    return median(slowest_per_iteration(seconds_by_rank))
