# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/first-hour.md on five bare nodes of the lab, from a fresh clone: each command, edit and line of output."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import project
import pytest
import transcript
from lab.settings import here

PAGE = project.ROOT / "docs" / "first-hour.md"
NODES = 5
MOST_EDITS = 4


def lab(*words: str) -> None:
    subprocess.run([sys.executable, "tools/lab/lab.py", *words], cwd=project.ROOT, check=True)


@pytest.fixture
def agent() -> Iterator[dict[str, str]]:
    """An ssh agent with the key that the nodes accept, as somebody has who has just installed them."""
    lab("down", "--inventory", "lab")
    lab("up", "--nodes", str(NODES))
    started = subprocess.run(["ssh-agent", "-s"], check=True, capture_output=True, text=True).stdout
    words = dict(part.split("=", 1) for part in started.replace("\n", " ").split("; ") if "=" in part)
    environment = transcript.as_a_login(**{name.strip(): value for name, value in words.items()})
    subprocess.run(["ssh-add", "-q", here().key], env=environment, check=True)
    yield environment
    subprocess.run(["ssh-agent", "-k"], env=environment, check=True, capture_output=True)
    lab("down", "--inventory", "lab")


def test_the_first_hour(agent: dict[str, str], tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "-q", project.ROOT, tmp_path / "gpu_cluster"], check=True)
    steps = list(transcript.read(PAGE.read_text(encoding="utf-8")))
    assert sum(isinstance(step, transcript.Edit) for step in steps) <= MOST_EDITS
    with transcript.Shell(tmp_path / "gpu_cluster", agent) as shell:
        for step in steps:
            if isinstance(step, transcript.Edit):
                code, lines = shell.patch(step)
                assert code == 0, "\n".join([step.text, *lines])
                continue
            code, lines = shell.run(step.text)
            wrong = transcript.missing(step.output, lines)
            assert not wrong, "\n".join([f"$ {step.text}", *lines, f"exit status {code}", *wrong])
    assert any("PASSED" in line for line in lines), lines
