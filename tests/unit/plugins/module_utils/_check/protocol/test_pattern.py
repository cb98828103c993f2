# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exact data: closed form, bounds, and what tells one place from another."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.pattern import (
    EXACT_LIMIT,
    MAX_WORLD_SIZE,
    PERIOD,
    Pattern,
    PatternError,
)

COUNT = 4096


def reduced(pattern: Pattern) -> list[int]:
    """The sum as a collective makes it."""
    ranks = range(pattern.world_size)
    return [sum(pattern.contribution(rank, index) for rank in ranks) for index in range(COUNT)]


@pytest.mark.parametrize("world_size", [2, 3, 8, 64])
def test_expected_is_the_sum_of_the_contributions(world_size: int) -> None:
    pattern = Pattern(world_size, 7)
    assert reduced(pattern) == [pattern.expected(index) for index in range(COUNT)]


@pytest.mark.parametrize("world_size", [2, 3, 1000, MAX_WORLD_SIZE])
def test_sums_stay_exact_in_float32(world_size: int) -> None:
    pattern = Pattern(world_size, 3)
    largest = max(pattern.expected(index) for index in range(100_000))
    assert largest < EXACT_LIMIT
    assert min(pattern.b(index) for index in range(1000)) >= 1


def test_a_world_beyond_the_exact_range_is_refused() -> None:
    for world_size in (1, MAX_WORLD_SIZE + 1):
        with pytest.raises(PatternError, match=f"world size is {world_size}, an exact sum needs 2 to 4096 ranks"):
            Pattern(world_size, 0)


def test_iterations_have_different_data() -> None:
    sums = [tuple(Pattern(3, iteration).expected(index) for index in range(64)) for iteration in range(50)]
    assert len(set(sums)) == 50


@pytest.mark.parametrize("world_size", [2, 1000, MAX_WORLD_SIZE])
def test_blocks_are_told_apart(world_size: int) -> None:
    """Data that moved by whole blocks, as the chunks of a ring often are, shows."""
    pattern = Pattern(world_size, 3)
    steps = [pattern.step(block) for block in range(pattern.a_values // 2)]
    assert len(set(steps)) == len(steps) >= 1024
    assert pattern.expected(5) != pattern.expected(5 + PERIOD)


def test_a_block_comes_again() -> None:
    """Which is what lets a rank fill a buffer as fast as memory can be written."""
    pattern = Pattern(6, 11)
    for index in (0, 1, 777, PERIOD - 1):
        assert pattern.base(index) == pattern.base(index + 5 * PERIOD) and pattern.b(index) == pattern.b(index + PERIOD)
