# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ports that Kubernetes adds to the plan, and where they meet with others. Pure.

Sources: kubernetes.io, "Ports and Protocols"; docs.tigera.io, "System requirements"; docs.cilium.io, "System
Requirements"; flannel's Documentation/backends.md. What only its own node reaches is left out, such as 10257 and 10259.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import RANGES, VARIABLE, PortPlan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_ranges import PortRange, left_over

KUBELET = PortRange(10250, 10250)
CONTROL_PLANE = {"the API server": PortRange(6443, 6443), "etcd": PortRange(2379, 2380)}
CNI = {
    "none": {},
    "calico": {
        "Calico: BGP": PortRange(179, 179),
        "Calico: VXLAN": PortRange(4789, 4789, "udp"),
        "Calico: Typha": PortRange(5473, 5473),
    },
    "cilium": {"Cilium: VXLAN": PortRange(8472, 8472, "udp"), "Cilium: health": PortRange(4240, 4240)},
    "flannel": {"flannel: VXLAN": PortRange(8472, 8472, "udp")},
}
NODE_PORTS = "30000-32767"

ERR_OVERLAP = "overlaps with %s (%s)"
ERR_EPHEMERAL = "lies in %s (%s), from which the kernel gives ports to any connection; %s is not reserved"
FIX_OWN = "move it with %s, and set the same in Kubernetes"
FIX_MOVE = f"move %s in {VARIABLE}; Kubernetes has this port by default"
FIX_RESERVE = f"or add %s to {VARIABLE}.reserved"


@dataclass(frozen=True)
class Port:
    """What listens on a member. variable: of the playbook, by which it moves; empty where there is none."""

    purpose: str
    span: PortRange
    variable: str = ""


def ports(node_ports: PortRange | None, sshd: int, cni: str, control_plane: bool) -> list[Port]:
    """All that members reach on each other."""
    found = [
        Port("the kubelet", KUBELET),
        Port("sshd of the pods of an MPIJob", PortRange(sshd, sshd), "kubernetes_sshd_port"),
    ]
    if node_ports is not None:
        for protocol in ("tcp", "udp"):
            span = PortRange(node_ports.first, node_ports.last, protocol)
            found.append(Port("services of the type NodePort", span, "kubernetes_node_ports"))
    if control_plane:
        found += [Port(purpose, span) for purpose, span in CONTROL_PLANE.items()]
    return found + [Port(purpose, span) for purpose, span in CNI[cni].items()]


def missing(plan: PortPlan, wanted: Sequence[Port]) -> list[Port]:
    """What extra_ports does not have yet."""
    return [port for port in wanted if not _is_within(port.span, plan)]


def conflicts(plan: PortPlan, wanted: Sequence[Port]) -> list[Problem]:
    """Ports of Kubernetes that the plan, or Kubernetes itself, has for something else."""
    taken = [(f"{VARIABLE}.ssh", PortRange(port, port)) for port in plan.ssh]
    taken += [(f"{VARIABLE}.{key}", getattr(plan, key)) for key in RANGES if key != "ephemeral"]
    taken += [(f"{VARIABLE}.extra_ports", span) for span in plan.extra_ports]
    found = []
    for number, port in enumerate(wanted):
        others = [(name, span) for name, span in taken if not (_is_extra(name) and _is_within(port.span, plan))]
        others += [(other.purpose, other.span) for other in wanted[:number]]
        for name, span in others:
            if port.span.overlaps(span):
                found.append(_problem(port, ERR_OVERLAP % (name, span.text()), name))
        inside = port.span.common(plan.ephemeral)
        open_parts = [part.text() for part in left_over(inside, plan.reserved)] if inside else []
        if open_parts:
            name = f"{VARIABLE}.ephemeral"
            rule = ERR_EPHEMERAL % (name, plan.ephemeral.text(), ", ".join(open_parts))
            found.append(_problem(port, rule, name, FIX_RESERVE % shown(open_parts)))
    return found


def _problem(port: Port, rule: str, other: str, further: str = "") -> Problem:
    fix = FIX_OWN % port.variable if port.variable else FIX_MOVE % other
    return Problem(
        port.variable or f"the port of {port.purpose}",
        shown(port.span.firewall()),
        rule,
        f"{fix}, {further}" if further else fix,
    )


def _is_extra(name: str) -> bool:
    return name == f"{VARIABLE}.extra_ports"


def _is_within(span: PortRange, plan: PortPlan) -> bool:
    """Whether extra_ports has all of these ports."""
    return not left_over(span, [one for one in plan.extra_ports if one.protocol == span.protocol])
