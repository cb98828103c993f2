# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that is refused before any host is contacted."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import ERR_SAMPLE, Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import checks

SPECS: dict[str, dict[str, Any]] = {
    "common": {"common_group": {"type": "str"}},
    "cluster_check": {
        "cluster_check_iterations": {"type": "int"},
        "cluster_check_limits": {"type": "dict"},
        "cluster_check_sizes_bytes": {"type": "list", "elements": "int", "default": [4, 4096]},
        "cluster_check_user": {"type": "str"},
    },
    "kernel_tuning": {
        "kernel_tuning_unsettable": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
        "kernel_tuning_entries": {
            "type": "list",
            "elements": "dict",
            "options": {"key": {"type": "str", "required": True}, "value": {"type": "str"}},
        },
        "kernel_tuning_count": {"type": "int", "required": True},
        "kernel_tuning_path": {"type": "path"},
    },
    "cuda_toolkit": {"cuda_toolkit_versions": {"type": "list", "elements": "raw", "default": ["13.0"]}},
    "kernel": {"kernel_version": {"type": "str"}},
    "nccl": {
        "nccl_version": {"type": "str", "default": "2.28.9"},
        "nccl_cuda": {"type": "raw", "default": "13"},
    },
    "nvidia_driver": {"nvidia_driver_version": {"type": "str", "default": "580"}},
    "preflight": {"preflight_min_free_gib": {"type": "int"}},
    "static_network": {
        "static_network_interfaces": {"type": "list", "elements": "dict"},
        "static_network_hostname": {"type": "str"},
        "static_network_confirm_seconds": {"type": "int"},
    },
    "torch_runtime": {
        "torch_runtime_version": {"type": "str", "default": "2.13.0"},
        "torch_runtime_python": {"type": "path", "default": "/usr/bin/python3.12"},
        "torch_runtime_prefix": {"type": "path"},
    },
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
    assert found(inventory(n1={"kernel_tuning_entries": [{"key": "a"}], "kernel_tuning_count": "3"})) == []


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


@pytest.mark.parametrize(
    "reason",
    ["'hostvars' is undefined", "{{ hostvars['n1'].address }} refers to something undefined"],
    ids=["2.19", "2.16"],
)
def test_an_expression_with_hostvars_is_answered_with_what_works_instead(reason: str) -> None:
    """Ansible itself has no hostvars in what is read out of hostvars."""
    fix = Unreadable(reason).problem("gpu_cluster_user").fix
    assert fix == "write the value, or name a variable of this host: there is no hostvars when the inventory is read"


@pytest.mark.parametrize("name", ["10.0.0.9", "-x", "a b", "a/b"])
def test_a_name_that_the_hosts_file_cannot_hold(name: str) -> None:
    variables = inventory()
    variables[name] = variables.pop("n3")
    assert found(variables) == [(name, "inventory_hostname", checks.ERR_HOST_NAME)]


@pytest.mark.parametrize(
    "name", ["localhost", "LocalHost.localdomain", "ip6-localhost", "gpu01.localhost", "n3.LocalHost.localdomain"]
)
def test_a_name_that_means_the_loopback_address(name: str) -> None:
    variables = inventory()
    variables[name] = variables.pop("n3")
    assert found(variables) == [(name, "inventory_hostname", checks.ERR_LOOPBACK_NAME)]


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
            "kernel_tuning_entries",
            [{"ke": 1}],
            "missing required arguments: key found in kernel_tuning_entries; "
            "unknown kernel_tuning_entries.ke. Supported parameters include: key, value",
            "see the table of variables in roles/kernel_tuning/README.md",
        ),
        (
            "kernel_tuning_path",
            ["/x"],
            "expected a path, found a list",
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
        ("kernel_tuning_entriess", [], checks.ERR_UNKNOWN, "write kernel_tuning_entries instead"),
        (
            "kernel_tuning_zzzzzzzzzzzzzzzzzzzz",
            [],
            checks.ERR_UNKNOWN,
            "remove it, see the README of the role, or list it in preflight_own_variables",
        ),
        ("kernel_versions", "5", checks.ERR_UNKNOWN, "write kernel_version instead"),
        ("common_groups", "x", checks.ERR_UNKNOWN, "write common_group instead"),
        ("gpu_cluster_port", {}, checks.ERR_UNKNOWN, "write gpu_cluster_ports instead"),
    ],
)
def test_a_refused_variable(name: str, value: Any, rule: str, fix: str) -> None:
    problems = checks.inventory_problems(inventory(n2={name: value}), ["n1", "n2", "n3"], "gpu_cluster", SPECS)
    assert [(item.host, item.variable, item.rule, item.fix) for item in problems] == [("n2", name, rule, fix)]


