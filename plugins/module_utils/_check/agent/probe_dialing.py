# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The asking end of the mesh: many connections at once in one thread.

Each connection climbs the payloads of its target, one message after the other.  A target without payloads is only
connected to.  Standard library only.
"""

from __future__ import annotations

import errno
import resource
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import probe_icmp, probe_tcp_info
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.probe_ports import (
    FOREIGN,
    NONCE_LENGTH,
    OK,
    REFUSED,
    STALLED,
    TIMEOUT,
    UNREACHABLE,
    answer,
    header,
)

# linux/in.h: leave the choice of the local port to connect(), which allows far more connections than bind() would.
IP_BIND_ADDRESS_NO_PORT = 24
# linux/in.h, linux/in6.h: packets are never fragmented ("DF"), whatever net.ipv4.ip_no_pmtu_disc says.
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, PMTUDISC_DO = 10, 23, 2
# Connections at once, at most.  Fewer where the limit of open files is lower.
WINDOW = 4000
# Files that a module has open besides its connections.
SPARE_FILES = 64
# A payload from this size on may take longer than the timeout as long as some of it arrives.
LONG_BYTES = 1048576
# What is kept of the words of a foreign service.
SAID_CHARACTERS = 80


# What the kernel says of an own port that is not free, to bind() and to connect().
_TAKEN = (errno.EADDRINUSE, errno.EADDRNOTAVAIL)

#: Rail and host.
Way = tuple[str, str]


@dataclass(frozen=True)
class Settings:
    """What all calls have in common.

    source: local address to connect from, empty for the kernel's choice.  timeout_seconds: to connect, and again for
    the answer to each payload; twice that for all payloads of a call.
    """

    nonce: str
    source: str
    timeout_seconds: float


@dataclass(frozen=True)
class Target:
    """One port of one peer.  payloads: bytes of each message, in order; none: connect and no more.

    timeout_seconds: instead of that of the settings.  rail: a further rail, empty for the first; source: own address
    there, instead of that of the settings.  own_port: to call from, 0 for the kernel's choice, which is taken too where
    this one is not free.
    """

    host: str
    address: str
    port: int
    range_name: str
    payloads: tuple[int, ...] = (64,)
    timeout_seconds: float | None = None
    rail: str = ""
    source: str = ""
    own_port: int = 0

    @property
    def way(self) -> Way:
        """Rail and host: what the results of one link have in common."""
        return self.rail, self.host


@dataclass(frozen=True)
class Step:
    """One answered message.  payload_bytes: what arrived, less than the message had where time ran out."""

    payload_bytes: int
    seconds: float
    retransmits: int


@dataclass(frozen=True)
class Outcome:
    """What one connection saw.

    result: one of the constants of ``mesh``, or an errno name.  milliseconds: until it was known.  connect_ms: from
    connect() to established, lost requests included, None without a handshake.  passed_bytes: the largest payload that
    was answered; stalled_bytes: the one that was not.  said: the first words of a foreign service, printable, up to
    ``SAID_CHARACTERS``.  own_port: the port that it called from, 0 where there was none.  lost_requests: SYNs without
    an answer.
    """

    target: Target
    result: str
    milliseconds: float
    connect_ms: float | None
    steps: tuple[Step, ...]
    stalled_bytes: int
    said: str
    own_port: int = 0
    lost_requests: int = 0

    @property
    def passed_bytes(self) -> int:
        return max((step.payload_bytes for step in self.steps), default=0)


def errno_name(code: int | None) -> str:
    """One of the constants of ``mesh``, or the name of the error."""
    if code == errno.ECONNREFUSED:
        return REFUSED
    if code == errno.ETIMEDOUT:
        return TIMEOUT
    return errno.errorcode.get(code or 0, f"errno {code}")


@lru_cache(maxsize=16)
def _message(nonce: str, payload_bytes: int) -> bytes:
    """What is sent to every peer alike, so it is made once: 1 MiB takes 0.4 ms."""
    return header(nonce, payload_bytes) + bytes(payload_bytes)


class _Call:
    """One connection on its way."""

    def __init__(self, target: Target, settings: Settings) -> None:
        self.target = target
        self.nonce = settings.nonce
        self.expected = answer(settings.nonce)
        self.timeout = settings.timeout_seconds if target.timeout_seconds is None else target.timeout_seconds
        self.started = time.monotonic()
        self.deadline = self.started + self.timeout
        self.connect_ms: float | None = None
        self.lost_requests = 0
        self.left = deque(target.payloads)
        self.steps: list[Step] = []
        self.payload_bytes = 0
        self.to_send = memoryview(b"")
        self.received = b""
        self.step_started = 0.0
        self.talk_end = 0.0
        self.before = probe_tcp_info.TcpInfo(0.0, 0, 0)
        self.acked_bytes = 0
        family = socket.AF_INET6 if ":" in target.address else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._prepare(target.source or settings.source)
        except OSError:
            self.socket.close()
            raise

    def _prepare(self, source: str) -> None:
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.socket.family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, PMTUDISC_DO)
        else:
            self.socket.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, PMTUDISC_DO)
        probe_icmp.keep_errors(self.socket)
        # Many calls may have one own port then, those before them that are not quite over included.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if not self.target.payloads:
            # Nothing was said, so nothing is owed: close with a reset, which leaves no TIME_WAIT behind.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if self.target.own_port:
            self.socket.bind((source, self.target.own_port))
        elif source:
            self.socket.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            self.socket.bind((source, 0))

    def start(self) -> str | None:
        code = self.socket.connect_ex((self.target.address, self.target.port))
        if code in _TAKEN and self.target.own_port:
            self.socket.close()
            raise OSError(code, "this own port has a connection with that port already")
        return None if code in (0, errno.EINPROGRESS) else self._refusal(code)

    @property
    def writes(self) -> bool:
        """Whether it waits for room to send, the handshake included."""
        return self.connect_ms is None or bool(self.to_send)

    def step(self) -> str | None:
        """Go on as far as the socket allows; a result ends the call."""
        try:
            if self.connect_ms is None:
                code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    return self._refusal(code)
                self._connected()
                if not self.left:
                    return OK
                self._next_message()
            while True:
                while self.to_send:
                    self.to_send = self.to_send[self.socket.send(self.to_send) :]
                part = self.socket.recv(SAID_CHARACTERS)
                self.received += part
                if not part or not self.expected.startswith(self.received):
                    # After an answer that only a worker can give it is the worker, and it has ended.
                    return "ECONNRESET" if self.steps else FOREIGN
                if len(self.received) == NONCE_LENGTH:
                    self._answered(self.payload_bytes)
                    if not self.left:
                        return OK
                    self._next_message()
        except BlockingIOError:
            return None
        except OSError as error:
            if self.connect_ms is None:
                return self._refusal(error.errno)
            return self._refusal(error.errno) if self.steps else FOREIGN

    def _connected(self) -> None:
        self.before = probe_tcp_info.read(self.socket)
        # The kernel's own time does not contain how long this program took to look; it does not contain requests that
        # were lost either: it is that of the last one.
        now = time.monotonic()
        self.lost_requests = self.before.retransmits
        took_ms = (now - self.started) * 1000
        self.connect_ms = took_ms if self.lost_requests else self.before.rtt_ms or took_ms
        self.talk_end = now + 2 * self.timeout

    def _next_message(self) -> None:
        self.payload_bytes = self.left.popleft()
        self.received = b""
        self.before = probe_tcp_info.read(self.socket)
        self.acked_bytes = self.before.acked_bytes
        self.to_send = memoryview(_message(self.nonce, self.payload_bytes))
        self.step_started = time.monotonic()
        self.deadline = min(self.step_started + self.timeout, self.talk_end)

    def _answered(self, payload_bytes: int) -> None:
        retransmits = probe_tcp_info.read(self.socket).retransmits - self.before.retransmits
        self.steps.append(Step(payload_bytes, time.monotonic() - self.step_started, retransmits))

    def _refusal(self, code: int | None) -> str:
        said = probe_icmp.message(self.socket)
        if said in probe_icmp.NO_NEIGHBOUR:
            return TIMEOUT  # Nobody answered for the address: this kernel's own way to say that nothing came back.
        return UNREACHABLE if said else errno_name(code)

    def expire(self, last: bool) -> str | None:
        """What it is when its time is up; None gives it more, because a long message still moves.

        last: there is no more time, so what has arrived of a long message is its result.
        """
        if self.connect_ms is None:
            self.lost_requests = 1 + probe_tcp_info.read(self.socket).retransmits
            return TIMEOUT
        acked = probe_tcp_info.read(self.socket).acked_bytes
        if self.payload_bytes < LONG_BYTES or acked <= self.acked_bytes:
            return STALLED
        if last:
            self._answered(acked - self.before.acked_bytes)
            return OK
        self.acked_bytes = acked
        self.deadline += self.timeout
        return None

    def outcome(self, result: str) -> Outcome:
        own_port = self.socket.getsockname()[1]
        self.socket.close()
        said = self.received.decode("ascii", "backslashreplace") if result == FOREIGN else ""
        return Outcome(
            self.target,
            result,
            round((time.monotonic() - self.started) * 1000, 2),
            self.connect_ms,
            tuple(self.steps),
            self.payload_bytes if result == STALLED else 0,
            "".join(one if one.isprintable() else "." for one in said)[:SAID_CHARACTERS],
            own_port,
            self.lost_requests,
        )


def allow_open_files(wanted: int = WINDOW + SPARE_FILES) -> int:
    """Raise the soft limit of open files towards ``wanted``, as far as the hard one allows; what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return wanted if soft == resource.RLIM_INFINITY else soft


