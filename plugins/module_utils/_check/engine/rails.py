# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rails of a cluster: networks, each of one address family, that members share.  Pure; from the inventory alone.

The first rail is that of the fabric addresses.  Further ones come from the members' other addresses:

1. Addresses in one network are one rail.  The network of an address without a prefix length is the widest one that the
   inventory declares around it, else its /24, of IPv6 its /64.  A member with two addresses there has two rails there.
2. Networks whose addresses all stand on interfaces of one name, and that have no member in common, are one rail: it is
   routed from rack to rack, or from node to node.
3. A network with a management address of a member (``ansible_host``) is no rail.  What a member lists among its further
   addresses is meant for the members, and stays one.
4. Two members make a rail.  An address that is alone is none: nobody says whom it should reach.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
Members = Sequence[Mapping[str, Any]]

IPV4, IPV6 = "IPv4", "IPv6"
#: What a network is taken for where nobody declares its prefix length.
USUAL_PREFIX = {4: 24, 6: 64}


@dataclass(frozen=True)
class Rail:
    """name: ``rail 2 (fd00:20::/64)``.  members: host to its address on it, two of them at least."""

    name: str
    family: str
    members: Mapping[str, str]


@dataclass
class _Group:
    """Addresses that may become a rail."""

    networks: list[Network]
    members: dict[str, str] = field(default_factory=dict)
    interfaces: set[str] = field(default_factory=set)

    @property
    def interface(self) -> str:
        """The one interface name of all of them, empty where it is not known or not the same."""
        return next(iter(self.interfaces)) if len(self.interfaces) == 1 else ""


def rails(known_members: Members) -> list[Rail]:
    """All rails, that of the fabric addresses first.  known_members: as the filter cluster_members gives them."""
    if len(known_members) < 2:
        return []
    groups = [_fabric(known_members), *(one for one in _further(known_members) if len(one.members) > 1)]
    return [
        Rail(_name(number, group), IPV6 if group.networks[0].version == 6 else IPV4, group.members)
        for number, group in enumerate(groups, 1)
    ]


def by_host(known_members: Members) -> dict[str, list[dict[str, str]]]:
    """Host to ``name`` and ``address`` of each of its rails but the first."""
    found: dict[str, list[dict[str, str]]] = {str(one["name"]): [] for one in known_members}
    for rail in rails(known_members)[1:]:
        for host, address in rail.members.items():
            found[host].append({"name": rail.name, "address": address})
    return found


def alone(known_members: Members) -> list[str]:
    """The addresses, with their hosts, that nobody dials because no other member has one in their network."""
    if len(known_members) < 2:
        return []
    return [
        f"{address} of {host}"
        for group in _further(known_members)
        if len(group.members) == 1
        for host, address in group.members.items()
    ]


def _fabric(known_members: Members) -> _Group:
    group = _Group([])
    for one in known_members:
        network = ipaddress.ip_interface(f"{one['fabric_address']}/{one['fabric_prefix']}").network
        group.networks += [] if network in group.networks else [network]
        group.members[str(one["name"])] = str(one["fabric_address"])
        group.interfaces.add(str(one["fabric_interface"]))
    return group


def _further(known_members: Members) -> list[_Group]:
    groups: dict[tuple[Network, int], _Group] = {}
    for host, network, one in _addresses(known_members):
        number = 0
        while host in groups.setdefault((network, number), _Group([network])).members:
            number += 1
        group = groups[network, number]
        group.members[host] = str(one["address"])
        group.interfaces.add(str(one["interface"]))
    routed: list[_Group] = []
    for group in groups.values():
        same = next((other for other in routed if _are_one(group, other)), None)
        if same is None:
            routed.append(group)
        else:
            same.networks += group.networks
            same.members.update(group.members)
    return routed


def _addresses(known_members: Members) -> Iterator[tuple[str, Network, Mapping[str, Any]]]:
    """Host, network and address, of what may be on a rail."""
    declared = _declared(known_members)
    managed = [one for one in (_ip(str(member["management_address"])) for member in known_members) if one]
    for member in known_members:
        for one in member.get("rail_addresses", ()):
            address = ipaddress.ip_address(one["address"])
            prefix = one["prefix"] or USUAL_PREFIX[address.version]
            network = ipaddress.ip_network(f"{address}/{prefix}", strict=False)
            network = network if one["prefix"] else next((wide for wide in declared if address in wide), network)
            is_management = not one["listed"] and any(other in network for other in managed)
            if not (is_management or address.is_link_local or address.is_loopback):
                yield str(member["name"]), network, one


def _declared(known_members: Members) -> list[Network]:
    """The networks of the addresses that have a prefix length, the widest first."""
    texts = [f"{one['fabric_address']}/{one['fabric_prefix']}" for one in known_members]
    texts += [
        f"{one['address']}/{one['prefix']}"
        for member in known_members
        for one in member.get("rail_addresses", ())
        if one["prefix"]
    ]
    return sorted({ipaddress.ip_interface(text).network for text in texts}, key=lambda one: one.prefixlen)


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _are_one(one: _Group, other: _Group) -> bool:
    """Whether it is one routed rail."""
    return (
        one.networks[0].version == other.networks[0].version
        and one.interface != ""
        and one.interface == other.interface
        and not set(one.members) & set(other.members)
    )


def _name(number: int, group: _Group) -> str:
    """By its network; a routed one by the interface, which is what its addresses have in common."""
    if len(group.networks) == 1:
        return f"rail {number} ({group.networks[0]})"
    family = IPV6 if group.networks[0].version == 6 else IPV4
    return f"rail {number} ({group.interface}, {family})" if group.interface else f"rail {number} ({family}, routed)"
