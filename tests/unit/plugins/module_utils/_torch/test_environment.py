# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which environment is wanted, and which of those on the disk it is."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import environment as core
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.environment import Environment, Wanted
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.lock import text_digest
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.pins import parse_requirements

TORCH = parse_requirements(["torch==2.13.0"])
LOCK = "torch==2.13.0+cpu --hash=sha256:" + "1" * 64
OTHER_LOCK = LOCK.replace("1" * 64, "2" * 64)


def inputs(**changes: Any) -> dict[str, Any]:
    values = {"python": "/usr/bin/python3", "python_version": "3.12", "find_links": "", "index_url": "", **changes}
    return core.make_inputs(values.pop("requirements", TORCH), **values)


WANTED = Wanted(inputs(), text_digest(LOCK))
ANY_LOCK = Wanted(inputs())
NAME = f"torch-{WANTED.digest}"


def environment(name: str = NAME, **changes: Any) -> Environment:
    packages = {"torch": "2.13.0+cpu", "sympy": "1.13.3"}
    values: dict[str, Any] = {
        "name": name,
        "inputs": inputs(),
        "lock": LOCK,
        "recorded": packages,
        "installed": packages,
        "has_python": True,
        **changes,
    }
    return Environment(**values)


def decision(environments: list[Environment], linked: str, wanted: Wanted = WANTED) -> tuple[str, bool, bool]:
    found = core.decide("torch", wanted, environments, linked)
    return found.name, found.build, found.switch


def test_packages_out_of_folder_names() -> None:
    entries = [
        "torch-2.13.0+cpu.dist-info",
        "typing_extensions-4.12.2.dist-info",
        "torch",
        "ruamel.yaml-0.18.dist-info",
    ]
    assert core.installed_packages(entries) == {
        "torch": "2.13.0+cpu",
        "typing-extensions": "4.12.2",
        "ruamel-yaml": "0.18",
    }


def test_the_order_of_the_requirements_means_nothing() -> None:
    pair = parse_requirements(["torch==2.13.0", "numpy==2.0"])
    assert inputs(requirements=pair) == inputs(requirements=pair[::-1])


def test_the_name_stands_for_the_lock_and_the_interpreter() -> None:
    others = [
        Wanted(inputs(), text_digest(OTHER_LOCK)),
        Wanted(inputs(python="/usr/bin/python3.12"), WANTED.lock),
        Wanted(inputs(python_version="3.13"), WANTED.lock),
    ]
    assert len({WANTED.digest, *(other.digest for other in others)}) == 4
    assert Wanted(inputs(index_url="https://mirror.example.com"), WANTED.lock).digest == WANTED.digest


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("torch-0123456789ab", True),
        ("torch-0123456789ab.2", True),
        ("torch-0123456789ab.old", False),
        ("torch-0123456789abc", False),
        ("torch", False),
        ("torch.new", False),
        ("torch.adopted.json", False),
        ("xtorch-0123456789ab", False),
    ],
)
def test_only_our_own_folders_are_ever_removed(name: str, ours: bool) -> None:
    assert core.is_environment_name("torch", name) is ours


def test_nothing_there_is_built() -> None:
    assert decision([], "") == (NAME, True, True)


def test_what_is_in_use_and_intact_is_kept() -> None:
    assert decision([environment()], NAME) == (NAME, False, False)
    assert not core.decide("torch", WANTED, [environment()], NAME).changed


def test_another_source_of_the_same_files_changes_nothing() -> None:
    moved = Wanted(inputs(find_links="/srv/elsewhere"), WANTED.lock)
    assert decision([environment()], NAME, moved) == (NAME, False, False)


def test_another_lock_is_another_environment() -> None:
    assert decision([environment(lock=OTHER_LOCK)], NAME)[1:] == (True, True)
    assert decision([environment(inputs=inputs(python_version="3.13"))], NAME)[1:] == (True, True)


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, True),
        ({"lock": OTHER_LOCK}, True),
        ({"lock": ""}, False),
        ({"inputs": inputs(find_links="/old")}, False),
        ({"inputs": inputs(requirements=parse_requirements(["torch==2.12.0"]))}, False),
    ],
)
def test_without_a_lock_what_was_resolved_from_the_same_inputs_is_kept(changes: dict[str, Any], kept: bool) -> None:
    assert decision([environment(**changes)], NAME, ANY_LOCK)[1] is not kept


def test_what_is_on_the_disk_is_switched_to() -> None:
    old = environment("torch-000000000000", lock=OTHER_LOCK)
    assert decision([old, environment()], old.name) == (NAME, False, True)


def test_an_interrupted_build_is_built_again_under_its_name() -> None:
    left = environment(inputs=None, recorded={})
    assert decision([left], "") == (NAME, True, True)
    assert core.incomplete([left, environment("torch-1")], "") == [NAME]


@pytest.mark.parametrize(
    "damage",
    [{"installed": {"torch": "2.13.0+cpu"}}, {"installed": {}}, {"has_python": False}, {"recorded": {}}],
)
def test_a_damaged_one_in_use_is_replaced_beside_it(damage: dict[str, Any]) -> None:
    assert decision([environment(**damage)], NAME) == (NAME + ".2", True, True)


def test_packages_that_somebody_added_are_no_damage() -> None:
    added = {"torch": "2.13.0+cpu", "sympy": "1.13.3", "numpy": "2.0"}
    assert decision([environment(installed=added)], NAME) == (NAME, False, False)


def test_an_environment_in_use_is_never_called_incomplete() -> None:
    assert core.incomplete([environment(inputs=None)], NAME) == []


@pytest.mark.parametrize(
    ("previous", "keep", "gone"),
    [
        ("b", 1, ["c", "d"]),
        ("d", 1, ["b", "c"]),
        ("d", 0, ["d", "b", "c"]),
        ("", 2, ["d"]),
        ("a", 5, []),
    ],
)
def test_pruning_keeps_the_one_used_before(previous: str, keep: int, gone: list[str]) -> None:
    assert core.superfluous(["a", "b", "c", "d"], "a", previous, keep) == gone
