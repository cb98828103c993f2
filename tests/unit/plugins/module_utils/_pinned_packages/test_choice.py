# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which version it is going to be."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import choice
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import Evr, Package
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.spec import PackageSpec


def package(name: str, version: str, release: str = "1.el9", epoch: str = "0", arch: str = "x86_64") -> Package:
    return Package(name, Evr(epoch, version, release), arch)


CUDA = [package("nvidia-driver-cuda", version, epoch="3") for version in ("570.172.08", "580.82.07", "580.95.05")]
MANAGER = [package("nvidia-fabricmanager", version, "1") for version in ("570.172.08", "580.82.07")]
BRANCH = [
    PackageSpec(name, "580", "580", f"packages[{name}].version")
    for name in ("nvidia-driver-cuda", "nvidia-fabricmanager")
]


def chosen(spec: list[PackageSpec], installed: list[Package], offered: list[Package]) -> dict[str, str]:
    choices, without = choice.choose(spec, installed, offered, "x86_64")
    assert not without
    return {one.wanted.name: f"{one.package.evr}{' kept' if one.is_installed else ''}" for one in choices}


def test_a_family_gets_the_newest_version_that_all_have() -> None:
    assert chosen(BRANCH, [], [*CUDA, *MANAGER]) == {
        "nvidia-driver-cuda": "3:580.82.07-1.el9",
        "nvidia-fabricmanager": "580.82.07-1",
    }


def test_alone_it_is_the_newest_one() -> None:
    offered = [*CUDA, package("nvidia-driver-cuda", "580.105.08", epoch="3", arch="aarch64")]
    assert chosen(BRANCH[:1], [], offered) == {"nvidia-driver-cuda": "3:580.95.05-1.el9"}


def test_what_is_installed_and_fits_stays() -> None:
    newer = [*MANAGER, package("nvidia-fabricmanager", "580.95.05", "1")]
    assert chosen(BRANCH, [CUDA[1]], [*CUDA, *newer]) == {
        "nvidia-driver-cuda": "3:580.82.07-1.el9 kept",
        "nvidia-fabricmanager": "580.82.07-1",
    }
    # Also when no repository has it any more.
    assert chosen(BRANCH[:1], [CUDA[1]], [CUDA[2]]) == {"nvidia-driver-cuda": "3:580.82.07-1.el9 kept"}


def test_a_family_that_has_come_apart_is_joined() -> None:
    installed = [CUDA[1], package("nvidia-fabricmanager", "580.95.05", "1")]
    assert choice.kept(BRANCH, installed) == {}
    assert chosen(BRANCH, installed, [*CUDA, *MANAGER, installed[1]]) == {
        "nvidia-driver-cuda": "3:580.95.05-1.el9",
        "nvidia-fabricmanager": "580.95.05-1 kept",
    }


def test_any_version_keeps_what_is_there() -> None:
    old, new = package("gcc-c++", "11.4.1"), package("gcc-c++", "11.5.0")
    wanted = [PackageSpec("gcc-c++")]
    assert chosen(wanted, [old], [old, new]) == {"gcc-c++": "11.4.1-1.el9 kept"}
    assert chosen(wanted, [], [old, new]) == {"gcc-c++": "11.5.0-1.el9"}
    assert choice.kept(wanted, [old]) == {"gcc-c++": old}


def said(
    spec: list[PackageSpec], offered: list[Package], hidden: dict[str, tuple[str, str]] | None = None
) -> list[str]:
    _choices, without = choice.choose(spec, [], offered, "x86_64")
    found = choice.problems(without, [], offered, "x86_64", ["nvidia"], hidden or {})
    return [problem.sentence() for problem in found]


def test_a_wrong_pin_lists_what_there_is() -> None:
    wanted = PackageSpec("nvidia-driver-cuda", "590", "590", "nvidia_driver_version")
    assert said([wanted], CUDA) == [
        "nvidia_driver_version = '590': no repository of the node offers that version of nvidia-driver-cuda; there are "
        "3:570.172.08-1.el9, 3:580.82.07-1.el9, 3:580.95.05-1.el9. Fix: set it to one of them, or add the repository "
        "that has it."
    ]
    many = [package("nvidia-driver-cuda", f"570.{number}") for number in range(30)]
    assert (
        "there are 570.10-1.el9, " in said([wanted], many)[0]
        and "570.29-1.el9 and 10 older ones." in said([wanted], many)[0]
    )


@pytest.mark.parametrize("name", ["kernel-devel", "kernel-64k-devel", "kernel-devel-matched"])
def test_a_kernel_is_updated_and_not_pinned(name: str) -> None:
    wanted = PackageSpec(name, "5.14.0-427.el9", "", "the kernel that boots next")
    (sentence,) = said([wanted], [package(name, "5.14.0", "611.el9")])
    assert sentence.startswith(
        f"the kernel that boots next = '5.14.0-427.el9': no repository of the node offers that version of {name}"
    )
    assert "update the kernel (`dnf upgrade kernel`), reboot, then run again" in sentence
    assert "set it to one of them" not in sentence


def test_a_family_without_a_common_version_says_who_has_what() -> None:
    manager = [package("nvidia-fabricmanager", "580.105.08", "1")]
    assert said(BRANCH, [*CUDA, *manager]) == [
        "packages[nvidia-driver-cuda].version = '580': no version fits for all packages that must have the same one; "
        "nvidia-driver-cuda: 3:570.172.08-1.el9, 3:580.82.07-1.el9, 3:580.95.05-1.el9; nvidia-fabricmanager: "
        "580.105.08-1. Fix: choose a version that all of them have, or complete the repository."
    ]


def test_a_package_that_nobody_has() -> None:
    wanted = PackageSpec("libncll", "2", "2", "nccl_version")
    assert said([wanted], CUDA)[0].startswith(
        "packages[libncll]: no repository of the node offers the package libncll; the node uses nvidia. Fix: "
    )


def test_only_packages_that_nobody_has_can_wait() -> None:
    def found(spec: list[PackageSpec]) -> tuple[bool, list[str]]:
        _choices, without = choice.choose(spec, [], CUDA, "x86_64")
        problems = choice.problems(without, [], CUDA, "x86_64", ["nvidia"], {})
        return choice.can_wait(problems), [wanted.name for wanted in choice.waiting(without, problems)]

    assert found(BRANCH) == (True, ["nvidia-fabricmanager"])
    assert found([PackageSpec("nvidia-driver-cuda", "590"), BRANCH[1]]) == (False, ["nvidia-fabricmanager"])
    assert found(BRANCH[:1]) == (False, [])
