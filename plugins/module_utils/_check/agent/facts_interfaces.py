# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel says of its interfaces and neighbours: texts of ``ip -j`` in, plain dictionaries out.  Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterable
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import iproute
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import DOWN, UP

ADDRESSES = ("ip", "-j", "address", "show")
#: With a card behind it.
QDISCS = ("tc", "-j", "qdisc", "show", "dev")
NEIGHBOURS = ("ip", "-j", "neighbour", "show")
#: Below net/ipv4/conf/<interface>. In force is the larger of this and the value of "all", for each of the three
#: (Documentation/networking/ip-sysctl.rst of the kernel).
SYSCTLS = ("rp_filter", "arp_ignore", "arp_announce")
#: The table of neighbours of a family, as its file in /proc/net/stat is called.
TABLES = {"ipv4": "arp_cache", "ipv6": "ndisc_cache"}
#: Below net/<family>/neigh/default.
THRESHOLDS = ("gc_thresh2", "gc_thresh3")
FULL = "table_fulls"
#: Of an entry in another state nobody knows whether it still holds: the peer may have got another card since.
CONFIRMED = {"REACHABLE", "DELAY", "PROBE", "PERMANENT"}
NO_CARRIER = "no carrier"


def parse(text: str, wanted: Iterable[str], read: Callable[[str], str]) -> dict[str, dict[str, Any]]:
    """The interfaces that carry addresses, and those that are wanted, out of ``ip -j address show``.

    read: gives the text of a file, empty when it cannot be read.  Each interface has ``mtu``, ``state`` (``up``,
    ``down`` or ``no carrier``), ``mac``, ``arp`` (whether it asks for hardware addresses), ``addresses`` (with prefix
    length, no link-local ones), ``duplicated`` (of these, the IPv6 ones that the kernel found with somebody else),
    ``speed_mbps`` (None when unknown), ``physical`` (whether a device is behind it, none of a veth, bond or bridge),
    and the values in force of ``SYSCTLS`` (0 where there are none).
    """
    names = set(wanted)
    found = {}
    for link in iproute.links(text or "[]"):
        name = link.name
        held = [one for one in link.addresses if not _is_local(one.local)]
        if not held and name not in names:
            continue
        found[name] = {
            "mtu": link.mtu,
            "state": _state(link.flags),
            "mac": link.mac,
            "arp": "NOARP" not in link.flags,
            "addresses": [_cidr(one) for one in held if not one.duplicated],
            "duplicated": [_cidr(one) for one in held if one.duplicated],
            "speed_mbps": _speed(read(f"/sys/class/net/{name}/speed")),
            "physical": bool(read(f"/sys/class/net/{name}/device/uevent")),
            **{key: _in_force(key, name, read) for key in SYSCTLS},
        }
    return found


def all_of(text: str) -> dict[str, str]:
    """The hardware addresses of all interfaces by name, without the loopback."""
    return {link.name: link.mac for link in iproute.links(text or "[]") if link.name != "lo"}


def programs(card: str, listed: str, qdiscs: str) -> list[str]:
    """What looks at the packets of a card beside the packet filter, and may drop them; nobody can read what it does.

    listed: out of ``ADDRESSES``; qdiscs: out of ``QDISCS`` for the card.
    """
    found = [
        f"an eBPF program (XDP) on {card}" for link in iproute.links(listed or "[]") if link.name == card and link.xdp
    ]
    if any(kind in ("clsact", "ingress") for kind in iproute.qdiscs(qdiscs or "[]")):
        found.append(f"traffic control (tc) with filters on {card}")
    return found


def parse_neighbours(text: str, addresses: Iterable[str]) -> dict[str, str]:
    """Address to hardware address of the entries that hold now, out of ``ip -j neighbour show``."""
    asked = set(addresses)
    return {
        one.address: one.mac
        for one in iproute.neighbours(text or "[]")
        if one.address in asked and one.mac and CONFIRMED & one.states
    }


def parse_fixed(text: str, addresses: Iterable[str]) -> dict[str, str]:
    """The same of the entries that somebody has written, which the kernel never corrects."""
    asked = set(addresses)
    return {
        one.address: one.mac
        for one in iproute.neighbours(text or "[]")
        if one.address in asked and one.mac and "PERMANENT" in one.states
    }


def neighbour_tables(read: Callable[[str], str]) -> dict[str, dict[str, int]]:
    """The sizes of the kernel's tables by family, and how often each was too full for a new entry since boot.

    read: as for ``parse``.  They belong to the whole kernel, which shows them in its first network namespace alone: a
    family that is not shown is left out, as in a container.
    """
    found = {}
    for family, table in TABLES.items():
        sizes = [read(f"/proc/sys/net/{family}/neigh/default/{key}").strip() for key in THRESHOLDS]
        if all(size.isdigit() for size in sizes):
            found[family] = {key: int(size) for key, size in zip(THRESHOLDS, sizes)}
            found[family][FULL] = _counted(read(f"/proc/net/stat/{table}"), FULL)
    return found


def _counted(text: str, column: str) -> int:
    """The sum of a column of a file in /proc/net/stat, which has a line for each processor; 0 where there is none."""
    head, *lines = [line.split() for line in text.splitlines()] or [[]]
    return sum(int(line[head.index(column)], 16) for line in lines) if column in head else 0


def _is_local(address: str) -> bool:
    parsed = ipaddress.ip_address(address)
    return parsed.is_loopback or parsed.is_link_local


def _cidr(one: iproute.Address) -> str:
    return str(ipaddress.ip_interface(one.cidr))


def _state(flags: Collection[str]) -> str:
    if "UP" not in flags:
        return DOWN
    return NO_CARRIER if "NO-CARRIER" in flags else UP


def _speed(text: str) -> int | None:
    """The kernel says -1, or refuses the question, where there is none."""
    return int(text) if text.strip().isdigit() else None


def _in_force(key: str, name: str, read: Callable[[str], str]) -> int:
    values = [read(f"/proc/sys/net/ipv4/conf/{place}/{key}").strip() for place in ("all", name)]
    return max([int(value) for value in values if value.isdigit()], default=0)
