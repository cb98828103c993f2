# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of a job on a node: which they are, and how all of them end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.variables import MARK

#: Seconds in which podman removes a container by itself after its processes have been killed: 1.5 on an idle node.
CONTAINER_END = 12.0
#: What podman calls itself, its monitor of a container, the first process inside, and what may hold its files.
PODMAN = ("podman", "exe", "crun", "runc", "conmon", "catatonit", "podman-init", "fuse-overlayfs")
#: <linux/prctl.h>
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


class Process(NamedTuple):
    """A live process of this user."""

    parent: int
    marked: bool
    name: str


def prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def die_with_parent() -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def processes(job_id: str) -> dict[int, Process]:
    """All live processes of this user, from /proc."""
    mark, found = f"{MARK}={job_id}".encode(), {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{entry}").st_uid != os.getuid():
                continue
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stream:
                before, _closing, after = stream.read().rpartition(")")
            with open(f"/proc/{entry}/environ", "rb") as binary:
                marked = mark in binary.read().split(b"\0")
        except OSError:
            continue  # It has ended, or does not let us look: then it is none that we have started.
        state, parent = after.split()[:2]
        name = before.partition("(")[2]
        if state not in "ZX" and not holds_namespace(entry, name):
            found[int(entry)] = Process(int(parent), marked, name)
    return found


def holds_namespace(entry: str, name: str) -> bool:
    """Whether this is the process with which podman keeps the user namespace of its user: all of his containers use it.

    The first podman that a user runs starts it, such as that of an agent (containers/podman, pkg/rootless).
    """
    if name == "podman pause":
        return True
    if name != "catatonit":
        return False
    with contextlib.suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as stream:
        return stream.read().split(b"\0")[1:2] == [b"-P"]
    return False


def descendants(table: Mapping[int, Process], roots: Iterable[int]) -> set[int]:
    """Everything below the roots, without them."""
    children: dict[int, list[int]] = {}
    for pid, process in table.items():
        children.setdefault(process.parent, []).append(pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        below = [pid for pid in children.get(waiting.pop(), []) if pid not in found]
        found.update(below)
        waiting += below
    return found


def belonging(table: Mapping[int, Process], agent: int) -> set[int]:
    """The processes of a job on this node: those that carry its mark, what the agent has started, and all below.

    Open MPI's daemon comes over ssh without the mark: it is known as the parent of a rank.
    """
    marked = {pid for pid, process in table.items() if process.marked}
    parents = {table[pid].parent for pid in marked}
    daemons = {pid for pid in parents if pid in table and table[pid].name in ("orted", "prted")}
    roots = marked | daemons | {agent}
    # The first process of a container can't be killed from the inside; it ends with what it has started.
    return (roots | descendants(table, roots)) - {agent, os.getpid(), 1}


def of_podman(table: Mapping[int, Process]) -> set[int]:
    """The monitors of containers, what they start to remove one, and what holds its files: they end after the ranks.

    A monitor is a child of the agent, not of ``podman run``, and has no mark.
    """
    monitors = {pid for pid, process in table.items() if process.name == "conmon"}
    removing = {pid for pid in descendants(table, monitors) if table[pid].name in PODMAN[:4]}
    files = {pid for pid, process in table.items() if process.name == "fuse-overlayfs"}
    return monitors | removing | files


def send_signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_all(job_id: str, agent: int, seconds: float = 5.0, meanwhile: Any = None) -> set[int]:
    """SIGKILL until nothing is left; what is left then can't be killed (a process that waits for a dead disk).

    What podman needs to remove a container gets its time.
    """
    began = time.monotonic()
    while True:
        reap()
        table = processes(job_id)
        left = belonging(table, agent)
        removing = left & of_podman(table)
        passed = time.monotonic() - began
        if not left or passed > (seconds + CONTAINER_END if removing else seconds):
            return left
        send_signal(left - removing if passed < CONTAINER_END else left, signal.SIGKILL)
        time.sleep(0.02)
        if meanwhile is not None:
            meanwhile()


def reap() -> dict[int, int]:
    """The wait status of children that have ended."""
    ended = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended[pid] = status
    return ended


def exit_of(status: int) -> tuple[int, int]:
    """Exit code and signal (0: none) of a wait status."""
    return (0, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), 0)


def in_words(code: int, number: int) -> str:
    """How a process has ended."""
    if not number:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {number} ({signal.Signals(number).name})"
    return f"signal {number}"