@pytest.mark.parametrize(
    ("name", "value", "variable"),
    [
        ("kernel_tuning_extra", [{"key": "net.ipv4.tcp_rmem", "value": "4096 9 8"}], "kernel_tuning_extra[0]"),
        ("kernel_tuning_parameters", [{"ke": 1}], "kernel_tuning_parameters[0]"),
        ("kernel_tuning_link_gbit", "fast", "kernel_tuning_link_gbit"),
        ("kernel_tuning_rtt_ms", -1, "kernel_tuning_rtt_ms"),
        ("kernel_tuning_neighbours", -1, "kernel_tuning_neighbours"),
        ("kernel_tuning_ephemeral_range", {"first": 60999, "last": 32768}, "kernel_tuning_ephemeral_range"),
        ("kernel_tuning_reserved_ports", ["9-8"], "kernel_tuning_reserved_ports[0]"),
        ("kernel_tuning_limits", [{"item": "memlok", "value": "1", "reason": ""}], "kernel_tuning_limits[0].item"),
    ],
)
def test_kernel_tuning_is_checked_by_its_own_rules(name: str, value: Any, variable: str) -> None:
    specs = {**SPECS, "kernel_tuning": {**SPECS["kernel_tuning"], name: {"type": "raw"}}}
    problems = checks.inventory_problems(inventory(n2={name: value}), ["n1", "n2", "n3"], "gpu_cluster", specs)
    assert {(item.host, item.variable.split(" ")[0]) for item in problems} == {("n2", variable)}


def test_a_list_of_interfaces_is_checked_by_its_own_rules() -> None:
    entry = {"name": "fab0", "addresses": ["10.1.0.2/24"], "gateway": ["10.9.0.1"], "adresses": []}
    problems = checks.inventory_problems(
        inventory(n2={"static_network_interfaces": [entry]}), ["n1", "n2", "n3"], "gpu_cluster", SPECS
    )
    assert [(item.host, item.variable) for item in problems] == [
        ("n2", "static_network_interfaces[0].adresses"),
        ("n2", "static_network_interfaces[0].gateway[0]"),
    ]
    assert problems[0].fix == "write addresses instead"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("static_network_interfaces", "fab0"),
        ("static_network_hostname", "not a name"),
        ("static_network_confirm_seconds", 1),
    ],
)
def test_other_values_with_rules_of_their_own(name: str, value: Any) -> None:
    assert [entry[:2] for entry in found(inventory(n1={name: value}))] == [("n1", name)]


def test_an_address_in_a_list_of_interfaces_that_another_member_has() -> None:
    entries = [{"name": "fab0", "addresses": ["10.1.0.1/24", "10.1.0.2/24"]}]
    assert found(inventory(n1={"static_network_interfaces": entries})) == [
        ("n1", "static_network_interfaces[0].addresses[1]", "is also the fabric address of n2")
    ]


def test_versions_that_cannot_go_together_with_the_defaults_of_the_role() -> None:
    variables = inventory(
        n1={"torch_runtime_python": "/usr/bin/python3.9"},
        n2={"torch_runtime_python": "/usr/bin/python3.9", "torch_runtime_version": "2.8.0"},
        n3={"torch_runtime_python": "/usr/bin/python3.9", "torch_runtime_version": Unreadable("no")},
    )
    assert found(variables) == [
        ("n3", "torch_runtime_version", "cannot be evaluated: no"),
        ("n1", "torch_runtime_python", "PyTorch 2.13.0 needs Python 3.10 or newer"),
    ]


