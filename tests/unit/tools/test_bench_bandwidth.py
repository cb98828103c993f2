# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the check's bandwidth agrees with a bare run."""

from __future__ import annotations

import json

import bench_bandwidth
import pytest


def lines(checked: list[float], bare: list[float], wall: float = 10.0, start: float = 0.0) -> str:
    size = {
        "size_bytes": 4096,
        "seconds": {"bare": bare, "checked": checked},
        "wall_seconds": {"bare": 10.0, "checked": wall},
    }
    return f"a warning of torch\n{json.dumps({'start_seconds': start})}\n{json.dumps(size)}\n"


ROUNDS = 10
STEADY = [0.1] * 40
#: Rounds that find half as much and twice as much: they do not know better.
UNSURE = [0.05] * 20 + [0.2] * 20


@pytest.mark.parametrize(
    ("checked", "bare", "good"),
    [
        (STEADY, STEADY, True),
        ([0.104] * 40, STEADY, True),
        ([0.106] * 40, STEADY, False),
        ([0.094] * 40, STEADY, False),
        (UNSURE, STEADY, True),
        # The machine was slower in half of the rounds, for both.
        (UNSURE, UNSURE, True),
        ([1.06 * seconds for seconds in UNSURE], UNSURE, False),
    ],
)
def test_a_size_agrees_within_5_percent_or_within_what_is_chance(
    checked: list[float], bare: list[float], good: bool
) -> None:
    rows, found = bench_bandwidth.table(lines(checked, bare), ROUNDS)
    assert found is good and ("differs" in rows[1]) is not good


@pytest.mark.parametrize(("wall", "start", "good"), [(13, 0, True), (14, 0, False), (20, 4.0, True), (19, 1.0, False)])
def test_the_time_of_one_run_counts_from_its_start(wall: float, start: float, good: bool) -> None:
    assert bench_bandwidth.table(lines(STEADY, STEADY, wall, start), ROUNDS)[1] is good
