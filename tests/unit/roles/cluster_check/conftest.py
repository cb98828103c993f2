# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays with tasks of the role, each host of which is this machine itself or none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[4]


#: What Ansible reads when it is imported.
SETTINGS = {
    "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"),
    "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
    "ANSIBLE_STDOUT_CALLBACK": "default",
}


class Playbook:
    """ansible-playbook in a folder of its own."""

    def __init__(self, folder: Path, starter: subprocess.Popen[str]) -> None:
        self.folder = folder
        self.starter = starter

    def run(self, plays: list[dict[str, Any]], *options: str, alone: bool = False) -> subprocess.CompletedProcess[str]:
        """options: of the command, such as the inventory.  alone: the command itself, as a person calls it."""
        path = self.folder / "play.json"
        path.write_text(json.dumps(plays))
        environment = {**os.environ, **SETTINGS}
        if alone:
            argv = [Path(sys.executable).parent / "ansible-playbook", *options, path]
            return subprocess.run(argv, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)
        output = [self.folder / "stdout", self.folder / "stderr"]
        given = {
            "arguments": [*options, str(path)],
            "environment": environment,
            "folder": str(self.folder),
            "output": [str(one) for one in output],
            "temporary": os.environ.get("ANSIBLE_LOCAL_TEMP", str(self.folder / "temporary")),
        }
        assert self.starter.stdin is not None and self.starter.stdout is not None
        self.starter.stdin.write(json.dumps(given) + "\n")
        self.starter.stdin.flush()
        code = int(self.starter.stdout.readline())
        return subprocess.CompletedProcess([], code, *(one.read_text() for one in output))

    def keep(self, given: dict[str, Any]) -> dict[str, Any]:
        """A task that writes what these expressions are on the first host."""
        content = {"content": "{{ given | to_json }}", "dest": str(self.folder / "given.json"), "mode": "0600"}
        return {"ansible.builtin.copy": content, "vars": {"given": given}, "run_once": True}

    def kept(self) -> dict[str, Any]:
        """What it has written."""
        found: dict[str, Any] = json.loads((self.folder / "given.json").read_text())
        return found


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, **SETTINGS, "ANSIBLE_LOCAL_TEMP": str(tmp_path_factory.mktemp("ansible"))}
    argv = [sys.executable, str(Path(__file__).with_name("playbook_starter.py"))]
    with subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def playbook(tmp_path: Path, starter: subprocess.Popen[str]) -> Playbook:
    return Playbook(tmp_path, starter)
