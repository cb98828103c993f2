# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which way the data of an all_reduce goes through gloo's ring.

Source: gloo/allreduce.cc, the algorithm that torch uses.  A buffer is cut into one chunk per rank.  Every rank sends to
the rank below it and receives from the one above, modulo the world size.  The sum of chunk ``c`` begins at rank
``c - 1``, goes downwards, and is complete at rank ``c`` (reduce phase); from there the complete sum goes downwards once
more (gather phase), and reaches rank ``c + 1`` last.  Pure.
"""

from __future__ import annotations

#: kMaxSegmentSize of gloo/allreduce.h.
SEGMENT_BYTES = 1024 * 1024
ELEMENT_BYTES = 4


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def chunk_elements(count: int, world_size: int) -> int:
    """How many float32 elements a chunk has; the last chunks may have fewer, or none."""
    total = count * ELEMENT_BYTES
    segment = _up(min(-(-total // (2 * world_size)), SEGMENT_BYTES), ELEMENT_BYTES)
    segments = _up(max(-(-total // segment), 2 * world_size), world_size)
    return segments // world_size * segment // ELEMENT_BYTES


def chunk_of(first: int, last: int, count: int, world_size: int) -> int | None:
    """The chunk that holds all elements from ``first`` to ``last``, or None when they lie in several."""
    size = chunk_elements(count, world_size)
    return first // size if first // size == last // size else None


def gather_path(chunk: int, world_size: int) -> list[int]:
    """The ranks in the order in which the complete sum of a chunk reaches them."""
    return [(chunk - step) % world_size for step in range(world_size)]


def broken_hop(chunk: int, wrong: set[int], world_size: int) -> tuple[int, int] | None:
    """The hop of the gather phase ``(from, to)`` behind which all is wrong and before which nothing is.

    None when no single hop explains who has the wrong sum; when all have it, the sum was wrong before that phase.
    """
    path = gather_path(chunk, world_size)
    for place in range(1, world_size):
        if set(path[place:]) == wrong:
            return path[place - 1], path[place]
    return None
