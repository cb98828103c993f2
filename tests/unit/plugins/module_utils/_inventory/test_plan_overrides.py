# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Overrides that contradict the port plan are noted, whichever role they belong to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.filter.inventory_problems import inventory_problems
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import plan_overrides
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import make_port_plan

PROJECT = Path(__file__).resolve().parents[5]
PLAN = make_port_plan({}).as_dict()


def noted(**own: Any) -> list[str]:
    return [one.variable for one in plan_overrides.override_notes({"n1": own, "n2": {}}, ["n1", "n2"])]


def test_an_override_that_narrows_the_firewall_is_a_note_and_no_problem() -> None:
    own = {"cluster_firewall_ports": ["29400-29599/tcp"]}
    (note,) = plan_overrides.override_notes({"n1": own, "n2": {}}, ["n1", "n2"])
    assert (note.host, note.variable, note.value) == ("n1", "cluster_firewall_ports", "['29400-29599/tcp']")
    assert "['29400-29599/tcp', '32768-60999/tcp', '61000-64999/tcp']" in note.rule
    assert note.fix == "remove it, and change gpu_cluster_ports where the plan itself is wrong"
    members = {
        f"n{number}": {
            "ansible_host": f"10.0.0.{number}",
            "gpu_cluster_fabric_address": f"10.1.0.{number}/24",
            "gpu_cluster_fabric_interface": "fab0",
            **own,
        }
        for number in (1, 2)
    }
    assert inventory_problems(members, ["n1", "n2"], "gpu_cluster") == []
    notes = inventory_problems(members, ["n1", "n2"], "gpu_cluster", "notes")
    assert [(one["host"], one["variable"]) for one in notes] == [
        ("n1", "cluster_firewall_ports"),
        ("n2", "cluster_firewall_ports"),
    ]


@pytest.mark.parametrize("name", plan_overrides.HANDED_OVER)
def test_an_override_that_says_the_same_is_no_news(name: str) -> None:
    planned = plan_overrides.HANDED_OVER[name](PLAN)
    assert noted(**{name: planned}) == []
    assert noted(**{name: list(reversed(planned)) if isinstance(planned, list) else planned}) == []
    number = planned + 1 if isinstance(planned, int) else {**planned, "first": 7} if isinstance(planned, dict) else 0
    other = [*planned, "7"] if isinstance(planned, list) else number
    assert noted(**{name: other}) == [name]


def test_the_plan_is_that_of_the_host() -> None:
    ports = {"extra_ports": [12345]}
    assert noted(gpu_cluster_ports=ports, cluster_firewall_ports=PLAN["firewall_ports"]) == ["cluster_firewall_ports"]
    wider = [*PLAN["firewall_ports"], "12345/tcp"]
    assert noted(gpu_cluster_ports=ports, cluster_firewall_ports=wider) == []


def test_where_all_ports_are_open_the_list_means_nothing() -> None:
    assert noted(cluster_firewall_mode="trust", cluster_firewall_ports=["29500/tcp"]) == []


def test_a_plan_that_is_refused_is_no_note() -> None:
    assert noted(gpu_cluster_ports={"mpi": 7}, cluster_firewall_ports=["29500/tcp"]) == []
    assert noted(cluster_firewall_ports=Unreadable("'x' is undefined")) == []


@pytest.mark.parametrize("name", plan_overrides.STANDS_FOR)
def test_a_second_truth_is_noted(name: str) -> None:
    source = plan_overrides.STANDS_FOR[name]
    same = source.handed(source.default)
    assert noted(**{name: same}) == []
    other = [7] if isinstance(same, list) else {"ssh": 23} if isinstance(same, dict) else "/another"
    (note,) = plan_overrides.override_notes({"n1": {name: other}}, ["n1"])
    assert note.variable == name
    assert source.variable in note.rule and source.variable in note.fix
    assert noted(**{source.variable: Unreadable("'x' is undefined"), name: other}) == []


