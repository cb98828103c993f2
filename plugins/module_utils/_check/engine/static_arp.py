# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the nodes find each other's hardware addresses: ARP that is off, entries that somebody wrote.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes, static_network
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import READ, View, again

#: net.ipv4.conf.*.arp_ignore: "do not reply for all local addresses" (ip-sysctl.rst of the kernel).
NEVER_ANSWERS = 8
FIX_ARP = "turn ARP on again, and see which profile or script turned it off"
FIX_ANSWERS = "set it to 0, or to 1 where cards share a subnet, and see which file in /etc/sysctl.d sets it"
FIX_ENTRY = "delete the entry, and see which script or which file of the network configuration writes it"


def findings(view: View) -> list[Finding]:
    """At most one for each node and reason; nodes whose card is named already are left out."""
    sound = [host for host in view.static if not static_network.broken(view, host)]
    return [one for host in sound for one in (*_silent(view, host), *_fixed(view, host))]


def _silent(view: View, host: str) -> Iterator[Finding]:
    """A card that does not ask for hardware addresses, or does not answer those who ask."""
    card, link = view.members[host].fabric_interface, view.link(host)
    if link is None or ":" in view.members[host].fabric_address:
        return
    if not link["arp"]:
        cause = f"ARP is turned off on {card} of {host}: it finds no hardware address of its peers, and tells none"
        yield _found(host, cause, FIX_ARP, f"ip link set {card} arp on", ((host, ""),))
    elif link["arp_ignore"] >= NEVER_ANSWERS:
        key = f"net.ipv4.conf.{card.replace('.', '/')}.arp_ignore"
        cause = f"{host} answers no ARP request on {card}: arp_ignore is {link['arp_ignore']}"
        command = f"sysctl -w {key}=0 net.ipv4.conf.all.arp_ignore=0"
        yield _found(host, cause, FIX_ANSWERS, command, ((host, ""),))


def _fixed(view: View, host: str) -> Iterator[Finding]:
    """Entries of the neighbour table that somebody wrote, and that lead to no card of the peer."""
    owners = {member.fabric_address: name for name, member in view.members.items()}
    card = view.members[host].fabric_interface
    wrong = [
        (owners[address], address, mac)
        for address, mac in view.static[host]["fixed_neighbours"].items()
        if owners.get(address, host) != host
        and owners[address] in view.static
        and mac not in view.macs(owners[address])
    ]
    if wrong:
        entries = listed([f"{address} at {mac}, which is no card of {peer}" for peer, address, mac in wrong])
        cause = f"the neighbour table of {host} has a fixed entry that is wrong: {entries}"
        command = f"ip neighbour delete {wrong[0][1]} dev {card}"
        yield _found(host, cause, FIX_ENTRY, command, tuple((host, peer) for peer, _address, _mac in wrong))


def _found(host: str, cause: str, fix: str, command: str, cuts: tuple[tuple[str, str], ...]) -> Finding:
    return Finding(
        "GC-NODE-026",
        (host,),
        cause,
        fix,
        confidence=READ,
        command=fixes.run((host,), command),
        reproduce=again((host,)),
        cuts=cuts,
    )
