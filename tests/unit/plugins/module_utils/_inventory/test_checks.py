# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that is refused before any host is contacted."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import checks
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.members import ERR_SAMPLE, Unreadable

SPECS: dict[str, dict[str, Any]] = {
    "common": {"common_group": {"type": "str"}},
    "cluster_check": {
        "cluster_check_iterations": {"type": "int"},
        "cluster_check_sizes_bytes": {"type": "list", "elements": "int"},
        "cluster_check_user": {"type": "str"},
    },
    "kernel_tuning": {
        "kernel_tuning_unsettable": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
        "kernel_tuning_extra": {
            "type": "list",
            "elements": "dict",
            "options": {"key": {"type": "str", "required": True}, "value": {"type": "str"}},
        },
        "kernel_tuning_count": {"type": "int", "required": True},
        "kernel_tuning_path": {"type": "path"},
    },
    "kernel": {"kernel_version": {"type": "str"}},
}


def inventory(**changes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    variables: dict[str, dict[str, Any]] = {
        f"n{number}": {
            "ansible_host": f"10.0.0.{number}",
            "gpu_cluster_fabric_address": f"10.1.0.{number}/24",
            "gpu_cluster_fabric_interface": "fab0",
        }
        for number in (1, 2, 3)
    }
    for host, values in changes.items():
        variables[host].update(values)
    return variables


def found(variables: dict[str, dict[str, Any]], hosts: list[str] | None = None) -> list[tuple[str, str, str]]:
    problems = checks.inventory_problems(variables, list(variables) if hosts is None else hosts, "gpu_cluster", SPECS)
    assert all(problem.fix and problem.rule for problem in problems)
    return [(problem.host, problem.variable, problem.rule) for problem in problems]


def test_a_good_inventory_has_no_problems() -> None:
    assert found(inventory(n1={"kernel_tuning_extra": [{"key": "a"}], "kernel_tuning_count": "3"})) == []


def test_an_empty_group() -> None:
    assert found({}) == [
        ("inventory", "gpu_cluster_group", "the group has no hosts in this inventory; expected at least 2 members")
    ]


def test_a_cluster_of_one() -> None:
    assert found(inventory(), ["n1"]) == [
        ("inventory", "gpu_cluster_group", "expected at least 2 members, found 1 (n1)")
    ]


def test_a_duplicate_fabric_address_names_both_hosts() -> None:
    assert found(inventory(n2={"gpu_cluster_fabric_address": "10.1.0.1/24"})) == [
        ("n1", "gpu_cluster_fabric_address", "is also the fabric address of n2"),
        ("n2", "gpu_cluster_fabric_address", "is also the fabric address of n1"),
    ]


def test_a_duplicate_ssh_address() -> None:
    assert found(inventory(n2={"ansible_host": "10.0.0.1"})) == [
        ("n1", "ansible_host", "is also the ssh address of n2"),
        ("n2", "ansible_host", "is also the ssh address of n1"),
    ]


def test_one_ssh_address_with_two_ports_is_two_machines() -> None:
    assert found(inventory(n2={"ansible_host": "10.0.0.1", "ansible_port": 2222})) == []


def test_the_fabric_address_of_a_cluster_with_one_network() -> None:
    assert found(inventory(n1={"ansible_host": "10.1.0.1"})) == []


def test_the_ssh_address_of_another_member() -> None:
    variables = inventory(n1={"ansible_host": "10.1.0.2"})
    assert found(variables) == [("n2", "gpu_cluster_fabric_address", "is the ssh address of another member, n1")]


def test_members_of_different_subnets() -> None:
    assert found(inventory(n3={"gpu_cluster_fabric_address": "10.2.0.3/24"})) == [
        (
            "n3",
            "gpu_cluster_fabric_address",
            "lies in 10.2.0.0/24, 2 of 3 members are in 10.1.0.0/24; "
            "members of different subnets are not supported yet",
        )
    ]


def test_sample_values() -> None:
    variables = inventory(
        n1={"ansible_host": "192.0.2.1"}, n2={"ansible_host": "2001:db8::2"}, n3={"ansible_host": "sample.example"}
    )
    assert found(variables) == [("n1", "ansible_host", ERR_SAMPLE), ("n2", "ansible_host", ERR_SAMPLE)]


def test_entries_that_cannot_be_evaluated() -> None:
    unreadable = Unreadable("'x' is undefined")
    variables = inventory(
        n1={"ansible_host": unreadable},
        n2={"gpu_cluster_ports": unreadable},
        n3={"kernel_tuning_count": unreadable, "gpu_cluster_fabric_address": unreadable},
    )
    rule = "cannot be evaluated: 'x' is undefined"
    assert found(variables) == [
        ("n1", "ansible_host", rule),
        ("n3", "gpu_cluster_fabric_address", rule),
        ("n2", "gpu_cluster_ports", rule),
        ("n3", "kernel_tuning_count", rule),
    ]


@pytest.mark.parametrize("name", ["10.0.0.9", "-x", "a b", "a/b"])
def test_a_name_that_the_hosts_file_cannot_hold(name: str) -> None:
    variables = inventory()
    variables[name] = variables.pop("n3")
    assert found(variables) == [(name, "inventory_hostname", checks.ERR_HOST_NAME)]


def test_the_port_plan_of_a_host() -> None:
    assert [entry[:2] for entry in found(inventory(n2={"gpu_cluster_ports": {"mpi": 7}}))] == [
        ("n2", "gpu_cluster_ports.mpi")
    ]


def test_port_plans_that_differ() -> None:
    variables = inventory(n2={"gpu_cluster_ports": {"rendezvous": "23000-23099"}}, n1={"gpu_cluster_ports": {}})
    assert found(variables) == [("n2", "gpu_cluster_ports", "differs from the port plan of 2 of 3 members")]


@pytest.mark.parametrize(
    ("name", "value", "rule", "fix"),
    [
        (
            "kernel_tuning_unsettable",
            "maybe",
            "value of kernel_tuning_unsettable must be one of: fail, report, got: maybe",
            "use one of: fail, report",
        ),
        (
            "kernel_tuning_extra",
            [{"ke": 1}],
            "missing required arguments: key found in kernel_tuning_extra; "
            "unknown kernel_tuning_extra.ke. Supported parameters include: key, value",
            "see the table of variables in roles/kernel_tuning/README.md",
        ),
        (
            "kernel_tuning_path",
            ["/x"],
            "expected a string, found a list",
            "see the table of variables in roles/kernel_tuning/README.md",
        ),
        (
            "kernel_tuning_unsettable",
            {"fail": True},
            "expected a string, found a dictionary",
            "use one of: fail, report",
        ),
        (
            "cluster_check_iterations",
            "0",
            "iterations is 0, expected 1 to 10000",
            "choose a value in this range",
        ),
        (
            "cluster_check_sizes_bytes",
            [4096, 3],
            "sizes_bytes is 3, expected 4 to 8589934592",
            "choose a value in this range",
        ),
        ("kernel_tuning_extras", [], checks.ERR_UNKNOWN, "write kernel_tuning_extra instead"),
        ("kernel_tuning_zzzzzzzzzzzzzzzzzzzz", [], checks.ERR_UNKNOWN, "remove it, or see the README of the role"),
        ("kernel_versions", "5", checks.ERR_UNKNOWN, "write kernel_version instead"),
        ("common_groups", "x", checks.ERR_UNKNOWN, "write common_group instead"),
        ("gpu_cluster_port", {}, checks.ERR_UNKNOWN, "write gpu_cluster_ports instead"),
    ],
)
def test_a_refused_variable(name: str, value: Any, rule: str, fix: str) -> None:
    problems = checks.inventory_problems(inventory(n2={name: value}), ["n1", "n2", "n3"], "gpu_cluster", SPECS)
    assert [(item.host, item.variable, item.rule, item.fix) for item in problems] == [("n2", name, rule, fix)]


def test_a_value_that_is_no_number_is_named() -> None:
    (entry,) = found(inventory(n2={"kernel_tuning_count": "many"}))
    assert entry[:2] == ("n2", "kernel_tuning_count")
    assert "int" in entry[2]


def test_values_at_the_ends_of_their_range_are_accepted() -> None:
    assert found(inventory(n1={"cluster_check_iterations": 1, "cluster_check_sizes_bytes": [4]})) == []


@pytest.mark.parametrize("name", ["common_packages", "common_members", "common_port_plan", "other_variable"])
def test_variables_that_are_none_of_our_business(name: str) -> None:
    assert found(inventory(n1={name: object()})) == []


def test_all_problems_come_at_once() -> None:
    variables = inventory(
        n1={"gpu_cluster_fabric_interface": None, "kernel_tuning_unsettable": "x"},
        n2={"gpu_cluster_fabric_address": "10.1.0.0/24", "gpu_cluster_ports": {"ssh": "x"}},
    )
    assert [entry[:2] for entry in found(variables)] == [
        ("n1", "gpu_cluster_fabric_interface"),
        ("n2", "gpu_cluster_fabric_address"),
        ("n2", "gpu_cluster_ports.ssh"),
        ("n1", "kernel_tuning_unsettable"),
    ]
