# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A packet as far as rules can look at it: what is known of each field before it is sent.

A field of a packet is a list of intervals of the values that it may have, or ``None`` when nothing is known.  A
condition holds, may hold or cannot hold; see ``Truth``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import ports

INBOUND = "inbound"
OUTBOUND = "outbound"

Numbers = Optional[tuple[tuple[int, int], ...]]

TCP = 6
#: Bits of ``ct state``, as the kernel numbers them (nf_conntrack_common.h and nft_ct.h of Linux).
ESTABLISHED = 2
NEW = 8
#: Bits of the flags of TCP.
SYN = 0x02
SYN_ACK = 0x12
#: What a connection carries after it was made: an acknowledgement, data, the end, an abort.
ACK, PSH_ACK, FIN_ACK, RST_ACK = 0x10, 0x18, 0x11, 0x14
#: Bits of ``ct status``: an answer was seen, confirmed (in the table), assured.
SEEN_CONFIRMED, SEEN_CONFIRMED_ASSURED = 10, 14
#: The kernel never gives a port below this to an outgoing connection, unless somebody widened ip_local_port_range.
CLIENT_FIRST = 1024
#: IP and TCP header of a SYN or SYN-ACK: 40 bytes over IPv4, up to 40 more of options, 20 more over IPv6.
SYN_LENGTH = (40, 100)


class Truth(NamedTuple):
    """For which ports a condition holds: ``surely``, and ``maybe`` (which contains ``surely``)."""

    surely: int
    maybe: int

    def negated(self) -> Truth:
        return Truth(ports.ALL & ~self.maybe, ports.ALL & ~self.surely)


YES = Truth(ports.ALL, ports.ALL)
NO = Truth(ports.NONE, ports.NONE)
UNKNOWN = Truth(ports.NONE, ports.ALL)


def one(value: int) -> Numbers:
    """A field that has exactly this value."""
    return ((value, value),)


@dataclass(frozen=True)
class Way:
    """Between whom packets go.  source and destination: addresses as numbers.  interface: the one on this host.

    answers_leave_by: interface that packets to the peer leave by; None: not known.
    """

    version: int
    source: int
    destination: int
    interface: str
    answers_leave_by: str | None = None

    def back(self) -> Way:
        """The way of the answers."""
        return Way(self.version, self.destination, self.source, self.interface, self.answers_leave_by)


@dataclass(frozen=True)
class Kind:
    """Which packets of a connection.  server_port: the field that holds the port that is asked about."""

    server_port: str
    new: bool
    flags: tuple[int, ...]
    length: tuple[int, int]
    reply: bool


REQUEST = Kind("dport", True, (SYN,), SYN_LENGTH, False)
ANSWER = Kind("sport", False, (SYN_ACK,), SYN_LENGTH, True)
DATA = Kind("dport", False, (ACK, PSH_ACK, FIN_ACK, RST_ACK), (40, 65535), False)
DATA_BACK = Kind("sport", False, (ACK, PSH_ACK, FIN_ACK, RST_ACK), (40, 65535), True)


@dataclass(frozen=True)
class Packet:
    """The packets of one kind on one way, coming in or going out.

    residuals: what is left of the conditions on addresses, see ``conditions``.
    """

    kind: Kind
    way: Way
    incoming: bool
    residuals: tuple[Any, ...] = ()

    def number(self, name: str) -> Numbers:
        """What is known of a field that is a number."""
        kind, way = self.kind, self.way
        if name == "l4proto":
            return one(TCP)
        if name == "version":
            return one(way.version)
        if name == "nfproto":
            # NFPROTO_IPV4 and NFPROTO_IPV6 of linux/netfilter.h.
            return one(2 if way.version == 4 else 10)
        if name == "protocol":
            # ETH_P_IP and ETH_P_IPV6.
            return one(0x0800 if way.version == 4 else 0x86DD)
        if name == "ct state":
            return one(NEW if kind.new else ESTABLISHED)
        if name == "ct direction":
            return one(1 if kind.reply else 0)
        if name == "ct status":
            return one(0) if kind.new else ((SEEN_CONFIRMED, SEEN_CONFIRMED), (SEEN_CONFIRMED_ASSURED,) * 2)
        if name == "flags":
            return tuple((value, value) for value in kind.flags)
        if name == "length":
            return (kind.length,)
        if name in ("mark", "ct mark"):
            # Until a rule gives one.
            return one(0)
        if name == "pkttype":
            # PACKET_HOST: to this host.
            return one(0) if self.incoming else None
        if name == "exists":
            # Options of IP and extension headers: no system sends them with TCP by itself.
            return one(0)
        return self._fib(name)

    def _fib(self, name: str) -> Numbers:
        """What the routing table says: RTN_UNICAST 1 or RTN_LOCAL 2 of linux/rtnetlink.h, or whether there is a way."""
        own, peer = ("daddr", "saddr") if self.incoming else ("saddr", "daddr")
        if name == f"fib type {own}":
            return one(2)
        if name == f"fib type {peer}":
            return one(1)
        if self.incoming and self.way.answers_leave_by is not None:
            # Without a mark, whether marks are part of the question does not matter.
            question = name[: -len(" mark")] if name.endswith(" mark") else name
            if question == "fib way saddr":
                return one(1)
            if question == "fib way saddr iif":
                return one(1 if self.way.answers_leave_by == self.way.interface else 0)
        return None

    def name(self, key: str) -> str | None:
        """The interface that packets come in by (``iif``) or go out by (``oif``); empty: none, None: not known."""
        if (key == "iif") == self.incoming:
            return self.way.interface or None
        return ""
