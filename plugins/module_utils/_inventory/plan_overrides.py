# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of roles that stand in place of what the playbooks hand over from the port plan. Pure.

Such a variable is allowed, and the check still expects the plan: where both differ, one of them is not what was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.problems import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import (
    VARIABLE as PORTS,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import (
    PortPlanError,
    make_port_plan,
)

#: The variables that the playbooks take from the port plan, and from where in it.
HANDED_OVER: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "cluster_firewall_ports": lambda plan: plan["firewall_ports"],
    "cluster_firewall_ssh_ports": lambda plan: plan["ssh"],
    "kernel_tuning_ephemeral_range": lambda plan: plan["ephemeral"],
    "kernel_tuning_reserved_ports": lambda plan: plan["reserved"],
    "launcher_rendezvous": lambda plan: plan["rendezvous"],
    "launcher_ssh_port": lambda plan: plan["ssh"][0],
    "openmpi_ephemeral": lambda plan: plan["ephemeral"],
    "openmpi_ports": lambda plan: plan["openmpi"],
    "openmpi_ssh_port": lambda plan: plan["ssh"][0],
    "selinux_policy_ssh_ports": lambda plan: plan["ssh"],
    "ssh_mesh_ports": lambda plan: plan["ssh"],
}
FIREWALL_PORTS, MODE = "cluster_firewall_ports", "cluster_firewall_mode"

NOTE_DIFFERS = "differs from the port plan, which gives %s; the check expects the plan"
FIX_REMOVE = f"remove it, and change {PORTS} where the plan itself is wrong"


def _comparable(value: Any) -> Any:
    """The value without order and without the types that YAML chose."""
    if isinstance(value, Mapping):
        return {str(key): str(one) for key, one in value.items()}
    return sorted({str(one) for one in value}) if isinstance(value, (list, tuple)) else str(value)


def override_notes(variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> list[Problem]:
    """Every override of every host that is not what the plan says; a plan that is refused has problems instead."""
    notes = []
    for host in hosts:
        own = variables[host]
        overrides = [name for name in HANDED_OVER if name in own and not isinstance(own[name], Unreadable)]
        try:
            plan = make_port_plan(own.get(PORTS)).as_dict() if overrides else {}
        except PortPlanError:
            continue
        for name in overrides:
            planned = HANDED_OVER[name](plan)
            # All ports are open then, whatever is listed.
            unused = name == FIREWALL_PORTS and own.get(MODE) == "trust"
            if not unused and _comparable(own[name]) != _comparable(planned):
                notes.append(Problem(name, shown(own[name]), NOTE_DIFFERS % shown(planned), FIX_REMOVE).on(host))
    return notes
