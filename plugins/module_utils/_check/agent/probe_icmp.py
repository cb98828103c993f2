# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a failed connect() was answered by the peer's TCP or by somebody's ICMP message.

A firewall's plain ``reject`` sends ICMP "port unreachable", for which connect() says the same as for a closed port:
connection refused.  With IP_RECVERR the kernel keeps the message itself (man 7 ip; for connections that are not yet
established since commit 45af29ca761c of 2020, which EL9 has).  An older kernel keeps nothing: a closed port, it seems.
"""

from __future__ import annotations

import socket
import struct

# linux/in.h, linux/in6.h, linux/errqueue.h
IP_RECVERR = 11
IPV6_RECVERR = 25
ORIGINS_ICMP = (2, 3)
#: ICMP type and code of "host unreachable" and of ICMPv6 "address unreachable".
NO_NEIGHBOUR = ((2, 3, 1), (3, 1, 3))
_EXTENDED_ERROR = "=IBBBxII"


def keep_errors(connection: socket.socket) -> None:
    """Ask the kernel to keep ICMP messages about this socket."""
    if connection.family == socket.AF_INET6:
        connection.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
    else:
        connection.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)


def message(connection: socket.socket) -> tuple[int, int, int] | None:
    """Origin, type and code of the ICMP message that ended a connection attempt; None when there was none."""
    try:
        _data, control, _flags, _from = connection.recvmsg(0, 512, socket.MSG_ERRQUEUE)
    except OSError:
        return None
    for _level, _kind, raw in control:
        if len(raw) >= struct.calcsize(_EXTENDED_ERROR):
            found = parse(raw)
            if found:
                return found
    return None


def parse(raw: bytes) -> tuple[int, int, int] | None:
    """From ``struct sock_extended_err``; None when it does not come from ICMP."""
    _errno, origin, kind, code, _info, _data = struct.unpack_from(_EXTENDED_ERROR, raw)
    return (origin, kind, code) if origin in ORIGINS_ICMP else None
