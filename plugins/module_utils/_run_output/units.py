# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a phase does with one role, as one line.  Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._run_output import grouping, texts

OK, CHANGED, FAILED, UNREACHABLE = "ok", "changed", "failed", "unreachable"
#: Longer notes stand below the line.
NOTES_MOST = 110
TITLE_COLUMNS, HOSTS_COLUMNS, TIME_COLUMNS = 28, 10, 12


@dataclasses.dataclass
class Unit:
    """title: of its line.  began, ended: seconds of a clock."""

    title: str
    began: float
    ended: float = 0.0
    ran: set[str] = dataclasses.field(default_factory=set)
    skipped: set[str] = dataclasses.field(default_factory=set)
    changes: dict[str, int] = dataclasses.field(default_factory=dict)
    #: An empty name stands for a task that one host runs for all.
    failed: set[str] = dataclasses.field(default_factory=set)
    unreachable: set[str] = dataclasses.field(default_factory=set)
    notes: list[grouping.Told] = dataclasses.field(default_factory=list)

    @property
    def state(self) -> str:
        """The worst of what happened."""
        if self.failed:
            return FAILED
        if self.unreachable:
            return UNREACHABLE
        return CHANGED if self.changes else OK

    def lines(self, check_mode: bool) -> Iterator[str]:
        """The line; below it the notes that do not fit."""
        everyone = self.ran | self.skipped
        everyone = everyone - {"localhost"} or everyone
        groups = [group for group in grouping.grouped(self.notes) if group.text]
        heads = ["" if everyone <= set(group.hosts) else texts.hosts(group.hosts) for group in groups]
        short = "; ".join(f"{head}: {group.text}" if head else group.text for head, group in zip(heads, groups))
        fits = "\n" not in short and len(short) <= NOTES_MOST
        parts = [*self._outcome(check_mode), *([short] if short and fits else [])]
        number = texts.count(len(everyone), "host")
        seconds = texts.duration(max(0.0, self.ended - self.began))
        said = ", ".join(parts) or ("no change" if self.ran else "skipped")
        yield f"{self.title:<{TITLE_COLUMNS}} {number:>{HOSTS_COLUMNS}} {seconds:>{TIME_COLUMNS}}  {said}"
        if not fits:
            for head, group in zip(heads, groups):
                for line in grouping.lines(group, head):
                    yield f"{grouping.MARGIN}{line}"

    def _outcome(self, check_mode: bool) -> Iterator[str]:
        if self.changes:
            changes = texts.count(sum(self.changes.values()), "change")
            yield f"{changes}{' predicted' if check_mode else ''} on {texts.hosts(self.changes)}"
        if self.failed:
            yield "FAILED" if "" in self.failed else f"FAILED on {texts.hosts(self.failed)}"
        if self.unreachable:
            yield f"UNREACHABLE: {texts.hosts(self.unreachable)}"
