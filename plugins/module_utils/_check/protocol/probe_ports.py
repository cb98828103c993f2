# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocol of the mesh, and its answering end: what a worker needs so that its peers can probe it.

A probe connects and sends one message or several, each ``nonce + length + payload``; each is answered with the digest
of the nonce.  A port that some other service holds, or a worker of another run, is told apart by that digest.
``dialing.py`` is the asking end; docs/check-protocol.md describes both.  Standard library only.
"""

from __future__ import annotations

import errno
import hashlib
import socket
import time

NONCE_LENGTH = 32
HEADER_LENGTH = NONCE_LENGTH + 8
# What a worker reads at once: large enough to keep up with 10 Gb/s, small enough to serve all peers in turn.
READ_BYTES = 262144
# Connections waiting for accept().  The kernel caps it at net.core.somaxconn (4096 since Linux 5.4, 128 before).
BACKLOG = 4096

OK = "ok"
TIMEOUT = "timeout"
UNREACHABLE = "unreachable"
REFUSED = "refused"
STALLED = "stalled"
FOREIGN = "foreign"
#: What the own kernel answers to connect(2) where it finds no way to send anything.  An EHOSTUNREACH or ENETUNREACH
#: that an ICMP message has brought is UNREACHABLE.
OWN_KERNEL = frozenset(
    ("EACCES", "EADDRNOTAVAIL", "EHOSTUNREACH", "EINVAL", "ENETDOWN", "ENETUNREACH", "ENODEV", "EPERM")
)


def header(nonce: str, payload_bytes: int) -> bytes:
    """What a probe sends before its payload.  payload_bytes: 0 to 99,999,999."""
    return f"{nonce}{payload_bytes:08d}".encode("ascii")


def answer(nonce: str) -> bytes:
    """What only a worker that knows ``nonce`` can reply; an echo service can't."""
    return hashlib.sha256(nonce.encode("ascii")).hexdigest()[:NONCE_LENGTH].encode("ascii")


class Responder:
    """The other end of a probe: one accepted connection of a worker.  Not blocking."""

    def __init__(self, connection: socket.socket, nonce: str) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.nonce = nonce.encode("ascii")
        self.answer = answer(nonce)
        self.header = b""
        self.remaining = 0
        self.heard = time.monotonic()

    def step(self) -> bool:
        """Read some of what has come; True when the connection is finished.  Answers every whole message."""
        self.heard = time.monotonic()
        try:
            wanted = self.remaining or HEADER_LENGTH - len(self.header)
            part = self.connection.recv(min(wanted, READ_BYTES))
            if not part:
                return True
            if self.remaining:
                self.remaining -= len(part)
            else:
                self.header += part
                # Not a probe: a torch client that came too early waits for an answer until it is turned away.
                if not self.nonce.startswith(self.header[:NONCE_LENGTH]):
                    return True
                if len(self.header) < HEADER_LENGTH:
                    return False
                if not self.header[NONCE_LENGTH:].isdigit():
                    return True
                self.remaining = int(self.header[NONCE_LENGTH:])
            if not self.remaining:
                self.header = b""
                self.connection.sendall(self.answer)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False


def bind_listener(address: str, port: int) -> socket.socket:
    """A listening socket on ``address:port``.  OSError when the port is taken or the address isn't local."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def sample_ports(first: int, last: int, count: int) -> list[int]:
    """``count`` ports spread evenly over ``first`` to ``last``, both ends included; fewer where there are fewer."""
    count = min(count, last - first + 1)
    step = (last - first) / (count - 1) if count > 1 else 0.0
    return [first + round(number * step) for number in range(count)]


def bind_samples(address: str, first: int, last: int, count: int) -> list[socket.socket]:
    """Up to ``count`` listeners spread evenly over ports ``first`` to ``last``, both ends included.

    A taken port is replaced by the next free one of its part.
    """
    listeners: list[socket.socket] = []
    for start in sample_ports(first, last, count):
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
