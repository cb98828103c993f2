# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``ansible-playbook`` was asked for: which playbooks, and which part of them.

No tag, limit or start-at-task changes what is read here, because no task has to run for it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from ansible import context

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import run_tags

PLAYBOOKS = Path(__file__).resolve().parent.parent.parent / "playbooks"
#: Options with which ansible-playbook prints something and runs nothing.
LISTING = ("syntax", "listhosts", "listtasks", "listtags")
#: Options, by their name in Ansible, with which not all tasks run, or not for real.
PARTIAL = {
    "tags": "--tags",
    "skip_tags": "--skip-tags",
    "subset": "--limit",
    "start_at_task": "--start-at-task",
    "step": "--step",
    "check": "--check",
}


@dataclass(frozen=True)
class CommandLine:
    """What concerns the collection. Outside of ansible-playbook everything is empty."""

    playbooks: Mapping[str, Any]
    options: Mapping[str, Any]

    @property
    def only_lists(self) -> bool:
        """Nothing is run: hosts, tasks or tags are listed, or the syntax is checked."""
        return any(self.options.get(name) for name in LISTING)

    @property
    def is_ours(self) -> bool:
        """Every playbook named on the command line is one of the collection, or only imports such ones."""
        return bool(self.playbooks) and all(
            run_tags.is_shipped(entries, shipped()) for entries in self.playbooks.values()
        )

    def problems(self) -> list[dict[str, str]]:
        """Tags and a first task that do not exist. Nothing is refused where a playbook of the user may have its own."""
        if not self.is_ours:
            return []
        wanted, skipped = (sorted(self.options.get(name) or ()) for name in ("tags", "skip_tags"))
        found = run_tags.tag_problems(wanted, skipped, self.playbooks, shipped())
        start = self.options.get("start_at_task")
        if start:
            found += run_tags.start_problems(str(start), self.playbooks, shipped(), _tasks_of)
        return [problem.as_dict() for problem in found]

    def partial(self) -> str:
        """The options that leave something out, as they were typed; empty for a whole run."""
        words = []
        for name, option in PARTIAL.items():
            value = self.options.get(name)
            if isinstance(value, (list, tuple)):
                value = ",".join(sorted(str(one) for one in value))
            if value and (name, value) != ("tags", "all"):
                words.append(option if value is True else f"{option} {shlex.quote(str(value))}")
        return " ".join(words)


@lru_cache
def shipped() -> dict[str, Any]:
    """The playbooks of the collection by their names, as YAML."""
    return {path.stem: _read(path) for path in sorted(PLAYBOOKS.glob("*.yml"))}


def read() -> CommandLine:
    """The command line of this run."""
    options: Mapping[str, Any] = context.CLIARGS or {}
    named = options.get("args")
    playbooks = [str(name) for name in named] if isinstance(named, (list, tuple)) else []
    return CommandLine({name: _entries(name) for name in playbooks}, options)


def _entries(name: str) -> Any:
    """A playbook by its name in the collection, or by its path; none where it cannot be read."""
    path = Path(name)
    try:
        if path.resolve().parent == PLAYBOOKS:
            name = f"{run_tags.COLLECTION}.{path.stem}"
        entry = {run_tags.IMPORT[0]: name}
        return [entry] if run_tags.imported(entry) else _read(path)
    except (OSError, ValueError, yaml.YAMLError):
        return None


def _tasks_of(role: str, name: str) -> Any:
    """The tasks in a file of a role of the collection; none of another one."""
    path = PLAYBOOKS.parent / "roles" / role.rpartition(".")[2] / "tasks" / f"{name.removesuffix('.yml')}.yml"
    return _read(path) if path.is_file() else []


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))
