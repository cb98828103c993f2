# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the check's bandwidth agrees with a bare run."""

from __future__ import annotations

import json

import bench_bandwidth
import pytest


def lines(checked: list[float], bare: list[float], wall: float = 1.0, start: float = 0.0) -> str:
    size = {
        "size_bytes": 4096,
        "seconds": {"bare": bare, "checked": checked},
        "wall_seconds": {"bare": 1.0, "checked": wall},
    }
    return f"a warning of torch\n{json.dumps({'start_seconds': start})}\n{json.dumps(size)}\n"


STEADY = [0.1] * 40
NOISY = [0.1, 0.2] * 20


@pytest.mark.parametrize(
    ("checked", "bare", "good"),
    [
        (STEADY, STEADY, True),
        ([0.104] * 40, STEADY, True),
        ([0.106] * 40, STEADY, False),
        ([0.094] * 40, STEADY, False),
        # The bare run itself does not know better.
        ([0.18] * 40, NOISY, True),
    ],
)
def test_a_size_agrees_within_5_percent_or_within_what_is_chance(
    checked: list[float], bare: list[float], good: bool
) -> None:
    rows, found = bench_bandwidth.table(lines(checked, bare))
    assert found is good and ("differs" in rows[1]) is not good


@pytest.mark.parametrize(
    ("wall", "start", "good"), [(1.3, 0, True), (1.4, 0, False), (2.0, 4.0, True), (1.9, 1.0, False)]
)
def test_the_time_of_a_run_counts_from_its_start(wall: float, start: float, good: bool) -> None:
    assert bench_bandwidth.table(lines(STEADY, STEADY, wall, start))[1] is good
