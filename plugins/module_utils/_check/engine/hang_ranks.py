# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the ranks of a job stand, by the answers of its nodes, and how that is said.  Pure.

A rank *waits* if it has entered a collective that has not ended.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import python_stacks
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.python_stacks import Frame

#: Characters of a collective or a group.
MOST_NAME = 60
#: Of so many ranks the names are written out.
NAMED = 4
#: Kinds of causes, as ``explain`` has them.
STOPPED, DISAGREE, INTERFACE = "STOPPED", "DISAGREE", "INTERFACE"
FILES, UNKNOWN, BLOCKED = "FILES", "UNKNOWN", "BLOCKED"


class Record(NamedTuple):
    """A collective of a rank."""

    group: str
    number: int
    name: str
    sizes: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]
    done: bool

    @property
    def text(self) -> str:
        return f"{self.name} number {self.number}" + (f" of group {self.group}" if self.group not in ("", "0") else "")

    @property
    def shape(self) -> str:
        shapes = ["x".join(map(str, one)) or "a number" for one in self.sizes]
        return ", ".join(f"{one} {kind}" for one, kind in zip(shapes, (*self.types, *[""] * len(shapes)))).strip()


class Rank(NamedTuple):
    """A rank that lives."""

    rank: int
    host: str
    pid: int
    state: str
    kernel: str
    cpu: float
    moved: bool
    frames: tuple[Frame, ...]
    records: tuple[Record, ...]
    groups: Mapping[str, Sequence[int]]
    unanswered: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"rank {self.rank} on {self.host}"

    @property
    def where(self) -> str:
        """Where its main thread stands, for a person; empty if nobody knows."""
        frame = python_stacks.own(self.frames)
        return frame.text if frame else ""

    @property
    def waits_in(self) -> Record | None:
        """The first collective that it has entered and that has not ended."""
        pending = [one for one in self.records if not one.done]
        if pending:
            return min(pending, key=lambda one: one.number)
        name = python_stacks.collective(self.frames)
        return Record("", 0, name, (), (), False) if name else None

    def entered(self, group: str) -> int:
        """The number of its last collective in a group."""
        return max((one.number for one in self.records if one.group == group), default=0)


class Node(NamedTuple):
    """A node of the job.  answer: None where it did not answer, for the reason that is given."""

    name: str
    address: str
    answer: Mapping[str, Any] | None
    reason: str = ""


class Suspect(NamedTuple):
    """A cause.  title: who and what; text: what shows it."""

    cause: str
    title: str
    host: str = ""
    rank: int | None = None
    collective: str = ""
    text: str = ""
    fix: str = ""
    command: str = ""
    confidence: float = 0.8


def rank_of(host: str, found: Mapping[str, Any]) -> Rank:
    """A rank of an answer whose shape has been tested."""
    mains = [python_stacks.main_thread(one) for one in found["stacks"]]
    frames = mains[-1] if mains else ()
    read = [
        Record(
            sanitize.one_line(one["group"])[:MOST_NAME],
            one["number"],
            sanitize.one_line(one["name"])[:MOST_NAME],
            tuple(tuple(size) for size in one["sizes"]),
            tuple(sanitize.one_line(kind) for kind in one["types"]),
            one["done"],
        )
        for one in found["records"] or []
    ]
    return Rank(
        rank=found["rank"],
        host=host,
        pid=found["pid"],
        state=sanitize.one_line(found["state"])[:1],
        kernel=sanitize.one_line(found["kernel"]),
        cpu=found["cpu"],
        moved=found["moved"] or len({mains[0], frames} if mains else ()) > 1,
        frames=frames,
        records=tuple(read),
        groups=found["groups"],
        unanswered=tuple(sanitize.one_line(one) for one in found["unanswered"]),
    )


def waiting_for(ranks: Sequence[Rank]) -> str:
    """The collective in which most wait."""
    found = collections.Counter(
        one.waits_in.text if one.waits_in.number else one.waits_in.name for one in ranks if one.waits_in
    )
    return found.most_common(1)[0][0] if found else ""


def waits_text(ranks: Sequence[Rank]) -> str:
    """Who waits where."""
    waiting = [one for one in ranks if one.waits_in]
    if not waiting:
        return ""
    record = waiting[0].waits_in
    shape = f" ({record.shape})" if record and record.shape else ""
    where = f" at {waiting[0].where}" if waiting[0].where else ""
    return f"{listed([one.name for one in waiting])} in {waiting_for(ranks)}{shape}{where}"


def waiters(ranks: Sequence[Rank], ended: Iterable[int] = (), but: Rank | None = None) -> str:
    count = sum(one.waits_in is not None and one is not but for one in ranks)
    if not count:
        count = len(set(ended))
        return f"{count} rank{'s' * (count != 1)} gave up waiting"
    return f"{count} rank{'s' * (count != 1)} wait{'s' * (count == 1)}"


def others_text(ranks: Sequence[Rank]) -> str:
    return f"rank{'s' * (len(ranks) != 1)} {numbers([one.rank for one in ranks])}"


def stack_text(one: Rank) -> str:
    """The own frames of the training, innermost first."""
    own = [frame for frame in one.frames if not python_stacks.is_installed(frame)]
    return " < ".join(frame.text for frame in (own or one.frames)[:4])


def numbers(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[: 2 * NAMED]))
    return shown + (f" and {len(ranks) - 2 * NAMED} more" if len(ranks) > 2 * NAMED else "")


def listed(names: Sequence[str]) -> str:
    """Names, and how many more."""
    if len(names) > NAMED:
        return f"{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""
