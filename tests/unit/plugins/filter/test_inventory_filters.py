# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of the inventory as playbooks call them, against the real argument specs of the roles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.filter.beside_inventory import beside_inventory
from ansible_collections.baremetal.gpu_cluster.plugins.filter.cluster_members import cluster_members
from ansible_collections.baremetal.gpu_cluster.plugins.filter.host_problems import host_problems
from ansible_collections.baremetal.gpu_cluster.plugins.filter.hosts_block import hosts_block
from ansible_collections.baremetal.gpu_cluster.plugins.filter.inventory_problems import inventory_problems, role_specs
from ansible_collections.baremetal.gpu_cluster.plugins.filter.member_slots import member_slots
from ansible_collections.baremetal.gpu_cluster.plugins.filter.play_targets import play_targets
from ansible_collections.baremetal.gpu_cluster.plugins.filter.port_plan import port_plan
from ansible_collections.baremetal.gpu_cluster.plugins.filter.problem_table import problem_table

HOSTVARS: dict[str, dict[str, Any]] = {
    f"n{number}": {
        "ansible_host": f"10.0.0.{number}",
        "gpu_cluster_fabric_address": f"10.1.0.{number}/24",
        "gpu_cluster_fabric_interface": "fab0",
        "site_variable": "{{ nothing }}",
    }
    for number in (1, 2)
}


def test_a_good_inventory_passes_all_filters() -> None:
    assert inventory_problems(HOSTVARS, ["n1", "n2"], "gpu_cluster") == []
    members = cluster_members(HOSTVARS, ["n1", "n2"])
    assert [member["fabric_address"] for member in members] == ["10.1.0.1", "10.1.0.2"]
    assert "10.1.0.2 n2" in hosts_block(members)
    assert port_plan({})["firewall_ports"][0] == "29400-29599/tcp"


def test_the_specs_of_the_roles_are_used() -> None:
    hostvars = {
        **HOSTVARS,
        "n2": {**HOSTVARS["n2"], "kernel_tuning_unsettable": "maybe", "torch_runtime_versions": "1"},
    }
    found = inventory_problems(hostvars, ["n1", "n2"], "gpu_cluster")
    assert [(entry["host"], entry["variable"]) for entry in found] == [
        ("n2", "kernel_tuning_unsettable"),
        ("n2", "torch_runtime_versions"),
    ]
    text = problem_table(found, ["n1", "n2"])
    assert text.splitlines()[1].endswith("Fix: write torch_runtime_version instead.")


def test_a_problem_says_whether_the_hosts_can_be_looked_at() -> None:
    hostvars = {
        "n1": {**HOSTVARS["n1"], "torch_runtime_python": "/usr/bin/python3.9"},
        "n2": {**HOSTVARS["n2"], "ansible_host": "192.0.2.2"},
    }
    found = inventory_problems(hostvars, ["n1", "n2"], "gpu_cluster")
    assert [(entry["host"], entry["variable"], entry["prevents_looking"]) for entry in found] == [
        ("n2", "ansible_host", True),
        ("n1", "torch_runtime_python", False),
    ]
    assert len(problem_table(found, ["n1", "n2"]).splitlines()) == 2


def test_every_role_with_variables_is_among_the_specs() -> None:
    roles = Path(__file__).resolve().parents[4] / "roles"
    names = {path.name for path in roles.iterdir() if path.is_dir()}
    specs = role_specs(roles)
    assert set(specs) == names
    assert all(specs.values())


def test_a_collection_without_roles_is_no_good_inventory(tmp_path: Path) -> None:
    with pytest.raises(AnsibleFilterError, match="the collection is not complete"):
        role_specs(tmp_path)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, "gpu_cluster"),
        ({"gpu_cluster_group": "rack1"}, "rack1"),
        ({"gpu_cluster_group": "rack1", "__gpu_cluster_targets": ["n2", "n3"]}, ["n2", "n3"]),
        ({"gpu_cluster_group": "rack1", "__gpu_cluster_targets": ""}, "rack1"),
    ],
)
def test_the_phases_run_on_the_members_or_on_some_of_them(own: dict[str, Any], expected: object) -> None:
    assert play_targets(own) == expected


