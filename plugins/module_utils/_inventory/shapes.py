# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape of each variable that holds an address, a name, a port or a path: refused before a host is contacted. Pure.

The argument specs only know texts and numbers. The roles refuse a wrong shape too, but some of them an hour later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    LINK_LOCAL,
    LOOPBACK,
    Address,
    address_of,
    interface_of,
    is_host_name,
    is_interface_name,
    not_a_host,
    port_of,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.cluster import is_path
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl import settings as nccl
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import spec as rpm
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.spec import USER
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import pins as torch

#: Where ssh of this machine may well lead to a member: a tunnel, or a cable between the two.
NEAR = (LOOPBACK, LINK_LOCAL, "with the name of an interface")
#: Without a port there is no way in.
NEVER_EMPTY = ("cluster_firewall_ssh_ports", "ssh_mesh_ports")


class Shape(NamedTuple):
    """What a text or a number must look like; ``takes`` gets everything but lists and empty texts."""

    takes: Callable[[Any], bool]
    rule: str
    fix: str


def _is_user(value: Any) -> bool:
    return isinstance(value, str) and bool(USER.fullmatch(value))


def _is_address(value: Any) -> bool:
    interface = interface_of(value)
    address = address_of(value) if interface is None else interface.ip
    return address is not None and not not_a_host(address)


def _is_dialed(address: Address | None) -> bool:
    return address is not None and not_a_host(address) in ("", *NEAR)


def _is_network(value: Any) -> bool:
    found = interface_of(value)
    return found is not None and not not_a_host(found.ip)


def _is_place(value: Any) -> bool:
    """A path that no program expands and no terminal misreads; it may have blanks."""
    return isinstance(value, str) and value.startswith("/") and value.isprintable() and _is_straight(value)


def _is_straight(path: str) -> bool:
    return path == path.strip() and not {".", ".."} & set(path.split("/"))


def _is_on_controller(value: Any) -> bool:
    """The controller's user may write ~ and a path from the folder in which he runs Ansible."""
    return isinstance(value, str) and value.isprintable() and value == value.strip() and not value.endswith("/..")


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and bool(pattern.fullmatch(value)) and value.isascii()


ADDRESS = Shape(_is_address, "expected the address of this host on the data network", "write it like 198.18.20.11")
NETWORK = Shape(_is_network, "expected a network with its prefix length", "write it like 198.18.20.0/24")
#: Where ssh of the controller leads to a node.
SSH_HOST = Shape(
    lambda value: is_host_name(value) or _is_dialed(address_of(value)),
    "expected the name or the address at which ssh reaches the node",
    "write it like 10.0.0.11, in quotes",
)
HOST = Shape(is_host_name, "expected the name of a member", "write it as the inventory does")
INTERFACE = Shape(is_interface_name, "expected the name of a network card", "`ip -br link` on the node lists the names")
PORT = Shape(lambda value: port_of(value) is not None, "expected a port from 1 to 65535", "write the port of sshd")
USER_NAME = Shape(_is_user, "expected the name of a user", "write a name such as train")
JOB_USER = Shape(
    lambda value: _is_user(value) and value != "root",
    "expected the name of an unprivileged user",
    "write a name such as train",
)
#: What jobs get in their environment and launchers in a command line.
PROGRAM = Shape(
    lambda value: is_path(value) and _is_straight(value) and "//" not in value,
    "expected an absolute path on the node, in letters, digits and _.+@%- between single slashes",
    "write the whole path",
)
PREFIX = Shape(lambda value: isinstance(value, str) and PROGRAM.takes(value.rstrip("/")), PROGRAM.rule, PROGRAM.fix)
PLACE = Shape(_is_place, "expected an absolute path on the node, without . and .. in it", "write the whole path")
CONTROLLER = Shape(_is_on_controller, "expected a path on the controller, in one line", "write the whole path")
AUTHORITY = Shape(
    lambda value: _is_on_controller(value) and value.startswith(("/", "~", "$")),
    "expected an absolute path on the controller, in one line",
    "write one such as /etc/gpu-cluster/ssh_ca",
)
PACKAGE = Shape(_matches(rpm.NAME), "expected the name of a package", "write it as rpm -q shows it, without version")
RPM_VERSION = Shape(_matches(rpm.VERSION), rpm.ERR_VERSION, "write it as rpm -q shows it, without release")
NCCL_INTERFACE = Shape(
    lambda value: is_interface_name(value) and bool(nccl.INTERFACE.fullmatch(value)), nccl.ERR_INTERFACE, INTERFACE.fix
)
HCA = Shape(_matches(nccl.HCA), nccl.ERR_HCA, "write one such as mlx5_0, or mlx5_0:1 with a port")
DEVICE = Shape(_matches(spec.DEVICE), spec.ERR_DEVICE, "write one such as mlx5_0:1 or fab0")
#: A number has a message of its own: YAML reads 2.10 as 2.1.
TORCH_VERSION = Shape(
    lambda value: not isinstance(value, str) or not value or bool(re.fullmatch(torch.VERSION, value)),
    "expected one version of PyTorch, such as 2.13.0 or 2.13.0+cu130",
    "write it without blanks, signs such as == and >=, and words",
)
REQUIREMENT = Shape(
    _matches(re.compile(rf"{torch.NAME}(?:{torch.EXTRAS})? *== *{torch.VERSION}")),
    "expected a package with one version, such as numpy==2.3.4",
    "pin it with ==",
)
#: The role asks early whether there is a file for it, in whatever version.
WHEEL = Shape(
    _matches(re.compile(rf"{torch.NAME}(?:{torch.EXTRAS})?(?: *== *{torch.VERSION})?")),
    REQUIREMENT.rule,
    REQUIREMENT.fix,
)
GROUP = Shape(
    lambda value: isinstance(value, str) and value != "" and value.isprintable() and not re.search(r"[\s,:&!]", value),
    "expected the name of a group of the inventory",
    "write it as the inventory does",
)

