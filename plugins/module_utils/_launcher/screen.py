# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The terminal of whoever has started the job."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import sys
import threading
from typing import Any


class Screen:
    """Writes in a thread of its own: a terminal that is stopped must not stop the heartbeat."""

    #: Characters; each line costs some more.
    MAX_WAITING = 32 << 20
    LINE_COSTS = 200
    #: Seconds for what still waits at the end.
    PATIENCE = 10.0

    def __init__(self, closed: Any) -> None:
        self.waiting: queue.Queue[tuple[Any, str] | None] = queue.Queue()
        self.taken = 0
        self.shown = 0
        self.left_out = 0
        self.closed = closed
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # What this terminal can't show must not vanish.
        self.thread = threading.Thread(target=self.write, daemon=True)
        self.thread.start()

    def show(self, stream: Any, text: str, *, live: bool = False) -> None:
        if live and self.taken - self.shown > self.MAX_WAITING:
            self.left_out += 1
            return
        if live and self.left_out:
            text = f"gpu-cluster-run: {self.left_out} lines are not shown, they are in the logs\n{text}"
            self.left_out = 0
        self.taken += len(text) + self.LINE_COSTS
        self.waiting.put((stream, text))

    def write(self) -> None:
        for stream, text in iter(self.waiting.get, None):
            try:
                stream.write(text + "\n")
                if self.waiting.empty():
                    sys.stdout.flush()
                    sys.stderr.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # What still waits in it has a place to go.
                self.closed()
            except ValueError:
                pass  # The stream is closed; said once is enough.
            self.shown += len(text) + self.LINE_COSTS
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()  # Here, and not when the interpreter ends: that would wait for ever.
            sys.stderr.flush()

    def end(self) -> None:
        self.waiting.put(None)
        self.thread.join(timeout=self.PATIENCE)
