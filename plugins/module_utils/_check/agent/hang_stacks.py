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
import socket
import stat
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import hang_prelude
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import hang_answer

#: As in gpu-cluster-run: marks every process of a job, and is the parent of a rank's script.
MARK = "GPU_CLUSTER_RUN_JOB"
PARENT, PARENT_WORDS = (b"gpu-cluster-run", b"--rank"), 4
#: Seconds: between two looks, until a rank has answered, for py-spy, for NCCL.
PAUSE, PATIENCE, PY_SPY, RAS = 1.5, 1.5, 5.0, 3.0
#: Bytes of a dump; the recorder holds 2,000 collectives of some 500 bytes.
MOST_DUMP = 16 << 20
#: Records of each process group that are sent.
OF_A_GROUP = 8
#: Retransmissions of one segment that are no accident.
RETRANSMITTED = 2
RAS_PORT = 28028
ESTABLISHED, RETRANSMIT_TIMER = "01", "01"


class Process:
    """The script of a rank."""

    def __init__(self, pid: int, environ: Mapping[str, str]) -> None:
        self.pid = pid
        self.environ = environ

    def read(self, name: str, most: int = 1 << 20) -> str:
        return read(f"/proc/{self.pid}/{name}", most)

    def stat(self) -> tuple[str, int]:
        """State, and ticks of processor."""
        fields = self.read("stat").rpartition(")")[2].split()
        return (fields[0], int(fields[11]) + int(fields[12])) if len(fields) > 12 else ("X", 0)

    def stacks(self) -> str:
        """The file for its stacks, empty if it has none, or holds it no longer."""
        folder = self.folder()
        for name in os.listdir(folder) if folder else []:
            found = re.fullmatch(rf"{self.pid}-(\d+)\.stacks", name)
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                if found and os.path.samefile(f"/proc/{self.pid}/fd/{found[1]}", path):
                    return path
        return ""

    def takes_signal(self) -> bool:
        caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", self.read("status"), re.M)
        return bool(caught and int(caught[1], 16) >> (hang_prelude.SIGNAL - 1) & 1)

    def folder(self) -> str:
        """That of its job, if nobody else can write there."""
        path = self.environ.get(hang_prelude.FOLDER, "")
        try:
            found = os.lstat(path)
        except (OSError, ValueError):
            return ""
        private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
        return path if private else ""


def read(path: str, most: int = 1 << 20) -> str:
    """The beginning of a file; empty where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(most).decode("utf-8", "replace")
    except OSError:
        return ""


def environment(pid: int) -> dict[str, str]:
    """The variables with which a process was started."""
    pairs = (one.partition("=") for one in read(f"/proc/{pid}/environ").split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def ranks(job: str) -> tuple[list[Process], list[str]]:
    """The scripts of a job on this node, and the jobs of this user; job: empty for the only one."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{entry}").st_uid != os.getuid():
                continue
            variables = environment(int(entry))
            if MARK not in variables or not variables.get("RANK", "").isdigit():
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
        self.records = os.path.join(process.folder(), f"{process.pid}.records") if self.stacks else ""
        self.waits = False
        if self.stacks:
            with contextlib.suppress(OSError):
                os.unlink(self.records)
            with contextlib.suppress(OSError):
                os.truncate(self.stacks, 0)
            with contextlib.suppress(OSError):
                # Without a reader this fails: it has not imported torch, or its thread has gone.
                path = os.path.join(process.folder(), f"{process.pid}.ask")
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


def unanswered(process: Process) -> list[str]:
    """Addresses of peers that have not confirmed what this rank has sent them."""
    inodes = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{process.pid}/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/{process.pid}/fd/{name}")
                inodes.add(target[8:-1] if target.startswith("socket:[") else "")
    found = set()
    for line in (process.read("net/tcp") + process.read("net/tcp6")).splitlines():
        fields = line.split()
        if len(fields) < 10 or fields[9] not in inodes or fields[3] != ESTABLISHED:
            continue
        with contextlib.suppress(ValueError):
            if fields[5].startswith(RETRANSMIT_TIMER) and int(fields[6], 16) >= RETRANSMITTED:
                found.add(address(fields[2].partition(":")[0]))
    return sorted(found)[: hang_answer.MOST_LISTED]


