# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands with a deadline, with real processes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import (
    OUTPUT_TAIL,
    CommandError,
    run,
)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for somebody to take note of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_output_of_a_command() -> None:
    assert run([sys.executable, "-c", "print('well')"], 30, "python") == "well\n"


def test_a_failure_has_the_end_of_what_it_said() -> None:
    with pytest.raises(CommandError) as caught:
        run([sys.executable, "-c", "import sys; sys.exit('x' * 9000 + 'the reason')"], 30, "python")
    assert str(caught.value).startswith("python failed (1): xxx")
    assert str(caught.value).endswith("the reason")
    assert len(str(caught.value)) < OUTPUT_TAIL + 100


def test_the_deadline_ends_what_the_command_started_too(tmp_path: Path) -> None:
    left = tmp_path / "left"
    started = time.monotonic()
    with pytest.raises(CommandError, match="the shell did not end within 1 s"):
        run(["/bin/sh", "-c", f"sleep 60 & echo $! > {left}; wait"], 1, "the shell")
    while is_alive(int(left.read_text())):
        time.sleep(0.05)
    assert time.monotonic() - started < 30


def test_python_settings_of_the_caller_do_not_reach_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid")
    out = run(
        [sys.executable, "-c", "import os; print(os.environ.get('PYTHONPATH'), os.environ['HTTPS_PROXY'])"], 30, "x"
    )
    assert out == "None http://proxy.invalid\n"


def test_a_lock_is_handed_on(tmp_path: Path) -> None:
    with open(tmp_path / "lock", "w", encoding="ascii") as stream:
        out = run(
            [sys.executable, "-c", f"import os; os.fstat({stream.fileno()}); print('open')"], 30, "x", [stream.fileno()]
        )
    assert out == "open\n"
    assert os.path.exists(tmp_path / "lock")
