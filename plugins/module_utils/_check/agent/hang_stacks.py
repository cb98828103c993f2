# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the ranks of a job on this node stand: their processes, stacks, collectives and links.  Stops nothing.

Ranks that have loaded ``hang_prelude`` are asked with its signal and its pipe, but only if they still hold the file in
which their answer will be.  All others are seen through /proc, and by py-spy where it is installed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import hang_network, hang_prelude
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.rank_process import (
    Process,
    environment,
    read,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import hang_answer

#: As in gpu-cluster-run: marks every process of a job, and is the parent of a rank's script.
MARK = "GPU_CLUSTER_RUN_JOB"
PARENT, PARENT_WORDS = (b"gpu-cluster-run", b"--rank"), 4
JOB, NUMBER = re.compile(r"[\w.-]{1,100}"), re.compile(r"[0-9]{1,9}")
#: Seconds: between two looks, until a rank has answered, for py-spy.
PAUSE, PATIENCE, PY_SPY = 1.5, 1.5, 5.0
#: Bytes of a dump; the recorder holds 2,000 collectives of some 500 bytes.
MOST_DUMP = 16 << 20
#: Records of each process group that are sent.
OF_A_GROUP = 8


def ranks(job: str) -> tuple[list[Process], list[str]]:
    """The scripts of a job on this node, and the jobs of this user; job: empty for the only one."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{entry}").st_uid != os.getuid():
                continue
            variables = environment(int(entry))
            if not JOB.fullmatch(variables.get(MARK, "")) or not NUMBER.fullmatch(variables.get("RANK", "")):
                continue
            parent = read(f"/proc/{entry}/stat").rpartition(")")[2].split()[1:2]
            command = read(f"/proc/{parent[0]}/cmdline").encode().rstrip(b"\0").split(b"\0") if parent else []
            # That of torchrun or mpirun ends so too, but is longer.
            if len(command) == PARENT_WORDS and os.path.basename(command[-2]) == PARENT[0] and command[-1] == PARENT[1]:
                found.append(Process(int(entry), variables))
    jobs = sorted({one.environ[MARK] for one in found})
    wanted = job or (jobs[0] if len(jobs) == 1 else "")
    of_job = [one for one in found if one.environ[MARK] == wanted]
    return sorted(of_job, key=lambda one: int(one.environ["RANK"])), jobs


class Question:
    """To one rank: its stacks, and what its flight recorder holds."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.stacks = process.stacks()
        self.records = os.path.join(process.folder(), f"{process.own_pid}.records") if self.stacks else ""
        self.waits = False
        if self.stacks:
            with contextlib.suppress(OSError):
                os.unlink(self.records)
            with contextlib.suppress(OSError):
                os.truncate(self.stacks, 0)
            with contextlib.suppress(OSError):
                # Without a reader this fails: it has not imported torch, or its thread has gone.
                path = os.path.join(process.folder(), f"{process.own_pid}.ask")
                with os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "wb", 0) as stream:
                    self.waits = bool(stream.write(b"?"))

    def answered(self) -> bool:
        return not self.waits or os.path.exists(self.records)

    def insist(self) -> None:
        """By the signal, where no thread has answered: the interpreter is busy, or has no torch."""
        with contextlib.suppress(OSError):
            if self.stacks and not (self.waits and self.answered()) and self.process.takes_signal():
                os.truncate(self.stacks, 0)
                os.kill(self.process.pid, hang_prelude.SIGNAL)

    def has_stacks(self) -> bool:
        """Whether the last stack is whole: that of the main thread, which ends with its module."""
        return not self.stacks or read(self.stacks, hang_answer.MOST_STACKS).endswith("in <module>\n")

    def answer(self) -> tuple[str, list[Any]]:
        found = read(self.stacks, hang_answer.MOST_STACKS // 4) if self.stacks else by_py_spy(self.process.pid)
        dumped: Any = []
        with contextlib.suppress(ValueError, RecursionError):
            dumped = json.loads(read(self.records, MOST_DUMP)) if self.waits else []
        return found, dumped if isinstance(dumped, list) else []


def ask(processes: Sequence[Process]) -> list[tuple[str, list[Any]]]:
    """What each of them answers."""
    questions = [Question(process) for process in processes]
    wait_for(lambda: all(one.answered() for one in questions))
    for one in questions:
        one.insist()
    wait_for(lambda: all(one.has_stacks() for one in questions))
    return [one.answer() for one in questions]


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < deadline:
        time.sleep(0.05)


def by_py_spy(pid: int) -> str:
    """Its stacks, where py-spy is installed and may look."""
    program = shutil.which("py-spy")
    if program is None:
        return ""
    try:
        command = [program, "dump", "--nonblocking", "--pid", str(pid)]
        ended = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=PY_SPY, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout.decode("utf-8", "replace")[: hang_answer.MOST_STACKS // 4] if ended.returncode == 0 else ""


def record(entry: Any) -> dict[str, Any] | None:
    """An entry of the flight recorder as ``hang_answer.RECORD`` has it; None for one between two ranks alone."""
    if not isinstance(entry, dict) or entry.get("is_p2p"):
        return None
    group = entry.get("process_group")
    found = {
        "group": str(group[0] if isinstance(group, list) and group else entry.get("pg_id", ""))[
            : hang_answer.MOST_NAME
        ],
        "number": entry.get("collective_seq_id", entry.get("seq_id")),
        "name": str(entry.get("profiling_name", "")).rpartition(":")[2],
        "sizes": entry.get("input_sizes") or [],
        "types": entry.get("input_dtypes") or [],
        # With gloo the state stays "scheduled", and an entry that has ended is retired.
        "done": entry.get("state") == "completed" or entry.get("retired") is True,
    }
    if isinstance(found["sizes"], list):
        found["sizes"] = found["sizes"][: hang_answer.MOST_SIZES]
    if isinstance(found["types"], list):
        found["types"] = found["types"][: hang_answer.MOST_SIZES]
    return found if hang_answer.RECORD(found) else None


def records(dumped: Sequence[Any]) -> tuple[list[dict[str, Any]] | None, dict[str, list[int]]]:
    """The last collectives of each process group, None without a recorder; and the ranks of each group."""
    of_group: dict[str, list[dict[str, Any]]] = {}
    members: dict[str, list[int]] = {}
    for one in (one for one in dumped if isinstance(one, dict)):
        entries = one.get("entries")
        for found in filter(None, map(record, entries if isinstance(entries, list) else [])):
            of_group.setdefault(str(found["group"]), []).append(found)
        config = one.get("pg_config")
        for name, about in config.items() if isinstance(config, dict) else []:
            listed = about.get("ranks") if isinstance(about, dict) else None
            numbers = [int(number) for number in re.findall(r"\d{1,9}", str(listed))]
            if numbers and len(name) <= hang_answer.MOST_NAME and len(numbers) <= hang_answer.MOST_MEMBERS:
                members[name] = numbers
    chosen = [found for group in list(of_group)[-8:] for found in of_group[group][-OF_A_GROUP:]]
    return (chosen if dumped else None), {name: members[name] for name in list(members)[: hang_answer.MOST_RECORDS]}


def look(job: str) -> dict[str, Any]:
    """The answer of this node, as ``hang_answer.ANSWER`` has it."""
    processes, jobs = ranks(job)
    processes = processes[: hang_answer.MOST_RANKS]
    before = [one.stat()[1] for one in processes]
    first = ask(processes)
    if processes:
        time.sleep(PAUSE)
    second = ask(processes)
    ticks = os.sysconf("SC_CLK_TCK")
    found = []
    for process, used, (stacks, dumped), (stacks_now, dumped_now) in zip(processes, before, first, second):
        state, now = process.stat()
        listed, groups = records(dumped_now)
        found.append(
            {
                "rank": int(process.environ["RANK"]),
                "world_size": int(size) if NUMBER.fullmatch(size := process.environ.get("WORLD_SIZE", "")) else 0,
                "pid": process.pid,
                "command": process.read("cmdline").replace("\0", " ").strip()[: hang_answer.MOST_NAME],
                "state": state,
                "kernel": process.read("wchan").strip()[: hang_answer.MOST_NAME],
                "cpu": max(0, now - used) / ticks,
                "stacks": [stacks, stacks_now],
                "records": listed,
                "moved": bool(listed) and records(dumped)[0] != listed,
                "groups": groups,
                "unanswered": hang_network.unanswered(process),
            }
        )
    return {
        "jobs": jobs[: hang_answer.MOST_LISTED],
        "ranks": found,
        "interfaces": hang_network.interfaces(processes),
        "ras": hang_network.ras(processes) if processes else [],
    }
