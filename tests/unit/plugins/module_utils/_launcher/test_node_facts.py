# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an agent says of its node, in the shape that the explanation reads."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import launcher_program
import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import job_facts, job_logs


@pytest.fixture(scope="module")
def program() -> Any:
    return launcher_program.Whole()


def environment(folder: Path, text: str) -> str:
    """The Python of an environment with this version.py of torch."""
    place = folder / "lib" / "python3.12" / "site-packages" / "torch"
    place.mkdir(parents=True)
    (place / "version.py").write_text(text)
    return str(folder / "bin" / "python")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("from x import y\n__version__ = '2.13.0+cpu'\ndebug = False\n", "2.13.0+cpu"),
        ("__version__ = '2.13.0\x1b[2J'\n", ""),
        ("", ""),
    ],
)
def test_the_release_of_pytorch_without_its_start(program: Any, tmp_path: Path, text: str, version: str) -> None:
    python = environment(tmp_path, text)
    assert program.torch_version(python) == version
    assert program.torch_version(str(tmp_path / "away" / "bin" / "python")) == ""


def test_the_explanation_reads_what_an_agent_writes(program: Any, tmp_path: Path) -> None:
    python = environment(tmp_path, "__version__ = '2.13.0'\n")
    line = f"{program.FACTS}{json.dumps(program.node_facts(python))}"
    (found,) = job_facts.of([job_logs.Process("n1", None, [job_logs.Line("n1.log", 1, line, None)])]).values()
    assert program.FACTS == job_facts.HEAD and found.torch == "2.13.0"
    assert found.memlock is not None and found.cards is not None and {*found.full, *found.roomy}


def test_a_file_system_without_room_or_without_inodes_is_full(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"/": (100, 10, 5), "/tmp": (1 << 20, 10, 5), "/var/tmp": (1 << 20, 10, 0), "/dev/shm": (1 << 20, 0, 0)}

    def statvfs(path: str) -> SimpleNamespace:
        free, inodes, free_inodes = sizes[path]
        return SimpleNamespace(f_bavail=free, f_frsize=2, f_blocks=1 << 21, f_files=inodes, f_favail=free_inodes)

    monkeypatch.setattr(program.os, "statvfs", statvfs)
    facts = program.node_facts("/no/bin/python")
    assert facts["full"] == ["/", "/var/tmp"] and facts["roomy"] == ["/tmp", "/dev/shm"]
    assert (facts["shm"], facts["shm_free"]) == (1 << 22, 1 << 21) and "torch" not in facts


def test_what_can_not_be_looked_at_is_left_out(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: object) -> None:
        raise OSError(os.strerror(13))

    monkeypatch.setattr(program.os, "statvfs", fails)
    monkeypatch.setattr(program.os, "listdir", fails)
    assert list(program.node_facts("/no/bin/python")) == ["memlock", "full", "roomy"]
