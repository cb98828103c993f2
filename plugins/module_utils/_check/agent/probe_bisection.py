# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports of a peer are blocked, found without anybody listening there.

A port that nobody listens on and nobody filters answers with a reset at once.  One that is filtered does not answer, or
is rejected.  So a coarse grid of ports shows where the path changes between open and blocked, and each change is then
enclosed until its two ports are neighbours.  Pure: the knocking is handed in.

What it can't see: a rule that resets looks like a port that nobody listens on; an interval that lies between two
ports of the grid and holds none of the known ones is missed; a dropped interval beside a rejected one is one rejected
interval.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Callable, NamedTuple

FIRST, LAST = 1024, 65535
# Ports of the grid over FIRST to LAST: eight peers at a time stay below 400 connections.
GRID = 28
# Ports inside of each range of the plan, besides its ends and their neighbours.
INSIDE = 3
# Ports of one peer that are knocked on at the same time while an edge is enclosed, at least and at most.
FEWEST, MOST = 4, 32
# Ports of all peers that are knocked on at the same time.
AT_ONCE = 384
# A first look.  An open path answers in milliseconds; what this calls blocked by mistake is confirmed before it counts.
QUICK_SECONDS = 0.6
# The kernel sends the SYN again after 1 s (RFC 6298), so two of them must be lost for a mistake.
SURE_SECONDS = 1.6
LOOKS_AT_ONE_PORT = 2
# No new round begins after this time.  A peer with two edges needs four quick rounds and a sure one: 4 s.
SEARCH_SECONDS = 12.0
# ICMP messages are rate limited: six at once, then one a second for each peer (net.ipv4.icmp_ratelimit, and
# XRLIM_BURST_FACTOR in net/ipv4).  So a rejected port mostly looks dropped, one rejection speaks for its interval, and
# an interval without any is asked again when the others of its peer are quiet.

OPEN = "open"
DROPPED = "timeout"
REJECTED = "unreachable"

#: Host and port.
Door = tuple[str, int]
#: Knocks on all doors at once and waits that many seconds at most; what it saw at each.
Knock = Callable[[Sequence[Door], float], Mapping[Door, str]]


class Blocked(NamedTuple):
    """An interval, both ends included.  result: ``DROPPED`` or ``REJECTED``."""

    first: int
    last: int
    result: str


class Batch(NamedTuple):
    """Ports to knock on next, and how long to wait for an answer."""

    ports: list[int]
    seconds: float


