# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of roles that stand in place of their defaults, which follow the plan or one variable. Pure.

Such a variable is allowed, and all other roles still follow the plan or that variable: where both differ, one of them
may not be what was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import interface_of
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import (
    FABRIC_ADDRESS,
    FABRIC_INTERFACE,
    Unreadable,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import (
    VARIABLE as PORTS,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import (
    PortPlanError,
    make_port_plan,
)

#: What the roles take where the plan has no ports of etcd.
ETCD_PORTS = {"first": 2379, "last": 2380}
#: The variables that follow the port plan, and where in it.
HANDED_OVER: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "cluster_firewall_ports": lambda plan: plan["firewall_ports"],
    "cluster_firewall_ssh_ports": lambda plan: plan["ssh"],
    "etcd_ports": lambda plan: plan["etcd"] or ETCD_PORTS,
    "kernel_tuning_ephemeral_range": lambda plan: plan["ephemeral"],
    "kernel_tuning_reserved_ports": lambda plan: plan["reserved"],
    "launcher_etcd_port": lambda plan: (plan["etcd"] or ETCD_PORTS)["first"],
    "launcher_rendezvous": lambda plan: plan["rendezvous"],
    "launcher_ssh_port": lambda plan: plan["ssh"][0],
    "openmpi_ephemeral": lambda plan: plan["ephemeral"],
    "openmpi_ports": lambda plan: plan["openmpi"],
    "openmpi_ssh_port": lambda plan: plan["ssh"][0],
    "selinux_policy_ssh_ports": lambda plan: plan["ssh"],
    "ssh_mesh_ports": lambda plan: plan["ssh"],
}
#: The variable that is handed the default toolkit, and the toolkit of an inventory that names none.
NCCL_CUDA, TOOLKIT = "nccl_cuda", "13.0"
FIREWALL_PORTS, MODE = "cluster_firewall_ports", "cluster_firewall_mode"


class Source(NamedTuple):
    """The variable that all roles follow, its default, and what they take of it."""

    variable: str
    default: Any
    handed: Callable[[Any], Any] = lambda value: value


_USER = Source("gpu_cluster_user", "train")
_PREFIX = Source("torch_runtime_prefix", "/opt/gpu-cluster/torch")
_PYTHON = _PREFIX._replace(handed=lambda value: f"{value}/bin/python")
_OPENMPI = Source("openmpi_prefix", "/usr/lib64/openmpi")
_GPUS = Source("gpu_cluster_gpus", -1)
#: The variables that stand for one other. Lists of rails are not here: they are meant to be longer than one card.
STANDS_FOR: dict[str, Source] = {
    "cluster_check_user": _USER,
    "cluster_user_name": _USER,
    "container_runtime_user": _USER,
    "etcd_user": _USER,
    "kernel_tuning_login_user": _USER,
    "launcher_user": _USER,
    "preflight_user": _USER,
    "selinux_policy_users": _USER._replace(handed=lambda value: [value]),
    "shared_storage_user": _USER,
    "ssh_mesh_user": _USER,
    "cluster_check_torch_python": _PYTHON,
    "launcher_python": _PYTHON,
    "package_sources_wheel_prefix": _PREFIX,
    "preflight_install_path": _PREFIX,
    "selinux_policy_torch_prefix": _PREFIX,
    "cluster_check_openmpi_prefix": _OPENMPI,
    "launcher_mpirun": _OPENMPI._replace(handed=lambda value: f"{value}/bin/mpirun"),
    "torch_runtime_horovod_mpi_prefix": _OPENMPI,
    "launcher_etcd_members": Source("etcd_members", []),
    "launcher_ib_disabled": Source("nccl_ib_disabled", False),
    "nvidia_driver_gpus": _GPUS,
    "preflight_gpus": _GPUS,
    "package_sources_wheel_folder": Source("torch_runtime_find_links", ""),
    "package_sources_wheel_index_url": Source("torch_runtime_index_url", ""),
    "launcher_fabric_address": Source("gpu_cluster_fabric_address", "", lambda value: str(value).partition("/")[0]),
    "preflight_fabric_interface": Source("gpu_cluster_fabric_interface", ""),
    "preflight_interfaces": Source("static_network_interfaces", []),
    "preflight_ports": Source(PORTS, {}),
}

NOTE_OTHER = "differs from %s, which gives %s to all other roles"
NOTE_LEFT_OUT = "leaves out %s = %s, over which the members reach each other"
FIX_LEFT_OUT = "add it, or remove this variable"
FIX_OTHER = "remove it, and change %s where that is wrong"
NOTE_DIFFERS = "differs from the port plan, which gives %s; the check expects the plan"
FIX_REMOVE = f"remove it, and change {PORTS} where the plan itself is wrong"


def _comparable(value: Any) -> Any:
    """The value without order and without the types that YAML chose."""
    if isinstance(value, Mapping):
        return {str(key): str(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return sorted({str(one) for one in value})
    return str(value).rstrip("/").replace("//", "/")


def _stand_ins(own: Mapping[str, Any]) -> list[Problem]:
    """The variables of one host that say something else than the one in whose place they stand."""
    notes = []
    for name, source in STANDS_FOR.items():
        value, other = own.get(name), own.get(source.variable, source.default)
        if name not in own or isinstance(value, Unreadable) or isinstance(other, Unreadable):
            continue
        planned = source.handed(other)
        if _comparable(value) != _comparable(planned):
            rule = NOTE_OTHER % (source.variable, shown(planned))
            notes.append(Problem(name, shown(value), rule, FIX_OTHER % source.variable))
    return notes


def _has_network(networks: Sequence[Any], fabric: Any) -> bool:
    """Whether one of the networks holds the fabric address; what is none is left to the rules of its variable."""
    own = interface_of(fabric)
    found = [interface_of(one) for one in networks]
    return own is None or any(one is not None and own.ip in one.network for one in found)


#: Lists of rails, the variable that has to be in them, and how that is seen.
HOLDS: dict[str, tuple[str, Callable[[Sequence[Any], Any], bool]]] = {
    "nccl_socket_interfaces": (FABRIC_INTERFACE, lambda names, fabric: not fabric or str(fabric) in names),
    "openmpi_networks": (FABRIC_ADDRESS, _has_network),
}


def _left_out(own: Mapping[str, Any]) -> list[Problem]:
    """Lists without the data network. An empty one leaves the choice to the program."""
    notes = []
    for name, (variable, holds) in HOLDS.items():
        value, fabric = own.get(name), own.get(variable)
        if isinstance(value, Unreadable) or isinstance(fabric, Unreadable) or not value:
            continue
        listed = list(value) if isinstance(value, (list, tuple)) else [value]
        if not holds(listed, fabric):
            notes.append(Problem(name, shown(value), NOTE_LEFT_OUT % (variable, shown(fabric)), FIX_LEFT_OUT))
    return notes


def _toolkit_note(own: Mapping[str, Any]) -> list[Problem]:
    """NCCL for another CUDA than the default toolkit."""
    versions, default, wanted = (own.get(name) for name in ("cuda_toolkit_versions", "cuda_toolkit_default", NCCL_CUDA))
    if not wanted or any(isinstance(one, Unreadable) for one in (versions, default, wanted)):
        return []
    first = versions[0] if isinstance(versions, (list, tuple)) and versions else versions
    toolkit = str(default or first or TOOLKIT)
    if str(wanted).partition(".")[0] == toolkit.partition(".")[0]:
        return []
    rule = NOTE_OTHER % ("cuda_toolkit_default", shown(toolkit))
    return [Problem(NCCL_CUDA, shown(wanted), rule, FIX_OTHER % "cuda_toolkit_default")]


def override_notes(variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> list[Problem]:
    """Every override of every host that is not what the plan says; a plan that is refused has problems instead."""
    notes = []
    for host in hosts:
        own = variables[host]
        notes += [note.on(host) for note in _stand_ins(own) + _left_out(own) + _toolkit_note(own)]
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
