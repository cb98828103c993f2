# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of jobs: what follows from the cluster, and what the site may add or change."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import cluster, environment

MEMBERS = [
    cluster.Member("gpu01", "192.0.2.11", "192.0.2.0/24", 8, ""),
    cluster.Member("gpu02", "192.0.2.12", "192.0.2.0/24", 4, ""),
]
CLUSTER = cluster.Cluster("train", "/opt/python", "/usr/bin/mpirun", 22, 29400, 29599, MEMBERS)


def test_what_a_job_gets() -> None:
    shared = environment.of_cluster(True, {"OMP_NUM_THREADS": "4", "NCCL_DEBUG": "WARN"})
    assert environment.of_node(CLUSTER, "ens1f0", shared, {"NCCL_IB_HCA": "=mlx5_1"}) == {
        "MASTER_ADDR": "192.0.2.11",
        "MASTER_PORT": "29500",
        "WORLD_SIZE": "12",
        # Exact for Gloo; for NCCL the sign makes it exact.
        "GLOO_SOCKET_IFNAME": "ens1f0",
        "NCCL_SOCKET_IFNAME": "=ens1f0",
        "NCCL_IB_DISABLE": "1",
        "NCCL_DEBUG": "WARN",
        "OMP_NUM_THREADS": "4",
        "NCCL_IB_HCA": "=mlx5_1",
    }
    assert environment.of_cluster(False, {}) == {"NCCL_IB_DISABLE": "0"}


def test_the_value_of_the_host_wins() -> None:
    shared = environment.of_cluster(False, {"NCCL_DEBUG": "WARN"})
    found = environment.of_node(CLUSTER, "fab0", shared, {"NCCL_DEBUG": "INFO", "GLOO_SOCKET_IFNAME": "fab0,fab1"})
    assert (found["NCCL_DEBUG"], found["GLOO_SOCKET_IFNAME"]) == ("INFO", "fab0,fab1")


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("NCCL-DEBUG", "WARN", environment.ERR_NAME),
        ("1NCCL", "WARN", environment.ERR_NAME),
        ("NAME\n", "x", environment.ERR_NAME),
        ("MASTER_ADDR", "192.0.2.1", environment.ERR_OWN),
        ("MASTER_PORT", 29500, environment.ERR_OWN),
        ("WORLD_SIZE", 2, environment.ERR_OWN),
        ("NCCL_IB_DISABLE", 1, environment.ERR_OWN),
        ("LOCAL_RANK", 0, environment.ERR_RANK),
        ("PATH", "/opt/bin", environment.ERR_LOGIN),
        ("UID", "1", environment.ERR_LOGIN),
        ("NCCL_NVLS_ENABLE", False, environment.ERR_VALUE),
        ("NCCL_DEBUG", None, environment.ERR_VALUE),
        ("NCCL_DEBUG", "WARN\nLD_PRELOAD=/tmp/x", environment.ERR_LINES),
        ("NCCL_DEBUG", "WARN\t", environment.ERR_LINES),
        ("NCCL_DEBUG", " WARN", environment.ERR_EDGES),
        ("XLA_FLAGS", "'--a'", environment.ERR_SIGNS),
        ("XLA_FLAGS", "a\\b", environment.ERR_SIGNS),
    ],
)
def test_what_is_refused(name: str, value: Any, rule: str) -> None:
    texts, problems = environment.names({"GOOD": "yes", name: value}, "launcher_environment")
    assert [(problem.variable, problem.rule) for problem in problems] == [(f"launcher_environment[{name}]", rule)]
    assert texts["GOOD"] == "yes"


def test_no_dictionary_is_refused() -> None:
    assert [problem.rule for problem in environment.names(["A=1"], "x")[1]] == [environment.ERR_DICT]


def test_harmless_values_stay_as_they_are() -> None:
    given = {"XLA_FLAGS": "--a=1 --b", "N": 4, "EMPTY": "", "HOME_OF": "$HOME `id`", "SHARP": "#1"}
    assert environment.names(given, "x") == ({name: str(value) for name, value in given.items()}, [])


@pytest.mark.parametrize(
    ("name", "value", "rules"),
    [
        ("GLOO_SOCKET_IFNAME", "fab0", []),
        ("GLOO_SOCKET_IFNAME", "fab0,fab1", []),
        ("NCCL_SOCKET_IFNAME", "=fab0,fab1", []),
        ("NCCL_SOCKET_IFNAME", "fab", [environment.ERR_FORM % " after one =, as in =eth1,eth2"]),
        ("NCCL_SOCKET_IFNAME", "^docker0", [environment.ERR_FORM % " after one =, as in =eth1,eth2"]),
        ("NCCL_SOCKET_IFNAME", "==fab0", [environment.ERR_FORM % " after one =, as in =eth1,eth2"]),
        ("GLOO_SOCKET_IFNAME", "=fab0", [environment.ERR_FORM % ", as in eth1,eth2"]),
        ("GLOO_SOCKET_IFNAME", "fab0,", [environment.ERR_FORM % ", as in eth1,eth2"]),
        ("GLOO_SOCKET_IFNAME", "fab1", [environment.ERR_WITHOUT % "fab0"]),
        ("NCCL_SOCKET_IFNAME", "=ib7", [environment.ERR_ABSENT % "ib7", environment.ERR_WITHOUT % "fab0"]),
        ("NCCL_DEBUG", "^x", []),
    ],
)
def test_the_list_of_interfaces_may_only_be_widened(name: str, value: str, rules: list[str]) -> None:
    found = environment.interface_problems({name: value}, "fab0", ["lo", "fab0", "fab1"], "launcher_environment")
    assert [problem.rule for problem in found] == rules
    assert all(problem.variable == f"launcher_environment[{name}]" for problem in found)
