# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a scheduler has to know of the members, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff import members

HOSTS = ["gpu01", "gpu02"]
VARIABLES: dict[str, dict[str, Any]] = {
    name: {
        "ansible_host": f"10.1.1.{number}",
        "gpu_cluster_fabric_address": f"10.9.0.{number}/24",
        "gpu_cluster_fabric_interface": "ens1f0",
        "gpu_cluster_gpus": "8" if number == 2 else 8,
    }
    for number, name in enumerate(HOSTS, 1)
}
FACTS = {
    "ansible_processor_count": 2,
    "ansible_processor_cores": 48,
    "ansible_processor_threads_per_core": 2,
    "ansible_processor_vcpus": 192,
    "ansible_memtotal_mb": 2063580,
}


def test_members_as_the_inventory_describes_them() -> None:
    found, problems = members.handoff_members(VARIABLES, HOSTS)
    assert problems == []
    assert found[1] == {
        "name": "gpu02",
        "fabric_address": "10.9.0.2",
        "fabric_prefix": 24,
        "fabric_interface": "ens1f0",
        "management_address": "10.1.1.2",
        "gpus": 8,
    }


def test_cores_and_memory_are_numbers_of_the_nodes() -> None:
    found, problems = members.handoff_members(VARIABLES, HOSTS, {name: {"ansible_facts": FACTS} for name in HOSTS})
    assert problems == []
    assert {name: found[0][name] for name in members.FACTS} == {
        "sockets": 2,
        "cores_per_socket": 48,
        "threads_per_core": 2,
        "cpus": 192,
        "memory_mb": 2063580,
    }


@pytest.mark.parametrize("value", ["2\nNodeName=evil", "{{ 1 }}", -1, 0, None, [2], 1e9, 2**40])
def test_what_a_node_sends_instead_of_a_number_is_refused(value: Any) -> None:
    sent = {"gpu01": {"ansible_facts": FACTS}, "gpu02": {"ansible_facts": {**FACTS, "ansible_processor_count": value}}}
    found, problems = members.handoff_members(VARIABLES, HOSTS, sent)
    assert [(one.host, one.rule) for one in problems] == [("gpu02", "the node has sent no usable processor_count")]
    assert "sockets" not in found[1]


@pytest.mark.parametrize("answer", [None, "no", {"unreachable": True}, {"ansible_facts": "x"}])
def test_a_node_without_an_answer_is_refused(answer: Any) -> None:
    _found, problems = members.handoff_members(VARIABLES, HOSTS, {"gpu01": {"ansible_facts": FACTS}, "gpu02": answer})
    assert [one.host for one in problems] == ["gpu02"] and "memtotal_mb" in problems[0].rule


@pytest.mark.parametrize("value", [None, -1, "-1", "many", 65])
def test_the_number_of_gpus_is_needed(value: Any) -> None:
    wrong = {**VARIABLES, "gpu02": {**VARIABLES["gpu02"], "gpu_cluster_gpus": value}}
    found, problems = members.handoff_members(wrong, HOSTS)
    assert [(one.host, one.variable) for one in problems] == [("gpu02", "gpu_cluster_gpus")]
    assert "gpus" not in found[1]


def test_a_machine_without_gpus_has_the_number_0() -> None:
    wrong = {**VARIABLES, "gpu02": {**VARIABLES["gpu02"], "gpu_cluster_gpus": 0}}
    assert [one["gpus"] for one in members.handoff_members(wrong, HOSTS)[0]] == [8, 0]


@pytest.mark.parametrize(
    ("given", "names"),
    [(None, HOSTS), ("gpu02", ["gpu02"]), ("gpu02, gpu01", HOSTS), (["gpu02", "gpu01"], HOSTS)],
)
def test_members_by_name_keep_the_order_of_the_inventory(given: Any, names: list[str]) -> None:
    assert members.chosen(given, HOSTS, "kubernetes_hosts") == (names, [])


@pytest.mark.parametrize(
    ("given", "fixes"),
    [
        ("gpu1,gpu09", ["write gpu01", "name some of gpu01, gpu02"]),
        ("gpu01,gpu01", ["name it once"]),
        ("", ["name members, or leave it out"]),
        (7, ["write it like gpu01,gpu02"]),
    ],
)
def test_names_that_are_wrong_are_listed_at_once(given: Any, fixes: list[str]) -> None:
    _names, problems = members.chosen(given, HOSTS, "kubernetes_hosts")
    assert [(one.host, one.variable, one.fix) for one in problems] == [
        ("command line", "kubernetes_hosts", fix) for fix in fixes
    ]


def test_a_member_without_an_address_is_refused() -> None:
    wrong = {**VARIABLES, "gpu02": {"gpu_cluster_fabric_interface": "ens1f0"}}
    found, problems = members.handoff_members(wrong, HOSTS)
    assert found == [] and [one.host for one in problems] == ["gpu02"]
