# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays with tasks of the role, each host of which is this machine itself or none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[4]


class Playbook:
    """ansible-playbook in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, plays: list[dict[str, Any]], *options: str) -> subprocess.CompletedProcess[str]:
        """options: of the command, such as the inventory."""
        path = self.folder / "play.json"
        path.write_text(json.dumps(plays))
        return subprocess.run(
            [Path(sys.executable).parent / "ansible-playbook", *options, path],
            env={
                **os.environ,
                "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"),
                "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
                "ANSIBLE_STDOUT_CALLBACK": "default",
            },
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def keep(self, given: dict[str, Any]) -> dict[str, Any]:
        """A task that writes what these expressions are on the first host."""
        content = {"content": "{{ given | to_json }}", "dest": str(self.folder / "given.json"), "mode": "0600"}
        return {"ansible.builtin.copy": content, "vars": {"given": given}, "run_once": True}

    def kept(self) -> dict[str, Any]:
        """What it has written."""
        found: dict[str, Any] = json.loads((self.folder / "given.json").read_text())
        return found


@pytest.fixture
def playbook(tmp_path: Path) -> Playbook:
    return Playbook(tmp_path)
