# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection requests (SYN) of each link: how many were sent, how many got no answer, and the slowest connection.

The kernel repeats a lost SYN after 1 s, so a link that loses some of them connects in the end, and most of its
connections are fast.  Ports that never answer are not counted: they are closed, not lossy.  Judging is not done here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import probe_bisection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.probe_dialing import (
    Outcome,
    Settings,
    Target,
    Way,
    dial,
)

# With so many peers at most, a link has FURTHER connections beside those to all ports: with more of them the links of
# a node have enough together, and the calls of all nodes at once would become many.
FEW_PEERS = 16
FURTHER = 8


class Requests(NamedTuple):
    """sent: SYNs.  lost: those without an answer.  worst_milliseconds: from connect() to established."""

    sent: int
    lost: int
    worst_milliseconds: float


def further(outcomes: Mapping[Way, Sequence[Outcome]], settings: Settings) -> list[Outcome]:
    """Connect to ports that answered, and no more than connect; nothing where there are many peers."""
    if len(outcomes) > FEW_PEERS:
        return []
    calls: list[Target] = []
    for found in outcomes.values():
        answered = [
            replace(one.target, payloads=(), own_port=0, timeout_seconds=probe_bisection.SURE_SECONDS)
            for one in found
            if one.connect_ms is not None
        ]
        calls += [answered[number % len(answered)] for number in range(FURTHER if answered else 0)]
    return dial(calls, settings)


def counted(outcomes: Iterable[Outcome], closed: Iterable[tuple[Way, int]]) -> dict[Way, Requests]:
    """By way, where at least one connection was established.

    outcomes: every call, those that were repeated included.  closed: ways and ports that gave no answer in the end.
    """
    left_out = set(closed)
    kept: dict[Way, list[Outcome]] = {}
    for one in outcomes:
        if (one.target.way, one.target.port) not in left_out and (one.connect_ms is not None or one.lost_requests):
            kept.setdefault(one.target.way, []).append(one)
    found = {}
    for way, calls in kept.items():
        times = [one.connect_ms for one in calls if one.connect_ms is not None]
        if times:
            lost = sum(one.lost_requests for one in calls)
            # Of each call the last request was answered, unless the call was given up.
            found[way] = Requests(len(times) + lost, lost, round(max(times), 3))
    return found
