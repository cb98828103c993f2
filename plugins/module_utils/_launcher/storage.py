# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Storage that does not answer, found without waiting for it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

#: Seconds for the storage of a job's files to answer; a dead file server never does.
STORAGE = 10.0
MOUNTS = "/proc/self/mountinfo"


def storage_problems(job: Mapping[str, Any]) -> list[str]:
    """Which files and folders of a job are on storage that hangs. Nothing else may look at them then."""
    logs = job["logs"] or os.path.expanduser("~/gpu-cluster-logs")
    paths = [path for path in (job["cwd"], job["script"], job["python"], logs) if path]
    # A node that says nothing for longer than lost_after is lost.
    seconds = min(STORAGE, job["lost_after"] / 2)
    return [
        f"{path} is on storage that does not answer within {seconds:.0f} seconds{mount_of(path)}"
        for path in silent(dict.fromkeys(paths), seconds)
    ]


def silent(paths: Iterable[str], seconds: float) -> list[str]:
    """The paths that give no answer. Who waits for one can only be killed: a thread does, and ends with the process."""

    def look(path: str) -> None:
        with contextlib.suppress(OSError):
            os.stat(path)
            os.statvfs(path)  # The server itself is asked, where the kernel would remember the folder.

    lookers = {path: threading.Thread(target=look, args=(path,), daemon=True) for path in paths}
    end = time.monotonic() + seconds
    for looker in lookers.values():
        looker.start()
    for looker in lookers.values():
        looker.join(max(0.0, end - time.monotonic()))
    return [path for path, looker in lookers.items() if looker.is_alive()]


def mount_of(path: str) -> str:
    """What is mounted where a path lies, for a reader; nothing for the root. The storage is not touched."""
    best, said = "/", ""
    with open(MOUNTS, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            left, sign, right = line.partition(" - ")
            place = left.split(" ")[4] if sign else "/"
            # A later mount hides an earlier one.
            if len(place) >= len(best) and f"{path}/".startswith(f"{place}/"):
                kind, source = right.split(" ")[:2]
                best, said = place, f" ({place}, mounted from {source}, type {kind}): look at the file server"
    return said
