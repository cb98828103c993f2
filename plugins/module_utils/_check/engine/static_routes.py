# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways between the members: the card and the address that each node takes towards each other.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import static_network, way_repair
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import LINK, Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    READ,
    View,
    again,
    together,
)

FIX_WAY = (
    "take away the route or the rule that does it, also where it is written for the next start; `ip route get` and "
    "`ip rule` show it; those of the inventory are in static_network_interfaces"
)
FIX_NO_ROUTE = (
    "put the address and the routes of the inventory back with role static_network; `ip route` shows what is there"
)
FIX_GATEWAY = "give both ends the same prefix length and the same routes, in static_network_interfaces"
FIX_MTU = (
    "set the same mtu in static_network_interfaces of all hosts and on the switches between them; "
    "`ip route flush cache` on the node forgets what it has learned"
)


#: What the kernel says of a way, and what it comes from: ip-route(8), ip-rule(8).
MEANINGS = {
    "Invalid argument": "a route or rule with 'blackhole'",
    "Permission denied": "a route or rule with 'prohibit'",
    "No route to host": "a route or rule with 'unreachable'",
    "Network is unreachable": "there is no route",
}


class Way(NamedTuple):
    """How a node reaches a peer, without what differs from peer to peer."""

    interface: str
    source: str
    error: str


def findings(view: View) -> list[Finding]:
    """Ways that are not the data network, then ways that differ by direction, then ways with a smaller MTU."""
    return [*_elsewhere(view), *_one_sided(view), *_narrow(view)]


def _judged(view: View) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Node, peer and way, without the nodes whose card is named already, and without addresses that two have."""
    return [
        (host, peer, way)
        for host, said in view.static.items()
        if not static_network.broken(view, host)
        for peer, way in said["routes"].items()
        if peer in view.members and not view.holders(host, way["address"])
    ]


def _elsewhere(view: View) -> list[Finding]:
    wrong: dict[str, list[tuple[Way, str]]] = {}
    for host, peer, way in _judged(view):
        member = view.members[host]
        # Without a way, both are empty.
        lost = peer in static_network.outside(view, host)
        if not lost and (way["interface"] != member.fabric_interface or way["source"] != member.fabric_address):
            wrong.setdefault(host, []).append((Way(way["interface"], way["source"], way["error"]), peer))
    return [
        _elsewhere_finding(view, host, way, peers)
        for host, ways in wrong.items()
        for way, peers in together(ways).items()
    ]


def _elsewhere_finding(view: View, host: str, way: Way, peers: list[str]) -> Finding:
    member = view.members[host]
    expected = f"expected {member.fabric_interface} and {member.fabric_address}"
    if way.error:
        cause = f"{host} has no way to {listed(peers)}: {_in_words(way.error)}"
    elif way.interface != member.fabric_interface:
        cause = (
            f"{host} reaches {listed(peers)} through {way.interface} with the source address {way.source}; {expected}"
        )
    else:
        cause = f"{host} reaches {listed(peers)} with the source address {way.source}, not expected there; {expected}"
    return Finding(
        "GC-NODE-005",
        (host,),
        cause,
        FIX_NO_ROUTE if "Network is unreachable" in way.error else FIX_WAY,
        tuple(f"{peer}: {view.static[host]['routes'][peer]['address']}" for peer in peers),
        subject=Subject(LINK, (host, peers[0])) if len(peers) == 1 and len(view.members) > 2 else None,
        confidence=READ,
        command=way_repair.command(view, host, peers),
        look=way_repair.look(host, view.static[host]["routes"][peers[0]]["address"]),
        reproduce=again((host,)),
        cuts=tuple((host, peer) for peer in peers),
    )


def _in_words(error: str) -> str:
    """What the error comes from, where that is known, and the error."""
    said = error.removeprefix("RTNETLINK answers: ")
    meaning = next((meaning for words, meaning in MEANINGS.items() if said.startswith(words)), "")
    return f"{meaning} ({said})" if meaning else said


def _one_sided(view: View) -> list[Finding]:
    """Pairs of which one end sends through a gateway, and the other directly."""
    gateways = {(host, peer): way["gateway"] for host, peer, way in _judged(view) if not way["error"]}
    sided = together(
        ((host, gateway), peer)
        for (host, peer), gateway in gateways.items()
        if gateway and gateways.get((peer, host)) == ""
    )
    return [
        Finding(
            "GC-NODE-006",
            (host,),
            f"{host} sends to {listed(peers)} through the gateway {gateway}, and the answers come directly",
            FIX_GATEWAY,
            tuple(f"{peer}: {view.static[host]['routes'][peer]['address']}" for peer in peers),
            confidence=READ,
            command=way_repair.command(view, host, peers),
            look=way_repair.look(host, view.static[host]["routes"][peers[0]]["address"]),
            reproduce=again((host, *peers)),
        )
        for (host, gateway), peers in sided.items()
    ]


def _narrow(view: View) -> list[Finding]:
    """Ways whose own MTU, set or learned, is below that of the card."""
    narrow = together(
        ((host, way["interface"], int(way["mtu"]), int(link["mtu"])), peer)
        for host, peer, way in _judged(view)
        for link in [view.static[host]["interfaces"].get(way["interface"])]
        if link is not None and 0 < way["mtu"] < link["mtu"]
    )
    return [
        Finding(
            "GC-NODE-008",
            (host,),
            f"packets from {host} to {listed(peers)} are kept to {mtu} bytes, {card} takes {most}",
            FIX_MTU,
            confidence=READ,
            command=way_repair.command(view, host, peers) or way_repair.forget(view, host, peers),
            look=way_repair.look(host, view.static[host]["routes"][peers[0]]["address"]),
            reproduce=again((host, *peers)),
        )
        for (host, card, mtu, most), peers in narrow.items()
    ]
