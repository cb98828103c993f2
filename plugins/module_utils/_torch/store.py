# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder in which the environments are, and the link to the one in use. Reads and writes the disk."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import signal
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import file_lock, files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.environment import (
    RECORD,
    Environment,
    installed_packages,
    is_environment_name,
    needed_packages,
)

#: Its headers come first; those of the largest packages are below 100 kB.
METADATA_BYTES = 1 << 20


class BuildError(Exception):
    """A step went wrong; the text says which and why."""


class Store:
    """The folder in which the environments and the link to one of them are."""

    def __init__(self, prefix: str) -> None:
        self.prefix = os.path.abspath(prefix)
        self.parent, self.base = os.path.split(self.prefix)

    def path(self, name: str) -> str:
        """The folder of an environment."""
        return os.path.join(self.parent, name)

    @property
    def lock_path(self) -> str:
        """What a run that changes anything locks."""
        return f"{self.prefix}.lock"

    def target(self) -> str:
        """The whole path that the link names; empty when there is no link."""
        return os.path.join(self.parent, os.readlink(self.prefix)) if os.path.islink(self.prefix) else ""

    def linked(self) -> str:
        """The name of the environment in use; empty when it is none of this folder."""
        folder, name = os.path.split(self.target())
        return name if folder == self.parent else ""

    def environment(self, name: str) -> Environment:
        """One environment as it is on the disk."""
        record = read_json(os.path.join(self.path(name), RECORD))
        return Environment(
            name=name,
            inputs=record.get("inputs"),
            lock=record.get("lock", ""),
            recorded=record.get("packages", {}),
            installed=installed_in(self.path(name)),
            has_python=os.access(os.path.join(self.path(name), "bin", "python"), os.X_OK),
        )

    def environments(self) -> list[Environment]:
        """All of them, the newest first."""
        if not os.path.isdir(self.parent):
            return []
        names = [
            entry.name
            for entry in os.scandir(self.parent)
            if entry.is_dir(follow_symlinks=False) and is_environment_name(self.base, entry.name)
        ]
        names.sort(key=lambda name: os.stat(self.path(name)).st_mtime, reverse=True)
        return [self.environment(name) for name in names]

    def record(self, name: str, content: Mapping[str, Any]) -> None:
        """End a build: from here on the environment counts as complete."""
        write_json(os.path.join(self.path(name), RECORD), content)

    def switch(self, target: str) -> None:
        """Let the prefix name another environment, in one step."""
        temporary = f"{self.prefix}.new"
        if os.path.lexists(temporary):
            os.unlink(temporary)
        os.symlink(target, temporary)
        os.rename(temporary, self.prefix)

    def remove(self, names: Sequence[str]) -> list[str]:
        """Remove environments; the folders that are gone."""
        for name in names:
            shutil.rmtree(self.path(name))
        return [self.path(name) for name in names]

    @contextlib.contextmanager
    def locked(self, wait_seconds: int, waiting: Callable[[str], None]) -> Iterator[int]:
        """Keep a second run out while this one builds; what a killed run has left at work is waited for."""
        with open(self.lock_path, "w", encoding="ascii") as stream:
            try:
                file_lock.take(stream.fileno(), self.lock_path, wait_seconds, waiting)
            except file_lock.LockError as error:
                raise BuildError(str(error)) from None
            yield stream.fileno()


def installed_in(path: str) -> dict[str, str]:
    """What is installed in an environment."""
    folders = glob.glob(os.path.join(path, "lib", "python3*", "site-packages"))
    return installed_packages(entry for folder in folders for entry in os.listdir(folder))


def needs_in(path: str) -> dict[str, set[str]]:
    """By name of each installed package, the names of the packages that it says it needs."""
    found: dict[str, set[str]] = {}
    for entry in glob.glob(os.path.join(path, "lib", "python3*", "site-packages", "*.dist-info")):
        for name in installed_packages([os.path.basename(entry)]):
            with open(os.path.join(entry, "METADATA"), encoding="utf-8", errors="replace") as stream:
                found[name] = needed_packages(stream.read(METADATA_BYTES))
    return found


def read_json(path: str) -> dict[str, Any]:
    """A record; empty when there is none, or only a part of one."""
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as stream:
        found = json.load(stream)
        return found if isinstance(found, dict) else {}
    return {}


def write_json(path: str, content: Mapping[str, Any]) -> None:
    """A record, in one step and synced: the folder counts as complete from here on, also after a loss of power."""
    files.replace(path, json.dumps(content, indent=2, sort_keys=True))


def closed_parent(path: str) -> str:
    """The first parent that ordinary users cannot enter; empty when they reach the path."""
    while path != "/":
        path = os.path.dirname(path)
        if os.path.isdir(path) and not stat.S_IMODE(os.stat(path).st_mode) & stat.S_IXOTH:
            return path
    return ""


def end_processes_of(path: str, proc: str = "/proc", inside: bool = False) -> int:
    """End what a killed build left running: programs of an environment that no link ever named.

    A killed module takes its child with it, but not what that child has started (``ensurepip`` of ``python -m venv``).
    ``inside``: also what works in a folder below it, as make and a compiler do. How many were ended.
    """
    ended = 0
    for entry in os.listdir(proc):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            with open(os.path.join(proc, entry, "cmdline"), "rb") as stream:
                program = os.fsdecode(stream.read().split(b"\0")[0])
            where = os.readlink(os.path.join(proc, entry, "cwd")) if inside else ""
            if program.startswith(path + os.sep) or where.startswith(path + os.sep):
                os.kill(int(entry), signal.SIGKILL)
                ended += 1
    return ended
