# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The card of the data network on each node: there, up, with its address, and nobody else with the same.  Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.node import INTERFACE
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR, WARNING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    CONCLUDED,
    READ,
    View,
    again,
    bare,
    site,
    together,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import policy_answer
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import DOWN

FIX_INTERFACE = "set gpu_cluster_fabric_interface of this host to the card that holds its address on the data network"
FIX_CARD = "plug it in, or name another card in gpu_cluster_fabric_interface; `ip -br link` on the node lists them"
FIX_IP = "install the package iproute where `ip -br link` is not found; where it shows only lo, plug the card in"
FIX_UP = (
    "look at the cable, the port of the switch and `ip -s link`; role static_network activates the profile of the card"
)
FIX_ADDRESS = "list the card and its address in static_network_interfaces of this host, and run role static_network"
FIX_TWICE = "take the address off the host that must not have it; role static_network gives each host its own"
FIX_FOREIGN = "find the machine with this hardware address (the switch knows its port) and give it another address"
FIX_MTU = "set the same mtu in static_network_interfaces of all hosts: without one there, it is lost at the next start"
FIX_RAILS = (
    "list all cards of that subnet in static_network_interfaces: each gets its own routing table and these values"
)
#: Value and reason of the keys that cards of one subnet need; the reasons are those of role static_network.
RAILS = (
    ("arp_ignore", 1, "answer ARP only for the addresses of the card that was asked"),
    ("arp_announce", 2, "ask by ARP with an address of the card that asks"),
    ("rp_filter", 2, "accept a packet when its sender is reachable through any card (RFC 3704, loose)"),
)
#: Strict reverse-path filter (Documentation/networking/ip-sysctl.rst).
STRICT = 1


def findings(view: View) -> list[Finding]:
    """Cards, then addresses that two have, then the MTU, then cards that share a subnet."""
    found = [one for host in view.static for one in (*_card(view, host), *_held_again(view, host))]
    return [*found, *_members_twice(view), *_foreign(view), *_mtu(view), *_shared_subnet(view)]


def broken(view: View, host: str) -> bool:
    """Whether the card of the data network does not do, so that nothing else about it needs saying."""
    return bool([one for one in _card(view, host) if one.severity == ERROR])


def _card(view: View, host: str) -> list[Finding]:
    member, link = view.members[host], view.link(host)
    name, address = member.fabric_interface, member.fabric_address
    holders = [other for other in view.holders(host, address) if other != name]
    if holders and (link is None or address not in bare(link["addresses"])):
        cause = f"{host} has {address} on {holders[0]}, and not on {name}, which the inventory names"
        tags = "nccl,openmpi,launcher"
        # The data network works: it is only not told which card it is.
        return [_found(host, "GC-NODE-004", cause, FIX_INTERFACE, tags, {INTERFACE: holders[0]}, cuts=())]
    if link is None and not view.static[host]["present"]:
        cause = (
            f"{host} tells of no interface at all, so not of {name}: `ip -j address show` failed there, or found none"
        )
        return [_found(host, "GC-NODE-003", cause, FIX_IP)]
    if link is None:
        cause = f"{host} has no interface {name}; it has {listed(view.static[host]['present'])}"
        return [replace(_found(host, "GC-NODE-003", cause, FIX_CARD), look=fixes.look((host,), "ip -br link"))]
    if link["state"] != "up":
        cause = f"the interface {name} of {host} is {'down' if link['state'] == 'down' else 'up, and has no carrier'}"
        # What has no carrier is up already.
        tag = "static_network" if link["state"] == DOWN else ""
        found = _found(host, "GC-NODE-003", cause, FIX_UP, tag)
        return [replace(found, look=fixes.look((host,), f"ip -s link show dev {name}"))]
    if address not in bare(link["addresses"]):
        has = listed(link["addresses"]) or "no address"
        cause = f"the interface {name} of {host} does not have {address}; it has {has}"
        return [_found(host, "GC-NODE-004", cause, FIX_ADDRESS, "static_network")]
    wanted = f"{address}/{member.fabric_prefix}"
    if wanted not in link["addresses"]:
        has = ", ".join(one for one in link["addresses"] if one.partition("/")[0] == address)
        said = f"{host} has {has} on {name}, the inventory says {wanted}"
        lost = outside(view, host)
        if lost:
            cause = f"{said}: it has no way to {listed(lost)}"
            cuts = tuple((host, peer) for peer in lost)
            return [_found(host, "GC-NODE-004", cause, FIX_ADDRESS, "static_network", severity=ERROR, cuts=cuts)]
        cause = f"{said}: it takes other hosts for neighbours than they do"
        return [_found(host, "GC-NODE-004", cause, FIX_ADDRESS, "static_network", severity=WARNING)]
    return []


