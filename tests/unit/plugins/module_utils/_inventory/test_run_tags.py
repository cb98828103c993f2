# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tags of playbooks, as YAML reads them, and those that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.run_tags import (
    is_shipped,
    run_summary,
    start_problems,
    tag_problems,
    tags_of,
)

IMPORT = "ansible.builtin.import_playbook"
NETWORK: list[dict[str, Any]] = [
    {IMPORT: "baremetal.gpu_cluster.inventory"},
    {
        "hosts": "gpu_cluster",
        "tags": ["network"],
        "pre_tasks": [{"block": [{"ansible.builtin.debug": None, "tags": "always, reach"}]}],
        "roles": [{"role": "baremetal.gpu_cluster.static_network", "tags": ["static_network"]}],
    },
]
SHIPPED: dict[str, Any] = {
    "inventory": [{"hosts": "localhost", "tasks": [{"tags": ["always", "preflight"]}]}],
    "network": NETWORK,
    "gpu": [{"hosts": "gpu_cluster", "tags": ["gpu"], "roles": [{"role": "x.y.nccl", "tags": ["nccl"]}]}],
}
SITE = {"site.yml": [{IMPORT: "baremetal.gpu_cluster.network"}]}


def found(*wanted: str, skipped: tuple[str, ...] = ()) -> list[str]:
    return [problem.sentence() for problem in tag_problems(wanted, skipped, SITE, SHIPPED)]


def test_tags_are_those_of_plays_roles_blocks_and_imported_playbooks() -> None:
    assert tags_of(SITE["site.yml"], SHIPPED) == {"network", "always", "reach", "static_network", "preflight"}


@pytest.mark.parametrize("tag", ["network", "static_network", "preflight", "all", "tagged", "never"])
def test_a_tag_that_selects_something_is_no_problem(tag: str) -> None:
    assert found(tag) == []


def test_a_tag_of_another_playbook_is_refused_here() -> None:
    assert found("nccl") == [
        "--tags = 'nccl': no task of site.yml has this tag. "
        "Fix: choose among network, preflight, reach, static_network."
    ]


def test_the_nearest_tag_is_named() -> None:
    assert found("preflght", "networks", skipped=("statik_network",)) == [
        "--tags = 'preflght': no task of site.yml has this tag. Fix: write preflight.",
        "--tags = 'networks': no task of site.yml has this tag. Fix: write network.",
        "--skip-tags = 'statik_network': no task of this collection has this tag. Fix: write static_network.",
    ]


FILES: dict[tuple[str, str], Any] = {
    ("baremetal.gpu_cluster.static_network", "main"): [
        {"name": "Import more", "ansible.builtin.import_tasks": "more.yml"},
        {"name": "Include it", "ansible.builtin.include_tasks": "included.yml"},
    ],
    ("baremetal.gpu_cluster.static_network", "more.yml"): [
        {
            "name": "In a block",
            "block": [{"name": "Set it", "ansible.builtin.debug": None}],
            "always": [{"name": "Close it"}],
            "rescue": [{"name": "Undo it"}],
        }
    ],
    ("baremetal.gpu_cluster.static_network", "included.yml"): [{"name": "Only at run time"}],
    ("baremetal.gpu_cluster.common", "reach"): [{"name": "Look whether it answers"}],
}
REACH = {
    "ansible.builtin.import_role": {"name": "baremetal.gpu_cluster.common", "tasks_from": "reach"},
    "name": "Reach",
}
STARTS = {"network": [{**NETWORK[1], "post_tasks": [REACH]}]}


@pytest.mark.parametrize(
    "start",
    [
        *(
            "",
            "Set it",
            "Close it",
            "Include it",
            "Set *",
            "*: Set it",
            "baremetal.gpu_cluster.static_network : Set it",
        ),
        *("Look whether it answers", "Validating arguments against arg spec 'main' - Something"),
    ],
)
def test_a_task_at_which_ansible_can_start_is_no_problem(start: str) -> None:
    entries = [{IMPORT: "baremetal.gpu_cluster.network"}]
    assert start_problems(start, {"site.yml": entries}, STARTS, lambda role, file: FILES.get((role, file), [])) == []


@pytest.mark.parametrize(
    ("start", "fix"),
    [
        ("Set itt", "write 'Set it'"),
        ("Only at run time", "choose among those of --list-tasks"),
        ("Undo it", "choose among those of --list-tasks"),
        ("In a block", "choose among those of --list-tasks"),
        ("Import more", "choose among those of --list-tasks"),
    ],
)
def test_a_first_task_that_does_not_exist_is_refused(start: str, fix: str) -> None:
    found = start_problems(
        start, {"site.yml": STARTS["network"]}, STARTS, lambda role, file: FILES.get((role, file), [])
    )
    rule = "no task of site.yml has this name, or it is known only while the playbook runs"
    assert [one.sentence() for one in found] == [f"--start-at-task = {start!r}: {rule}. Fix: {fix}."]


def test_a_tag_of_another_playbook_may_be_skipped() -> None:
    assert found(skipped=("nccl", "gpu")) == []


@pytest.mark.parametrize(
    ("entries", "shipped"),
    [
        (SITE["site.yml"], True),
        ([{"import_playbook": "baremetal.gpu_cluster.gpu", "vars": {"x": 1}}], True),
        ([{IMPORT: "baremetal.gpu_cluster.gpu"}, {"hosts": "all", "tasks": []}], False),
        ([{IMPORT: "baremetal.gpu_cluster.elsewhere"}], False),
        ([{IMPORT: "other.yml"}], False),
        ([], False),
        (None, False),
        ("text", False),
        ([None], False),
    ],
)
def test_a_playbook_of_the_user_is_told_from_one_that_only_imports(entries: Any, shipped: bool) -> None:
    assert is_shipped(entries, SHIPPED) is shipped


@pytest.mark.parametrize(
    ("options", "ran", "verdict", "begins"),
    [
        ("", 3, "PASSED", "PASSED: ran all phases, on all 3 members"),
        ("--tags cluster_firewall,check", 3, "PASSED", "PASSED: ran with --tags cluster_firewall,check, on all 3"),
        ("--tags network", 3, "", "NOT VALIDATED: ran with --tags network, on all 3 members."),
        ("--limit n1", 1, "", "NOT VALIDATED: ran with --limit n1, on 1 of 3 members."),
        ("--check", 3, "NOT MEASURED", "NOT VALIDATED: ran with --check"),
        ("", 2, "PASSED", "NOT VALIDATED: ran all phases, on 2 of 3 members."),
    ],
)
def test_the_last_line_says_what_ran_and_whether_that_proves_anything(
    options: str, ran: int, verdict: str, begins: str
) -> None:
    assert run_summary(options, ran, 3, verdict).startswith(begins)
