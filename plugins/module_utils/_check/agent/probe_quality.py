# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast and how clean each link is: its rate, and what had to be sent again.

Measured with a payload of 1 MiB, a few peers at a time, each node beginning with another peer.  What is slow or not
clean compared with the node's other links of its rail is measured again: a busy machine only ever makes a measurement
worse (what it acknowledges late is sent again), so the best one of a link is the truest.  Judging is not done here.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.probe_dialing import (
    LONG_BYTES,
    Outcome,
    Settings,
    Step,
    Target,
    Way,
    dial,
)

# Links measured at the same time, and how often one is measured again.
AT_ONCE = 4
AGAIN = 3
# A link below this share of the median of the node's links is measured again.
SLOW_SHARE = 0.5
# So few links of a node on a rail are measured again in any case: they are compared with an earlier run (slower.py).
FEW = 3


class Quality(NamedTuple):
    """bytes_per_second: of payload, up to the answer.  retransmits: segments sent again, fewest of the measurements."""

    bytes_per_second: float
    retransmits: int


def measure(targets: Sequence[Target], settings: Settings, seconds: float) -> tuple[dict[Way, Quality], list[Outcome]]:
    """Quality by way, and the outcomes of those that failed twice.

    Takes ``seconds`` at most, and then as long as the last ones take to run into their timeout.  A way that was not
    reached in that time is in neither.
    """
    steps: dict[Way, list[Step]] = {}
    first = dial(_with(targets, 1), settings, at_once=AT_ONCE, seconds=seconds / 2)
    for outcome in first:
        steps.setdefault(outcome.target.way, []).extend(outcome.steps)
    doubtful = again({way: quality(found) for way, found in steps.items() if found})
    doubtful |= {way for way, found in steps.items() if not found}
    second = dial(
        _with([target for target in targets if target.way in doubtful], AGAIN),
        settings,
        at_once=AT_ONCE,
        seconds=seconds / 2,
    )
    for outcome in second:
        steps[outcome.target.way].extend(outcome.steps)
    found = {way: quality(measured) for way, measured in steps.items() if measured}
    return found, [outcome for outcome in second if outcome.target.way not in found]


def _with(targets: Iterable[Target], times: int) -> list[Target]:
    return [replace(target, payloads=(LONG_BYTES,) * times) for target in targets]


def quality(steps: Sequence[Step]) -> Quality:
    """The best of the measurements, each value for itself."""
    return Quality(
        max(step.payload_bytes / max(step.seconds, 1e-9) for step in steps),
        min(step.retransmits for step in steps),
    )


def again(found: Mapping[Way, Quality]) -> set[Way]:
    """The ways that are slow or not clean, compared with the others of their rail; all of a few, which show nothing."""
    rates: dict[str, list[float]] = {}
    for (rail, _host), one in found.items():
        rates.setdefault(rail, []).append(one.bytes_per_second)
    usual = {rail: statistics.median(values) for rail, values in rates.items()}
    return {
        way
        for way, one in found.items()
        if one.retransmits or len(rates[way[0]]) <= FEW or one.bytes_per_second < SLOW_SHARE * usual[way[0]]
    }
