# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gloo's ring, played through rank by rank."""

from __future__ import annotations

import random

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import ranks_ring


def played(world_size: int, broken: tuple[int, int], chunk: int) -> set[int]:
    """Who has the wrong sum when one hop of the gather phase spoils this chunk: every rank sends to the one below."""
    wrong = dict.fromkeys(range(world_size), False)
    for step in range(world_size - 1):
        sender = (chunk - step) % world_size
        receiver = (sender - 1) % world_size
        wrong[receiver] = wrong[sender] or (sender, receiver) == broken
    return {rank for rank, bad in wrong.items() if bad}


@pytest.mark.parametrize("world_size", [2, 3, 4, 8])
def test_the_hop_is_found_from_who_has_the_wrong_sum(world_size: int) -> None:
    for chunk in range(world_size):
        for step in range(world_size - 1):
            sender = (chunk - step) % world_size
            hop = (sender, (sender - 1) % world_size)
            assert ranks_ring.broken_hop(chunk, played(world_size, hop, chunk), world_size) == hop


def test_no_hop_when_all_are_wrong_or_the_wrong_ones_are_not_in_a_row() -> None:
    assert ranks_ring.broken_hop(0, {0, 1, 2, 3}, 4) is None
    assert ranks_ring.broken_hop(0, {3}, 4) is None
    assert ranks_ring.broken_hop(0, {0}, 4) is None


@pytest.mark.parametrize(
    ("count", "world_size", "elements"),
    [
        # Worked out by hand from gloo/allreduce.cc.  1024 elements are 4096 bytes: segments of 512 bytes, two a chunk.
        (1024, 4, 256),
        # 16 MiB over 3 ranks: segments of 1 MiB, 16 of them, made 18.
        (4 << 20, 3, 6 * (1 << 20) // 4),
        # One element: a chunk has at least two segments of one element.
        (1, 2, 2),
        (1000, 3, 334),
    ],
)
def test_the_chunks_are_those_of_gloo(count: int, world_size: int, elements: int) -> None:
    assert ranks_ring.chunk_elements(count, world_size) == elements


def test_the_chunks_hold_all_elements() -> None:
    numbers = random.Random(11)
    for _case in range(500):
        count, world_size = numbers.randrange(1, 5_000_000), numbers.randrange(2, 65)
        assert ranks_ring.chunk_elements(count, world_size) * world_size >= count


def test_the_chunk_of_a_range() -> None:
    assert ranks_ring.chunk_of(256, 511, 1024, 4) == 1
    assert ranks_ring.chunk_of(255, 256, 1024, 4) is None
