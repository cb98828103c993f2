# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's side: interfaces by their networks, RDMA devices below them, and the kernel's range of ports."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import iproute
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem

INTERFACES = "/sys/class/net"
PORT_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"

ERR_NO_ADDRESS = "this node has no address in it; its addresses are %s"
ERR_DOWN = "the interface %s that has an address in it is down"
ERR_RANGE = "the kernel gives the ports %s-%s to Open MPI's daemons, which is not inside of it"


class Address(NamedTuple):
    """One address of an interface."""

    interface: str
    address: str
    up: bool


def addresses(text: str) -> list[Address]:
    """What ``ip -json address`` prints, without loopback."""
    return [
        Address(link.name, one.local, "UP" in link.flags and link.operstate != "DOWN")
        for link in iproute.links(text)
        if "LOOPBACK" not in link.flags
        for one in link.addresses
        if one.scope != "link"
    ]


def interface_of(network: str, found: Sequence[Address]) -> Address | None:
    """The interface with an address in a network; one that is up comes first."""
    inside = [one for one in found if ipaddress.ip_address(one.address) in ipaddress.ip_network(network)]
    return max(inside, key=lambda one: one.up, default=None)


def unreached(networks: Sequence[str], found: Sequence[Address]) -> list[Problem]:
    """Networks that Open MPI would look for in vain: the job then says that peers are unreachable, and no more."""
    problems = []
    for network in networks:
        one = interface_of(network, found)
        if one is None:
            have = ", ".join(entry.address for entry in found) or "none"
            fix = "correct the address of this host in the inventory, or set up its network first"
            problems.append(Problem("openmpi_networks", network, ERR_NO_ADDRESS % have, fix))
        elif not one.up:
            problems.append(Problem("openmpi_networks", network, ERR_DOWN % one.interface, "plug in its cable"))
    return problems


def rdma_devices(interface: str, root: str = INTERFACES) -> list[str]:
    """RDMA devices of a card as DEVICE:PORT, or of the cards that a bond has."""
    folder = os.path.join(root, interface)
    below = sorted(name[len("lower_") :] for name in _entries(folder) if name.startswith("lower_"))
    found = [
        f"{device}:{_port(os.path.join(root, name))}"
        for name in [interface, *below]
        for device in sorted(_entries(os.path.join(root, name, "device", "infiniband")))
    ]
    return list(dict.fromkeys(found))


def _entries(folder: str) -> list[str]:
    """The names in a folder; none when there is no such folder."""
    return os.listdir(folder) if os.path.isdir(folder) else []


def _port(folder: str) -> int:
    """The port of a card's device; the kernel counts ``dev_port`` from 0, RDMA from 1."""
    try:
        with open(os.path.join(folder, "dev_port"), encoding="ascii") as stream:
            return int(stream.read()) + 1
    except (OSError, ValueError):
        return 1


def outside(ephemeral: tuple[int, int] | None, text: str) -> list[Problem]:
    """Whether the daemons' listeners can leave the plan; ``text`` is the kernel's range of ports."""
    words = text.split()
    if ephemeral is None or len(words) != 2:
        return []
    if ephemeral[0] <= int(words[0]) and int(words[1]) <= ephemeral[1]:
        return []
    span = f"{ephemeral[0]}-{ephemeral[1]}"
    fix = "apply the role kernel_tuning, and look what else sets net.ipv4.ip_local_port_range"
    return [Problem("openmpi_ephemeral", span, ERR_RANGE % (words[0], words[1]), fix)]
