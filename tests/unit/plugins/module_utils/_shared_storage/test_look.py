# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking into storage: as a user, and not for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import look


def test_storage_that_does_not_answer_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "PROGRAM", "import time; time.sleep(60)")
    start = time.monotonic()
    assert look.look("/", "", 0.2) == {"hangs": True}
    assert time.monotonic() - start < 20


def test_a_program_that_dies_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "PROGRAM", "raise SystemExit('Killed')")
    assert look.look("/", "", 60) == {"error": "Killed", "errno": 0}


def run(path: Path, user: int = 0) -> dict[str, Any]:
    """Run the program that looks."""
    argv = [sys.executable, "-I", "-c", look.PROGRAM, str(path), str(user), str(user), "2"]
    found: dict[str, Any] = json.loads(subprocess.run(argv, capture_output=True, check=True, cwd="/").stdout)
    return found


def test_the_program_that_looks(tmp_path: Path) -> None:
    for name in "cab":
        (tmp_path / name).write_text("")
    found = run(tmp_path)
    status = tmp_path.stat()
    assert found["root"] == [status.st_ino, status.st_ctime_ns] and found["writable"] is True
    assert found["entries"] == [
        [name, (tmp_path / name).stat().st_ino, (tmp_path / name).stat().st_ctime_ns] for name in "ab"
    ]
    assert run(tmp_path / "none")["error"] == "No such file or directory"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_it_looks_as_the_user(tmp_path: Path) -> None:
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(0o755)
    assert run(tmp_path, 4000)["writable"] is False
    tmp_path.chmod(0o700)
    assert run(tmp_path, 4000)["error"] == "Permission denied"
