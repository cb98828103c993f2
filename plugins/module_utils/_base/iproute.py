# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of ``ip -json``: links with their addresses, routes and neighbours.  Pure.

Output that is no JSON raises ``ValueError``.  That includes empty output, which some versions of iproute2 print for an
empty list: a caller that accepts it passes ``[]``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Address(NamedTuple):
    """An address of a link.  duplicated: duplicate address detection has found it elsewhere (``dadfailed``)."""

    local: str
    prefix: int | None
    scope: str
    tentative: bool
    duplicated: bool

    @property
    def cidr(self) -> str:
        """With the prefix length, as ``ip`` prints it without ``-json``."""
        return f"{self.local}/{self.prefix}"


class Link(NamedTuple):
    """An interface; numbers are 0 and texts are empty where ``ip`` prints none.

    The fields from ``kind`` to ``vlan_id`` need ``-details``.  kind: as of ``ip link add``, empty for a card.
    permanent_mac: printed where it differs from ``mac``, as for the ports of a bond.  parent, vlan_id: of a VLAN.  xdp:
    whether a program is attached to it.
    """

    name: str
    type: str
    flags: frozenset[str]
    operstate: str
    mac: str
    mtu: int
    master: str
    addresses: tuple[Address, ...]
    kind: str
    permanent_mac: str
    min_mtu: int
    max_mtu: int
    parent: str
    vlan_id: int
    xdp: bool = False


class Route(NamedTuple):
    """A route, or a hop of a route with several.  Its MTU is 0 where it has none of its own."""

    device: str = ""
    gateway: str = ""
    source: str = ""
    mtu: int = 0


class Neighbour(NamedTuple):
    """An entry of the ARP or neighbour discovery table."""

    address: str
    mac: str
    states: frozenset[str]


def links(text: str) -> list[Link]:
    """The links of ``ip address show`` or ``ip link show``.  Those that a filter leaves out are printed as ``{}``."""
    return [_link(entry) for entry in json.loads(text) if entry.get("ifname")]


def routes(text: str) -> list[Route]:
    """The routes of ``ip route show`` or ``ip route get``, each hop of one with several."""
    return [_route(hop) for entry in json.loads(text) for hop in entry.get("nexthops") or [entry]]


def batch_routes(text: str) -> list[Route]:
    """The route of each ``route get`` of an ``ip -batch``, which prints one JSON document after the other."""
    decoder, found, text = json.JSONDecoder(), [], text.strip()
    while text:
        document, end = decoder.raw_decode(text)
        found.append(_route(document[0]) if document else Route())
        text = text[end:].lstrip()
    return found


def qdiscs(text: str) -> list[str]:
    """The kinds of ``tc -json qdisc show``."""
    return [str(entry.get("kind", "")) for entry in json.loads(text)]


def neighbours(text: str) -> list[Neighbour]:
    """The entries of ``ip neighbour show``."""
    return [
        Neighbour(str(entry.get("dst", "")), str(entry.get("lladdr", "")).lower(), frozenset(entry.get("state", ())))
        for entry in json.loads(text)
    ]


def _link(entry: Mapping[str, Any]) -> Link:
    info = entry.get("linkinfo") or {}
    kind = str(info.get("info_kind") or "")
    # iproute2 before 5.6 prints the permanent address only as a property of the port of a bond.
    permanent = entry.get("permaddr") or info.get("info_slave_data", {}).get("perm_hwaddr")
    return Link(
        name=str(entry["ifname"]),
        type=str(entry.get("link_type") or ""),
        flags=frozenset(entry.get("flags", ())),
        operstate=str(entry.get("operstate") or ""),
        mac=str(entry.get("address") or "").lower(),
        mtu=int(entry.get("mtu") or 0),
        master=str(entry.get("master") or ""),
        addresses=tuple(_address(one) for one in entry.get("addr_info", ()) if "local" in one),
        kind=kind,
        permanent_mac=str(permanent or "").lower(),
        min_mtu=int(entry.get("min_mtu") or 0),
        max_mtu=int(entry.get("max_mtu") or 0),
        parent=str(entry.get("link") or "") if kind == "vlan" else "",
        vlan_id=int(info.get("info_data", {}).get("id", 0)) if kind == "vlan" else 0,
        xdp=bool(entry.get("xdp")),
    )


def _address(one: Mapping[str, Any]) -> Address:
    return Address(
        local=str(one["local"]),
        prefix=one.get("prefixlen"),
        scope=str(one.get("scope", "")),
        tentative=bool(one.get("tentative")),
        duplicated=bool(one.get("dadfailed")),
    )


def _route(entry: Mapping[str, Any]) -> Route:
    return Route(
        device=str(entry.get("dev", "")),
        # ``via`` is the router of another address family, as in ip-route(8).
        gateway=str(entry.get("gateway") or entry.get("via", {}).get("host", "")),
        source=str(entry.get("prefsrc", "")),
        mtu=next((int(one["mtu"]) for one in entry.get("metrics", ()) if "mtu" in one), 0),
    )
