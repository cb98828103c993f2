# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Subordinate user and group numbers (subuid(5), subgid(5)): who has some, and a range that nobody has. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SUBUID, SUBGID = "/etc/subuid", "/etc/subgid"
NSSWITCH = "/etc/nsswitch.conf"
#: Numbers have 32 bits, and the last one means none (newuidmap(1), chown(2)).
MOST = 2**32 - 1


class Range(NamedTuple):
    """A line of the file: user by name or number, first number, how many."""

    owner: str
    first: int
    size: int

    @property
    def end(self) -> int:
        """The number after the last one."""
        return self.first + self.size


def parse(text: str) -> list[Range]:
    """The ranges of a file.  A line of another form gives nobody anything."""
    found = (line.strip().split(":") for line in text.splitlines())
    return [
        Range(parts[0], int(parts[1]), int(parts[2]))
        for parts in found
        if len(parts) == 3 and parts[0] and parts[1].isdecimal() and parts[2].isdecimal()
    ]


def has_some(ranges: Iterable[Range], user: str, uid: int) -> bool:
    return any(one.owner in (user, str(uid)) and one.size > 0 for one in ranges)


def free(ranges: Iterable[Range], first: int, count: int, taken: Sequence[int] = ()) -> int | None:
    """The first number, from ``first`` on, of a range that overlaps no other and has none of ``taken`` in it."""
    blocks = sorted([(one.first, one.end) for one in ranges] + [(number, number + 1) for number in taken])
    start = first
    for begin, end in blocks:
        if end > start and begin < start + count:
            start = end
    return start if start + count <= MOST else None


def with_range(text: str, added: Range) -> str:
    """The file with one line more."""
    before = text if not text or text.endswith("\n") else f"{text}\n"
    return f"{before}{added.owner}:{added.first}:{added.size}\n"


def come_from_elsewhere(nsswitch: str) -> bool:
    """Whether a directory gives the ranges, and the files are not read (shadow-utils: ``subid: sss``)."""
    found = re.search(r"^\s*subid:\s*([^\s#]+)", nsswitch, re.M)
    return found is not None and found[1] != "files"
