# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Enterprise Linux a lab stands in for, and that two of them share nothing that one could remove."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab import flavour, image, vm
from lab.flavour import FLAVOURS
from lab.settings import Paths
from lab.shell import LabError

CHECKOUT = Path("/checkout")


def chosen(tmp_path: Path, owner: object = None) -> int:
    file = tmp_path / "owner.json"
    if owner is not None:
        file.write_text(json.dumps(owner))
    return flavour.chosen(file, CHECKOUT)


@pytest.mark.parametrize(
    ("variable", "owner", "expected"),
    [
        ("", None, 9),
        ("10", None, 10),
        ("9", {"checkout": "/checkout", "el": 10}, 9),
        # What is up says it for the commands that follow.
        ("", {"checkout": "/checkout", "el": 10}, 10),
        # That of another checkout is replaced.
        ("", {"checkout": "/other", "el": 10}, 9),
        ("", {"checkout": "/checkout", "el": 11}, 9),
        ("", {"checkout": "/checkout"}, 9),
        ("", [], 9),
    ],
)
def test_the_flavour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, owner: object, expected: int
) -> None:
    monkeypatch.setenv(flavour.VARIABLE, variable)
    assert chosen(tmp_path, owner) == expected


@pytest.mark.parametrize("text", ["8", "el10", "stream", " 9", "٩"])
def test_one_that_there_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(flavour.VARIABLE, text)
    with pytest.raises(LabError, match=r"LAB_EL is .* expected 9 or 10"):
        chosen(tmp_path)


def test_no_flavour_can_remove_what_another_one_has_made() -> None:
    labs = [Paths(CHECKOUT, Path("/cache"), el) for el in FLAVOURS]
    machines = [vm.MachinePaths(CHECKOUT, Path("/cache"), el) for el in FLAVOURS]
    for folders in (
        [one.image_cache for one in labs],
        [one.disks for one in machines],
        [one.saved for one in machines],
    ):
        assert len(set(folders)) == len(FLAVOURS)
    # The wheels are the same for all.
    assert len({one.wheels for one in labs}) == 1


def test_an_image_changes_with_its_own_recipe_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "RECIPE", tmp_path)
    for el in FLAVOURS:
        (tmp_path / f"el{el}").mkdir()
    (tmp_path / "debian-packages.txt").write_text("bash\n")
    before = {el: image.node_reference(one) for el, one in FLAVOURS.items()}
    (tmp_path / "el10" / "packages.toml").write_text("new")
    after = {el: image.node_reference(one) for el, one in FLAVOURS.items()}
    assert (after[9] == before[9]) and (after[10] != before[10]) and len(set(after.values())) == len(FLAVOURS)


@pytest.mark.parametrize("el", FLAVOURS)
def test_the_files_of_a_flavour_say_what_it_is(el: int) -> None:
    folder = image.recipe(FLAVOURS[el])
    files = folder / "files"
    release = dict(line.split("=", 1) for line in (files / "usr/lib/os-release").read_text().splitlines())
    assert release["VERSION_ID"] == f'"{el}"' and release["PLATFORM_ID"] == f'"platform:el{el}"'
    assert (files / "etc/dnf/vars/releasever").read_text() == f"{el}\n"
    for name in ("etc/redhat-release", "etc/centos-release"):
        assert (files / name).read_text().startswith(f"CentOS Stream release {el}")
    others = [f"el{one}" for one in FLAVOURS if one != el]
    assert not any(f".{other}" in (folder / "packages.toml").read_text() for other in others)