def test_a_second_truth_follows_the_first() -> None:
    assert noted(gpu_cluster_user="ml", launcher_user="ml", selinux_policy_users=["ml"]) == []
    assert noted(gpu_cluster_user="ml", ssh_mesh_user="train", selinux_policy_users=["train"]) == [
        "selinux_policy_users",
        "ssh_mesh_user",
    ]
    assert noted(openmpi_prefix="/opt/mpi/", launcher_mpirun="/opt/mpi/bin/mpirun") == []
    assert noted(torch_runtime_prefix="/srv/env", launcher_python="/opt/gpu-cluster/torch/bin/python") == [
        "launcher_python"
    ]


FABRIC = {"gpu_cluster_fabric_interface": "ens1f0", "gpu_cluster_fabric_address": "198.18.20.11/24"}


@pytest.mark.parametrize(
    ("name", "value", "is_noted"),
    [
        ("nccl_socket_interfaces", ["ens1f0"], False),
        ("nccl_socket_interfaces", ["ens2f0", "ens1f0"], False),
        ("nccl_socket_interfaces", [], False),
        ("nccl_socket_interfaces", ["ens1f1"], True),
        ("nccl_socket_interfaces", "ens1f1", True),
        ("openmpi_networks", ["198.18.20.0/24"], False),
        ("openmpi_networks", ["198.18.21.0/24", "198.18.20.11/24"], False),
        ("openmpi_networks", ["198.18.0.0/16"], False),
        ("openmpi_networks", [], False),
        ("openmpi_networks", ["198.18.21.0/24", "fd00::/64", "nonsense", None], True),
        ("nccl_cuda", "13", False),
        ("nccl_cuda", "13.1", False),
        ("nccl_cuda", "", False),
        ("nccl_cuda", "12.9", True),
        ("nccl_cuda", 12, True),
    ],
)
def test_a_choice_that_leaves_out_what_all_others_use_is_noted(name: str, value: Any, is_noted: bool) -> None:
    assert noted(**FABRIC, **{name: value}) == ([name] if is_noted else [])
    assert noted(**{name: Unreadable("'x' is undefined")}) == []


def test_the_toolkit_that_nccl_follows() -> None:
    assert noted(cuda_toolkit_versions=["12.8", "13.0"], nccl_cuda="12") == []
    assert noted(cuda_toolkit_versions=["12.8", "13.0"], cuda_toolkit_default="13.0", nccl_cuda="12") == ["nccl_cuda"]
    assert noted(cuda_toolkit_versions=Unreadable("x"), nccl_cuda="12") == []


#: What follows others beside: lists and objects that are worked out, names of the cluster, and choices of their own.
WORKED_OUT = {
    "package_sources_wheel_requirements",
    "package_sources_wheel_variables",
    "package_sources_packages",
    "package_sources_wheel_prefer_pip_configuration",
    "torch_runtime_index_url",
    "torch_runtime_prefer_pip_configuration",
    "cluster_check_report_dir",
    "kernel_tuning_neighbours",
    "cluster_firewall_peers",
    "cluster_hosts_members",
    "etcd_cluster_members",
    "common_group",
    "common_ports",
    "preflight_group",
    "static_network_interfaces",
    "torch_runtime_horovod_wheels",
    "torch_runtime_lock_file",
    "ssh_mesh_members",
    "launcher_members",
    "launcher_slots",
    "nccl_cuda",
    "nccl_socket_interfaces",
    "openmpi_networks",
    "preflight_commands",
    "preflight_min_free_gib",
    "torch_runtime_proxy",
}


def defaults_with(text: str) -> set[str]:
    """The variables of roles whose default holds this text."""
    found = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in PROJECT.glob("roles/*/defaults/main.yml")]
    return {name for defaults in found for name, value in defaults.items() if text in str(value)}


def test_every_variable_that_follows_another_is_compared() -> None:
    handed: set[str] = set()
    for path in PROJECT.glob("playbooks/*.yml"):
        own = r"(\w+): \"{{ (?:__own|hostvars\[inventory_hostname\])\.\1 \| default\("
        handed |= set(re.findall(own, path.read_text(encoding="utf-8")))
    assert handed
    following = handed | defaults_with("{{")
    assert following - WORKED_OUT <= {*plan_overrides.HANDED_OVER, *plan_overrides.STANDS_FOR}


def test_every_variable_that_follows_the_plan_is_compared() -> None:
    assert defaults_with("{{ common_port_plan.") == set(plan_overrides.HANDED_OVER)
