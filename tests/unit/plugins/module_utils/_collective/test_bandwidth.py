# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bandwidth formulas, with the numbers worked out by hand."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective import bandwidth


def test_algbw_is_size_over_time_in_decimal_gigabytes() -> None:
    assert bandwidth.algbw_gb_per_s(2_000_000_000, 0.5) == pytest.approx(4.0)


@pytest.mark.parametrize(("world_size", "factor"), [(2, 1.0), (4, 1.5), (8, 1.75)])
def test_busbw_factor(world_size: int, factor: float) -> None:
    assert bandwidth.busbw_factor(world_size) == pytest.approx(factor)


def test_time_is_the_median_of_the_slowest_rank() -> None:
    by_rank = [[1.0, 1.0, 9.0], [2.0, 3.0, 1.0]]
    assert bandwidth.slowest_per_iteration(by_rank) == [2.0, 3.0, 9.0]
    assert bandwidth.median_seconds(by_rank) == 3.0
