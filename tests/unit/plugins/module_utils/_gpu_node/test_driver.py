# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of the driver out of files and modinfo; texts of real machines, see data/README.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import driver

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("text", "version", "kind"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  510.54  Wed Apr  1 20:04:33 UTC 2020\n"
            "GCC version:  gcc version 9.3.0 (Arch Linux 9.3.0-1)\n",
            "510.54",
            "proprietary",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  525.60.11  Release Build  "
            "(archlinux-builder@localhost)  \nGCC version:  gcc version 12.2.0 (GCC) \n",
            "525.60.11",
            "open",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  Release Build  "
            "(dvs-builder@U16-A24-9-2)  Thu Oct 10 12:15:00 UTC 2024\n"
            "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n",
            "565.57.01",
            "open",
        ),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.173.02  Tue Jun 23 08:38:17 UTC 2026\n"
            "GCC version:  gcc version 14.2.0 (Ubuntu 14.2.0-4ubuntu2~24.04.1)\n",
            "580.173.02",
            "proprietary",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  "
            "(dvs-builder@U22-I3-B17-02-5)  Tue Sep 23 09:55:41 UTC 2025\nGCC version:  gcc version 11.4.0 ",
            "580.95.05",
            "open",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64 595.71.05", "595.71.05", "open"),
        ("", "", ""),
        ("something else 1.2.3", "", ""),
    ],
)
def test_the_loaded_driver(text: str, version: str, kind: str) -> None:
    assert driver.parse_proc_version(text) == (version, kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ((DATA / "modinfo_open_590.txt").read_text(), ("590.44.01", "open")),
        ((DATA / "modinfo_proprietary_430.txt").read_text(), ("430.40", "proprietary")),
        ("", ("", "")),
    ],
)
def test_a_module_file(text: str, expected: tuple[str, str]) -> None:
    assert driver.parse_modinfo(text) == expected


@pytest.mark.parametrize(
    ("names", "linked", "version"),
    [
        (
            ["libnvidia-ml.so", "libnvidia-ml.so.1", "libnvidia-ml.so.580.95.05"],
            "libnvidia-ml.so.580.95.05",
            "580.95.05",
        ),
        # An upgrade that left an old file behind: what the link names is what programs load.
        (["libnvidia-ml.so.580.95.05", "libnvidia-ml.so.570.86.15"], "libnvidia-ml.so.570.86.15", "570.86.15"),
        # No link: the highest, by number and not by letter.
        (["libnvidia-ml.so.99.10", "libnvidia-ml.so.580.9"], "libnvidia-ml.so.1", "580.9"),
        (["libcuda.so.580.95.05"], "", ""),
        ([], "", ""),
    ],
)
def test_the_user_space(names: list[str], linked: str, version: str) -> None:
    assert driver.library_version(names, linked) == version
