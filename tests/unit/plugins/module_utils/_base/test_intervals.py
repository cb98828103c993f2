# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Intervals of ports, against sets of ports that are counted one by one."""

from __future__ import annotations

import random

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import intervals
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.intervals import Spans


def one_by_one(spans: Spans) -> set[int]:
    return {port for first, last in spans for port in range(first, last + 1)}


def drawn(chance: random.Random) -> Spans:
    starts = [chance.randint(0, 60) for _number in range(chance.randint(0, 5))]
    return tuple((start, start + chance.randint(0, 12)) for start in starts)


@pytest.mark.parametrize("seed", range(50))
def test_they_are_sets(seed: int) -> None:
    chance = random.Random(seed)
    one, other, third = drawn(chance), drawn(chance), drawn(chance)
    assert one_by_one(intervals.merged(one)) == one_by_one(one)
    assert one_by_one(intervals.common(one, other)) == one_by_one(one) & one_by_one(other)
    assert one_by_one(intervals.without(one, other)) == one_by_one(one) - one_by_one(other)
    assert intervals.count(intervals.merged(one)) == len(one_by_one(one))
    votes = [one_by_one(spans) for spans in (one, other, third)]
    for share, least in ((0.3, 1), (0.6, 2), (1.0, 3)):
        expected = {port for port in range(80) if sum(port in vote for vote in votes) >= least}
        assert one_by_one(intervals.shared([one, other, third], share)) == expected
    for result in (intervals.merged(one), intervals.common(one, other), intervals.without(one, other)):
        assert all(before[1] + 1 < after[0] for before, after in zip(result, result[1:]))


def test_text() -> None:
    assert intervals.text([(29500, 29500), (40000, 50000)]) == "29500, 40000-50000"
    assert intervals.text([(port, port) for port in range(0, 20, 2)], 3) == "0, 2, 4 and 7 more"
    assert intervals.text([]) == ""


def test_holds() -> None:
    assert intervals.holds([(5, 7)], 7) and not intervals.holds([(5, 7)], 8)
