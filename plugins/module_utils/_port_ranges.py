# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranges of ports, and what is common to them, joined or left over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class PortRange:
    """The ports from ``first`` to ``last``, both included, of one protocol."""

    first: int
    last: int
    protocol: str = "tcp"

    def count(self) -> int:
        """How many ports it holds."""
        return self.last - self.first + 1

    def overlaps(self, other: PortRange) -> bool:
        """Whether both contain the same port of the same protocol."""
        return self.protocol == other.protocol and self.common(other) is not None

    def common(self, other: PortRange) -> PortRange | None:
        """The ports that are in both, whatever the protocol."""
        first, last = max(self.first, other.first), min(self.last, other.last)
        return PortRange(first, last, self.protocol) if first <= last else None

    def text(self) -> str:
        """``29400-29599``, or ``29500`` when it is one port."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def firewall(self) -> str:
        """``29400-29599/tcp``: the form of firewalld and of the role variables."""
        return f"{self.text()}/{self.protocol}"


def merged(spans: Iterable[PortRange]) -> tuple[PortRange, ...]:
    """The same ports in order, with neighbours joined, as the kernel prints them."""
    result: list[PortRange] = []
    for span in sorted(spans, key=lambda one: (one.first, one.last)):
        if result and span.first <= result[-1].last + 1:
            result[-1] = PortRange(result[-1].first, max(result[-1].last, span.last))
        else:
            result.append(PortRange(span.first, span.last))
    return tuple(result)


def left_over(span: PortRange, taken: Iterable[PortRange]) -> list[PortRange]:
    """The parts of ``span`` that lie in none of ``run_step``."""
    result, first = [], span.first
    for other in merged(taken):
        if other.last < first or other.first > span.last:
            continue
        if other.first > first:
            result.append(PortRange(first, other.first - 1))
        first = other.last + 1
    if first <= span.last:
        result.append(PortRange(first, span.last))
    return result
