# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which environment is wanted, and which of those on the disk it is."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _torch_environment as core
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch_environment import Environment

TORCH = core.parse_requirements(["torch==2.13.0"])


def inputs(**changes: Any) -> dict[str, Any]:
    values = {"python": "/usr/bin/python3", "python_version": "3.12.1", "find_links": "", "index_url": "", **changes}
    return core.make_inputs(values.pop("requirements", TORCH), **values)


WANTED = inputs()
NAME = f"torch-{core.digest(WANTED)}"


def environment(name: str = NAME, **changes: Any) -> Environment:
    packages = {"torch": "2.13.0+cpu", "sympy": "1.13.3"}
    values: dict[str, Any] = {
        "name": name,
        "inputs": WANTED,
        "recorded": packages,
        "installed": packages,
        "has_python": True,
        **changes,
    }
    return Environment(**values)


def decision(environments: list[Environment], linked: str) -> tuple[str, bool, bool]:
    found = core.decide("torch", WANTED, environments, linked)
    return found.name, found.build, found.switch


def test_pins() -> None:
    found = core.parse_requirements(["torch==2.13.0", " Typing_Extensions == 4.12.2 ", "a[b,c]==1!2.0+cu130"])
    assert [(item.name, item.version, item.text) for item in found] == [
        ("torch", "2.13.0", "torch==2.13.0"),
        ("typing-extensions", "4.12.2", "Typing_Extensions==4.12.2"),
        ("a", "1!2.0+cu130", "a[b,c]==1!2.0+cu130"),
    ]


def test_all_input_problems_at_once() -> None:
    with pytest.raises(core.InputError) as caught:
        core.parse_requirements(["torch", "torch>=2", "-r file", "a==1", "A==2", "b==1.*"])
    assert caught.value.problems == [
        "requirements[0]: expected exactly one version, such as 'torch==2.13.0', found 'torch'",
        "requirements[1]: expected exactly one version, such as 'torch==2.13.0', found 'torch>=2'",
        "requirements[2]: expected exactly one version, such as 'torch==2.13.0', found '-r file'",
        "requirements[4]: a is listed more than once",
        "requirements[5]: expected exactly one version, such as 'torch==2.13.0', found 'b==1.*'",
    ]
    with pytest.raises(core.InputError, match="expected at least one"):
        core.parse_requirements([])


@pytest.mark.parametrize(
    ("pin", "version", "accepted"),
    [
        ("torch==2.13.0", "2.13.0", True),
        ("torch==2.13.0", "2.13.0+cpu", True),
        ("torch==2.13.0", "2.13.1", False),
        ("torch==2.13.0+cu130", "2.13.0+cpu", False),
        ("torch==2.13.0+cu130", "2.13.0+cu130", True),
        ("torch==2.13.0", "", False),
    ],
)
def test_a_pin_without_a_local_part_takes_any_build(pin: str, version: str, accepted: bool) -> None:
    assert core.parse_requirements([pin])[0].accepts(version) is accepted


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


def test_missing_packages() -> None:
    wanted = core.parse_requirements(["torch==2.13.0", "numpy==2.0"])
    assert core.missing_packages(wanted, {"torch": "2.13.0+cpu"}) == ["wanted numpy==2.0, found nothing"]
    assert core.missing_packages(TORCH, {"torch": "2.12.0"}) == ["wanted torch==2.13.0, found 2.12.0"]


def test_the_digest_stands_for_every_input_but_not_for_the_order() -> None:
    pair = core.parse_requirements(["torch==2.13.0", "numpy==2.0"])
    same = {core.digest(inputs(requirements=pair)), core.digest(inputs(requirements=pair[::-1]))}
    others = {
        core.digest(inputs()),
        core.digest(inputs(python="/usr/bin/python3.12")),
        core.digest(inputs(python_version="3.12.2")),
        core.digest(inputs(find_links="/srv")),
        core.digest(inputs(index_url="https://index.invalid")),
    }
    assert len(same) == 1
    assert len(others | same) == 6


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("torch-0123456789ab", True),
        ("torch-0123456789ab.2", True),
        ("torch-0123456789ab.old", False),
        ("torch-0123456789abc", False),
        ("torch", False),
        ("torch.new", False),
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


def test_what_is_on_the_disk_is_switched_to() -> None:
    old = environment("torch-000000000000", inputs=inputs(find_links="/old"))
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
