# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left behind by an interruption, and how it is put right."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import memory, repair
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import Evr, Package


def package(name: str, version: str, has_scriptlet: bool = False) -> Package:
    return Package(name, Evr("0", version, "1"), "x86_64", has_scriptlet)


OLD, NEW = package("tool", "1", True), package("tool", "2", True)
OLD_EXTRA, NEW_EXTRA = package("extra", "1"), package("extra", "2")
UPGRADE = memory.Begun("2026-11-21 12:54:18", (OLD, OLD_EXTRA), (package("tool", "2"), NEW_EXTRA), ())
DOWNGRADE = memory.Begun("2026-11-21 12:54:18", (NEW, NEW_EXTRA), (package("tool", "1"), OLD_EXTRA), ())
FRESH = memory.Begun("2026-11-21 12:54:18", (), (package("tool", "1"), OLD_EXTRA), ())
NAMES = ("tool", "extra")


def plan(begun: memory.Begun | None, installed: list[Package], damaged: tuple[Package, ...] = ()) -> repair.Repair:
    suspects = repair.to_verify(begun, installed, NAMES)
    return repair.plan(begun, installed, NAMES, {one: one in damaged for one in suspects})


@pytest.mark.parametrize(("begun", "goes", "stays"), [(UPGRADE, OLD, NEW), (DOWNGRADE, NEW, OLD), (None, OLD, NEW)])
def test_of_two_versions_the_replaced_one_goes(begun: memory.Begun | None, goes: Package, stays: Package) -> None:
    """Its scriptlet may have been cut off, so the one that stays is installed again."""
    found = plan(begun, [OLD, NEW, OLD_EXTRA])
    assert found.erase == (goes,) and found.reinstall == (stays,)
    assert found.sentences[0] == f"tool was installed twice: {goes.evr} is removed, {stays.evr} stays"


def test_a_new_package_starts_again_from_nothing() -> None:
    found = plan(FRESH, [OLD])
    assert found.erase == (OLD,) and found.reinstall == ()
    assert found.sentences == ("tool 1-1 may not have run its scriptlet: it is removed and installed again",)


def test_what_is_whole_and_has_no_scriptlet_stays() -> None:
    assert plan(FRESH, [OLD_EXTRA]) == repair.Repair()
    assert plan(FRESH, [OLD_EXTRA], (OLD_EXTRA,)).erase == (OLD_EXTRA,)


def test_a_dependency_that_is_not_whole_is_installed_again() -> None:
    library = package("library", "1")
    begun = memory.Begun("2026-11-21 12:54:18", (), (library, OLD_EXTRA), ())
    assert plan(begun, [library], (library,)).reinstall == (library,)


def test_a_reinstallation_that_was_cut_off_is_done_again() -> None:
    """What comes is what was there; its scriptlet may not have run all the same."""
    begun = memory.Begun("2026-11-21 12:54:18", (OLD, OLD_EXTRA), (package("tool", "1"),), ())
    assert plan(begun, [OLD, OLD_EXTRA]).reinstall == (OLD,)


def test_a_removal_that_was_cut_off_is_finished() -> None:
    unused = package("unused", "1")
    begun = memory.Begun("2026-11-21 12:54:18", (unused,), (OLD_EXTRA,), (unused,))
    assert plan(begun, [unused]) == repair.Repair()
    found = plan(begun, [unused], (unused,))
    assert found.erase == (unused,) and found.sentences == (
        "unused 1-1 was being removed and is not whole: it is removed",
    )


def test_without_a_record_and_without_duplicates_nothing_is_verified() -> None:
    assert repair.to_verify(None, [OLD, OLD_EXTRA], NAMES) == ()
    kernels = [package("kernel-devel", "5"), package("kernel-devel", "6")]
    assert repair.duplicates(kernels, ["kernel-devel"]) == {}


@pytest.mark.parametrize(
    ("verified", "expected"),
    [
        # As rpm 4.18 prints it.
        ("", False),
        ("S.5....T.    /usr/lib64/libnccl.so.2\n", True),
        ("missing     /usr/lib64/libnccl.so.2\n", True),
        ("....L....    /usr/lib64/libnccl.so\n", True),
        (".......T.    /usr/lib64/libnccl.so.2\n.M...UG..    /usr/bin/tool\n", False),
        ("S.5....T.  c /etc/nccl.conf\nmissing   c /etc/nccl.conf\n", False),
        (
            "Unsatisfied dependencies for libnccl-devel-2.27.7-1+cuda13.0.x86_64:\n"
            "\tlibnccl = 2.27.7-1+cuda13.0 is needed by (installed) libnccl-devel-2.27.7-1+cuda13.0.x86_64\n",
            True,
        ),
    ],
)
def test_what_rpm_finds_damaged(verified: str, expected: bool) -> None:
    assert repair.is_damaged(verified) is expected


def test_the_record_survives_the_disk() -> None:
    what = memory.Memory(("tool-0:2-1.*",), ("nvidia-driver:580-open",), UPGRADE)
    assert memory.read(memory.render(what)) == what
    assert memory.read(memory.render(memory.Memory(("x",)))) == memory.Memory(("x",))
    assert memory.render(memory.Memory()) == ""


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"locks": 1}', '{"locks": [], "skipped_streams": [], "transaction": {}}x']
)
def test_a_file_of_somebody_else_says_nothing(text: str) -> None:
    assert memory.read(text) == memory.Memory()
