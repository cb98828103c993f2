# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Medians of all links but some, for each of many nodes: sorted once, with no look at all links again.  Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Ends


class Ordered:
    """The values of links, sorted once: what is usual without some of them is then told without a look at all."""

    def __init__(self, values: Mapping[Ends, float]) -> None:
        links = sorted(values, key=lambda ends: values[ends])
        self.values = [values[ends] for ends in links]
        self.place = {ends: number for number, ends in enumerate(links)}

    def without(self, links: Iterable[Ends]) -> Others:
        """The values of all links but these."""
        return Others(self.values, sorted({self.place[ends] for ends in links}))


class Others:
    """Sorted values without those at some places, which are in order too."""

    def __init__(self, values: Sequence[float], gone: Sequence[int]) -> None:
        self._values = values
        # How many are left in front of each place that is gone.
        self._before = [place - number for number, place in enumerate(gone)]

    def __len__(self) -> int:
        return len(self._values) - len(self._before)

    def _at(self, number: int) -> float:
        return self._values[number + bisect_right(self._before, number)]

    def median(self) -> float:
        """As that of ``statistics``."""
        half = len(self) // 2
        return self._at(half) if len(self) % 2 else (self._at(half - 1) + self._at(half)) / 2

    def deviation(self, middle: float) -> float:
        """The median distance from the middle."""
        half = len(self) // 2
        if len(self) % 2:
            return self._distance(half + 1, middle)
        return (self._distance(half, middle) + self._distance(half + 1, middle)) / 2

    def _distance(self, count: int, middle: float) -> float:
        """Of the farthest of the ``count`` values nearest to the middle.  They are in a row, from ``first``."""
        first, last = 0, len(self) - count
        while first < last:
            half = (first + last) // 2
            if middle - self._at(half) > self._at(half + count) - middle:
                first = half + 1
            else:
                last = half
        return max(middle - self._at(first), self._at(first + count - 1) - middle)
