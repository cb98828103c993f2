# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the times of an all_reduce to its bandwidth and latency, and when enough has been measured.

Source of the formulas: NVIDIA nccl-tests, doc/PERFORMANCE.md.  GB/s is 10**9 bytes per second.  Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

#: A median is settled when its 95 % interval is narrower than this share of it.
SETTLED = 0.02
#: Bandwidth has reached its plateau when a larger buffer raises it by less than this share.
PLATEAU_GAIN = 0.05
#: Below that size a small gain is no plateau: latency rules, or the algorithm changes with the size.
PLATEAU_FROM_BYTES = 1 << 20
#: The 97.5 % point of the normal distribution.
Z_95 = 1.96


class Fit(NamedTuple):
    """``t = alpha + size / beta``.  alpha_seconds: 0 or more.  beta_bytes_per_second: above 0."""

    alpha_seconds: float
    beta_bytes_per_second: float


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


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median, whatever the distribution: two of the ordered values.

    How many values lie below the median is binomial with p = 1/2; the ranks follow from its normal approximation
    (W. J. Conover, Practical Nonparametric Statistics, section 3.2).  Few values give their smallest and largest.
    """
    ordered = sorted(values)
    half = Z_95 * math.sqrt(len(ordered)) / 2
    first = max(1, math.floor(len(ordered) / 2 - half))
    last = min(len(ordered), math.ceil(len(ordered) / 2 + half + 1))
    return ordered[first - 1], ordered[last - 1]


def settled(values: Sequence[float]) -> bool:
    """Whether more iterations would hardly move the median."""
    low, high = median_interval(values)
    return high - low < SETTLED * median(values)


def on_plateau(smaller: tuple[int, float], larger: tuple[int, float]) -> bool:
    """Whether bandwidth has stopped growing between two measured sizes ``(size_bytes, seconds)``."""
    if smaller[0] < PLATEAU_FROM_BYTES:
        return False
    return larger[0] / larger[1] < (1 + PLATEAU_GAIN) * smaller[0] / smaller[1]


def fit(points: Sequence[tuple[int, float]]) -> Fit | None:
    """Latency and bandwidth of the line through ``(size_bytes, seconds)``; None when the points give none.

    Relative errors are made small, not absolute ones: otherwise the largest size alone would decide, and latency be
    noise.  Fewer than three sizes, or times that do not grow with the size, describe no line.
    """
    if len({size for size, _seconds in points}) < 3:
        return None
    weights = [1 / seconds**2 for _size, seconds in points]
    total = sum(weights)
    mean_size = sum(w * size for w, (size, _t) in zip(weights, points)) / total
    mean_seconds = sum(w * seconds for w, (_s, seconds) in zip(weights, points)) / total
    spread = sum(w * (size - mean_size) ** 2 for w, (size, _t) in zip(weights, points))
    slope = sum(w * (size - mean_size) * (t - mean_seconds) for w, (size, t) in zip(weights, points)) / spread
    if slope <= 0:
        return None
    return Fit(max(0.0, mean_seconds - slope * mean_size), 1 / slope)
