# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of this node, and which of them belong to a job of gpu-cluster-run.

A job is known by the command line of its agent, ``gpu-cluster-run --agent JOB ABOUT``: everybody on the node can read
it, and the kernel says who owns it and since when it runs.  A process of the own user also has the job in its
environment, where others can't look.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

#: As gpu-cluster-run calls itself, marks its processes, and names its jobs.
PROGRAM = "gpu-cluster-run"
MARK = b"GPU_CLUSTER_RUN_JOB="
JOB = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
#: What an agent says of its job beside its name; of longer texts so many characters are taken.
TEXTS = ("by", "command", "mode", "logs", "part")
NUMBERS = ("nodes", "ranks", "grace")
MOST_CHARACTERS = 300
MOST_NUMBER = 1 << 20
#: Bytes of a command line or an environment; Linux takes 128 KiB for one argument.
MOST_BYTES = 1 << 18
RANK_WORDS = 4
#: Daemons of Open MPI, which come over ssh without the mark: known as parents of a rank.
DAEMONS = ("orted", "prted")


class Process(NamedTuple):
    """A live process.  started: seconds since the epoch.  job: of its environment, empty where it can't be read."""

    pid: int
    parent: int
    uid: int
    started: float
    name: str
    arguments: tuple[str, ...]
    job: str


@dataclass(frozen=True)
class JobHere:
    """What runs of a job on this node.

    about: what its agent says, empty without one.  agents, launchers, ranks: their process ids.  pids: all of the job,
    without its launcher.
    """

    job: str
    uid: int
    started: float
    about: Mapping[str, Any]
    agents: tuple[int, ...]
    launchers: tuple[int, ...]
    ranks: tuple[int, ...]
    pids: tuple[int, ...]


def read(proc: str = "/proc", uid: int | None = None) -> dict[int, Process]:
    """All live processes that can be seen.  uid: whose environments are read."""
    uid = os.getuid() if uid is None else uid
    booted = _booted(proc)
    found = {}
    for entry in filter(str.isdigit, os.listdir(proc)):
        try:
            one = _process(os.path.join(proc, entry), int(entry), uid, booted)
        except (OSError, ValueError, IndexError):
            continue  # It has ended meanwhile, or may not be looked at.
        if one is not None:
            found[one.pid] = one
    return found


def _process(folder: str, pid: int, uid: int, booted: float) -> Process | None:
    owner = os.stat(folder).st_uid
    before, _closing, after = _bytes(folder, "stat").decode("utf-8", "replace").rpartition(")")
    fields = after.split()
    if fields[0] in "ZX":
        return None
    # proc_pid_stat(5): the state is field 3, the start in ticks since boot field 22.
    started = booted + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    words = _bytes(folder, "cmdline").decode("utf-8", "replace").split("\0")[:-1]
    job = ""
    if owner == uid:
        try:
            variables = _bytes(folder, "environ").split(b"\0")
        except OSError:
            variables = []  # A program with more rights than its user.
        marks = [one[len(MARK) :].decode("ascii", "replace") for one in variables if one.startswith(MARK)]
        job = next(filter(JOB.fullmatch, marks), "")
    return Process(pid, int(fields[1]), owner, started, before.partition("(")[2], tuple(words), job)


def _bytes(folder: str, name: str) -> bytes:
    with open(os.path.join(folder, name), "rb") as stream:
        return stream.read(MOST_BYTES)


def _booted(proc: str) -> float:
    for line in _bytes(proc, "stat").splitlines():
        if line.startswith(b"btime "):
            return float(line.split()[1])
    return 0.0