def test_nccl_is_judged_in_the_build_that_it_will_have() -> None:
    old = {"nvidia_driver_version": "570", "cuda_toolkit_versions": ["12.8"]}
    variables = inventory(
        n1=old, n2={**old, "nccl_cuda": "13.0"}, n3={**old, "gpu_cluster_gpus": 0, "nccl_cuda": "13.0"}
    )
    assert found(variables) == [
        ("n2", "nccl_cuda", "CUDA 13.0 needs a driver of branch 580 or newer, and nvidia_driver_version is '570'")
    ]


@pytest.mark.parametrize(
    ("name", "value", "prevents"),
    [
        ("ansible_host", "10.0.0.1", True),
        ("ansible_host", "192.0.2.2", True),
        ("ansible_host", Unreadable("no"), True),
        ("preflight_min_free_gib", "much", True),
        ("preflight_min_free_gb", 3, False),
        ("gpu_cluster_fabric_interface", Unreadable("no"), True),
        ("gpu_cluster_fabric_interface", 7, True),
        ("gpu_cluster_fabric_interface", "a name", False),
        ("gpu_cluster_fabric_interface", None, False),
        ("gpu_cluster_fabric_address", Unreadable("no"), False),
        ("gpu_cluster_fabric_address", "10.1.0.1/24", False),
        ("static_network_interfaces", Unreadable("no"), True),
        ("static_network_interfaces", "fab0", True),
        ("static_network_interfaces", ["fab0"], True),
        ("static_network_interfaces", [{"nme": "fab0"}], False),
        ("torch_runtime_prefix", Unreadable("no"), True),
        ("torch_runtime_prefix", ["/opt"], True),
        ("torch_runtime_python", ["/opt"], False),
        ("kernel_tuning_count", "many", False),
        ("gpu_cluster_ports", 7, False),
        ("gpu_cluster_gpus", "eight", True),
    ],
)
def test_what_prevents_a_look_at_the_hosts(name: str, value: Any, prevents: bool) -> None:
    variables = inventory(n2={name: value})
    problems = checks.inventory_problems(variables, list(variables), "gpu_cluster", SPECS)
    assert problems
    assert {checks.prevents_looking(problem, variables) for problem in problems} == {prevents}


def test_a_cluster_of_one_can_be_looked_at() -> None:
    (problem,) = checks.inventory_problems(inventory(), ["n1"], "gpu_cluster", SPECS)
    assert not checks.prevents_looking(problem, inventory())


def test_a_value_that_is_no_number_is_named() -> None:
    (entry,) = found(inventory(n2={"kernel_tuning_count": "many"}))
    assert entry[:2] == ("n2", "kernel_tuning_count")
    assert entry[2] == "expected a whole number, in the digits 0 to 9, found a string"
    assert not found(inventory(n2={"cluster_check_sizes_bytes": [4, "4096"]}))


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


def limits_for(size: int) -> dict[str, Any]:
    return {"sizes": [{"size_bytes": size, "milliseconds_max": 5}]}


@pytest.mark.parametrize(
    ("own", "rule"),
    [
        ({"cluster_check_limits": limits_for(4096)}, None),
        ({"cluster_check_limits": limits_for(8), "cluster_check_sizes_bytes": [8]}, None),
        ({"cluster_check_limits": limits_for(8)}, "no such size is measured, cluster_check_sizes_bytes has 4, 4096"),
        (
            {"cluster_check_limits": limits_for(4096), "cluster_check_sizes_bytes": [8]},
            "no such size is measured, cluster_check_sizes_bytes has 8",
        ),
    ],
)
def test_a_limit_for_a_size_that_the_check_does_not_measure(own: dict[str, Any], rule: str | None) -> None:
    problems = found(inventory(n2=own))
    assert problems == ([("n2", "cluster_check_limits.sizes, size_bytes", rule)] if rule else [])


def test_all_problems_of_the_limits_come_at_once() -> None:
    sizes = [{"size_bytes": 8}, {"size_bytes": 12, "milliseconds_max": 5}]
    limits = {"sizes": sizes, "links": {"retransmit_max": 1, "bytes_per_second_min": "fast"}}
    problems = found(inventory(n2={"cluster_check_limits": limits}))
    assert [variable for _host, variable, _rule in problems] == [
        "cluster_check_limits.sizes[0]",
        "cluster_check_limits.links.retransmit_max",
        "cluster_check_limits.links.bytes_per_second_min",
        "cluster_check_limits.sizes, size_bytes",
    ]
