# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The script of a rank, as /proc shows it."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Mapping

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import hang_prelude


class Process:
    """The script of a rank."""

    def __init__(self, pid: int, environ: Mapping[str, str]) -> None:
        self.pid = pid
        self.environ = environ
        #: As the script sees it: in a container its number is another one.
        self.own_pid = own_pid(read(f"/proc/{pid}/status"), pid)

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
            found = re.fullmatch(rf"{self.own_pid}-(\d+)\.stacks", name)
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


def own_pid(status: str, pid: int) -> int:
    """The process's number in its own namespace, the last one of ``NSpid`` (proc_pid_status(5)).  Pure."""
    found = re.search(r"^NSpid:(?:\s+\d+)*\s+(\d+)$", status, re.M)
    return int(found[1]) if found else pid


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