def test_filters_raise_with_all_reasons() -> None:
    with pytest.raises(AnsibleFilterError, match=r"(?s)n1: gpu_cluster_fabric_address.*n2: gpu_cluster_fabric_address"):
        cluster_members({"n1": {}, "n2": {}}, ["n1", "n2"])
    with pytest.raises(AnsibleFilterError, match=r"(?s)gpu_cluster_ports\.ssh.*gpu_cluster_ports\.mpi"):
        port_plan({"ssh": "x", "mpi": 1})


def test_host_problems_reads_the_registered_results() -> None:
    hostvars: dict[str, dict[str, Any]] = {"n1": {"looked": {"problems": []}}, "n2": {}}
    assert [entry["host"] for entry in host_problems(hostvars, ["n1", "n2"], "looked")] == ["n2"]


def test_host_problems_compares_what_the_nodes_call_themselves() -> None:
    """A node that is going to be named by static_network is judged by that name."""
    answer: dict[str, Any] = {"problems": [], "observed": {"hostname": "localhost.localdomain"}}
    hostvars: dict[str, dict[str, Any]] = {
        "n1": {"looked": answer, "static_network_hostname": "n1"},
        "n2": {"looked": answer},
        "n3": {"looked": {"problems": [], "observed": {"hostname": "n1"}}},
    }
    found = host_problems(hostvars, ["n1", "n2", "n3"], "looked")
    assert [(entry["host"], entry["value"]) for entry in found] == [
        ("n1", "'n1'"),
        ("n2", "'localhost.localdomain'"),
        ("n3", "'n1'"),
    ]
    assert host_problems(hostvars, ["n1", "n2"], "looked", "notes") == []


def test_host_problems_reads_the_notes() -> None:
    note = {"variable": "kernel", "value": "5", "rule": "is old", "fix": "reboot", "host": ""}
    hostvars: dict[str, dict[str, Any]] = {"n1": {"looked": {"problems": [], "notes": [note]}}, "n2": {}}
    assert host_problems(hostvars, ["n1", "n2"], "looked", "notes") == [{**note, "host": "n1"}]


def test_ranks_are_counted_on_the_members_that_were_looked_at() -> None:
    eight = {"problems": [], "observed": {"gpus": ["0000:1b:00.0"] * 8, "hostname": "n1"}}
    hostvars: dict[str, dict[str, Any]] = {
        "n1": {"looked": eight},
        "n2": {"looked": eight, "gpu_cluster_gpus": 4},
        "n3": {},
    }
    assert member_slots(hostvars, ["n1", "n2", "n3"], "looked") == {"n1": 8, "n2": 4, "n3": -1}


def test_host_problems_notes_more_gpus_than_ranks() -> None:
    eight = {"problems": [], "observed": {"gpus": ["0000:1b:00.0"] * 8}}
    hostvars: dict[str, dict[str, Any]] = {
        "n1": {"looked": eight, "launcher_slots": 1},
        "n2": {"looked": eight, "gpu_cluster_ports": {"ranks_per_node": 4}},
        "n3": {"looked": eight, "gpu_cluster_ports": {"mpi": 7}},
        "n4": {"looked": eight},
    }
    notes = host_problems(hostvars, list(hostvars), "looked", "notes")
    assert [(note["host"], note["variable"]) for note in notes] == [
        ("n1", "launcher_slots"),
        ("n2", "gpu_cluster_ports.ranks_per_node"),
    ]


def test_the_runtime_asks_for_the_ranks_by_the_name_that_preflight_registers() -> None:
    root = Path(__file__).resolve().parents[4]
    registered = {
        task.get("register") for task in yaml.safe_load((root / "roles/preflight/tasks/hosts.yml").read_text())
    }
    asked = re.findall(r"member_slots\([^,]*, '(\w+)'\)", (root / "playbooks" / "runtime.yml").read_text())
    assert len(asked) == 1 and asked[0] in registered


def test_a_file_beside_the_inventory_is_one_for_all_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "prod" / "rack1" / "hosts.yml"
    inner.parent.mkdir(parents=True)
    inner.touch()
    folder = str(tmp_path / "prod")
    assert beside_inventory([folder, str(inner)], "lock") == f"{folder}/lock"
    assert beside_inventory([str(inner)], "lock") == f"{folder}/rack1/lock"
    assert beside_inventory(["n1,n2", folder], "lock") == f"{folder}/lock"
    assert beside_inventory(["n1,n2"], "lock") == "" == beside_inventory([], "lock")
    monkeypatch.chdir(tmp_path)
    assert beside_inventory(["prod/"], "lock") == f"{folder}/lock"
