# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A path on the controller is the same for all members."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import checks, controller_paths

HOSTS = ["n1", "n2", "n3"]
NAMES = ("torch_runtime_lock_file", "ssh_mesh_ca_dir", "cluster_check_report_dir", "gpu_cluster_known_hosts")
SPECS = {
    "torch_runtime": {"torch_runtime_lock_file": {"type": "str", "default": ""}},
    "ssh_mesh": {"ssh_mesh_ca_dir": {"type": "str", "default": ""}},
    "cluster_check": {"cluster_check_report_dir": {"type": "str", "default": ""}},
}


def problems(name: str, *values: Any) -> list[tuple[str, str]]:
    """values: of n1 to n3;  where a host has none."""
    variables = {host: {} if value is ... else {name: value} for host, value in zip(HOSTS, values)}
    found = checks.inventory_problems(variables, HOSTS, "gpu_cluster", SPECS)
    return [(problem.host, problem.rule) for problem in found if problem.variable == name]


@pytest.mark.parametrize("name", NAMES)
def test_one_path_for_all_is_accepted(name: str) -> None:
    assert problems(name, "/a", "/a", "/a") == []
    assert problems(name, "", ..., "") == []


@pytest.mark.parametrize("name", NAMES)
def test_members_that_differ_are_refused(name: str) -> None:
    assert problems(name, "/a", "/b", "/a") == [("n2", controller_paths.ERR_DIFFERS % (2, 3, "'/a'"))]
    assert problems(name, ..., "/b", ...) == [("n2", controller_paths.ERR_DIFFERS % (2, 3, "the default"))]


def test_what_cannot_be_evaluated_is_another_problem() -> None:
    found = problems("ssh_mesh_ca_dir", Unreadable("'x' is undefined"), "/b", "/b")
    assert [host for host, _rule in found] == ["n1"] and "undefined" in found[0][1]