def outside(view: View, host: str) -> list[str]:
    """The peers that a node takes for no neighbours, only by a prefix length that is not that of the inventory.

    Those that it reaches over the card of the data network all the same are left out.
    """
    member, link = view.members[host], view.link(host)
    held = [one for one in (link["addresses"] if link else ()) if bare([one]) == [member.fabric_address]]
    wanted = ipaddress.ip_interface(f"{member.fabric_address}/{member.fabric_prefix}").network
    if not held or any(ipaddress.ip_interface(one).network == wanted for one in held):
        return []
    return [
        peer
        for peer, way in view.static[host]["routes"].items()
        if peer in view.members
        and (where := ipaddress.ip_address(way["address"])) in wanted
        and not any(where in ipaddress.ip_interface(one).network for one in held)
        and way["interface"] != member.fabric_interface
    ]


def _found(
    host: str,
    number: str,
    cause: str,
    fix: str,
    tag: str = "",
    variables: dict[str, object] | None = None,
    severity: str = "",
    cuts: tuple[tuple[str, str], ...] | None = None,
) -> Finding:
    """cuts: by default the node from all others, where it is an error."""
    return Finding(
        number,
        (host,),
        cause,
        fix,
        confidence=READ,
        variables={host: variables} if variables else {},
        command=site(tag, (host,)) if tag else "",
        reproduce=again((host,)),
        severity=severity,
        cuts=(((host, ""),) if severity != WARNING else ()) if cuts is None else cuts,
    )


def _held_again(view: View, host: str) -> list[Finding]:
    """Addresses of IPv6 that the kernel does not use, because somebody else answered for them."""
    found = []
    for name, link in view.static[host]["interfaces"].items():
        for address in bare(link["duplicated"]):
            cause = f"{host} cannot use {address} on {name}: somebody else on that network has it"
            found.append(_found(host, "GC-NODE-007", cause, FIX_FOREIGN))
    return found


def _members_twice(view: View) -> list[Finding]:
    """Addresses of one member that another one holds too: that other is at fault."""
    owners = {address: name for name, member in view.members.items() for address in member.addresses}
    found = []
    for host in view.static:
        for name, link in view.static[host]["interfaces"].items():
            for address in bare(link["addresses"]):
                owner = owners.get(address, host)
                if owner != host:
                    cause = f"{host} has {address} on {name}, which is the address of {owner}"
                    both = ((host, ""), (owner, ""))
                    away = taken_off(view, host, name, address)
                    found.append(replace(_found(host, "GC-NODE-007", cause, FIX_TWICE, cuts=both), command=away))
    return found


def taken_off(view: View, host: str, name: str, address: str) -> str:
    """What takes an address off an interface of a node; no role takes off what it did not put there.

    With the first address of a network the kernel takes the others of it too, which the role then puts back.
    """
    all_of_them = view.static[host]["interfaces"].get(name, {}).get("addresses", [])
    held = [one for one in all_of_them if one.partition("/")[0] == address]
    if not held or not policy_answer.word(name):
        return ""
    networks = {ipaddress.ip_interface(one).network for one in held}
    beside = any(ipaddress.ip_interface(one).network in networks for one in all_of_them if one not in held)
    away = fixes.run([host], " && ".join(f"ip address del {one} dev {name}" for one in held))
    return f"{away} && {site('static_network', (host,))}" if beside else away


def _foreign(view: View) -> list[Finding]:
    """Machines that are no member and answer for the address of one.

    Two witnesses: the member itself, whom somebody answered when it asked for its own address, and the neighbour tables
    of the others. A hardware address that stands for several members is a router that answers for all (proxy ARP).
    """
    ours = {mac for host in view.static for mac in view.macs(host)}
    owners = {member.fabric_address: name for name, member in view.members.items()}
    # What others remember of a card that was taken out says nothing.
    sound = [host for host in view.static if not broken(view, host)]
    stands_for: dict[str, set[str]] = {}
    for said in view.static.values():
        answered = [(one["address"], one["mac"]) for one in said["duplicates"] or []]
        for address, mac in [*answered, *said["neighbours"].items()]:
            stands_for.setdefault(mac, set()).add(address)
    seen: dict[tuple[str, str], dict[str, str]] = {}
    for host, said in view.static.items():
        for one in said["duplicates"] or []:
            if one["mac"] not in ours and len(stands_for[one["mac"]]) == 1:
                said_so = f"{host} asked for its own address, {one['mac']} answered"
                seen.setdefault((host, one["mac"]), {})[host] = said_so
        for address, mac in said["neighbours"].items():
            owner = owners.get(address, "")
            # An entry that somebody has written tells of nobody who answered.
            if address in said["fixed_neighbours"]:
                continue
            if owner in sound and mac not in ours and len(stands_for[mac]) == 1:
                seen.setdefault((owner, mac), {})[host] = f"{host} has {mac} for {address}"
    return [
        Finding(
            "GC-NODE-007",
            (owner,),
            f"another machine, {mac}, has the address {view.members[owner].fabric_address} of {owner}",
            FIX_FOREIGN,
            tuple(witnesses.values()),
            confidence=CONCLUDED,
            look=fixes.look(list(witnesses), f"ip neighbour show {view.members[owner].fabric_address}"),
            # What others remember counts only while the owner's own card is known to be sound.
            reproduce=again(list(dict.fromkeys((owner, *witnesses)))),
            cuts=((owner, ""),),
        )
        for (owner, mac), witnesses in seen.items()
    ]


