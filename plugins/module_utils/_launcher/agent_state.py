# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an agent knows of its job, its ranks and their output, and how it tells the launcher."""

from __future__ import annotations

import collections
import os
import selectors
import socket
import subprocess
import time
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.logs import Disk
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.processes import Process, processes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import BEAT
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.streams import (
    MAX_LINE,
    Lines,
    Unsent,
    read_some,
)

TAIL_LINES = 12
TAIL_CHARACTERS = 2000
#: A pipe holds 64 KiB (pipe(7)), and so does a read.
PIPE_READS = 4


class Output:
    """The output of one rank, or of what starts ranks (``rank`` None): its log, its last lines, its live lines."""

    def __init__(self, agent: AgentState, rank: int | None, log: str) -> None:
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


class Rank:
    """A rank that has come to the agent."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.lines = Lines()
        self.about: dict[str, Any] = {}
        self.output: Output | None = None
        self.end: tuple[int, int, bool] | None = None


class AgentState:
    """The job of an agent, and how far it is."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.job: dict[str, Any] = {}
        self.input = Lines()
        self.unsent = Unsent(self.selector, 1)
        self.heard = time.monotonic()
        self.beaten = 0.0
        self.port = 0
        self.turn = 0
        self.meeting: list[str] = []
        self.variables: dict[str, str] = {}
        self.mains: dict[int, subprocess.Popen[bytes]] = {}
        self.results: list[tuple[int, int]] = []
        self.output: Output | None = None
        self.disk = Disk()
        self.ranks: list[Rank] = []
        self.kill_at: float | None = None
        self.asked: set[int] = set()
        self.stopping = False
        self.ranks_first = False
        self.running = False
        self.complained: set[str] = set()
        self.help = ""
        self.containers = False

    def tell(self, **message: Any) -> None:
        self.unsent.send(message, live=message["event"] == "line")

    def beat(self) -> None:
        now = time.monotonic()
        if now - self.beaten > BEAT:
            self.beaten = now
            self.tell(event="beat")
            self.tell_errors()

    def complain(self, text: str) -> None:
        if text not in self.complained:
            self.complained.add(text)
            self.tell(event="note", text=text)

    def tell_errors(self) -> None:
        while self.disk.errors:
            self.complain(self.disk.errors.popleft())

    def table(self) -> dict[int, Process]:
        return processes(self.job["id"])
