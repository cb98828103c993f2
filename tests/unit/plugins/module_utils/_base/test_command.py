# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands as a step runs them, with real processes."""

from __future__ import annotations

import subprocess
import time

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import run_command


def test_a_command_gets_its_input_and_variables_and_keeps_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "k")
    monkeypatch.setenv("CHANGED", "old")
    script = 'read -r line; echo "$line $KEPT $CHANGED"; printf "e\\351\\n" >&2; exit 3'
    assert run_command(["sh", "-c", script], data="in\n", environ_update={"CHANGED": "new"}) == (
        3,
        "in k new\n",
        "e\ufffd\n",
    )


def test_without_data_a_command_that_reads_meets_the_end() -> None:
    assert run_command(["cat"]) == (0, "", "")


def test_a_command_that_cannot_be_started_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError):
        run_command(["/no/such/command"])


def test_a_command_that_takes_too_long_is_killed() -> None:
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(["sleep", "60"], seconds=0.05)
    assert time.monotonic() - began < 30