def jobs(table: Mapping[int, Process]) -> list[JobHere]:
    """The jobs on this node.  Pure."""
    agents: dict[tuple[str, int], list[int]] = {}
    for one in table.values():
        job = of_agent(one.arguments)
        if job:
            agents.setdefault((job, one.uid), []).append(one.pid)
    marked: dict[tuple[str, int], list[int]] = {}
    launchers: dict[tuple[str, int], list[int]] = {}
    for one in table.values():
        if one.job:
            marked.setdefault((one.job, one.uid), []).append(one.pid)
        job = of_child(one.arguments)
        parent = table.get(one.parent)
        if job and parent is not None and parent.uid == one.uid and is_launcher(parent.arguments):
            launchers.setdefault((job, one.uid), []).append(parent.pid)
    return [
        _job(table, key, agents.get(key, []), marked.get(key, []), sorted(set(launchers.get(key, []))))
        for key in sorted({*agents, *marked, *launchers})
    ]


def _job(
    table: Mapping[int, Process], key: tuple[str, int], agents: list[int], marked: list[int], launchers: list[int]
) -> JobHere:
    above = {table[pid].parent for pid in marked}
    daemons = {pid for pid in above if pid in table and table[pid].name in DAEMONS and table[pid].uid == key[1]}
    roots = {*agents, *marked, *daemons}
    pids = sorted(roots | below(table, roots))
    # The script's process is a copy of its parent until it has become the script.
    ranks = [pid for pid in pids if is_rank(table[pid].arguments) and not _is_copy(table, pid)]
    first = min((table[pid].started for pid in [*agents, *pids, *launchers]), default=0.0)
    about = read_about(table[agents[0]].arguments[-1]) if agents else {}
    return JobHere(key[0], key[1], first, about, tuple(agents), tuple(launchers), tuple(ranks), tuple(pids))


def _is_copy(table: Mapping[int, Process], pid: int) -> bool:
    parent = table.get(table[pid].parent)
    return parent is not None and is_rank(parent.arguments)


def below(table: Mapping[int, Process], roots: Iterable[int]) -> set[int]:
    """All descendants, without the roots."""
    children: dict[int, list[int]] = {}
    for one in table.values():
        children.setdefault(one.parent, []).append(one.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), []) if pid not in found]
        found.update(new)
        waiting += new
    return found


def job_of(table: Mapping[int, Process], pid: int) -> str:
    """The job of a process: of its environment, or of an agent above it."""
    seen: set[int] = set()
    while pid in table and pid not in seen:
        seen.add(pid)
        job = table[pid].job or of_agent(table[pid].arguments)
        if job:
            return job
        pid = table[pid].parent
    return ""


def _is_ours(word: str) -> bool:
    return os.path.basename(word) == PROGRAM


def of_agent(arguments: Sequence[str]) -> str:
    """The job of an agent, by its command line: interpreter, options, program, ``--agent``, job, about."""
    if len(arguments) >= 5 and arguments[-3] == "--agent" and _is_ours(arguments[-4]) and JOB.fullmatch(arguments[-2]):
        return arguments[-2]
    return ""


def of_child(arguments: Sequence[str]) -> str:
    """The job whose agent a child of a launcher, which is an ssh, has started on a node."""
    found = re.search(rf"/{PROGRAM} --agent ({JOB.pattern}) ", arguments[-1] if arguments else "")
    return found.group(1) if found else ""


def is_rank(arguments: Sequence[str]) -> bool:
    """Interpreter, option, program, ``--rank``.  What starts it, such as torchrun, ends so too, but is longer."""
    return len(arguments) == RANK_WORDS and arguments[-1] == "--rank" and _is_ours(arguments[-2])


def is_launcher(arguments: Sequence[str]) -> bool:
    """Whether this is gpu-cluster-run as a person has typed it."""
    at = next((number for number, word in enumerate(arguments[:4]) if _is_ours(word)), None)
    return at is not None and arguments[at + 1 : at + 2] not in (("--agent",), ("--rank",))


def read_about(text: str) -> dict[str, Any]:
    """What an agent says of its job, as far as it has the shape; anybody can write such a command line."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(said, dict):
        return {}
    texts = {name: said[name][:MOST_CHARACTERS] for name in TEXTS if isinstance(said.get(name), str)}
    numbers = {name: said[name] for name in NUMBERS if _is_number(said.get(name))}
    return {**texts, **numbers}


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_NUMBER
