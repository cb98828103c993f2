# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of ports as intervals, both ends included.  Pure.

A set is a sequence of ``(first, last)``; what these functions return is in order, and no two intervals touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = tuple[int, int]
Spans = tuple[Span, ...]


def merged(spans: Iterable[Span]) -> Spans:
    """The union."""
    result: list[Span] = []
    for first, last in sorted(spans):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return tuple(result)


def common(one: Iterable[Span], other: Iterable[Span]) -> Spans:
    """What is in both."""
    others = list(other)
    return merged(
        (max(first, start), min(last, end))
        for first, last in one
        for start, end in others
        if max(first, start) <= min(last, end)
    )


def without(spans: Iterable[Span], removed: Iterable[Span]) -> Spans:
    """What is in the first set and not in the second."""
    left = list(merged(spans))
    for first, last in removed:
        parts = []
        for start, end in left:
            if end < first or start > last:
                parts.append((start, end))
                continue
            if start < first:
                parts.append((start, first - 1))
            if end > last:
                parts.append((last + 1, end))
        left = parts
    return tuple(left)


def holds(spans: Iterable[Span], port: int) -> bool:
    """Whether the port is in the set."""
    return any(first <= port <= last for first, last in spans)


def count(spans: Iterable[Span]) -> int:
    """How many ports the set holds; its intervals must not overlap."""
    return sum(last - first + 1 for first, last in spans)


def shared(sets: Sequence[Spans], share: float) -> Spans:
    """The ports that are in at least this share (above 0, at most 1) of the sets."""
    least = max(1.0, share * len(sets))
    edges: dict[int, int] = {}
    for spans in sets:
        for first, last in merged(spans):
            edges[first] = edges.get(first, 0) + 1
            edges[last + 1] = edges.get(last + 1, 0) - 1
    found: list[Span] = []
    depth = 0
    begin: int | None = None
    for port in sorted(edges):
        depth += edges[port]
        if depth >= least and begin is None:
            begin = port
        elif depth < least and begin is not None:
            found.append((begin, port - 1))
            begin = None
    return merged(found)


def text(spans: Iterable[Span], most: int = 6) -> str:
    """``29500, 40000-50000``; after ``most`` intervals only how many more there are."""
    parts = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(parts[:most]) + more
