# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of etcd's members: alone, against the inventory, and against the port plan."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._etcd import spec

HOSTS = [f"gpu0{number}" for number in range(1, 8)]
PORTS = {"etcd": "2379-2380"}


def rules(value: Any) -> list[str]:
    return [problem.rule for problem in spec.problems(value)]


def in_inventory(**changes: dict[str, Any]) -> list[tuple[str, str]]:
    variables = {host: {"etcd_members": HOSTS[:3], "gpu_cluster_ports": PORTS} for host in HOSTS}
    for host, own in changes.items():
        variables[host] = own
    return [(problem.host, problem.rule) for problem in spec.inventory_problems(variables, HOSTS)]


@pytest.mark.parametrize("count", [0, 3, 5])
def test_none_three_or_five(count: int) -> None:
    assert not rules(HOSTS[:count])


@pytest.mark.parametrize("count", [1, 2, 4, 6, 7])
def test_other_numbers_are_refused(count: int) -> None:
    assert rules(HOSTS[:count]) == [spec.ERR_COUNT % count]


@pytest.mark.parametrize(
    ("value", "rule"), [("gpu01", spec.ERR_LIST), (["gpu01", "gpu02", "gpu01"], spec.ERR_TWICE), (None, spec.ERR_LIST)]
)
def test_what_is_no_list_of_hosts_is_refused(value: Any, rule: str) -> None:
    assert rules(value) == [rule]


def test_a_sound_inventory_has_no_problems() -> None:
    assert in_inventory() == []
    assert spec.inventory_problems({host: {} for host in HOSTS}, HOSTS) == []


def test_all_problems_of_an_inventory_at_once() -> None:
    members = ["gpu01", "gpu02", "gpu3"]
    variables: dict[str, dict[str, Any]] = {host: {"etcd_members": members} for host in HOSTS}
    variables["gpu04"] = {"etcd_members": HOSTS[:3], "gpu_cluster_ports": PORTS}
    found = spec.inventory_problems(variables, HOSTS)
    assert [(one.host, one.rule) for one in found] == [
        ("gpu01", spec.ERR_STRANGER),
        ("gpu01", spec.ERR_NO_PORTS),
        ("gpu04", spec.ERR_DIFFERS % "gpu01"),
    ]
    assert found[0].fix == "write gpu03" and '"2379-2380"' in found[1].fix
