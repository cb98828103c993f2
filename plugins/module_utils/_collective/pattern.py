# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data that ranks exchange, and what a wrong result says about its cause.

Rank ``r`` contributes ``v(r, i) = a_i + r * b_i`` at index ``i``, in small integers.  Every partial sum stays below
2**24, so float32 holds it exactly and any order of summation gives the same bits.  The expected sum has the closed form
``N * a_i + b_i * N * (N - 1) / 2``.  ``a`` and ``b`` change with every iteration, so a collective that left the old
result in place is caught too.  Because the contribution of each rank differs, the deviation itself names the rank that
is missing or counted twice, or the distance by which data moved.

Pure: integers in, integers out.  The same arithmetic works on an int64 tensor in place of ``index``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# float32 has a 24-bit significand (IEEE 754-2019, table 3.5): integers up to 2**24 are exact.
EXACT_LIMIT = 2**24
# N * (N - 1) / 2 must leave room below EXACT_LIMIT for b >= 1 and for the a terms.
MAX_WORLD_SIZE = 4096


def _power_of_two(limit: int) -> int:
    """The largest power of two up to ``limit``, which is at least 1."""
    return 1 << (limit.bit_length() - 1)


class PatternError(ValueError):
    """The pattern can't be exact for these values."""


@dataclass(frozen=True)
class Pattern:
    """The contributions of one iteration.

    world_size: number of ranks, 2 to 4096.  iteration: 0 or more; each has other data.
    """

    world_size: int
    iteration: int

    def __post_init__(self) -> None:
        if not 2 <= self.world_size <= MAX_WORLD_SIZE:
            raise PatternError(f"world size is {self.world_size}, an exact sum needs 2 to {MAX_WORLD_SIZE} ranks")

    @property
    def a_values(self) -> int:
        """How many different values ``a`` takes, a power of two: N * a stays below half of the exact range."""
        return _power_of_two(min(4096, EXACT_LIMIT // 2 // self.world_size))

    @property
    def b_values(self) -> int:
        """The same for ``b``, counted from 1: b * N * (N - 1) / 2 stays below the other half."""
        pairs = self.world_size * (self.world_size - 1) // 2
        return _power_of_two(min(128, EXACT_LIMIT // 2 // pairs))

    def a(self, index: Any) -> Any:
        """The part that all ranks share at ``index``.

        The factors are odd constants that spread neighbouring indexes; any others would do.  Masks, because a remainder
        takes several times as long on a tensor.
        """
        return ((index * 40503 + self.iteration * 7919) >> 3) & (self.a_values - 1)

    def b(self, index: Any) -> Any:
        """The weight of the rank at ``index``, at least 1."""
        return 1 + (((index * 30011 + self.iteration * 104729) >> 5) & (self.b_values - 1))

    def both(self, rank: int, index: Any) -> tuple[Any, Any]:
        """What ``rank`` puts in at ``index``, and the sum over all ranks there."""
        a, b = self.a(index), self.b(index)
        return a + rank * b, self.world_size * a + b * (self.world_size * (self.world_size - 1) // 2)

    def contribution(self, rank: int, index: Any) -> Any:
        """What ``rank`` puts in at ``index``."""
        return self.both(rank, index)[0]

    def expected(self, index: Any) -> Any:
        """The sum over all ranks at ``index``."""
        return self.both(0, index)[1]


def explain(pattern: Pattern, wrong: Sequence[tuple[int, float]], count: int) -> str:
    """Say in words what kind of error ``wrong`` is.

    wrong: samples ``(index, value found)`` of the wrong elements.  count: how many elements the buffer has.
    """
    if not wrong:
        raise ValueError("nothing is wrong, there is nothing to explain")
    if any(not math.isfinite(value) or value != int(value) for _index, value in wrong):
        return "values that no sum of integers can give"
    deltas = [(index, int(value) - pattern.expected(index)) for index, value in wrong]
    for rank in range(pattern.world_size):
        if all(delta == -pattern.contribution(rank, index) for index, delta in deltas):
            return f"the contribution of rank {rank} is missing"
        if all(delta == pattern.contribution(rank, index) for index, delta in deltas):
            return f"the contribution of rank {rank} is counted twice"
        if all(int(value) == pattern.contribution(rank, index) for index, value in wrong):
            return f"the data of rank {rank} alone came back, nothing was reduced"
    if pattern.iteration > 0:
        before = Pattern(pattern.world_size, pattern.iteration - 1)
        if all(int(value) == before.expected(index) for index, value in wrong):
            return "the result of the iteration before came back"
    for shift in [sign * step for step in range(1, 65) for sign in (1, -1)]:
        if all(int(value) == pattern.expected((index + shift) % count) for index, value in wrong):
            return f"the data is misplaced by {shift} elements"
    bits = {bin(int(value) ^ pattern.expected(index)).count("1") for index, value in wrong if value >= 0}
    if bits and max(bits) == 1:
        return "single bits are flipped"
    return "no single rank, shift or bit explains the difference"
