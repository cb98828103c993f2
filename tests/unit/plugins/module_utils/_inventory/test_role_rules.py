# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nonsense inside of dictionaries, and numbers out of range: what a role refuses, the inventory check refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.filter.inventory_problems import inventory_problems, role_specs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import role_rules

OPTIONS = {
    name: option
    for options in role_specs(Path(__file__).resolve().parents[5] / "roles").values()
    for name, option in options.items()
}
MPI = {"btl_tcp_port_min_v4": 61000, "btl_tcp_port_range_v4": 10, "btl_tcp_port_min_v6": 61000}

WRONG: list[tuple[str, Any]] = [
    ("launcher_rendezvous", {"first": 0, "last": 99999}),
    ("launcher_rendezvous", {"first": 600, "last": 500}),
    ("launcher_rendezvous", {"first": 600, "last": "\u0667\u0660\u0660"}),
    ("openmpi_ports", {"btl_tcp_port_min_v4": 70000}),
    ("openmpi_ports", {**MPI, "btl_tcp_prt_range_v6": 10}),
    ("openmpi_ports", {**MPI, "btl_tcp_port_range_v6": 99999}),
    ("openmpi_ephemeral", {"first": 0, "last": 99999}),
    ("openmpi_ephemeral", {"frist": 1}),
    ("openmpi_omp_num_threads", -1),
    ("openmpi_openblas_num_threads", "-1"),
    ("launcher_environment", {"A B": 1}),
    ("launcher_environment", {"A": "x\ny"}),
    ("launcher_environment", {"A": [1]}),
    ("launcher_environment", {"MASTER_ADDR": "1"}),
    ("launcher_host_environment", {"MASTER_ADDR": "1"}),
    ("nccl_settings", {"NCCL_SOCKET_NSOCKS_PERTHREAD": 1}),
    ("nccl_settings", {"nccl_debug": 1}),
    ("nccl_settings", {"NCCL_X": True}),
    ("selinux_policy_booleans", {"a": "on"}),
    ("selinux_policy_fcontexts", [{"path": "relative", "type": "bin_t"}]),
    ("selinux_policy_fcontexts", [{"path": "/etc", "type": "bin_t"}]),
    ("selinux_policy_confirm_seconds", 1),
    ("selinux_policy_confirm_seconds", "1"),
    ("cluster_firewall_confirm_seconds", -1),
    ("shared_storage_mounts", [{"path": "data", "source": "a:/b", "type": "nfs"}]),
    ("shared_storage_mounts", [{"path": "/usr", "source": "a:/b", "type": "nfs"}]),
    ("shared_storage_mounts", [{"path": "/data", "source": "nocolon", "type": "nfs"}]),
    ("container_runtime_images", [{"name": "train:1"}]),
    ("container_runtime_images", [{"name": "localhost/train:1", "archive": "train.tar"}]),
    ("ssh_mesh_extra_names", {"n1": "x"}),
    ("ssh_mesh_extra_names", {"n1": ["a b"]}),
    ("ssh_mesh_extra_names", {"n1": ["x"], "n2": ["X"]}),
    ("nvidia_driver_reboot_batch", "0"),
    ("nvidia_driver_reboot_batch", "120%"),
    ("cluster_user_uid", 0),
    ("cluster_user_gid", "-1"),
    *((name, least - 1) for name, (least, _most) in role_rules.NUMBERS.items()),
    *((name, str(most + 1)) for name, (_least, most) in role_rules.NUMBERS.items()),
]
RIGHT: list[tuple[str, Any]] = [
    ("launcher_rendezvous", {"first": "29400", "last": 29599}),
    ("openmpi_ports", {**MPI, "btl_tcp_port_range_v6": "10"}),
    ("openmpi_ephemeral", {"first": 32768, "last": 60999}),
    ("launcher_environment", {"OMP_NUM_THREADS": 8}),
    ("launcher_host_environment", {"GLOO_SOCKET_IFNAME": "fab1"}),
    ("nccl_settings", {"NCCL_ALGO": "Ring"}),
    ("selinux_policy_booleans", {"use_nfs_home_dirs": True}),
    ("selinux_policy_fcontexts", [{"path": "/srv/env", "type": "bin_t"}]),
    ("selinux_policy_confirm_seconds", "60"),
    ("shared_storage_mounts", [{"path": "/data", "source": "nas:/b", "type": "nfs4", "options": "ro"}]),
    ("container_runtime_images", [{"name": "localhost/train:1", "archive": "/srv/train.tar"}]),
    ("ssh_mesh_extra_names", {"n1": ["storage-n1", "fd00::7"]}),
    ("nvidia_driver_reboot_batch", 4),
    ("nvidia_driver_reboot_batch", "10%"),
    ("cluster_user_uid", "5000"),
    ("cluster_user_gid", 1000000513),
    *((name, least) for name, (least, _most) in role_rules.NUMBERS.items()),
    *((name, str(most)) for name, (_least, most) in role_rules.NUMBERS.items()),
]


def found(name: str, value: Any) -> list[str]:
    members = {
        f"n{number}": {
            "ansible_host": f"10.0.0.{number}",
            "gpu_cluster_fabric_address": f"10.1.0.{number}/24",
            "gpu_cluster_fabric_interface": "fab0",
            name: value,
        }
        for number in (1, 2)
    }
    return [one["variable"] for one in inventory_problems(members, list(members), "gpu_cluster")]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=str)
def test_what_the_role_refuses(name: str, value: Any) -> None:
    problems = found(name, value)
    assert problems and all(one.startswith(name) for one in problems)


@pytest.mark.parametrize(("name", "value"), RIGHT, ids=str)
def test_what_the_role_takes(name: str, value: Any) -> None:
    assert found(name, value) == []


#: tests/unit/roles/test_defaults.py evaluates those that are worked out.
@pytest.mark.parametrize("name", [name for name in role_rules.RULES if "default" in OPTIONS[name]])
def test_the_default_is_taken(name: str) -> None:
    assert found(name, OPTIONS[name]["default"]) == []


def test_every_rule_has_a_case() -> None:
    assert set(role_rules.RULES) <= {name for name, _value in WRONG}
