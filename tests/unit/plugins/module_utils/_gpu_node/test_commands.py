# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking a command that answers, fails, hangs, or is not there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import commands


def test_an_answer() -> None:
    assert commands.ask(["/bin/sh", "-c", "echo $LC_ALL"], 5) == commands.Answer("C.UTF-8\n")


def test_a_failure_says_what_it_said() -> None:
    said = "Failed to initialize NVML: Driver/library version mismatch"
    answer = commands.ask(["/bin/sh", "-c", f"echo '{said}'; echo 'NVML library version: 570.124'; exit 18"], 5)
    assert answer.problem == f"sh failed (18): {said} NVML library version: 570.124"


def test_what_does_not_exist() -> None:
    answer = commands.ask(["/nowhere/nvidia-smi"], 5)
    assert answer.problem == "nvidia-smi cannot be run: No such file or directory"


def test_what_hangs_is_ended_with_all_its_children() -> None:
    begin = time.monotonic()
    answer = commands.ask(["/bin/sh", "-c", "sleep 60 & sleep 60"], 0.2)
    assert answer.problem == "sh did not end within 0.2 s" and time.monotonic() - begin < 30


def test_what_cannot_be_killed_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that waits for a dead device takes no signal; here it is one that gets none."""
    spared: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, _signal: spared.append(group))
    begin = time.monotonic()
    answer = commands.ask(["/bin/sleep", "60"], 0.2)
    try:
        assert answer.problem == "sleep did not end within 0.2 s and cannot be killed"
        assert time.monotonic() - begin < 30
    finally:
        monkeypatch.undo()
        os.killpg(spared[0], 9)


def test_commands_are_those_of_the_tree(tmp_path: Path) -> None:
    assert commands.find(str(tmp_path), "modinfo") == ""
    (tmp_path / "usr/sbin").mkdir(parents=True)
    (tmp_path / "usr/sbin/modinfo").touch(mode=0o755)
    (tmp_path / "usr/sbin/grubby").touch(mode=0o644)
    assert commands.find(str(tmp_path), "modinfo") == f"{tmp_path}/usr/sbin/modinfo"
    assert commands.find(str(tmp_path), "grubby") == "", "a file that cannot be run is no command"
