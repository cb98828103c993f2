# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has published which address at the rendezvous, read while the ranks still wait for each other.

Each rank of gloo writes where it listens into the store, and reads where the others do.  A rank that waits in vain says
only which key it waits for; the store itself says which ranks are there, and with which address.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

#: The key of a rank's address, as torch 2.13.0 writes it: ``0//cpu//0/<rank>``, with ``default_pg/`` before it or not.
KEY = re.compile(r"(?:^|/)cpu//0/(\d+)$")
#: One look each time, as long as the ranks wait.
LOOK_SECONDS = 5.0
#: A look that gets no answer ends after this time.
ANSWER_SECONDS = 3.0


class Published(NamedTuple):
    """What a rank wrote into the store: its host name and where it listens."""

    hostname: str
    address: str
    port: int


def parse(value: bytes) -> Published | None:
    """The value of a key, or None when it has another layout.

    As torch 2.13.0 writes it on Linux (seen, and gloo/rendezvous/context.cc): a 64-bit length and the host name, a
    64-bit length and a ``struct sockaddr_storage``, whose port is in network byte order.
    """
    try:
        (length,) = struct.unpack_from("=Q", value)
        start = 8 + length
        hostname = value[8:start].decode("utf-8")
        (size,) = struct.unpack_from("=Q", value, start)
        sockaddr = value[start + 8 : start + 8 + size]
        (family,) = struct.unpack_from("=H", sockaddr)
        (port,) = struct.unpack_from(">H", sockaddr, 2)
        if family == socket.AF_INET:
            return Published(hostname, socket.inet_ntop(family, sockaddr[4:8]), port)
        if family == socket.AF_INET6:
            return Published(hostname, socket.inet_ntop(family, sockaddr[8:24]), port)
    except (struct.error, ValueError, OverflowError):
        pass
    return None


def summary(values: Mapping[str, bytes], world_size: int) -> dict[str, Any]:
    """What the store holds: ``missing`` ranks, and rank to ``[address, port]`` where the layout is known."""
    ranks = {int(match[1]): value for key, value in values.items() for match in [KEY.search(key)] if match}
    known = {rank: parse(value) for rank, value in sorted(ranks.items())}
    return {
        "missing": [rank for rank in range(world_size) if rank not in ranks],
        "addresses": {str(rank): [one.address, one.port] for rank, one in known.items() if one},
    }


def read(dist: Any, job: Mapping[str, Any]) -> dict[str, bytes]:
    """All addresses that are in the store now.  Over a connection of its own: the rank's own is busy waiting."""
    patience = timedelta(seconds=ANSWER_SECONDS)
    store = dist.TCPStore(job["master_address"], job["master_port"], None, False, patience, wait_for_workers=False)
    return {key: store.get(key) for key in store.list_keys() if KEY.search(key)}


class Watch:
    """Looks into the store until the ranks have found each other, and tells what is new there.

    In threads that nobody waits for longer than ``ANSWER_SECONDS``: a store whose rank has died leaves its port open as
    long as any rank holds the socket, and to connect there never ends, whatever time limit it is given.
    """

    def __init__(self, look: Callable[[], Mapping[str, Any]], tell: Callable[[Mapping[str, Any]], None]) -> None:
        self._look = look
        self._tell = tell
        self._last: Mapping[str, Any] = {}
        self._joined = threading.Event()

    def __enter__(self) -> Watch:
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, kind: Any, *_error: Any) -> None:
        self._joined.set()
        if kind is not None:
            last = threading.Thread(target=self._once, daemon=True)
            last.start()
            last.join(ANSWER_SECONDS)

    def _run(self) -> None:
        while not self._joined.wait(LOOK_SECONDS):
            self._once()

    def _once(self) -> None:
        """One look.  A store that does not answer is told by the rank's own error."""
        try:
            seen = self._look()
        except Exception:
            return
        if seen != self._last:
            self._last = seen
            self._tell(seen)
