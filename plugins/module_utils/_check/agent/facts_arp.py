# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether somebody else answers for an IPv4 address of this node, by the ARP probe of RFC 5227.

The probe has no sender address, so nobody's ARP table changes by it. For IPv6 the kernel itself does the same when it
takes an address, and remembers the result.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time

ETHERTYPE_ARP = 0x0806
#: Ethernet, IPv4, their lengths.
ARP_ETHERNET_IPV4 = struct.pack("!HHBB", 1, 0x0800, 6, 4)
REQUEST, REPLY = 1, 2
FRAME = struct.Struct("!6s6sH6sH6s4s6s4s")
BROADCAST = b"\xff" * 6
#: RFC 5227 probes three times over some seconds, for an address that is not in use yet. Whoever holds it answers at
#: once; the second probe is for a frame that got lost.
PROBES = 2
WAIT_SECONDS = 0.15


def probe(mac: bytes, address: str) -> bytes:
    """The frame that asks who has the address."""
    wanted = ipaddress.IPv4Address(address).packed
    head = (BROADCAST, mac, ETHERTYPE_ARP, ARP_ETHERNET_IPV4, REQUEST)
    return FRAME.pack(*head, mac, b"\0" * 4, b"\0" * 6, wanted)


def answer(frame: bytes, address: str) -> str:
    """The hardware address of whoever says in this frame that the address is his, empty for any other frame."""
    if len(frame) < FRAME.size:
        return ""
    _to, _from, ethertype, kind, operation, mac, sender, _target, _wanted = FRAME.unpack(frame[: FRAME.size])
    if (ethertype, kind, operation) != (ETHERTYPE_ARP, ARP_ETHERNET_IPV4, REPLY):
        return ""
    return text(mac) if sender == ipaddress.IPv4Address(address).packed else ""


def text(mac: bytes) -> str:
    """``52:54:00:12:34:56``."""
    return ":".join(f"{byte:02x}" for byte in mac)


def others(interface: str, address: str, own: set[str]) -> list[str] | None:
    """The hardware addresses, besides the node's ``own``, that answer for its address on the wire of an interface.

    None when nobody could be asked: no Ethernet, IPv6, no right to.  Takes ``PROBES`` times ``WAIT_SECONDS``.
    """
    if ipaddress.ip_address(address).version != 4:
        return None
    found: list[str] = []
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE_ARP)) as wire:
            wire.bind((interface, ETHERTYPE_ARP))
            mac = wire.getsockname()[4]
            if len(mac) != 6:
                return None
            for _number in range(PROBES):
                wire.send(probe(mac, address))
                found += _listen(wire, address)
    except OSError:
        return None
    return sorted({one for one in found if one not in own})


def _listen(wire: socket.socket, address: str) -> list[str]:
    found: list[str] = []
    end = time.monotonic() + WAIT_SECONDS
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return found
        wire.settimeout(left)
        try:
            mac = answer(wire.recv(2048), address)
        except socket.timeout:
            return found
        if mac:
            found.append(mac)
