# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command stop: end a job from any member, and see that nothing is left of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import folded
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.shape import Test
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import answers, here
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.answers import Answer
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.ask import SECONDS, ask
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.listing import Job, jobs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.members import Member

ENDED, SOMETHING_LEFT, NOT_KNOWN = 0, 1, 69
#: What gpu-cluster-run takes beyond the grace of its job to end, and until it gives up: its agents, and its screen.
LAUNCHER_SECONDS = 30.0
#: A job whose agents are gone does not say how long its scripts may take; that of gpu-cluster-run.
GRACE = 10

LAUNCHER = "SIGTERM to the launcher on %s, which ends the ranks; they have %d seconds"
NO_LAUNCHER = "%s: the launcher does not end, so its agents are ended"
AT_NODE = "%s: %d processes ended%s"
KILLED = ", %d of them by SIGKILL"
STILL = "%s: these cannot be ended: %s"
UNKNOWN = "%s: no answer: %s; what runs there is not known"
NOTHING = "job %s: no process is left on %d members; exit code %d"
NEVER = "job %s: %d members were asked, and none has a process of it; exit code %d"
OF_OTHERS = "job %s is one of %s, whom only root or that user can stop; exit code %d"
NOT_ALL = "job %s: not all of it is ended; exit code %d"

Ask = Callable[[Iterable[Member], int, Sequence[str], Test, float], list[Answer]]


def stop(
    job: str, user: str, members: Sequence[Member], port: int, say: Callable[[str], None], asking: Ask = ask
) -> int:
    """End the job of this user, say so node by node, and return the exit code."""
    before = _look(members, port, asking)
    found = _of(job, user, before)
    others = [one.user for one in jobs(before) if one.job == job and one.user != user]
    if others and found is None:
        say(OF_OTHERS % (job, ", ".join(others), SOMETHING_LEFT))
        return SOMETHING_LEFT
    grace = (found.grace or GRACE) if found else GRACE
    here_or_left = dict.fromkeys([*(found.parts if found else ()), *(found.launchers if found else ())])
    processes = {node: part.processes for node, part in found.parts.items()} if found else {}
    if found and found.launchers:
        _end_launchers(job, [one for one in members if one.name in found.launchers], port, grace, say, asking)
    # Also where no process was seen: a rank may have started since.
    reachable = [one for one, answer in zip(members, before) if answer.found]
    cleaned = asking(
        [one for one in reachable if one.name in here_or_left],
        port,
        ["here", "clean", job, str(grace)],
        answers.CLEAN,
        SECONDS + grace + here.AGENT_SECONDS + here.KILL_SECONDS,
    )
    for answer in cleaned:
        if not answer.found:
            say(UNKNOWN % (answer.node, answer.reason))
            continue
        count = max(processes.get(answer.node, 0), answer.found["ended"])
        killed = KILLED % answer.found["killed"] if answer.found["killed"] else ""
        say(AT_NODE % (answer.node, count - len(answer.found["left"]), killed))
    after = _look(members, port, asking)
    return _verdict(job, bool(found), _of(job, user, after), after, say)


def _end_launchers(
    job: str, members: Sequence[Member], port: int, grace: int, say: Callable[[str], None], asking: Ask
) -> None:
    say(f"job {job}: " + LAUNCHER % (folded(one.name for one in members), grace))
    seconds = grace + LAUNCHER_SECONDS
    limit = SECONDS + seconds + here.AGENT_SECONDS
    for answer in asking(members, port, ["here", "end", job, str(int(seconds))], answers.END, limit):
        if not answer.found:
            say(UNKNOWN % (answer.node, answer.reason))
        elif answer.found["left"]:
            say(NO_LAUNCHER % answer.node)


def _look(members: Sequence[Member], port: int, asking: Ask) -> list[Answer]:
    return asking(members, port, ["here", "look"], answers.LOOK, SECONDS)


def _of(job: str, user: str, found: Sequence[Answer]) -> Job | None:
    return next((one for one in jobs(found) if (one.job, one.user) == (job, user)), None)


def _verdict(job: str, was_there: bool, left: Job | None, after: Sequence[Answer], say: Callable[[str], None]) -> int:
    silent = [one for one in after if not one.found]
    for answer in silent:
        say(UNKNOWN % (answer.node, answer.reason))
    if left is not None and (left.parts or left.launchers):
        for node in dict.fromkeys([*left.parts, *left.launchers]):
            part = left.parts.get(node)
            say(STILL % (node, f"{part.processes} processes" if part else "its launcher"))
        say(NOT_ALL % (job, SOMETHING_LEFT))
        return SOMETHING_LEFT
    if silent:
        say(NOT_ALL % (job, NOT_KNOWN))
        return NOT_KNOWN
    say((NOTHING if was_there else NEVER) % (job, len(after), ENDED))
    return ENDED
