# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles themselves refuse in one variable, asked before a host is contacted. Pure.

The readers of the roles take all their variables at once; here each gets one, and only what it says of that one counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import whole_number
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._container_runtime import images
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import rules as firewall
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import cluster, environment
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl import settings as nccl
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver import batch
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import spec as selinux
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import spec as storage
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import spec as ssh

Rule = Callable[[Any], list[Problem]]

#: Users of a directory may have high numbers; role cluster_user makes people in a narrower range.
PEOPLE = (1, 2**32 - 2)
ERR_RANGE = "expected a whole number from %d to %d"
DAY = 24 * 3600
#: Numbers that the roles check late or not at all. Upper bounds only tell typing errors, and are ours.
NUMBERS = {
    "cluster_check_openmpi_deadline_seconds": (1, 7200),
    "container_runtime_subid_count": (1, 1_000_000),
    "container_runtime_subid_first": (1, 2**32 - 2),
    "container_runtime_timeout_seconds": (10, DAY),
    "etcd_renew_days": (0, 2999),
    "etcd_timeout_seconds": (5, 3600),
    "etcd_validity_days": (1, 3000),
    "nvidia_driver_build_timeout_seconds": (60, 14400),
    "nvidia_driver_gpus": (-1, 64),
    "nvidia_driver_reboot_timeout_seconds": (1, DAY),
    "package_sources_timeout_seconds": (1, 600),
    "preflight_min_free_gib": (0, 10**6),
    "preflight_max_time_offset_seconds": (0, DAY),
    "shared_storage_timeout_seconds": (5, 600),
    "torch_runtime_install_timeout_seconds": (1, DAY),
    "torch_runtime_keep": (0, 1000),
    "torch_runtime_wait_seconds": (0, DAY),
}
#: Parameters of the role selinux_policy that say nothing.
NO_SELINUX: dict[str, Any] = {
    "state": selinux.ENFORCING,
    "ssh_ports": [],
    "booleans": {},
    "confirm_seconds": 0,
    "fcontexts": [],
    "torch_prefix": "",
}


def _openmpi(name: str) -> Rule:
    key = name[len("openmpi_") :]
    return lambda value: [one for one in spec.read({key: value})[1] if one.variable.startswith(name)]


def _selinux(name: str) -> Rule:
    key = name[len("selinux_policy_") :]
    return lambda value: selinux.problems({**NO_SELINUX, key: value})


def _seconds(value: Any) -> list[Problem]:
    return selinux.problems({**NO_SELINUX, "confirm_seconds": whole_number(value)})


def _number(name: str, least: int, most: int) -> Rule:
    def problems(value: Any) -> list[Problem]:
        number = whole_number(value)
        right = number is not None and least <= number <= most
        return [] if right else [Problem(name, shown(value), ERR_RANGE % (least, most), "choose one in this range")]

    return problems


def _host_environment(value: Any) -> list[Problem]:
    return environment.names(value, "launcher_host_environment")[1]


#: They get values that the argument specs take.
RULES: dict[str, Rule] = {
    **{name: _number(name, *bounds) for name, bounds in NUMBERS.items()},
    "cluster_firewall_confirm_seconds": _number("cluster_firewall_confirm_seconds", *firewall.CONFIRM_SECONDS),
    "cluster_user_uid": _number("cluster_user_uid", *PEOPLE),
    "cluster_user_gid": _number("cluster_user_gid", *PEOPLE),
    images.VARIABLE: images.problems,
    "launcher_environment": lambda value: environment.names(value, "launcher_environment")[1],
    "launcher_host_environment": _host_environment,
    "launcher_rendezvous": cluster.rendezvous_problems,
    "nccl_settings": nccl.checked,
    batch.VARIABLE: batch.problems,
    **{
        f"openmpi_{key}": _openmpi(f"openmpi_{key}") for key in ("ephemeral", "omp_num_threads", "openblas_num_threads")
    },
    "openmpi_ports": _openmpi("openmpi_ports"),
    **{f"selinux_policy_{key}": _selinux(f"selinux_policy_{key}") for key in ("booleans", "fcontexts")},
    "selinux_policy_confirm_seconds": _seconds,
    "shared_storage_mounts": lambda value: storage.read(value)[1],
    "ssh_mesh_extra_names": lambda value: ssh.extra_problems(value, []),
}
