# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the wrong elements of a sum say about their cause.

A rank calls ``explain`` when a sum is wrong: only there the values are at hand.  Pure.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.pattern import Pattern

#: Elements by which data may have moved.
SHIFTS = tuple(sign * step for step in range(1, 65) for sign in (1, -1))
#: Beyond this many ranks only single ones are looked for: the runs of ranks grow with the square.
RUNS_OF_RANKS = 64
#: Up to here the contribution of a rank is told by one element.
FEW_RANKS = 16

NOT_A_SUM = "values that no sum of integers can give"
UNEXPLAINED = "no single rank, shift or bit explains the difference"


class Element(NamedTuple):
    """One wrong element: where, what was there, and what should have been."""

    place: int
    found: int
    expected: int

    @property
    def off(self) -> int:
        return self.found - self.expected


def explain(pattern: Pattern, wrong: Sequence[tuple[int, float]], count: int) -> str:
    """Say in words what kind of error ``wrong`` is.

    wrong: samples ``(index, value found)`` of the wrong elements.  count: how many elements the buffer has.
    """
    if not wrong:
        raise ValueError("nothing is wrong, there is nothing to explain")
    bits = _flipped(pattern, wrong)
    if bits:
        return bits
    if any(not math.isfinite(value) or value != int(value) for _index, value in wrong):
        return NOT_A_SUM
    elements = [Element(index, int(value), pattern.expected(index)) for index, value in wrong]
    return next(filter(None, _theories(pattern, elements, count)), UNEXPLAINED)


def _theories(pattern: Pattern, elements: Sequence[Element], count: int) -> Iterator[str]:
    """What may hold, the simplest first; an empty text for what does not.

    One element differs by one of some thousand numbers: the more ranks and distances are tried, the more likely one
    fits by chance.  From two elements on that does not happen.
    """
    if len(elements) > 1 or pattern.world_size <= FEW_RANKS:
        yield _one_rank(pattern, elements)
    if len(elements) == 1:
        return
    yield _several_ranks(pattern, elements)
    yield _earlier(pattern, elements)
    yield _moved(pattern, elements, count)


def _all_off(elements: Sequence[Element], by: Callable[[int], int]) -> bool:
    """Whether every element is off by exactly that much."""
    return all(element.off == by(element.place) for element in elements)


def _one_rank(pattern: Pattern, elements: Sequence[Element]) -> str:
    """A whole contribution too few or too many."""
    for rank in range(pattern.world_size):
        own = [pattern.contribution(rank, element.place) for element in elements]
        if all(element.off == -value for element, value in zip(elements, own)):
            return f"the contribution of rank {rank} is missing"
        if all(element.off == value for element, value in zip(elements, own)):
            return f"the contribution of rank {rank} is counted twice"
        if all(element.found == value for element, value in zip(elements, own)):
            return f"the data of rank {rank} alone came back, nothing was reduced"
    return ""


def _several_ranks(pattern: Pattern, elements: Sequence[Element]) -> str:
    """The sum of neighbours in the ring too few: what they had added up was lost on its way to the next one.

    ``m`` ranks contribute ``m * a + b * (sum of their numbers)``; a run may go past the last rank.  As many ranks whose
    numbers have the same sum look alike, so all runs that fit are named.
    """
    size = pattern.world_size
    if size > RUNS_OF_RANKS:
        return ""
    fit = []
    for length in range(2, size):
        for first in range(size):
            total = sum((first + step) % size for step in range(length))
            if _all_off(elements, lambda i, m=length, t=total: -(m * pattern.a(i) + t * pattern.b(i))):  # type: ignore[misc]
                fit.append(f"{first} to {(first + length - 1) % size}")
    return f"the contributions of ranks {' or '.join(fit)} are missing" if fit else ""


def _earlier(pattern: Pattern, elements: Sequence[Element]) -> str:
    """Something of the iteration before came again."""
    if pattern.iteration == 0:
        return ""
    before = Pattern(pattern.world_size, pattern.iteration - 1)
    if all(element.found == before.expected(element.place) for element in elements):
        return "the result of the iteration before came back"
    for rank in range(pattern.world_size):
        if _all_off(elements, lambda i, r=rank: before.contribution(r, i) - pattern.contribution(r, i)):  # type: ignore[misc]
            return f"rank {rank} took part with its data of the iteration before"
    return ""


def _moved(pattern: Pattern, elements: Sequence[Element], count: int) -> str:
    """The sum, or what one rank put in, at another place."""
    for shift in SHIFTS:
        if all(element.found == pattern.expected((element.place + shift) % count) for element in elements):
            return f"the data is misplaced by {shift} elements"
    for rank in range(pattern.world_size):
        own = [pattern.contribution(rank, element.place) for element in elements]
        for shift in SHIFTS:
            if all(
                element.off == pattern.contribution(rank, (element.place + shift) % count) - value
                for element, value in zip(elements, own)
            ):
                return f"the contribution of rank {rank} is misplaced by {shift} elements"
    return ""


def _flipped(pattern: Pattern, wrong: Sequence[tuple[int, float]]) -> str:
    """One bit of the number as it stands in memory, in every wrong element."""
    found = []
    for index, value in wrong:
        (have,) = struct.unpack("<I", struct.pack("<f", value))
        (want,) = struct.unpack("<I", struct.pack("<f", float(pattern.expected(index))))
        flipped = have ^ want
        if flipped & (flipped - 1):
            return ""
        found.append((index, flipped.bit_length() - 1))
    places = ", ".join(f"bit {bit} of element {index}" for index, bit in found[:4])
    return f"single bits are flipped: {places}" + (f" and {len(found) - 4} more" if len(found) > 4 else "")