#: All other variables.
TEXT = Shape(
    lambda value: not isinstance(value, str) or (value.isprintable() and value == value.strip()),
    "expected a text without blanks at its ends, in one line and without control characters",
    "write it so",
)

#: Every variable of this kind. That none is forgotten is shown by tests/project/test_addresses.py.
SHAPES: dict[str, Shape] = {
    "cluster_check_address": ADDRESS,
    "launcher_fabric_address": ADDRESS,
    "openmpi_networks": NETWORK,
    "static_network_previous_host": SSH_HOST,
    "cluster_check_members": HOST,
    "etcd_members": HOST,
    "launcher_etcd_members": HOST,
    "cluster_check_interface": INTERFACE,
    "preflight_fabric_interface": INTERFACE,
    "nccl_socket_interfaces": NCCL_INTERFACE,
    "nccl_ib_hcas": HCA,
    "openmpi_ucx_devices": DEVICE,
    "cluster_firewall_ssh_ports": PORT,
    "launcher_etcd_port": PORT,
    "launcher_ssh_port": PORT,
    "openmpi_ssh_port": PORT,
    "selinux_policy_ssh_ports": PORT,
    "ssh_mesh_ports": PORT,
    "cluster_check_user": USER_NAME,
    "kernel_tuning_login_user": USER_NAME,
    "preflight_user": USER_NAME,
    "shared_storage_user": USER_NAME,
    "selinux_policy_users": USER_NAME,
    "cluster_user_name": JOB_USER,
    "container_runtime_user": JOB_USER,
    "etcd_user": JOB_USER,
    "launcher_user": JOB_USER,
    "ssh_mesh_user": JOB_USER,
    "cluster_check_torch_python": PROGRAM,
    "cluster_user_home": PROGRAM,
    "etcd_program": PROGRAM,
    "cluster_user_shell": PROGRAM,
    "launcher_mpirun": PROGRAM,
    "launcher_python": PROGRAM,
    "torch_runtime_python": PROGRAM,
    "cluster_check_openmpi_prefix": PREFIX,
    "openmpi_prefix": PREFIX,
    "package_sources_wheel_prefix": PROGRAM,
    "selinux_policy_torch_prefix": PROGRAM,
    "torch_runtime_prefix": PROGRAM,
    "container_runtime_storage_path": PROGRAM,
    "package_sources_ca_certificate": PLACE,
    "package_sources_wheel_folder": PLACE,
    "preflight_install_path": PLACE,
    "torch_runtime_adopt": PLACE,
    "torch_runtime_find_links": PLACE,
    "cluster_check_report_dir": CONTROLLER,
    "etcd_ca_dir": AUTHORITY,
    "ssh_mesh_ca_dir": AUTHORITY,
    "torch_runtime_lock_file": CONTROLLER,
    "etcd_package": PACKAGE,
    "monitoring_gpu_packages": PACKAGE,
    "monitoring_packages": PACKAGE,
    "openmpi_packages": PACKAGE,
    "shared_storage_packages": PACKAGE,
    "torch_runtime_horovod_mpi_prefix": PREFIX,
    "torch_runtime_horovod_packages": PACKAGE,
    "torch_runtime_packages": PACKAGE,
    "etcd_version": RPM_VERSION,
    "openmpi_version": RPM_VERSION,
    "torch_runtime_version": TORCH_VERSION,
    "torch_runtime_extra_requirements": REQUIREMENT,
    "package_sources_wheel_requirements": WHEEL,
    "common_group": GROUP,
    "preflight_group": GROUP,
}


def shape_problems(variable: str, value: Any, option: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with a value, or with each element of it; an empty text is right where it is the default."""
    shape = SHAPES.get(variable, TEXT)
    if value == "" and option.get("default", "") == "":
        return []
    if value == [] and variable in NEVER_EMPTY:
        return [Problem(variable, "[]", "expected at least one port", shape.fix)]
    return [
        Problem(place, shown(one), shape.rule, shape.fix)
        for place, one in _parts(variable, value)
        if not shape.takes(one)
    ]


def _parts(variable: str, value: Any) -> Sequence[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        return [(f"{variable}[{index}]", one) for index, one in enumerate(value)]
    return [(variable, value)]
