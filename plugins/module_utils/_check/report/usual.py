# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which numbers of a map are worse than usual, and how much.  Pure.

A number has a colour when it is ``FACTOR`` times worse than the median of all, by more than ``SCATTER`` times what
numbers usually differ from it, and by more than a difference that matters to nobody.  With fewer than ``FEWEST_NODES``
nodes no number has one: their links do not show what is usual.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.style import SHADES

#: Own choices, without a source.  As ``drift.LEAST_LINKS``: the links of four nodes do not show how much they scatter.
FEWEST_NODES = 5
#: A busy machine makes one transfer of some milliseconds this much slower.
FACTOR = 1.5
#: Median absolute deviations of the logarithm, as ``drift.LINK_SCATTER``: of numbers that scatter evenly (normally),
#: one in 2,700 is so much worse than the median.
SCATTER = 5.0
#: From here on the colour is full.
FULL = 4.0
#: Of more numbers than these, the median and the scatter are those of so many, chosen by lot.
SAMPLE = 20_000


@dataclass(frozen=True)
class Usual:
    """typical: the median.  better: ``low`` or ``high``.  limit: what is worse than it has a colour."""

    typical: float
    better: str
    limit: float

    def level(self, value: float | None) -> int:
        """0 (not worse than usual) to ``SHADES - 1`` (``FULL`` times worse, or more)."""
        if value is None or (value <= self.limit if self.better == "low" else value >= self.limit):
            return 0
        worse = min(FULL, self.times_worse(value))
        return max(1, round((SHADES - 1) * math.log(worse) / math.log(FULL)))

    def times_worse(self, value: float) -> float:
        """Than the median; ``FULL`` where there is nothing to divide by."""
        worse, good = (value, self.typical) if self.better == "low" else (self.typical, value)
        return worse / good if good > 0 else FULL


def of(values: Sequence[float], nodes: int, better: str, floor: float = 0.0, least: float = 0.0) -> Usual:
    """What is usual of these.  floor: a smaller difference from the median matters to nobody.

    nodes: of which they are.  least: a median below it counts as this much.
    """
    some = random.Random(len(values)).sample(values, SAMPLE) if len(values) > SAMPLE else values
    typical = max(median(some), least)
    if nodes < FEWEST_NODES:
        return Usual(typical, better, math.inf if better == "low" else -math.inf)
    positive = [one for one in (max(value, least) for value in some) if one > 0]
    logs = [abs(math.log(one / typical)) for one in positive] if typical > 0 else []
    factor = max(FACTOR, math.exp(SCATTER * median(logs))) if logs else FACTOR
    limit = max(typical * factor, typical + floor) if better == "low" else min(typical / factor, typical - floor)
    return Usual(typical, better, limit)
