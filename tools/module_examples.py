# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of the documentation of all modules as tasks that a test can run, and a playbook's answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import project
import yaml

MODULES = project.ROOT / "plugins" / "modules"
#: Writes the answers of all tasks.
CALLBACKS = project.ROOT / "tests" / "ansible_core" / "callback_plugins"
#: What the examples take from the inventory or from earlier tasks.
VARIABLES: dict[str, Any] = {"hosts_block_text": "192.0.2.11 n1\n"}


def names(kind: str) -> set[str]:
    """The full names of our plugins of a kind."""
    return {f"{project.COLLECTION}.{path.stem}" for path in (project.ROOT / "plugins" / kind).glob("*.py")}


def documented(path: Path, part: str) -> Any:
    """A part of the documentation in a module's file, such as EXAMPLES."""
    found = re.search(rf'^{part} = r"""(.*?)"""', path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found, f"{path} has no {part}"
    return yaml.safe_load(found.group(1))


def tasks(**keywords: Any) -> list[dict[str, Any]]:
    """The tasks of all modules, with these keywords, whatever the one before has found.

    What a module refuses is its answer, so none of them ends the play.
    """
    found = []
    for path in sorted(MODULES.glob("*.py")):
        for task in documented(path, "EXAMPLES"):
            if names("modules") & task.keys():
                task.pop("when", None)
                found.append({**task, "failed_when": False, **keywords})
    return found


def lay_out(folder: Path) -> None:
    """The files that the examples read, for a playbook in this folder."""
    (folder / "torch-lock.txt").write_text("torch==2.13.0\n", encoding="utf-8")


def environment(answers: Path) -> dict[str, str]:
    """Variables with which Ansible writes the answers of all tasks to a file."""
    return {
        "ANSWERS": str(answers),
        "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACKS),
        "ANSIBLE_CALLBACKS_ENABLED": "answers",
        "ANSIBLE_LOCALHOST_WARNING": "False",
    }


def read(answers: Path) -> list[dict[str, Any]]:
    """The answers: ``host``, ``action``, ``task``, ``result`` and, where it ended badly, ``ended``."""
    lines: Iterable[str] = answers.read_text(encoding="utf-8").splitlines() if answers.exists() else ()
    return [json.loads(line) for line in lines]
