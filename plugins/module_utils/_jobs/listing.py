# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All answers as one list of jobs: what ``gpu-cluster-run ps`` shows.  Pure."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import folded
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.answers import Answer

SCHEMA = 1
HEAD = ("JOB", "USER", "STARTED", "NODES", "RANKS", "COMMAND")
NONE = "no job of gpu-cluster-run on %s"
NO_ANSWER = "%s: no answer: %s"
LEFT = "  left behind on %s: %d processes without an agent; `gpu-cluster-run stop %s` ends them"
STARTS = "  no agent has answered yet"
#: Further places where ranks of the job are expected.
OF = "%d of %d"


@dataclass
class Part:
    """What a node has of a job.  left: whether its agent is gone."""

    ranks: int
    processes: int
    left: bool


@dataclass
class Job:
    """A job on all nodes.  nodes, ranks: what its agents have said, 0 where they have not."""

    job: str
    user: str
    started: int
    by: str = ""
    command: str = ""
    mode: str = ""
    nodes: int = 0
    ranks: int = 0
    grace: int = 0
    launchers: list[str] = field(default_factory=list)
    parts: dict[str, Part] = field(default_factory=dict)

    @property
    def left(self) -> list[str]:
        """Where processes have stayed without their agent."""
        return [node for node, part in self.parts.items() if part.left]

    def as_dict(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "user": self.user,
            "by": self.by,
            "started": self.started,
            "command": self.command,
            "mode": self.mode,
            "nodes": {
                node: {"ranks": part.ranks, "processes": part.processes, "left_behind": part.left}
                for node, part in self.parts.items()
            },
            "nodes_planned": self.nodes,
            "ranks": sum(part.ranks for part in self.parts.values()),
            "ranks_planned": self.ranks,
            "launcher": self.launchers[0] if self.launchers else None,
        }


def jobs(answers: Iterable[Answer]) -> list[Job]:
    """One entry for each job and user, in the order of their starts."""
    found: dict[tuple[str, str], Job] = {}
    for answer in answers:
        for said in answer.found.get("jobs", []):
            one = found.setdefault((said["job"], said["user"]), Job(said["job"], said["user"], said["started"]))
            _add(one, answer.node, said)
    return sorted(found.values(), key=lambda one: (one.started, one.job))


def _add(one: Job, node: str, said: Mapping[str, Any]) -> None:
    one.started = min(one.started, said["started"])
    about = said["about"]
    for name in ("by", "command", "mode", "nodes", "ranks", "grace"):
        if about.get(name):
            setattr(one, name, about[name])
    if said["launchers"]:
        one.launchers.append(node)
    if said["agents"] or said["processes"]:
        one.parts[node] = Part(said["ranks"], said["processes"], not said["agents"])


def as_dict(answers: Sequence[Answer]) -> dict[str, Any]:
    """For --json."""
    return {
        "schema": SCHEMA,
        "jobs": [one.as_dict() for one in jobs(answers)],
        "unreachable": [{"node": one.node, "reason": one.reason} for one in answers if not one.found],
    }


def text(answers: Sequence[Answer], now: float) -> str:
    """For a person."""
    found = jobs(answers)
    rows = [_row(one, now) for one in found]
    lines = table([HEAD, *rows]) if rows else [NONE % _members(sum(bool(one.found) for one in answers))]
    shown = lines[:1]
    for one, line in zip(found, lines[1:]):
        shown.append(line)
        if one.left:
            count = sum(part.processes for part in one.parts.values() if part.left)
            shown.append(LEFT % (folded(one.left), count, one.job))
        elif not one.parts:
            shown.append(STARTS)
    return "\n".join([*shown, *unreachable(answers)]) + "\n"


def unreachable(answers: Sequence[Answer]) -> list[str]:
    """A line for each member that has not answered."""
    return [NO_ANSWER % (one.node, one.reason) for one in answers if not one.found]


def _row(one: Job, now: float) -> tuple[str, ...]:
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.started))
    user = one.user if one.by in ("", one.user) else f"{one.user} ({one.by})"
    ranks = sum(part.ranks for part in one.parts.values())
    numbers = (_of(len(one.parts), one.nodes), _of(ranks, one.ranks))
    return (one.job, user, f"{started} ({ago(now - one.started)})", *numbers, one.command or "?")


def _of(found: int, planned: int) -> str:
    return OF % (found, planned) if planned and planned != found else str(found)


def ago(seconds: float) -> str:
    """5400 as ``1 h 30 min``."""
    minutes = max(0, int(seconds // 60))
    days, hours = minutes // 1440, minutes % 1440 // 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def _members(count: int) -> str:
    return "1 member" if count == 1 else f"{count} members"
