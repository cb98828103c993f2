# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which network cards are in one segment of layer 2, asked with ARP probes (RFC 5227), as ``arping -D`` sends them.

A probe asks who has an address, and names no address of its sender: nobody learns anything from it, and it needs no
address on the card.  Linux answers for every address of the machine on every card (``arp_ignore`` 0, the default of
ip-sysctl), so a probe for the address of another machine finds that machine's card in this segment.
"""

from __future__ import annotations

import contextlib
import ipaddress
import selectors
import socket
import struct
import time
from collections.abc import Iterable, Mapping, Sequence

#: EtherType of ARP; hardware type Ethernet, protocol IPv4, lengths of their addresses (RFC 826).
ETHERTYPE = 0x0806
_HEAD = struct.pack("!HHBB", 1, 0x0800, 6, 4)
_REQUEST, _REPLY = 1, 2
_BROADCAST = b"\xff" * 6
#: A frame with an answer: Ethernet header, then ARP.
_LENGTH = 14 + 28
#: A card gets this many probes at most, and as many answers are kept.
MOST_TARGETS, MOST_ANSWERS = 16, 64
#: When the probes are sent, and when the answers are no longer waited for, in seconds.
ROUNDS, WAIT_SECONDS = (0.0, 0.4), 1.0


def hardware(text: str) -> bytes:
    """``02:00:00:00:00:0b`` as six bytes; ValueError where it is something else."""
    found = bytes.fromhex(text.replace(":", ""))
    if len(found) != 6:
        raise ValueError(text)
    return found


def frame(mac: str, target: str) -> bytes:
    """The probe of the card ``mac`` for the address ``target``."""
    own = hardware(mac)
    asked = ipaddress.IPv4Address(target).packed
    ethernet = _BROADCAST + own + struct.pack("!H", ETHERTYPE)
    return ethernet + _HEAD + struct.pack("!H", _REQUEST) + own + bytes(4) + bytes(6) + asked


def answer(data: bytes, mac: str, targets: Iterable[str]) -> str:
    """Which hardware address answered for one of the addresses; empty where the frame is something else."""
    if len(data) < _LENGTH or data[12:22] != struct.pack("!H", ETHERTYPE) + _HEAD + struct.pack("!H", _REPLY):
        return ""
    sender, address, receiver = data[22:28], data[28:32], data[32:38]
    if receiver != hardware(mac) or str(ipaddress.IPv4Address(address)) not in targets:
        return ""
    return ":".join(f"{byte:02x}" for byte in sender)


def probe(cards: Mapping[str, str], targets: Sequence[str]) -> dict[str, list[str]]:
    """The hardware addresses that answered on each card.  cards: name to hardware address.  Needs CAP_NET_RAW.

    A card that cannot be used has no answers.
    """
    found: dict[str, set[str]] = {name: set() for name in cards}
    targets = list(targets)[:MOST_TARGETS]
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as ready:
        open_cards: dict[str, socket.socket] = {}
        for name in cards if targets else ():
            with contextlib.suppress(OSError):
                card = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
                card.bind((name, ETHERTYPE))
                card.setblocking(False)
                ready.register(card, selectors.EVENT_READ, name)
                open_cards[name] = card
        began, rounds = time.monotonic(), list(ROUNDS)
        while open_cards and time.monotonic() - began < WAIT_SECONDS:
            if rounds and time.monotonic() - began >= rounds[0]:
                rounds.pop(0)
                for name, card in open_cards.items():
                    for target in targets:
                        with contextlib.suppress(OSError):
                            card.send(frame(cards[name], target))
            for key, _events in ready.select(0.05):
                with contextlib.suppress(OSError):
                    mac = answer(open_cards[key.data].recv(2048), cards[key.data], targets)
                    if mac and len(found[key.data]) < MOST_ANSWERS:
                        found[key.data].add(mac)
    return {name: sorted(macs) for name, macs in found.items()}
