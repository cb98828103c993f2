# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks on files: wait for another run with an end, and name the process that holds the lock.

A rerun right after a kill meets what the killed run has left at work. That ends by itself, so the rerun waits for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize

POLL_SECONDS = 0.1
#: So many processes are named.
NAMED = 3
COMMAND_CHARACTERS = 80
UNKNOWN = "another process"
ERR_HELD = "%s is held by %s, and still was after %d s. Fix: let it end (`ps -fp PID` shows what it is), and run again"


class LockError(Exception):
    """The lock was not free in time; the text says who has it."""


def take(handle: int, path: str, seconds: float, waiting: Callable[[str], None] = lambda _who: None) -> None:
    """Lock the open file ``handle`` until it is closed. ``waiting`` is told once who else has it."""
    end = time.monotonic() + seconds
    told = False
    while not _taken(handle):
        if not told:
            told = True
            waiting(holder(path))
        if time.monotonic() >= end:
            raise LockError(ERR_HELD % (path, holder(path), seconds))
        time.sleep(POLL_SECONDS)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holder(path: str, proc: str = "/proc") -> str:
    """Who has locked a file, as far as this user may know; empty when nobody has.

    The kernel names the process that took the lock. What that has started keeps the lock when it is killed.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ""
    takers = list(_takers(found.st_ino, proc))
    if not takers:
        return ""
    users = [pid for pid in _users_of(found, proc) if pid != os.getpid()]
    pids = [pid for pid in takers if pid in users] or users
    return ", ".join(_described(pid, proc) for pid in sorted(pids)[:NAMED]) or UNKNOWN


def _takers(inode: int, proc: str) -> Iterator[int]:
    """The processes that took a lock on this inode: ``1: FLOCK  ADVISORY  WRITE 4711 fd:00:1234 0 EOF``."""
    with open(os.path.join(proc, "locks"), encoding="ascii") as stream:
        for line in stream:
            words = line.split()
            if words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode):
                yield int(words[4])


def _users_of(found: os.stat_result, proc: str) -> Iterator[int]:
    """The processes that have the file open."""
    for entry in filter(str.isdigit, os.listdir(proc)):
        with contextlib.suppress(OSError):
            folder = os.path.join(proc, entry, "fd")
            if any(_is_same(os.path.join(folder, name), found) for name in os.listdir(folder)):
                yield int(entry)


def _is_same(path: str, found: os.stat_result) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.stat(path), found)
    return False


def _described(pid: int, proc: str) -> str:
    """One process with its program and first argument; what follows may be a password."""
    command = b""
    with contextlib.suppress(OSError), open(os.path.join(proc, str(pid), "cmdline"), "rb") as stream:
        command = stream.read(4096)
    words = sanitize.one_line(b" ".join(command.split(b"\0")[:2]).decode("utf-8", "replace"))
    return f"process {pid} ({words[:COMMAND_CHARACTERS]!r})" if words else f"process {pid}"
