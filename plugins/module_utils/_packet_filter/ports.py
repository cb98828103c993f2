# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of ports.

A set of ports is a whole number whose bit p says whether port p is in it: union is ``|``, what both have is ``&``, and
all of it costs the same for one port as for 65,535.
"""

from __future__ import annotations

from collections.abc import Iterator

FIRST = 1
LAST = 65535
NONE = 0


def span(first: int, last: int) -> int:
    """The ports from ``first`` to ``last``, both included; those that do not exist are left out."""
    first, last = max(first, FIRST), min(last, LAST)
    return ((1 << (last - first + 1)) - 1) << first if first <= last else NONE


ALL = span(FIRST, LAST)


def intervals(ports: int) -> Iterator[tuple[int, int]]:
    """The intervals of a set in order, both ends included."""
    port = 0
    while ports >> port:
        rest = ports >> port
        first = port + (rest & -rest).bit_length() - 1
        # The lowest bit of the complement is the first port that is missing.
        rest = ~(ports >> first)
        port = first + (rest & -rest).bit_length() - 1
        yield first, port - 1
