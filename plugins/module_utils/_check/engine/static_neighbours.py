# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's tables of neighbours on each node: large enough for the members in its own subnets.  Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR, WARNING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    READ,
    View,
    again,
    site,
    together,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.parameters import (
    KERNEL_NEIGHBOURS,
    NEIGHBOURS,
    neighbour_limits,
)

FIX = (
    f"let role kernel_tuning size the tables; it counts the members' addresses where the inventory sets no {NEIGHBOURS}"
)
#: With fewer machines, role kernel_tuning leaves the tables as they are.
FEWEST = KERNEL_NEIGHBOURS // 2 + 1
VERSIONS = {"ipv4": 4, "ipv6": 6}


class Table(NamedTuple):
    """A table that is too small.

    kept: with more entries, the kernel throws out those that nobody used for 5 s.  most: it takes no more than these
    (neigh_alloc in net/core/neighbour.c).
    """

    family: str
    needed: int
    kept: int
    most: int

    @property
    def words(self) -> str:
        name = f"net.{self.family}.neigh.default.gc_thresh"
        if self.needed > self.most:
            return f"{self.needed} {_ip(self.family)} neighbours, the kernel takes {self.most} ({name}3)"
        return f"{self.needed} {_ip(self.family)} neighbours, the kernel throws some out above {self.kept} ({name}2)"


def findings(view: View, pins: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Nodes whose members in their own subnets do not fit.  pins: host to its variables in the inventory."""
    addresses = {
        family: [
            (name, ipaddress.ip_address(address))
            for name, member in view.members.items()
            for address in member.addresses
            if ipaddress.ip_address(address).version == version
        ]
        for family, version in VERSIONS.items()
    }
    # What the playbooks hand to role kernel_tuning.
    all_of_them = sum(len(one) for one in addresses.values())
    pairs = []
    for host, said in view.static.items():
        tables = [
            _table(view, host, family, said["neighbour_tables"].get(family), addresses[family]) for family in VERSIONS
        ]
        small = tuple(one for one in tables if one is not None)
        if small:
            pairs.append((small, host))
    return [_finding(view, small, hosts, pins, all_of_them) for small, hosts in together(pairs).items()]


def _table(
    view: View,
    host: str,
    family: str,
    limits: Mapping[str, int] | None,
    addresses: Sequence[tuple[str, ipaddress.IPv4Address | ipaddress.IPv6Address]],
) -> Table | None:
    """The table of a family; None where it is large enough, or its size is not known."""
    if limits is None or len(addresses) <= limits["gc_thresh2"]:
        return None
    links = view.static[host]["interfaces"].values()
    networks = {ipaddress.ip_interface(one).network for link in links for one in link["addresses"]}
    needed = len([name for name, one in addresses if name != host and any(one in network for network in networks)])
    if needed <= limits["gc_thresh2"]:
        return None
    return Table(family, needed, limits["gc_thresh2"], limits["gc_thresh3"])


def _finding(
    view: View,
    small: tuple[Table, ...],
    hosts: list[str],
    pins: Mapping[str, Mapping[str, Any]],
    all_of_them: int,
) -> Finding:
    full = any(table.needed > table.most for table in small)
    then = "new ones are refused, and connections time out here and there" if full else "these are asked for again"
    wanted = max(all_of_them, FEWEST)
    counts = [
        (host, table.family, view.static[host]["neighbour_tables"][table.family]["table_fulls"])
        for host in hosts
        for table in small
    ]
    return Finding(
        "GC-NODE-018",
        tuple(hosts),
        f"members in the own subnets of {listed(hosts)}: {'; '.join(table.words for table in small)}: {then}",
        FIX,
        tuple(
            f"{host}: the table of {_ip(family)} was too full for a new neighbour {count} times since boot"
            for host, family, count in counts
            if count
        ),
        confidence=READ,
        variables={
            host: {NEIGHBOURS: wanted} for host in hosts if not _role_does(small, pins.get(host, {}), all_of_them)
        },
        command=site("kernel_tuning", hosts),
        reproduce=again(hosts),
        severity=ERROR if full else WARNING,
    )


def _role_does(small: tuple[Table, ...], pins: Mapping[str, Any], all_of_them: int) -> bool:
    """Whether role kernel_tuning makes the tables large enough with the inventory as it is."""
    pinned = str(pins.get(NEIGHBOURS, all_of_them))
    limits = neighbour_limits(int(pinned)) if pinned.isdigit() else None
    return limits is not None and all(table.needed <= limits[1] for table in small)


def _ip(family: str) -> str:
    return f"IPv{VERSIONS[family]}"
