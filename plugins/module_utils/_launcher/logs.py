# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs of a job on a node, and the output of its processes."""

from __future__ import annotations

import collections
import os
import queue
import selectors
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.streams import MAX_LINE, Lines, read_some

if TYPE_CHECKING:
    from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.agent import Agent

MAX_UNWRITTEN = 256 << 20
TAIL_LINES = 12
TAIL_CHARACTERS = 2000
#: A pipe holds 64 KiB (pipe(7)), and so does a read.
PIPE_READS = 4


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


class Output:
    """The output of one rank, or of what starts ranks (``rank`` None): its log, its last lines, its live lines."""

    def __init__(self, agent: Agent, rank: int | None, log: str) -> None:
        self.agent = agent
        self.rank = rank
        self.tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        self.log = log
        self.streams: dict[int, tuple[str, Lines]] = {}

    def pipe(self, name: str) -> int:
        """The end to write to."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        self.streams[reader] = (name, Lines(MAX_LINE))
        self.agent.selector.register(reader, selectors.EVENT_READ, lambda: self.read(reader))
        return writer

    def read(self, reader: int) -> bool:
        """Take what is there; whether there may be more."""
        if reader not in self.streams:
            return False  # Drained and closed since the selector has seen it.
        part = read_some(reader)
        if part is None:
            return False
        name, lines = self.streams[reader]
        if part:
            self.write(part)
        for line in lines.feed(part) if part else lines.end():
            self.tail.append(line[:TAIL_CHARACTERS])
            self.agent.tell(event="line", rank=self.rank, stream=name, text=line)
        if not part:
            self.agent.selector.unregister(reader)
            os.close(reader)
            del self.streams[reader]
        return bool(part)

    def write(self, part: bytes) -> None:
        if not self.agent.disk.write(self.log, part):
            self.agent.complain("the storage of the logs is too slow: parts of them are missing")

    def drain(self) -> None:
        """Take what was written until now; something in the background may write for ever."""
        for reader in list(self.streams):
            for _part in range(PIPE_READS):
                if not self.read(reader):
                    break


def log_folder(job: Mapping[str, Any]) -> str:
    return os.path.join(job["logs"] or os.path.expanduser("~/gpu-cluster-logs"), job["id"])
