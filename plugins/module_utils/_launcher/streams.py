# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines and messages over pipes and sockets that may be slow, and signals as events."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import socket
import sys
from collections.abc import Iterable, Mapping
from typing import Any

#: Bytes.  Live lines beyond this are left out (they are in the logs), so that a slow terminal never stops a rank.
MAX_UNSENT = 4 << 20
MAX_LINE = 64 << 10
#: A line of a script, in JSON, takes less than 1 MiB.
MAX_MESSAGE = 4 << 20


class Lines:
    """Bytes in, whole lines out.  A carriage return ends a line too: progress bars use it.

    A line that is longer than ``limit`` comes in parts; messages of our own are shorter, and orders are never cut.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.rest = b""
        self.limit = limit

    def feed(self, part: bytes) -> list[str]:
        found = re.split(rb"\r\n|\n|\r", part)
        found[0] = self.rest + found[0]
        self.rest = found.pop()
        if self.limit is not None and len(self.rest) > self.limit:
            found.append(self.rest)
            self.rest = b""
        return [line.decode("utf-8", "replace") for line in found]

    def end(self) -> list[str]:
        found, self.rest = ([self.rest.decode("utf-8", "replace")] if self.rest else []), b""
        return found


def encode(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode("utf-8") + b"\n"


def read_some(descriptor: int) -> bytes | None:
    """What can be read now; None when there is nothing yet, empty at the end."""
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class Unsent:
    """Bytes on their way to a descriptor that may be slow."""

    def __init__(self, selector: selectors.BaseSelector, descriptor: int) -> None:
        self.selector = selector
        self.descriptor = descriptor
        self.data = bytearray()
        self.broken = False
        self.left_out = 0
        os.set_blocking(descriptor, False)

    def send(self, message: Mapping[str, Any], *, live: bool = False) -> None:
        """``live`` lines are left out while too much waits."""
        if self.broken:
            return
        if live and len(self.data) > MAX_UNSENT:
            self.left_out += 1
            return
        if live and self.left_out:
            text = f"({self.left_out} lines are not shown, they are in the logs)"
            self.left_out = 0
            self.data += encode({"event": "line", "rank": None, "stream": "err", "text": text})
        self.data += encode(message)
        self.flush()

    def flush(self) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                while self.data:
                    del self.data[: os.write(self.descriptor, self.data[: 1 << 16])]
            except OSError as error:
                if isinstance(error, BlockingIOError):
                    raise
                self.broken = True
                self.data.clear()
        registered = self.descriptor in self.selector.get_map()
        if self.data and not registered:
            self.selector.register(self.descriptor, selectors.EVENT_WRITE, self.flush)
        elif not self.data and registered:
            self.selector.unregister(self.descriptor)


def wake_on(selector: selectors.BaseSelector, numbers: Iterable[int], action: Any) -> None:
    """Have signals handled in the main loop: ``action(number)``."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def arrived() -> None:
        for number in read_some(reader) or b"":
            action(number)

    for number in numbers:
        signal.signal(number, lambda _number, _frame: None)
    selector.register(reader, selectors.EVENT_READ, arrived)


def peer(connection: socket.socket) -> tuple[int, int]:
    """Process and user at the other end (struct ucred: three ints)."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(raw[:4], sys.byteorder), int.from_bytes(raw[4:8], sys.byteorder)
