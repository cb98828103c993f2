# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bandwidth formulas, with the numbers worked out by hand."""

from __future__ import annotations

import math
import random

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import bandwidth


def test_algbw_is_size_over_time_in_decimal_gigabytes() -> None:
    assert bandwidth.algbw_gb_per_s(2_000_000_000, 0.5) == pytest.approx(4.0)


@pytest.mark.parametrize(("world_size", "factor"), [(2, 1.0), (4, 1.5), (8, 1.75)])
def test_busbw_factor(world_size: int, factor: float) -> None:
    assert bandwidth.busbw_factor(world_size) == pytest.approx(factor)


def test_time_is_the_median_of_the_slowest_rank() -> None:
    by_rank = [[1.0, 1.0, 9.0], [2.0, 3.0, 1.0]]
    assert bandwidth.slowest_per_iteration(by_rank) == [2.0, 3.0, 9.0]
    assert bandwidth.median_seconds(by_rank) == 3.0


def test_the_interval_of_the_median_holds_it_as_often_as_it_says() -> None:
    """1,000 series of 20 values of a skewed distribution, whose median is known."""
    numbers = random.Random(3)
    truth = math.log(2)
    held = 0
    for _series in range(1000):
        low, high = bandwidth.median_interval([numbers.expovariate(1) for _value in range(20)])
        held += low <= truth <= high
    assert 930 <= held <= 1000


def test_the_interval_of_few_values_is_all_of_them() -> None:
    assert bandwidth.median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert bandwidth.median_interval([5.0]) == (5.0, 5.0)


def test_settled_when_more_values_would_hardly_move_the_median() -> None:
    assert bandwidth.settled([1.0, 1.001, 1.002, 1.003] * 5)
    assert not bandwidth.settled([1.0, 1.1, 1.2, 1.3] * 5)
    # Two outliers among twenty move no median.
    assert bandwidth.settled([1.0] * 18 + [9.0, 9.0])


MIB = 1 << 20


@pytest.mark.parametrize(
    ("smaller", "larger", "reached"),
    [
        ((MIB, 0.010), (4 * MIB, 0.039), True),
        ((MIB, 0.010), (4 * MIB, 0.030), False),
        # Small buffers wait for the network's latency: no plateau, however little the next size gains.
        ((4096, 0.001), (65536, 0.016), False),
    ],
)
def test_the_plateau(smaller: tuple[int, float], larger: tuple[int, float], reached: bool) -> None:
    assert bandwidth.on_plateau(smaller, larger) is reached


def test_the_fit_finds_latency_and_bandwidth_again() -> None:
    alpha, beta = 0.0002, 1.25e9
    found = bandwidth.fit([(size, alpha + size / beta) for size in (4, 4096, MIB, 16 * MIB)])
    assert found is not None
    assert found.alpha_seconds == pytest.approx(alpha) and found.beta_bytes_per_second == pytest.approx(beta)


def test_noise_on_the_largest_size_leaves_the_latency_alone() -> None:
    """3 % of 16 MiB are longer than the whole latency: a fit of absolute errors would lose it."""
    alpha, beta = 0.0002, 1.25e9
    points = [(size, alpha + size / beta) for size in (4, 4096, MIB, 16 * MIB)]
    points[-1] = (points[-1][0], points[-1][1] * 1.03)
    found = bandwidth.fit(points)
    assert found is not None and found.alpha_seconds == pytest.approx(alpha, rel=0.03)


@pytest.mark.parametrize("points", [[], [(4, 0.1), (MIB, 0.2)], [(4, 0.3), (4096, 0.2), (MIB, 0.1)]])
def test_no_fit_without_a_line(points: list[tuple[int, float]]) -> None:
    assert bandwidth.fit(points) is None


def test_latency_is_never_negative() -> None:
    found = bandwidth.fit([(MIB, 0.001), (2 * MIB, 0.0022), (4 * MIB, 0.0050)])
    assert found is not None and found.alpha_seconds == 0
