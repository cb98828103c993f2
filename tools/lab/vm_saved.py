# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual machine as it runs, kept in the cache: its memory, what it wrote to its disk, and the keys that fit it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import host, vm_ports
from lab.shell import LabError, run

SECONDS = 300


@dataclass(frozen=True)
class Saved:
    """The files of one state. The disk holds what differs from the cached disk, which it names."""

    folder: Path

    @property
    def memory(self) -> Path:
        return self.folder / "memory"

    @property
    def disk(self) -> Path:
        return self.folder / "disk.qcow2"

    @property
    def belongings(self) -> Path:
        """Folders of the checkout that fit this machine alone: its keys, and what the collection signed for it."""
        return self.folder / "checkout"

    def exists(self) -> bool:
        return self.folder.exists()


def _save_memory(execute: Callable[..., Any], path: Path) -> None:
    """What qemu calls a migration, to a file. At its end all that the machine wrote is on its disk."""
    execute("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
    execute("migrate", uri=f"exec:cat > '{path}'")
    deadline = time.monotonic() + SECONDS
    while (found := str(execute("query-migrate").get("status", ""))) != "completed":
        if found in ("failed", "cancelled") or time.monotonic() > deadline:
            raise LabError(f"qemu cannot save the memory of the virtual machine: {found}")
        time.sleep(0.2)


def save(control: Path, disk: Path, state: Saved, belongings: Sequence[Path], checkout: Path) -> None:
    """Keep a running machine that writes to ``disk``. It stands still meanwhile, and older states are removed."""
    cache = state.folder.parent
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix="build-", dir=cache) as scratch:
        new = Saved(Path(scratch) / "state")
        new.belongings.mkdir(parents=True)
        for folder in belongings:
            shutil.copytree(folder, new.belongings / folder.relative_to(checkout))
        with vm_ports.controls(control, 2 * SECONDS) as execute:
            execute("stop")
            try:
                _save_memory(execute, new.memory)
                run(["cp", "--sparse=always", str(disk), str(new.disk)], timeout=SECONDS)
            finally:
                execute("cont")
        host.discard(state.folder)
        new.folder.rename(state.folder)
    for path in cache.iterdir():
        if path != state.folder:
            host.discard(path)


def go_on(control: Path) -> None:
    """Let a restored machine run, once its memory is read: it was saved while it stood still."""
    deadline = time.monotonic() + SECONDS
    with vm_ports.controls(control, SECONDS) as execute:
        while execute("query-status")["status"] == "inmigrate":
            if time.monotonic() > deadline:
                raise LabError(f"the memory of the saved virtual machine is not read within {SECONDS} s")
            time.sleep(0.2)
        execute("cont")


def restore_belongings(state: Saved, checkout: Path) -> None:
    """Put the folders back that fit the saved machine."""
    for top in state.belongings.iterdir():
        shutil.copytree(top, checkout / top.name, dirs_exist_ok=True)
