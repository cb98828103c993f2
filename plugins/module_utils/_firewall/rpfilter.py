# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether firewalld's strict reverse-path filter of IPv6 drops what members send to one of this node's cards. Pure.

The filter asks, for each packet, whether the way back to its source leads through the card on which it arrived. Two
cards in one subnet have one way back, unless there is a routing rule for the address of each.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import iproute

ADDRESSES = ("ip", "-j", "-6", "address", "show", "scope", "global")

WARNING = (
    "firewalld drops what members send to %s on %s (IPv6_rpfilter=strict): this node answers %s through %s, because "
    "both cards are in one subnet. List all rails in static_network_interfaces, which gives each of them its own "
    "routing table; or give each rail a subnet of its own; or set cluster_firewall_ipv6_rpfilter: loose"
)


class Rail(NamedTuple):
    """An address of a card, and a member in its subnet."""

    interface: str
    address: str
    peer: str

    def question(self) -> tuple[str, ...]:
        """The command that says which way answers of this address take."""
        return ("ip", "-j", "-6", "route", "get", self.peer, "from", self.address)


def rails(addresses: str, peers: Sequence[str]) -> list[Rail]:
    """The addresses that share a subnet with another card of this node and with a member."""
    held = [
        (link.name, ipaddress.IPv6Interface(one.cidr)) for link in iproute.links(addresses) for one in link.addresses
    ]
    own = {interface.ip for _name, interface in held}
    members = [address for address in map(ipaddress.IPv6Address, peers) if address not in own]
    found = []
    for name, interface in held:
        shared = any(other != name and network.network.overlaps(interface.network) for other, network in held)
        peer = next((member for member in members if member in interface.network), None) if shared else None
        if peer is not None:
            found.append(Rail(name, str(interface.ip), str(peer)))
    return found


def warnings(ways: Mapping[Rail, str]) -> list[str]:
    """A sentence for each rail whose answers, by the output of its question, leave through another card."""
    said = []
    for rail, answer in ways.items():
        device = next((route.device for route in iproute.routes(answer or "[]")), "")
        if device not in ("", rail.interface):
            said.append(WARNING % (rail.address, rail.interface, rail.peer, device))
    return said
