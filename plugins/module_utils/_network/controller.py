# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said about a change of a node's network. Pure; who says it when is in ``_commit_confirm/controller.py``."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.controller import Words
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.spec import Interface

WORDS = Words(
    back="addresses, default routes and profile files are as they were",
    seconds="static_network_confirm_seconds",
    power="Nothing permanent was written, so a power cycle brings the old state back too.",
)


def described(name: str, wanted: Interface) -> str:
    """One wanted interface in a few words, for the sentence."""
    parts = [f"{name} {' '.join(wanted.addresses) or 'without addresses'}"]
    if wanted.vlan:
        parts.append(f"VLAN {wanted.vlan.id} on {wanted.vlan.parent}")
    if wanted.bond:
        parts.append(f"{wanted.bond.mode} bond of {' and '.join(wanted.bond.ports)}")
    if wanted.gateways is not None:
        parts.append(f"gateway {' '.join(wanted.gateways)}" if wanted.gateways else "no gateway")
    parts += [f"route to {route.to}" + (f" via {route.via}" if route.via else "") for route in wanted.routes]
    parts += [f"MTU {wanted.mtu}"] if wanted.mtu else []
    parts += [f"zone {wanted.zone}"] if wanted.zone else []
    return ", ".join(parts)
