# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages in rpm's order, pins, and the lines of rpm and dnf."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages.packages import (
    Evr,
    Package,
    matches,
    newest_version,
    parse_offers,
    parse_packages,
)

#: As printed by rpm 4.18 and dnf 4.14.
RPM = (
    "bash\t0\t5.2.15\t1.el9\tx86_64\t\nlibnccl-devel\t0\t2.27.7\t1+cuda13.0\tx86_64\tsp\n"
    "gpg-pubkey\t0\t8b6e8cbb\t6b018fa9\t(none)\t\nnvidia-driver-cuda\t3\t580.95.05\t1.el9\tx86_64\t\n"
)
DNF = (
    "Last metadata expiration check: 0:00:01 ago on Sat Nov 21 12:34:42 2026.\n"
    "libnccl\t0\t2.26.5\t1+cuda12.9\tx86_64\tlab-nvidia\nlibnccl\t0\t2.26.5\t1+cuda12.9\tx86_64\tother\n"
    "libnccl\t0\t2.28.9\t1+cuda13.0\tx86_64\tlab-nvidia\n"
)


def test_epoch_comes_before_version_and_release_after() -> None:
    assert Evr("3", "1", "1") > Evr("0", "580", "1")
    assert Evr("0", "580", "2") > Evr("0", "580", "1")
    assert str(Evr("3", "580.95.05", "1.el9")) == "3:580.95.05-1.el9" and str(Evr("0", "1", "2")) == "1-2"
    assert newest_version(["580.95.05", "580.105.08", "580.82.07"]) == "580.105.08"


@pytest.mark.parametrize(
    ("pin", "fits"),
    [
        ("2.28.9-1+cuda13.0", True),
        ("2.28.9", True),
        ("2.28", True),
        ("2", True),
        ("2.28.9-1", True),
        ("2.28.9-*+cuda13.0", True),
        ("2.28.*", True),
        ("0:2.28.9", True),
        ("3:2.28.9", False),
        ("2.28.90", False),
        ("2.2", False),
        ("2.28.9-*+cuda12.9", False),
        ("28.9", False),
        ("2.28.9-1+cuda1", False),
    ],
)
def test_a_pin_fits_part_by_part(pin: str, fits: bool) -> None:
    assert matches(pin, Evr("0", "2.28.9", "1+cuda13.0")) is fits


def test_a_preview_is_not_within_what_comes_after_it() -> None:
    assert not matches("580", Evr("0", "580~beta", "1"))


def test_lines_of_rpm_and_dnf() -> None:
    bash, nccl, driver = parse_packages(RPM)
    assert (bash.has_scriptlet, nccl.has_scriptlet, driver.has_scriptlet) == (False, True, False)
    assert driver.nevra == "nvidia-driver-cuda-3:580.95.05-1.el9.x86_64"
    assert driver.file_name == "nvidia-driver-cuda-580.95.05-1.el9.x86_64"
    assert parse_offers(DNF) == tuple(
        Package("libnccl", Evr("0", *evr), "x86_64") for evr in (("2.26.5", "1+cuda12.9"), ("2.28.9", "1+cuda13.0"))
    )


@pytest.mark.parametrize(
    "name", ["kernel", "kernel-core", "kernel-devel", "kernel-devel-matched", "kernel-modules-extra"]
)
def test_kernels_stay_side_by_side(name: str) -> None:
    assert Package(name, Evr("0", "5.14.0", "503.el9"), "x86_64").is_side_by_side
    assert not Package("kernel-headers", Evr("0", "5.14.0", "503.el9"), "x86_64").is_side_by_side
