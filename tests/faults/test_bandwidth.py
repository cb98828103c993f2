# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the check measures is what a bare loop under torchrun measures, and it costs little more."""

from __future__ import annotations

import os

import bench_bandwidth
import pytest

RANKS = 2
#: Enough for intervals of some percent. What a size differs by beyond its interval and 5 % is no chance.
ROUNDS = 60
ITERATIONS = 20


def test_the_bandwidth_is_that_of_a_bare_torchrun() -> None:
    """In turn in one job, each rank on a processor of its own: what else the machine does hits both alike."""
    if (os.cpu_count() or 1) < RANKS:
        pytest.skip(f"{RANKS} ranks share one processor here: their times are those of the scheduler")
    sizes = ",".join(str(size) for size in bench_bandwidth.SIZES)
    program = [f"--sizes={sizes}", f"--iterations={ITERATIONS}", f"--rounds={ROUNDS}"]
    rows, good = bench_bandwidth.table(bench_bandwidth.here(RANKS, program), ROUNDS)
    told = "\n".join(rows)
    print(told)
    assert good, told
