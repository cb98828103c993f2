# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MTU of the data network beside the inventory: it names the node where members alone cannot, as of two.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    READ,
    View,
    again,
    site,
    together,
)

#: Of role static_network: entries with name or mac, and mtu.
VARIABLE = "static_network_interfaces"
FIX = (
    "run role static_network there, which sets it in the profile of the card; where the card or its switch takes no "
    f"such packets, change mtu in {VARIABLE} of all hosts"
)


def findings(view: View, pins: Mapping[str, Mapping[str, Any]], others: Sequence[Finding]) -> list[Finding]:
    """Nodes whose card has another MTU than the inventory says, in place of what ``others`` say of sizes that differ.

    others: the findings about the cards.  pins: host to its variables in the inventory.
    """
    pairs = []
    for host in view.static:
        link, wanted = view.link(host), _wanted(view, host, pins.get(host, {}).get(VARIABLE))
        if link is not None and wanted is not None and int(link["mtu"]) != wanted:
            pairs.append(((int(link["mtu"]), wanted, view.members[host].fabric_interface), host))
    if not pairs:
        return list(others)
    # A smaller MTU that a node learned on its way stays a finding of its own.
    kept = [one for one in others if not (one.id == "GC-NODE-008" and " differs: " in one.cause)]
    return [*kept, *(_finding(*key, hosts) for key, hosts in together(pairs).items())]


def _wanted(view: View, host: str, interfaces: Any) -> int | None:
    """What the inventory says of the card of the data network; None where it says nothing."""
    name, link = view.members[host].fabric_interface, view.link(host) or {}
    for one in interfaces if isinstance(interfaces, (list, tuple)) else ():
        if isinstance(one, Mapping) and (
            one.get("name") == name or (one.get("mac") and str(one["mac"]).lower() == link.get("mac"))
        ):
            size = str(one.get("mtu") or "")
            return int(size) if size.isdigit() and len(size) < 8 else None
    return None


def _finding(has: int, wanted: int, card: str, hosts: list[str]) -> Finding:
    return Finding(
        "GC-NODE-008",
        tuple(hosts),
        f"the MTU of {card} on {listed(hosts)} is {has} bytes, the inventory says {wanted}",
        FIX,
        (f"{VARIABLE} of {hosts[0]}: mtu {wanted}",),
        confidence=READ,
        command=site("static_network", hosts),
        reproduce=again(hosts),
    )
