# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exact data: closed form, bounds, and the words for each kind of damage."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.pattern import (
    EXACT_LIMIT,
    MAX_WORLD_SIZE,
    Pattern,
    PatternError,
    explain,
)

COUNT = 4096


def reduced(pattern: Pattern, skip: int = -1, twice: int = -1) -> list[int]:
    """The sum as a collective would make it, with one rank left out or counted twice."""
    weights = [0 if rank == skip else 2 if rank == twice else 1 for rank in range(pattern.world_size)]
    return [
        sum(weight * pattern.contribution(rank, index) for rank, weight in enumerate(weights)) for index in range(COUNT)
    ]


def difference(pattern: Pattern, found: list[int]) -> list[tuple[int, float]]:
    return [(i, float(value)) for i, value in enumerate(found) if value != pattern.expected(i)][:64]


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


@pytest.mark.parametrize(
    ("name", "found", "words"),
    [
        ("missing", reduced(Pattern(4, 2), skip=2), "the contribution of rank 2 is missing"),
        ("twice", reduced(Pattern(4, 2), twice=3), "the contribution of rank 3 is counted twice"),
        ("alone", [Pattern(4, 2).contribution(1, i) for i in range(COUNT)], "the data of rank 1 alone came back"),
        ("stale", reduced(Pattern(4, 1)), "the result of the iteration before came back"),
        ("moved", [Pattern(4, 2).expected((i + 5) % COUNT) for i in range(COUNT)], "misplaced by 5 elements"),
        (
            "bit",
            [Pattern(4, 2).expected(i) ^ (1 << 9 if i == 77 else 0) for i in range(COUNT)],
            "single bits are flipped",
        ),
        ("noise", [Pattern(4, 2).expected(i) + i * i + 3 for i in range(COUNT)], "no single rank, shift or bit"),
    ],
)
def test_damage_is_named(name: str, found: list[int], words: str) -> None:
    pattern = Pattern(4, 2)
    assert words in explain(pattern, difference(pattern, found), COUNT)


def test_values_that_are_no_integers_are_named() -> None:
    assert "no sum of integers" in explain(Pattern(4, 2), [(0, float("nan"))], COUNT)
    assert "no sum of integers" in explain(Pattern(4, 2), [(0, 0.5)], COUNT)
