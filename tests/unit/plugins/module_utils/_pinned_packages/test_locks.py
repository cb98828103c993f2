# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of the versionlock plugin."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import locks
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import Evr, Package

NCCL = Package("libnccl", Evr("0", "2.28.9", "1+cuda13.0"), "x86_64")
#: As `dnf versionlock add` and `exclude` leave it.
FOREIGN = (
    "\n# Added lock on Sat Nov 21 12:34:42 2026\nhorovod-0:0.28.1-1.*\n\n# Added exclude on Sat\n!kernel-0:6.1-1.*\n"
)
BLOCK = (
    "# BEGIN gpu-cluster nccl: the module pinned_packages keeps these lines\n"
    "libnccl-0:2.28.9-1+cuda13.0.*\n"
    "# END gpu-cluster nccl\n"
)


def test_our_block_comes_and_goes_and_others_stay_as_they_are() -> None:
    text = locks.render(locks.read(FOREIGN, "nccl"), "nccl", [locks.line_for(NCCL)])
    assert text == FOREIGN + BLOCK
    found = locks.read(text, "nccl")
    assert found == locks.LockList(FOREIGN, ("libnccl-0:2.28.9-1+cuda13.0.*",), place=FOREIGN.count("\n"))
    assert found.foreign_lines == ("horovod-0:0.28.1-1.*", "!kernel-0:6.1-1.*")
    assert locks.render(found, "nccl", found.ours) == text
    assert locks.render(found, "nccl", []) == FOREIGN


def test_a_group_leaves_the_block_of_another_one_alone() -> None:
    found = locks.read(BLOCK, "cuda")
    assert found.ours == () and found.others == BLOCK and found.foreign_lines == ("libnccl-0:2.28.9-1+cuda13.0.*",)


def test_what_goes_with_a_pinned_package_has_its_epoch_and_version() -> None:
    def driver(name: str, epoch: str = "3", version: str = "580.82.07", release: str = "1.el9") -> Package:
        return Package(name, Evr(epoch, version, release), "x86_64")

    pinned = [driver("nvidia-driver-cuda")]
    goes = [driver("libnvidia-cfg", release="2.el9"), driver("nvidia-driver-cuda-libs")]
    installed = [
        *(*pinned, *reversed(goes)),
        driver("libnvidia-ml", epoch="0"),
        driver("libnvidia-ml", version="580.95.05"),
        driver("other"),
        driver("kernel-devel"),
    ]
    assert locks.companions(pinned, ["nvidia-*", "libnvidia-*", "kernel-*"], installed) == tuple(goes)
    assert locks.companions(pinned, [], installed) == locks.companions([], ["*"], installed) == ()


def test_two_groups_do_not_change_places() -> None:
    both = FOREIGN + BLOCK + BLOCK.replace("nccl", "cuda")
    for group in ("nccl", "cuda"):
        found = locks.read(both, group)
        assert locks.render(found, group, found.ours) == both
    found = locks.read(both, "nccl")
    assert locks.render(found, "nccl", ["other-0:1-1.*"]).index("other") < both.index("libcuda")


def test_lines_that_lost_their_comments_are_still_ours() -> None:
    """`dnf versionlock delete` writes the list without comments."""
    bare = "horovod-0:0.28.1-1.*\nlibnccl-0:2.28.9-1+cuda13.0.*\n"
    assert locks.read(bare, "nccl").ours == ()
    found = locks.read(bare, "nccl", ["libnccl-0:2.28.9-1+cuda13.0.*"])
    assert found == locks.LockList("horovod-0:0.28.1-1.*\n", ("libnccl-0:2.28.9-1+cuda13.0.*",))


@pytest.mark.parametrize(
    ("line", "stands_in_the_way"),
    [
        ("libnccl-0:2.28.9-1+cuda13.0.*", False),
        ("libnccl-0:2.28.9-1+cuda12.9.*", True),
        ("libnccl-0:2.27.7-1+cuda13.0.*", True),
        ("libnccl-2.27*", True),
        ("libnccl-2.28*", False),
        ("libnccl", False),
        ("libnccl*", False),
        ("libnccl.x86_64", False),
        ("libnccl-devel-0:2.27.7-1+cuda13.0.*", False),
        ("libnccl-devel", False),
        ("!libnccl-0:2.28.9-1+cuda13.0.*", True),
        ("!libnccl-2.28*", True),
        ("!libnccl-0:2.27.7-1.*", False),
        ("!libnccl", True),
        ("horovod-0:0.28.1-1.*", False),
    ],
)
def test_locks_of_others_that_say_something_else(line: str, stands_in_the_way: bool) -> None:
    assert bool(locks.against([line], NCCL)) is stands_in_the_way


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ("[main]\nenabled = 1\nlocklist = /etc/dnf/plugins/versionlock.list\n", (locks.DEFAULT_LIST, True)),
        ("[main]\nenabled=0\nlocklist=/srv/locks\n", ("/srv/locks", False)),
        ("", (locks.DEFAULT_LIST, True)),
        ("no section", (locks.DEFAULT_LIST, True)),
    ],
)
def test_where_the_plugin_keeps_its_list(configuration: str, expected: tuple[str, bool]) -> None:
    assert locks.place_and_switch(configuration) == expected
