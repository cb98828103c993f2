# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the module."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import spec


def options(*packages: dict[str, Any], **more: Any) -> dict[str, Any]:
    listed = [{"name": "libnccl", "version": "", "family": None, "variable": "", **one} for one in packages]
    given = {"group": "nccl", "state": "present", "absent": [], "locked_with": [], "module_streams": []}
    return {**given, "packages": listed, "timeout_seconds": 3600, "wait_seconds": 300, **more}


def said(*packages: dict[str, Any], **more: Any) -> list[str]:
    return [problem.sentence() for problem in spec.read(options(*packages, **more))[1]]


def test_a_family_is_what_reads_the_same() -> None:
    read, problems = spec.read(
        options(
            {"version": "580"},
            {"name": "gcc-c++"},
            {"name": "nload", "variable": "monitoring_packages"},
            {"name": "other", "version": "580", "family": "", "variable": "other_version"},
        )
    )
    assert not problems
    assert [(one.name, one.family, one.variable) for one in read.packages] == [
        ("libnccl", "580", "packages[libnccl].version"),
        ("gcc-c++", "", "packages[gcc-c++]"),
        ("nload", "", "monitoring_packages[nload]"),
        ("other", "", "other_version"),
    ]


@pytest.mark.parametrize("version", ["580", "2.28.9-*+cuda13.0", "3:580.95.05-1.el9", "1.0~rc1", "1.0^git2", "*"])
def test_versions_as_they_are(version: str) -> None:
    assert said({"version": version}) == []


@pytest.mark.parametrize("version", ["-580", " 580", "580 ", "580;reboot", "5 80", ".5", "580\n"])
def test_texts_that_are_no_version(version: str) -> None:
    assert "does not begin with a dash or a dot" in said({"version": version})[0]


def test_everything_wrong_is_said_at_once() -> None:
    found = said(
        {"name": "-libnccl"},
        {"name": "twice"},
        {"name": "twice"},
        {"name": "kmod-nvidia-open-dkms"},
        group="NCCL",
        absent=["kmod-*", "a b"],
        locked_with=["libnvidia-*", "-x", ""],
        module_streams=["nvidia-driver", "x:1", "x:2"],
        timeout_seconds=5,
        wait_seconds=-1,
    )
    starts = [
        "group = 'NCCL': ",
        "packages[].name = '-libnccl': ",
        "packages[twice]: the package is listed twice",
        "packages[kmod-nvidia-open-dkms]: the package is wanted, and kmod-* in absent takes it away",
        "absent = 'a b': ",
        "locked_with = '-x': that is neither a name of a package nor a pattern",
        "locked_with = '': that is neither a name of a package nor a pattern",
        "module_streams = 'nvidia-driver': ",
        "module_streams = 'x': only one stream",
        "timeout_seconds = 5: allowed are 60 to 86400 s",
        "wait_seconds = -1: allowed are 0 to 3600 s",
    ]
    assert len(found) == len(starts), found
    for sentence, start in zip(found, starts):
        assert sentence.startswith(start), sentence
