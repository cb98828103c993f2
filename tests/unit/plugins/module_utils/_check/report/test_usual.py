# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which numbers of a map have a colour."""

from __future__ import annotations

import random

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import drift, heat, usual

EVEN = [1.0] * 20


@pytest.mark.parametrize(
    ("value", "better", "expected"),
    [
        (1.0, "low", 0),
        (0.1, "low", 0),
        (1.5, "low", 0),
        (1.51, "low", 3),
        (2.0, "low", 4),
        (4.0, "low", 9),
        (99.0, "low", 9),
        (99.0, "high", 0),
        (0.67, "high", 0),
        (0.66, "high", 3),
        (0.5, "high", 4),
        (0.0, "high", 9),
    ],
)
def test_a_shade_says_how_much_worse_than_the_median(value: float, better: str, expected: int) -> None:
    # Half way to four times worse, on a logarithmic scale, is two times worse.
    assert usual.of(EVEN, 5, better).level(value) == expected


def test_below_five_nodes_nothing_has_a_colour() -> None:
    values = [1.0] * 11 + [50.0]
    assert usual.of(values, 4, "low").level(50.0) == 0 and usual.of(values, 4, "high").level(0.0) == 0
    assert usual.of(values, 5, "low").level(50.0) == 9
    assert usual.FEWEST_NODES * (usual.FEWEST_NODES - 1) == drift.LEAST_LINKS


@pytest.mark.parametrize(("better", "sign"), [("low", 1), ("high", -1)])
def test_noise_has_no_colour(better: str, sign: int) -> None:
    """However wide it is; a link that is far outside of it has one."""
    dice = random.Random(3)
    for width in (0.1, 0.3, 0.8):
        values = [dice.lognormvariate(0, width) for _number in range(20 * 19)]
        norm = usual.of(values, 20, better)
        assert sum(norm.level(one) > 0 for one in values) <= 1, width
        assert norm.level(2.8 ** (sign * (1 + 5 * width))) > 0, width


def test_a_difference_that_matters_to_nobody_has_no_colour() -> None:
    connect = next(one for one in heat.MEASURES if one.key == "latency_ms")
    norm = usual.of([0.03] * 20, 5, connect.better, connect.floor, connect.least)
    # Four times the median, and still below what a program waits for a processor.
    assert norm.level(0.12) == 0 and norm.level(0.14) == 9
    again = next(one for one in heat.MEASURES if one.key == "retransmits")
    norm = usual.of([0] * 19 + [4], 5, again.better, again.floor, again.least)
    assert norm.level(4) == 0 and norm.level(5) == 9


def test_the_median_of_very_many_is_that_of_some_of_them() -> None:
    values = [1.0 + number / 1e6 for number in range(200_000)]
    norm = usual.of(values, 448, "low")
    assert norm.typical == pytest.approx(1.1, abs=0.005)
    assert usual.of(values, 448, "low") == norm, "and the same each time"


def test_zeros_divide_nothing() -> None:
    assert usual.of([0.0] * 20, 5, "low").level(0.0) == 0
    assert usual.of([0.0] * 20, 5, "low").level(1.0) == 9
    assert usual.of([0.0] * 20, 5, "high").level(0.0) == 0
