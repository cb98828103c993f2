# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one node answers about itself, and ends of a job: the commands that members give each other over ssh.

Each prints one line of JSON.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import gpus, processes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.gpus import App, Gpus
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.processes import JobHere, Process

SCHEMA = 1
#: Seconds from the SIGTERM to an agent to its SIGKILL: it kills its ranks, and waits for its logs.
AGENT_SECONDS = 12.0
#: Seconds for what got SIGKILL: what is left then waits for a dead disk.
KILL_SECONDS = 5.0
PAUSE = 0.1
#: More than any node runs; what is beyond is left out.
MOST_JOBS, MOST_APPS = 500, 2000

BESIDE = "or start beside it with --share"
ERR_JOB = "GPU %s in use by job %s of %s: wait, end it with `gpu-cluster-run stop %s`, choose other nodes, " + BESIDE
ERR_SOON = "its GPUs belong to job %s of %s: wait, end it with `gpu-cluster-run stop %s`, choose other nodes, " + BESIDE
ERR_OTHERS = "GPU %s in use by %s, %s: wait, choose other nodes, " + BESIDE
NOTE_UNKNOWN = "whether its GPUs are in use is not known: %s"

Read = Callable[[], dict[int, Process]]


def user_of(uid: int) -> str:
    """The name of a user, or the number of one who has none here."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def look(with_gpus: bool, *, read: Read = processes.read, ask: Callable[[], Gpus] = gpus.look) -> dict[str, Any]:
    """All that ``ps`` and ``nodes`` show of a node."""
    found = ask() if with_gpus else Gpus()
    table = read()
    total, free = _memory()
    return {
        "schema": SCHEMA,
        "jobs": [_as_dict(one) for one in processes.jobs(table)[:MOST_JOBS]],
        "cores": os.cpu_count() or 0,
        "load": [round(one, 2) for one in os.getloadavg()],
        "memory_mib": total,
        "free_mib": free,
        "gpus": [asdict(card) for card in found.cards],
        "apps": [_app(app, table) for app in found.apps[:MOST_APPS]],
        "gpu_problem": found.problem[: processes.MOST_CHARACTERS],
    }


def _as_dict(one: JobHere) -> dict[str, Any]:
    return {
        "job": one.job,
        "user": user_of(one.uid),
        "started": int(one.started),
        "agents": len(one.agents),
        "launchers": len(one.launchers),
        "ranks": len(one.ranks),
        "processes": len(one.pids),
        "about": dict(one.about),
    }


def _app(app: App, table: Mapping[int, Process]) -> dict[str, Any]:
    return {
        "gpu": app.gpu,
        "pid": app.pid,
        "user": _owner(app.pid, table),
        "name": app.name[: processes.MOST_CHARACTERS],
        "memory_mib": app.memory_mib,
        "job": processes.job_of(table, app.pid),
    }


def _owner(pid: int, table: Mapping[int, Process]) -> str:
    """Empty where the process is not to be seen: in another PID namespace, or hidden (proc(5), hidepid)."""
    return user_of(table[pid].uid) if pid in table else ""


def _memory(path: str = "/proc/meminfo") -> tuple[int, int]:
    """Of the node, in MiB: all, and what a program can have."""
    try:
        with open(path, encoding="ascii") as stream:
            found = {name: rest.split() for name, _colon, rest in (line.partition(":") for line in stream)}
        return int(found["MemTotal"][0]) >> 10, int(found["MemAvailable"][0]) >> 10
    except (OSError, KeyError, ValueError, IndexError):
        return 0, 0


def busy(job: str, *, read: Read = processes.read, ask: Callable[[], Gpus] = gpus.look) -> dict[str, list[str]]:
    """Why a job that is about to start here would share GPUs with others."""
    found = ask()
    table = read()
    notes = [NOTE_UNKNOWN % found.problem] if found.problem else []
    if not found.cards:
        return {"problems": [], "notes": notes}
    problems, told = [], set()
    for (theirs, user), apps in _by_owner(found.apps, table).items():
        numbers = ", ".join(dict.fromkeys(str(app.gpu) if app.gpu >= 0 else "?" for app in apps))
        if theirs and theirs != job:
            told.add(theirs)
            problems.append(ERR_JOB % (numbers, theirs, user or "another user", theirs))
        elif not theirs:
            pids = ", ".join(f"pid {app.pid} ({app.name})" for app in apps[:4])
            problems.append(ERR_OTHERS % (numbers, user or "another user", pids))
    for one in _before(job, processes.jobs(table)):
        if one.job not in told:
            problems.append(ERR_SOON % (one.job, user_of(one.uid), one.job))
    return {"problems": problems, "notes": notes}


def _by_owner(apps: Iterable[App], table: Mapping[int, Process]) -> dict[tuple[str, str], list[App]]:
    found: dict[tuple[str, str], list[App]] = {}
    for app in apps:
        found.setdefault((processes.job_of(table, app.pid), _owner(app.pid, table)), []).append(app)
    return found


def _before(job: str, found: list[JobHere]) -> list[JobHere]:
    """The other jobs with an agent; of two that start at once only the one that came first.

    A node that only holds the rendezvous of a job has no ranks of it.
    """
    own = next(((one.started, one.job) for one in found if one.job == job), (float("inf"), job))
    others = [one for one in found if one.agents and one.about.get("part") != "rendezvous"]
    return [one for one in others if one.job != job and (one.started, one.job) < own]


def end(job: str, seconds: float, *, read: Read = processes.read) -> dict[str, int]:
    """SIGTERM to the launcher of a job, as Ctrl-C: it ends all ranks.  A second one after its time, then SIGKILL."""
    signalled = 0
    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGTERM, AGENT_SECONDS), (signal.SIGKILL, 1.0)):
        left = _launchers(job, read)
        if not left:
            break
        signalled = signalled or len(left)
        _send(left, number)
        _wait(lambda: not _launchers(job, read), patience)
    return {"signalled": signalled, "left": len(_launchers(job, read))}


def clean(job: str, grace: float, *, read: Read = processes.read) -> dict[str, Any]:
    """End what is left of a job: agents, which kill all of theirs, and then processes without an agent."""
    first = _own(job, read)
    _send(first.agents if first else (), signal.SIGTERM)
    _wait(lambda: not _agents(job, read), AGENT_SECONDS)
    _send(_agents(job, read), signal.SIGKILL)
    asked: set[int] = set()
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        left = _pids(job, read)
        if not left:
            break
        _send(left - asked, signal.SIGTERM)
        asked |= left
        time.sleep(PAUSE)
    killed = _pids(job, read)
    _wait(lambda: not _kill(job, read), KILL_SECONDS)
    left = _pids(job, read)
    ended = set(first.pids if first else ()) | asked | killed
    return {"ended": len(ended - left), "killed": len(killed - left), "left": sorted(left)}


def _kill(job: str, read: Read) -> set[int]:
    left = _pids(job, read)
    _send(left, signal.SIGKILL)
    return left


def _own(job: str, read: Read) -> JobHere | None:
    return next((one for one in processes.jobs(read()) if one.job == job and one.uid == os.getuid()), None)


def _launchers(job: str, read: Read) -> set[int]:
    one = _own(job, read)
    return set(one.launchers) if one else set()


def _agents(job: str, read: Read) -> set[int]:
    one = _own(job, read)
    return set(one.agents) if one else set()


def _pids(job: str, read: Read) -> set[int]:
    one = _own(job, read)
    return set(one.pids) - {os.getpid()} if one else set()


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _wait(done: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(PAUSE)
