# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel knows of a TCP connection.

``struct tcp_info`` of linux/tcp.h: fields are only ever added at its end, so the offsets hold for every kernel that has
the field.  All of these are in Linux 4.2 and newer; EL9 has 5.14.
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

# Offsets in bytes: eight flags and counters of one byte, then numbers of four bytes, from tcpi_pacing_rate on of eight.
_RTT = 68
_TOTAL_RETRANS = 100
_BYTES_ACKED = 120
_ENOUGH = 128


class TcpInfo(NamedTuple):
    """rtt_ms: smoothed, in milliseconds; after the handshake, its time as the kernel saw it.

    retransmits: segments sent again, SYN included.  acked_bytes: what the other end has confirmed.
    """

    rtt_ms: float
    retransmits: int
    acked_bytes: int


def read(connection: socket.socket) -> TcpInfo:
    """OSError for a socket that was never connected."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ENOUGH)
    return parse(raw)


def parse(raw: bytes) -> TcpInfo:
    """Zero for what a kernel is too old to tell."""
    raw = raw.ljust(_ENOUGH, b"\0")
    return TcpInfo(
        struct.unpack_from("=I", raw, _RTT)[0] / 1000,
        struct.unpack_from("=I", raw, _TOTAL_RETRANS)[0],
        struct.unpack_from("=Q", raw, _BYTES_ACKED)[0],
    )