def window() -> int:
    """How many connections may be open at once."""
    return max(1, min(WINDOW, allow_open_files() - SPARE_FILES))


def dial(
    targets: Iterable[Target], settings: Settings, *, at_once: int | None = None, seconds: float | None = None
) -> list[Outcome]:
    """Call all targets, in order.

    at_once: connections open at the same time, ``window()`` by default.  seconds: what has not begun by then is left
    out, and a long payload that is under way then gets one timeout more.  Never longer than three times the timeout for
    each started window, as long as no payload reaches ``LONG_BYTES``.
    """
    waiting: deque[Target] = deque(targets)
    end = float("inf") if seconds is None else time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        return _Switchboard(selector, settings, end).work(waiting, at_once or window())


class _Switchboard:
    """All calls that are under way."""

    def __init__(self, selector: selectors.BaseSelector, settings: Settings, end: float) -> None:
        self.selector = selector
        self.settings = settings
        self.end = end
        self.running: set[_Call] = set()
        self.outcomes: list[Outcome] = []
        # No deadline is earlier than this one; looking at all of them for each event would take too long.
        self.earliest = float("inf")

    def work(self, waiting: deque[Target], at_once: int) -> list[Outcome]:
        while True:
            if time.monotonic() >= self.end:
                waiting.clear()
            while waiting and len(self.running) < at_once:
                self._begin(waiting.popleft())
            if not self.running:
                return self.outcomes
            for key, _events in self.selector.select(max(0.0, self.earliest - time.monotonic())):
                self._step(key)
            now = time.monotonic()
            if now >= self.earliest:
                self._expire(now)

    def _begin(self, target: Target) -> None:
        try:
            call = _Call(target, self.settings)
            failed = call.start()
        except OSError as error:
            if error.errno in _TAKEN and target.own_port:
                self._begin(replace(target, own_port=0))
                return
            self.outcomes.append(Outcome(target, errno_name(error.errno), 0.0, None, (), 0, ""))
            return
        if failed:
            self.outcomes.append(call.outcome(failed))
            return
        self.selector.register(call.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, call)
        self.running.add(call)
        self.earliest = min(self.earliest, call.deadline)

    def _step(self, key: selectors.SelectorKey) -> None:
        call: _Call = key.data
        result = call.step()
        if result:
            self._end(call, result)
            return
        # When all is sent, a writable socket would wake the loop for nothing.
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if call.writes else 0)
        if key.events != events:
            self.selector.modify(call.socket, events, call)

    def _expire(self, now: float) -> None:
        for call in [call for call in self.running if call.deadline <= now]:
            result = call.expire(last=now >= self.end)
            if result:
                self._end(call, result)
        self.earliest = min((call.deadline for call in self.running), default=float("inf"))

    def _end(self, call: _Call, result: str) -> None:
        self.selector.unregister(call.socket)
        self.running.discard(call)
        self.outcomes.append(call.outcome(result))
