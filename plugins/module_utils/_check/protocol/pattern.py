# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data that ranks exchange.

Rank ``r`` contributes ``v(r, i) = a_i + r * b_i`` at index ``i``, in small integers.  Every partial sum stays below
2**24, so float32 holds it exactly and any order of summation gives the same bits.  The expected sum has the closed form
``N * a_i + b_i * N * (N - 1) / 2``.  ``a`` and ``b`` change with every iteration, so a collective that left the old
result in place is caught too.  Because the contribution of each rank differs, the deviation itself names the rank that
is missing or counted twice, or the distance by which data moved; see ``wrong_data``.

To fill a buffer must not take longer than the collective itself, so the data is a block of ``PERIOD`` elements that
comes again with another constant added, and from another offset in every iteration: one addition per element, and still
no two blocks within 2**10 are equal.

Pure: integers in, integers out.  The same arithmetic works on an int64 tensor in place of ``index``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# float32 has a 24-bit significand (IEEE 754-2019, table 3.5): integers up to 2**24 are exact.
EXACT_LIMIT = 2**24
# N * (N - 1) / 2 must leave room below EXACT_LIMIT for b >= 1 and for the a terms.
MAX_WORLD_SIZE = 4096
# Elements of a block: 128 KiB of float32.  base() and b() look at fewer than 2**15 different indexes.
PERIOD = 2**15


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

    @property
    def offset(self) -> int:
        """By how many elements the block has moved in this iteration; further than any shift that is looked for."""
        return self.iteration * 7919 % PERIOD

    def base(self, index: Any) -> Any:
        """The part of ``a`` that comes again with every block.

        The factors are odd constants that spread neighbouring indexes; any others would do.  Masks, because a remainder
        takes several times as long on a tensor.
        """
        return (((index + self.offset) * 40503) >> 3) & (self.a_values // 2 - 1)

    def step(self, block: Any) -> Any:
        """The part of ``a`` that is the same for a whole block, and another one for the next."""
        return (block * 10007 + self.iteration * 31) & (self.a_values // 2 - 1)

    def a(self, index: Any) -> Any:
        """The part that all ranks share at ``index``."""
        return self.base(index) + self.step(index // PERIOD)

    def b(self, index: Any) -> Any:
        """The weight of the rank at ``index``, at least 1."""
        return 1 + ((((index + self.offset) * 30011) >> 5) & (self.b_values - 1))

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
