# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of hosts as Slurm writes them: gpu[01-12]. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

#: The last number of a name, with what stands before and behind it.
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})([^0-9]*)")


class _Run(NamedTuple):
    """Names with consecutive numbers that have the same number of digits; a name without a number is alone."""

    before: str
    behind: str
    digits: int
    first: int
    last: int

    def numbers(self) -> str:
        """01-12, or 01."""
        first, last = f"{self.first:0{self.digits}}", f"{self.last:0{self.digits}}"
        return first if first == last else f"{first}-{last}"


def folded(names: Sequence[str]) -> str:
    """The names in their order: gpu01, gpu02, gpu04 as gpu[01-02,04].

    The order counts, because Slurm pairs the names of a line with its addresses one by one.
    """
    runs: list[_Run] = []
    for name in names:
        runs[-1:] = _joined(runs[-1] if runs else None, _run(name))
    groups: list[list[_Run]] = []
    for run in runs:
        if groups and run.digits and groups[-1][0].digits and _sides(groups[-1][0]) == _sides(run):
            groups[-1].append(run)
        else:
            groups.append([run])
    return ",".join(_group(group) for group in groups)


def _sides(run: _Run) -> tuple[str, str]:
    return run.before, run.behind


def _run(name: str) -> _Run:
    found = _NUMBERED.fullmatch(name)
    if not found or ":" in name:
        return _Run(name, "", 0, 0, 0)
    before, number, behind = found.groups()
    return _Run(before, behind, len(number), int(number), int(number))


def _joined(one: _Run | None, other: _Run) -> list[_Run]:
    """Both as one run if the second continues the first."""
    if one is None:
        return [other]
    if one[:3] == other[:3] and other.digits and other.first == one.last + 1:
        return [one._replace(last=other.last)]
    return [one, other]


def _group(runs: Sequence[_Run]) -> str:
    before, behind = _sides(runs[0])
    if not runs[0].digits:
        return before
    if len(runs) == 1 and runs[0].first == runs[0].last:
        return f"{before}{runs[0].numbers()}{behind}"
    return f"{before}[{','.join(run.numbers() for run in runs)}]{behind}"