class Search:
    """One peer.

    ranges: of its port plan.  known: ports that were seen already.  shift: 0 to 1, moves the grid, so that the searches
    of several nodes together look closer than each of them.
    """

    def __init__(
        self, host: str, ranges: Iterable[tuple[int, int]], known: Mapping[int, str], shift: float = 0.0
    ) -> None:
        self.host = host
        spans = list(ranges)
        self.first = min([FIRST, *(first for first, _last in spans)])
        self.seen: dict[int, str] = {}
        # How often each port was given enough time; a rejection and what was known before count as often as it takes.
        self.looks: Counter[int] = Counter()
        # The ports that were given enough time.
        self.asked: set[int] = set()
        self.grid = self._grid(spans, shift)
        self.learn(known, sure=True)
        self.looks.update(dict.fromkeys(known, LOOKS_AT_ONE_PORT))

    def _grid(self, spans: Sequence[tuple[int, int]], shift: float) -> list[int]:
        ports = {self.first, LAST}
        step = (LAST - self.first) / GRID
        ports.update(self.first + int((number + shift) * step) for number in range(GRID))
        for first, last in spans:
            ports.update((first - 1, first, last, last + 1))
            ports.update(first + (last - first) * part // (INSIDE + 1) for part in range(1, INSIDE + 1))
        return sorted(port for port in ports if self.first <= port <= LAST)

    def learn(self, seen: Mapping[int, str], *, sure: bool) -> None:
        """Take in what was seen.  An open port is sure at once; a rejection is not forgotten for a later silence."""
        for port, state in seen.items():
            if state == OPEN or self.seen.get(port) != REJECTED:
                self.seen[port] = state
            self.looks[port] += LOOKS_AT_ONE_PORT if state == REJECTED else int(sure)
        if sure:
            self.asked.update(seen)
        self.grid = [port for port in self.grid if port not in self.seen]

    def next(self, most: int) -> Batch:
        """What to do next; no ports: nothing is left to do.  most: ports at once."""
        if self.grid:
            return Batch(self.grid, QUICK_SECONDS)
        gaps = self._gaps()
        if gaps:
            each = max(1, most // len(gaps))
            return Batch([port for low, high in gaps for port in _between(low, high, each)], QUICK_SECONDS)
        doubtful = {port for run in self._runs() for port in self._doubtful(run)}
        if doubtful:
            return Batch(sorted(doubtful), SURE_SECONDS)
        return Batch(self._unclear(), SURE_SECONDS)

    def _gaps(self) -> list[tuple[int, int]]:
        """Neighbouring known ports of which one is open and one blocked, with unknown ports between them."""
        ports = sorted(self.seen)
        return [
            (low, high)
            for low, high in zip(ports, ports[1:])
            if high - low > 1 and (self.seen[low] == OPEN) != (self.seen[high] == OPEN)
        ]

    def _runs(self) -> list[list[int]]:
        """Known blocked ports, those without an open one between them together."""
        runs: list[list[int]] = []
        before_is_open = True
        for port in sorted(self.seen):
            blocked = self.seen[port] != OPEN
            if blocked and before_is_open:
                runs.append([])
            if blocked:
                runs[-1].append(port)
            before_is_open = not blocked
        return runs

    def _unclear(self) -> list[int]:
        """A port of an interval that looks dropped, where this peer rejects elsewhere; one in a round."""
        runs = self._runs()
        rejects = [any(self.seen[port] == REJECTED for port in run) for run in runs]
        if any(rejects):
            for run, is_rejected in zip(runs, rejects):
                middle = (run[0] + run[-1]) // 2
                if not is_rejected and middle not in self.asked:
                    return [middle]
        return []

    def _doubtful(self, run: Sequence[int]) -> set[int]:
        """The ends of an interval that need a closer look.  One port alone needs more: nothing else speaks for it."""
        needed = LOOKS_AT_ONE_PORT if len(run) == 1 else 1
        return {port for port in (run[0], run[-1]) if self.looks[port] < needed}

    def blocked(self) -> list[Blocked]:
        """The intervals whose two ends are exact and confirmed, in order."""
        loose = {port for gap in self._gaps() for port in gap}
        found = []
        for run in self._runs():
            if self.grid or {run[0], run[-1]} & loose or self._doubtful(run):
                continue
            rejected = any(self.seen[port] == REJECTED for port in run)
            found.append(Blocked(run[0], run[-1], REJECTED if rejected else DROPPED))
        return found


def _between(low: int, high: int, count: int) -> list[int]:
    """Up to ``count`` ports between two others, evenly spread."""
    count = min(count, high - low - 1)
    return [low + (high - low) * number // (count + 1) for number in range(1, count + 1)]


def search(
    searches: Sequence[Search],
    knock: Knock,
    *,
    seconds: float = SEARCH_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Search all peers in the same rounds; how many ports were knocked on.

    Never longer than ``seconds`` and one last round of ``SURE_SECONDS``.  What is not exact by then is left out of
    ``Search.blocked``.
    """
    end = clock() + seconds
    knocked = 0
    active = list(searches)
    while active and clock() < end:
        most = max(FEWEST, min(MOST, AT_ONCE // len(active)))
        asked = {one: one.next(most) for one in active}
        active = [one for one in active if asked[one].ports]
        if not active:
            break
        # The patient wait until nobody is in a hurry any more: a round lasts as long as its most patient knock.
        patience = min(asked[one].seconds for one in active)
        turn = [one for one in active if asked[one].seconds == patience]
        doors = [(one.host, port) for one in turn for port in asked[one].ports]
        knocked += len(doors)
        seen = knock(doors, patience)
        if not seen:
            break  # This node can't knock: no ports or files are left.
        for one in turn:
            states = {port: seen[one.host, port] for port in asked[one].ports if (one.host, port) in seen}
            one.learn(states, sure=patience >= SURE_SECONDS)
    return knocked
