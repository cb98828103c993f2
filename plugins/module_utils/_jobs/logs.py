# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command logs: what the ranks of a job have printed, from the logs on their nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import answers
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.answers import Answer
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.ask import NODE, SECONDS, ask, hear
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.members import Member

SHOWN, NOT_ALL, NO_LOG = 0, 69, 66

ERR_NO_LOG = "no member has a log of job %s%s; exit code %d"
ERR_NO_ANSWER = "%s: no answer: %s; its logs are missing here"


def logs(
    job: str,
    rank: int | None,
    lines: int,
    follow: bool,
    members: Sequence[Member],
    port: int,
    write: Callable[[str], None],
    say: Callable[[str], None],
    asking: Callable[..., list[Answer]] = ask,
    hearing: Callable[..., list[Answer]] = hear,
) -> int:
    """Write the lines with node and rank before them, and return the exit code."""
    number = "-" if rank is None else str(rank)
    found = asking(members, port, ["here", "logged", job, NODE, number], answers.LOGGED, SECONDS)
    having = [one for one, answer in zip(members, found) if answer.found and (answer.found["logs"] or follow)]
    silent = [answer for answer in found if not answer.found]

    def heard(member: Member, line: str) -> None:
        one = answers.one(line, answers.LINE)
        if one:
            prefix = member.name if one["rank"] is None else f"{member.name}:{one['rank']}"
            write(f"[{prefix}] {one['text']}\n")

    if any(answer.found.get("logs") for answer in found):
        how = "follow" if follow else "once"
        words = ["here", "log", job, NODE, number, str(lines), how]
        silent += [one for one in hearing(having, port, words, heard, in_order=not follow) if one.reason]
    elif not silent:
        say(ERR_NO_LOG % (job, "" if rank is None else f" for rank {rank}", NO_LOG))
        return NO_LOG
    for answer in silent:
        say(ERR_NO_ANSWER % (answer.node, answer.reason))
    return NOT_ALL if silent else SHOWN