def address(text: str) -> str:
    """An address as /proc/net/tcp writes it: words in the order of the machine."""
    words = [struct.pack("=I", int(text[start : start + 8], 16)) for start in range(0, len(text), 8)]
    whole = b"".join(words)
    if len(whole) == 16 and whole[:12] == bytes(10) + b"\xff\xff":
        whole = whole[12:]
    return socket.inet_ntop(socket.AF_INET6 if len(whole) == 16 else socket.AF_INET, whole)


def interfaces(processes: Sequence[Process]) -> list[dict[str, Any]]:
    """Those that the ranks use."""
    names = {
        one.environ.get(name, "").lstrip("^=")
        for one in processes
        for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
    }
    found = []
    for name in sorted({one.partition(":")[0] for listed in names for one in listed.split(",")} - {""}):
        if re.fullmatch(r"[\w.@-]{1,15}", name) and os.path.isdir(f"/sys/class/net/{name}"):
            # Of an interface that is down, the kernel answers EINVAL.
            carrier = read(f"/sys/class/net/{name}/carrier").strip() == "1"
            found.append({"name": name, "state": read(f"/sys/class/net/{name}/operstate").strip(), "carrier": carrier})
    return found[: hang_answer.MOST_LISTED]


def ras(processes: Sequence[Process]) -> list[str]:
    """The errors and warnings of NCCL's own answer about the job (NCCL 2.24 or newer)."""
    if not any("libnccl.so" in one.read("maps", 8 << 20) for one in processes):
        return []
    host, _colon, port = processes[0].environ.get("NCCL_RAS_ADDR", "").rpartition(":")
    return complaints(answer_of_ras(host.strip("[]") or "localhost", int(port) if port.isdigit() else RAS_PORT))


def answer_of_ras(host: str, port: int) -> str:
    """Its text; empty where nobody listens."""
    said = b""
    deadline = time.monotonic() + 3 * RAS
    try:
        with socket.create_connection((host, port), RAS) as connection:
            connection.sendall(f"TIMEOUT {int(RAS)}\nSTATUS\n".encode())
            while len(said) < 1 << 18 and time.monotonic() < deadline:
                part = connection.recv(1 << 16)
                if not part:
                    break
                said += part
    except OSError:
        pass  # What has come until then counts.
    return said.decode("utf-8", "replace")


def complaints(text: str) -> list[str]:
    """The lines below "Errors" and "Warnings", which RAS underlines."""
    found, inside = [], False
    lines = text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""]):
        if below.startswith("====="):
            inside = line.strip() in ("Errors", "Warnings")
        elif inside and line.strip() and not line.startswith("====="):
            found.append(line.strip()[: hang_answer.MOST_NAME])
    return found[: hang_answer.MOST_LISTED]


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
                "world_size": int(process.environ.get("WORLD_SIZE", "0") or 0),
                "pid": process.pid,
                "command": process.read("cmdline").replace("\0", " ").strip()[: hang_answer.MOST_NAME],
                "state": state,
                "kernel": process.read("wchan").strip()[: hang_answer.MOST_NAME],
                "cpu": max(0, now - used) / ticks,
                "stacks": [stacks, stacks_now],
                "records": listed,
                "moved": bool(listed) and records(dumped)[0] != listed,
                "groups": groups,
                "unanswered": unanswered(process),
            }
        )
    return {
        "jobs": jobs[: hang_answer.MOST_LISTED],
        "ranks": found,
        "interfaces": interfaces(processes),
        "ras": ras(processes) if processes else [],
    }