def _mtu(view: View) -> list[Finding]:
    """Members whose card takes other packets than that of most others."""
    sizes = {host: int(link["mtu"]) for host in view.static for link in [view.link(host)] if link is not None}
    groups = together((size, host) for host, size in sizes.items())
    if len(groups) < 2:
        return []
    usual, many = max(groups.items(), key=lambda group: len(group[1]))
    alone = [host for host, size in sizes.items() if size != usual]
    culprits = tuple(alone) if len(many) > len(sizes) / 2 else ()
    # As many others as leave the culprits in the minority; where nobody is, one of each size.
    compared = [*culprits, *many[: len(culprits) + 1]] if culprits else [hosts[0] for hosts in groups.values()]
    words = "; ".join(f"{size} bytes on {listed(hosts)}" for size, hosts in sorted(groups.items()))
    return [
        Finding(
            "GC-NODE-008",
            culprits,
            f"the MTU of the data network differs: {words}",
            FIX_MTU,
            tuple(f"{host}: {view.members[host].fabric_interface} {size}" for host, size in sizes.items()),
            confidence=READ,
            command=_sized(view, culprits, usual),
            look=fixes.look(list(sizes)[: fixes.LISTED], "ip -br -d link"),
            reproduce=again(compared),
        )
    ]


def _sized(view: View, culprits: Sequence[str], size: int) -> str:
    """What gives the cards of these nodes the MTU of the others; no role does without one in the inventory."""
    cards = together((view.members[host].fabric_interface, host) for host in culprits)
    return " && ".join(fixes.run(hosts, f"ip link set dev {card} mtu {size}") for card, hosts in cards.items())


def _shared_subnet(view: View) -> list[Finding]:
    """Nodes with several cards in the subnet of the data network, whose ARP or reverse-path filter mixes them up."""
    found = []
    for host, said in view.static.items():
        cards = _sharing(said["interfaces"], view.members[host].addresses)
        wrong = [
            (name, key, said["interfaces"][name][key], value, why)
            for name in cards
            for key, value, why in RAILS
            if _mixes_up(key, said["interfaces"][name][key], value)
        ]
        if wrong:
            found.append(_rails(host, cards, wrong))
    return found


def _sharing(links: Mapping[str, Mapping[str, Any]], own: Sequence[str]) -> list[str]:
    """The cards with an IPv4 address of this member whose subnet holds an address of another card, and those cards."""
    held = [(name, ipaddress.ip_interface(one)) for name, link in links.items() for one in link["addresses"]]
    rails = [(name, one.network) for name, one in held if one.version == 4 and str(one.ip) in own]
    pairs = [(name, other) for name, network in rails for other, one in held if other != name and one.ip in network]
    return list(dict.fromkeys(name for pair in pairs for name in pair))


def _mixes_up(key: str, has: int, value: int) -> bool:
    return has == STRICT if key == "rp_filter" else has < value


def _rails(host: str, cards: list[str], wrong: list[tuple[str, str, int, int, str]]) -> Finding:
    said = ", ".join(f"{key} {has} on {name}" for name, key, has, _value, _why in wrong)
    # The kernel takes slashes where the name of the card holds a dot.
    keys = [
        {"key": f"net.ipv4.conf.{name}.{key}", "value": str(value), "reason": why}
        for name, key, _has, value, why in wrong
        if "." not in name
    ]
    return Finding(
        "GC-NODE-009",
        (host,),
        f"{listed(cards)} of {host} are in one subnet, and not kept apart: {said}",
        FIX_RAILS,
        confidence=READ,
        variables={host: {"kernel_tuning_extra": keys}} if keys else {},
        command=site("static_network,kernel_tuning", (host,)),
        reproduce=again((host,)),
    )
