# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The directed mesh: who reaches whose ports, with which payload.

A probe connects, sends ``nonce + length + payload`` and expects the digest of the nonce.  A port that some other
service holds, or a worker of another run, is told apart by that digest.  Standard library only, one thread.
"""

from __future__ import annotations

import errno
import hashlib
import selectors
import socket
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

NONCE_LENGTH = 32
HEADER_LENGTH = NONCE_LENGTH + 8
# Far below the 1024 open files that a login session has by default.
WINDOW = 400
# linux/in.h: leave the choice of the local port to connect(), which allows far more connections than bind() would.
IP_BIND_ADDRESS_NO_PORT = 24

OK = "ok"
TIMEOUT = "timeout"
UNREACHABLE = "unreachable"
REFUSED = "refused"
STALLED = "stalled"
FOREIGN = "foreign"


def header(nonce: str, payload_bytes: int) -> bytes:
    """What a probe sends before its payload."""
    return f"{nonce}{payload_bytes:08d}".encode("ascii")


def answer(nonce: str) -> bytes:
    """What only a worker that knows ``nonce`` can reply; an echo service can't."""
    return hashlib.sha256(nonce.encode("ascii")).hexdigest()[:NONCE_LENGTH].encode("ascii")


@dataclass(frozen=True)
class Target:
    """One port of one peer.  payload_bytes: 0 to 99,999,999."""

    host: str
    address: str
    port: int
    range_name: str
    payload_bytes: int


@dataclass(frozen=True)
class Outcome:
    """What one probe saw.  result: one of the constants above, or an errno name.  milliseconds: until it was known."""

    host: str
    port: int
    range_name: str
    result: str
    milliseconds: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class _Probe:
    """One connection on its way."""

    def __init__(self, target: Target, nonce: str, source: str, timeout: float) -> None:
        self.target = target
        self.started = time.monotonic()
        self.deadline = self.started + timeout
        self.timeout = timeout
        self.expected = answer(nonce)
        self.to_send = memoryview(header(nonce, target.payload_bytes) + bytes(target.payload_bytes))
        self.received = b""
        self.connected = False
        family = socket.AF_INET6 if ":" in target.address else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        if source:
            self.socket.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            self.socket.bind((source, 0))

    def start(self) -> str | None:
        code = self.socket.connect_ex((self.target.address, self.target.port))
        return None if code in (0, errno.EINPROGRESS) else _name(code)

    def step(self) -> str | None:
        """Go on as far as the socket allows; a result ends the probe."""
        try:
            if not self.connected:
                code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    return _name(code)
                self.connected = True
                self.deadline = time.monotonic() + self.timeout
            while self.to_send:
                self.to_send = self.to_send[self.socket.send(self.to_send) :]
            part = self.socket.recv(NONCE_LENGTH)
        except BlockingIOError:
            return None
        except OSError as error:
            return FOREIGN if self.connected else _name(error.errno)
        self.received += part
        if self.received == self.expected:
            return OK
        if not part or not self.expected.startswith(self.received):
            return FOREIGN
        return None

    def expire(self) -> str:
        return STALLED if self.connected else TIMEOUT

    def outcome(self, result: str) -> Outcome:
        self.socket.close()
        elapsed = round((time.monotonic() - self.started) * 1000, 2)
        return Outcome(self.target.host, self.target.port, self.target.range_name, result, elapsed)


def _name(code: int | None) -> str:
    if code in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return UNREACHABLE
    if code == errno.ECONNREFUSED:
        return REFUSED
    if code == errno.ETIMEDOUT:
        return TIMEOUT
    return errno.errorcode.get(code or 0, f"errno {code}")


def probe(targets: Iterable[Target], nonce: str, source: str, timeout: float) -> list[Outcome]:
    """Probe all targets, ``WINDOW`` at a time.

    source: local address to connect from, empty for the kernel's choice.  timeout: seconds to connect and, once
    connected, again seconds for the answer.  Never longer than ``2 * timeout`` for each started window.
    """
    waiting: deque[Target] = deque(targets)
    outcomes: list[Outcome] = []
    running: set[_Probe] = set()
    with selectors.DefaultSelector() as selector:
        while waiting or running:
            while waiting and len(running) < WINDOW:
                target = waiting.popleft()
                try:
                    one = _Probe(target, nonce, source, timeout)
                    failed = one.start()
                except OSError as error:
                    outcomes.append(Outcome(target.host, target.port, target.range_name, _name(error.errno), 0.0))
                    continue
                if failed:
                    outcomes.append(one.outcome(failed))
                    continue
                selector.register(one.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, one)
                running.add(one)
            now = time.monotonic()
            wait = min((one.deadline for one in running), default=now) - now
            for key, _events in selector.select(max(0.0, wait)):
                result = key.data.step()
                if result:
                    _end(selector, running, key.data, result, outcomes)
                elif not key.data.to_send:
                    # All is sent: a writable socket would wake the loop for nothing.
                    selector.modify(key.data.socket, selectors.EVENT_READ, key.data)
            now = time.monotonic()
            for one in [one for one in running if one.deadline <= now]:
                _end(selector, running, one, one.expire(), outcomes)
    return outcomes


def _end(
    selector: selectors.BaseSelector, running: set[_Probe], one: _Probe, result: str, outcomes: list[Outcome]
) -> None:
    selector.unregister(one.socket)
    running.discard(one)
    outcomes.append(one.outcome(result))


class Responder:
    """The other end of a probe: one accepted connection of a worker.  Not blocking."""

    def __init__(self, connection: socket.socket, nonce: str) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.nonce = nonce
        self.header = b""
        self.remaining: int | None = None

    def step(self) -> bool:
        """Read what has come; True when the connection is finished, answered or not."""
        try:
            while True:
                if self.remaining is None:
                    part = self.connection.recv(HEADER_LENGTH - len(self.header))
                    self.header += part
                    if not self.nonce.encode("ascii").startswith(self.header[:NONCE_LENGTH]):
                        # Not a probe. A torch client that came too early waits for an answer until it is turned away.
                        return True
                    if part and len(self.header) < HEADER_LENGTH:
                        continue
                    length = self.header[NONCE_LENGTH:]
                    if len(self.header) < HEADER_LENGTH or not length.isdigit():
                        return True
                    self.remaining = int(length)
                if self.remaining == 0:
                    self.connection.sendall(answer(self.nonce))
                    return True
                part = self.connection.recv(min(self.remaining, 65536))
                if not part:
                    return True
                self.remaining -= len(part)
        except BlockingIOError:
            return False
        except OSError:
            return True


def bind_listener(address: str, port: int) -> socket.socket:
    """A listening socket on ``address:port``.  OSError when the port is taken or the address isn't local."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def bind_samples(address: str, first: int, last: int, count: int) -> list[socket.socket]:
    """Up to ``count`` listeners spread evenly over ports ``first`` to ``last``, both ends included.

    A taken port is replaced by the next free one of its part.
    """
    listeners: list[socket.socket] = []
    count = min(count, last - first + 1)
    step = (last - first) / (count - 1) if count > 1 else 0.0
    for number in range(count):
        start = first + round(number * step)
        direction = -1 if start == last and start != first else 1
        for offset in range(64):
            port = start + direction * offset
            if not first <= port <= last:
                break
            try:
                listeners.append(bind_listener(address, port))
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
    return listeners
