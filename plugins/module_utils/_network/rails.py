# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several interfaces of one node in one and the same subnet ("rails"): what they need besides their addresses. Pure.

The kernel's main table has one best route for a subnet, so without more every packet would leave through one card, and
every card would answer for the addresses of all. So each rail gets a table of its own, which packets from its addresses
use, and sysctl values that keep its ARP to itself. One subnet for each rail needs none of this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.spec import Interface, Route

#: The table of an interface is this number plus its position in the list (from 0); so is the priority of its rules.
FIRST_TABLE = 8000
SYSCTL_PATH = "/etc/sysctl.d/90-gpu-cluster-rails.conf"
#: Key below net/ipv4/conf/<interface>, value, reason. In force is the larger of this and the value of "all".
SYSCTLS = (
    ("arp_ignore", "1", "answer ARP only for the addresses of the card that was asked"),
    ("arp_announce", "2", "ask by ARP with an address of the card that asks"),
    ("rp_filter", "2", "accept a packet when its sender is reachable through any card (RFC 3704, loose)"),
)
_HEADER = """\
# Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost.
# These interfaces share a subnet. Names of interfaces may hold dots, so the keys are written with slashes.
"""


@dataclass(frozen=True)
class Rail:
    """What one interface needs: its table, and the address families (4, 6) in which it shares a subnet."""

    table: int
    versions: tuple[int, ...]


def find(interfaces: Sequence[Interface]) -> dict[str, Rail]:
    """The rails among the interfaces of one node, by label."""
    networks = [{address.network for version in (4, 6) for address in one.of(version)} for one in interfaces]
    shared = {network for network, count in Counter(one for own in networks for one in own).items() if count > 1}
    return {
        interface.label: Rail(FIRST_TABLE + position, tuple(sorted({network.version for network in own & shared})))
        for position, (interface, own) in enumerate(zip(interfaces, networks))
        if own & shared
    }


def routes(interface: Interface, version: int, rail: Rail) -> list[Route]:
    """The table of a rail: its subnets, its default route if it has one, and its static routes once more.

    Without the latter, the default route of the table would win over them.
    """
    if version not in rail.versions:
        return []
    table: dict[str, Route] = {}
    for address in interface.of(version):
        network = str(address.network)
        table.setdefault(network, Route(network, table=rail.table, src=str(address.ip)))
    gateway = interface.gateway(version)
    if gateway:
        everything = "0.0.0.0/0" if version == 4 else "::/0"
        table[everything] = Route(everything, gateway, table=rail.table)
    again = [
        Route(route.to, route.via, route.metric, rail.table)
        for route in interface.routes
        if route.version == version and route.table is None and route.to not in table
    ]
    return [*table.values(), *again]


def rules(interface: Interface, version: int, rail: Rail) -> list[str]:
    """The rules that send packets from the interface's addresses to its table, as NetworkManager writes them."""
    if version not in rail.versions:
        return []
    return [f"priority {rail.table} from {address.ip} table {rail.table}" for address in interface.of(version)]


def sysctl_values(names: Iterable[str]) -> dict[str, str]:
    """The values that the IPv4 rails need, by key with slashes. ``names`` are those of the interfaces on the node."""
    return {f"net/ipv4/conf/{name}/{key}": value for name in sorted(names) for key, value, _reason in SYSCTLS}


def sysctl_text(names: Iterable[str]) -> str:
    """The file that keeps them; empty when there is no rail, and then no file is needed."""
    ordered = sorted(names)
    if not ordered:
        return ""
    parts = [
        f"\n# {reason}\n" + "".join(f"net/ipv4/conf/{name}/{key} = {value}\n" for name in ordered)
        for key, value, reason in SYSCTLS
    ]
    return _HEADER + "".join(parts)
