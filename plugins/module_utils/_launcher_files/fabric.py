# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface that carries a node's fabric address, read from ``ip -json address``. Pure."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import iproute
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

COMMAND = ["ip", "-json", "address", "show"]
#: NCCL and Gloo ignore names of one character (ncclOsFindInterfaces in github.com/NVIDIA/nccl src/os/linux.cc;
#: measured with Gloo of torch 2.13).
SHORTEST = 2

ERR_ABSENT = "no interface of this node has this address, it has %s"
ERR_DOWN = "%s has this address and is down"
ERR_NO_CARRIER = "%s has this address and no carrier; NCCL takes only interfaces that run"
ERR_SHORT = "NCCL and Gloo ignore interfaces whose name has one character"
FIX_ABSENT = "run the role static_network first, or correct gpu_cluster_fabric_address"


class Link(NamedTuple):
    """One interface."""

    name: str
    up: bool
    carrier: bool
    addresses: tuple[str, ...]


def parse(text: str) -> list[Link]:
    """Read the answer; flags as in ip-address(8)."""
    return [
        Link(link.name, "UP" in link.flags, "LOWER_UP" in link.flags, tuple(one.local for one in link.addresses))
        for link in iproute.links(text or "[]")
    ]


def find(links: list[Link], address: str) -> Link | None:
    """The interface with the address; one that is up comes first."""
    wanted = ipaddress.ip_address(address)
    having = [link for link in links if wanted in [ipaddress.ip_address(text) for text in link.addresses]]
    return min(having, key=lambda link: (not link.up, not link.carrier), default=None)


def problems(link: Link | None, links: list[Link], address: str) -> list[Problem]:
    """Why jobs cannot use the interface."""
    variable, value = "launcher_fabric_address", shown(address)
    if link is None:
        has = [f"{one.name} {one.addresses[0]}" for one in links if one.addresses and one.name != "lo"]
        return [Problem(variable, value, ERR_ABSENT % (", ".join(has) or "none"), FIX_ABSENT)]
    if not link.up:
        return [Problem(variable, value, ERR_DOWN % link.name, f"set it up: nmcli device connect {link.name}")]
    if not link.carrier:
        return [Problem(variable, value, ERR_NO_CARRIER % link.name, "look at the cable and the switch")]
    if len(link.name) < SHORTEST:
        return [Problem(variable, shown(link.name), ERR_SHORT, "rename the interface")]
    return []
