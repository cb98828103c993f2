# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs of a job on a node: where they are, and what writes them."""

from __future__ import annotations

import collections
import os
import queue
import threading
from collections.abc import Mapping
from typing import Any

MAX_UNWRITTEN = 256 << 20


class Disk:
    """Writes logs in a thread of its own: a file server that restarts must not stop the heartbeat."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[tuple[str, bytes] | None] = queue.Queue()
        self.taken = 0
        self.written = 0
        self.errors: collections.deque[str] = collections.deque(maxlen=8)
        self.thread: threading.Thread | None = None

    def write(self, path: str, part: bytes) -> bool:
        """Whether there was room for it."""
        if self.taken - self.written > MAX_UNWRITTEN:
            return False
        if self.thread is None:
            self.thread = threading.Thread(target=self.work, daemon=True)
            self.thread.start()
        self.taken += len(part)
        self.waiting.put((path, part))
        return True

    def work(self) -> None:
        logs: dict[str, int] = {}
        for path, part in iter(self.waiting.get, None):
            try:
                if path not in logs:
                    logs[path] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
                rest = part
                while rest:
                    rest = rest[os.write(logs[path], rest) :]
            except OSError as error:
                # A full disk must not end the training.
                self.errors.append(f"a log can't be written: {error}")
            self.written += len(part)

    def end(self, seconds: float) -> bool:
        """Whether everything is written."""
        self.waiting.put(None)
        if self.thread is not None:
            self.thread.join(seconds)
        return self.thread is None or not self.thread.is_alive()


def log_folder(job: Mapping[str, Any]) -> str:
    return os.path.join(job["logs"] or os.path.expanduser("~/gpu-cluster-logs"), job["id"])
