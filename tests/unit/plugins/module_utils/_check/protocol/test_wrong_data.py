# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words for each kind of damage, and for none that fits."""

from __future__ import annotations

import random
import struct

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.pattern import PERIOD, Pattern
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.wrong_data import (
    NOT_A_SUM,
    UNEXPLAINED,
    explain,
)

COUNT = 4096
PATTERN = Pattern(4, 2)


def reduced(pattern: Pattern, skip: tuple[int, ...] = (), twice: int = -1) -> list[int]:
    """The sum as a collective would make it, with some ranks left out or one counted twice."""
    weights = [0 if rank in skip else 2 if rank == twice else 1 for rank in range(pattern.world_size)]
    return [
        sum(weight * pattern.contribution(rank, index) for rank, weight in enumerate(weights)) for index in range(COUNT)
    ]


def with_contribution(rank: int, other: list[int]) -> list[int]:
    """The sum with something else in place of what this rank puts in."""
    return [value - PATTERN.contribution(rank, i) + other[i] for i, value in enumerate(reduced(PATTERN))]


def difference(pattern: Pattern, found: list[int]) -> list[tuple[int, float]]:
    return [(i, float(value)) for i, value in enumerate(found) if value != pattern.expected(i)][:64]


@pytest.mark.parametrize(
    ("name", "found", "words"),
    [
        ("missing", reduced(PATTERN, skip=(2,)), "the contribution of rank 2 is missing"),
        ("twice", reduced(PATTERN, twice=3), "the contribution of rank 3 is counted twice"),
        ("run", reduced(PATTERN, skip=(2, 3)), "the contributions of ranks 2 to 3 are missing"),
        ("two runs", reduced(PATTERN, skip=(3, 0)), "the contributions of ranks 1 to 2 or 3 to 0 are missing"),
        ("alone", [PATTERN.contribution(1, i) for i in range(COUNT)], "the data of rank 1 alone came back"),
        ("stale", reduced(Pattern(4, 1)), "the result of the iteration before came back"),
        (
            "stale input",
            with_contribution(3, [Pattern(4, 1).contribution(3, i) for i in range(COUNT)]),
            "rank 3 took part with its data of the iteration before",
        ),
        ("moved", [PATTERN.expected((i + 5) % COUNT) for i in range(COUNT)], "the data is misplaced by 5 elements"),
        (
            "moved input",
            with_contribution(1, [PATTERN.contribution(1, (i - 3) % COUNT) for i in range(COUNT)]),
            "the contribution of rank 1 is misplaced by -3 elements",
        ),
        ("noise", [PATTERN.expected(i) + i * i + 3 for i in range(COUNT)], UNEXPLAINED),
    ],
)
def test_damage_is_named(name: str, found: list[int], words: str) -> None:
    assert words in explain(PATTERN, difference(PATTERN, found), COUNT)


def flipped(value: int, bit: int) -> float:
    (word,) = struct.unpack("<I", struct.pack("<f", float(value)))
    (found,) = struct.unpack("<f", struct.pack("<I", word ^ (1 << bit)))
    return float(found)


@pytest.mark.parametrize("bit", [0, 12, 22, 23, 30, 31])
def test_a_flipped_bit_is_named_with_its_place(bit: int) -> None:
    """Whatever it does to the number: a bit of the fraction, of the exponent, the sign."""
    wrong = [(77, flipped(PATTERN.expected(77), bit))]
    assert explain(PATTERN, wrong, COUNT) == f"single bits are flipped: bit {bit} of element 77"


def test_many_flipped_bits_are_counted() -> None:
    wrong = [(index, flipped(PATTERN.expected(index), 9)) for index in range(0, 60, 10)]
    assert explain(PATTERN, wrong, COUNT).endswith(
        "bit 9 of element 0, bit 9 of element 10, bit 9 of element 20, bit 9 of element 30 and 2 more"
    )


def test_values_that_are_no_integers_are_named() -> None:
    assert explain(PATTERN, [(0, float("nan"))], COUNT) == NOT_A_SUM
    assert explain(PATTERN, [(0, 0.7), (1, 0.3)], COUNT) == NOT_A_SUM


def test_a_block_of_another_place_is_not_taken_for_the_right_one() -> None:
    """The data comes again with every block, up to a constant; that constant is what tells them apart."""
    moved = [(index, float(PATTERN.expected(index + PERIOD))) for index in range(16)]
    assert all(value != PATTERN.expected(index) for index, value in moved)


def test_one_element_accuses_no_rank_by_chance() -> None:
    """Random damage to one element in a large world: hardly ever may it look like a cause that names a rank."""
    numbers = random.Random(7)
    pattern = Pattern(64, 5)
    named = 0
    for _case in range(200):
        index = numbers.randrange(COUNT)
        value = numbers.randrange(2**20)
        named += "rank" in explain(pattern, [(index, float(value))], COUNT).replace(UNEXPLAINED, "")
    assert named == 0


def test_nothing_wrong_has_no_explanation() -> None:
    with pytest.raises(ValueError, match="nothing is wrong"):
        explain(PATTERN, [], COUNT)
