# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step is taken by the program that launch has left on the node, and by its module where that can't be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.run import launch, steps, unit
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _node_program

GO = {"run_id": "run-1", "ranks": ["0"], "world_size": "2", "master_address": "192.0.2.11", "master_port": 29500}
BY_MODULE = {"started": True, "by": "module"}


class Action:
    """Runs commands here; what a module would be called with is kept."""

    def __init__(self, check_mode: bool = False, **arguments: Any) -> None:
        self._task = SimpleNamespace(args={**GO, **arguments}, check_mode=check_mode)
        self._templar = SimpleNamespace(template=lambda text: text)
        self.modules: list[dict[str, Any]] = []
        self.commands: list[str] = []
        #: Where a connection begins.
        self.home = "."

    def validate_argument_spec(self, argument_spec: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        found = ArgumentSpecValidator(argument_spec).validate(self._task.args)
        if found.error_messages:
            raise AnsibleActionFail("; ".join(found.error_messages))
        return found, found.validated_parameters

    def _low_level_execute_command(self, command: str, chdir: str | None = None) -> dict[str, Any]:
        self.commands.append(command)
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, check=False, cwd=chdir or self.home
        )
        return {"rc": done.returncode, "stdout": done.stdout, "stderr": done.stderr}

    def _execute_module(self, name: str, given: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        assert name == "baremetal.gpu_cluster.collective_go"
        self.modules.append(given)
        return dict(BY_MODULE)

    def step(self, python: str = sys.executable) -> dict[str, Any]:
        variables = {"ansible_python_interpreter": python} if python else {}
        return _node_program.step(self, "baremetal.gpu_cluster.collective_go", variables, {})  # type: ignore[arg-type]


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose program lies where launch puts it, with a job that its worker would have."""
    directory = tmp_path / "run-1"
    launch.write_payload(str(directory / "payload"))
    program = directory / "payload" / (unit.__name__.replace(".", "/") + ".py")
    program.write_text(program.read_text().replace(f'"{unit.BASE_DIR}"', f'"{tmp_path}"'))
    (directory / "job.json").write_text("{}")
    monkeypatch.setattr(unit, "BASE_DIR", str(tmp_path))
    return directory


def test_the_program_does_what_the_module_would(run_dir: Path) -> None:
    action = Action()
    assert action.step() == {"changed": False, "started": True} and action.modules == []
    found = json.loads((run_dir / "go.json").read_text())
    # The arguments have the types of the module's, and its defaults.
    assert found["ranks"] == [0] and found["collective"]["world_size"] == 2
    assert found["collective"].keys() == steps.COLLECTIVE.keys() and found["deadline_seconds"] == 60


def test_root_imports_nothing_from_the_folder_of_the_user_who_logs_in(run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported')\n")
    action = Action()
    action.home = str(tmp_path)
    assert action.step() == {"changed": False, "started": True} and action.modules == []


def test_a_result_has_nothing_that_ansible_acts_on(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"started": True, "ansible_facts": {"x": 1}, "add_host": {"host_name": "n9"}, "unreachable": True}
    monkeypatch.setattr(_node_program, "last_object", lambda _answer: said)
    assert Action().step() == {"started": True}


def test_what_the_program_refuses_is_the_answer(run_dir: Path) -> None:
    os.unlink(run_dir / "job.json")
    answer = Action().step()
    assert not answer["started"] and "can't be made" in answer["error"]
    assert Action(world_size=1).step() == {"failed": True, "msg": "world_size is 1, expected 2 to 4096"}


@pytest.mark.parametrize(
    ("arguments", "python"),
    [
        ({"check_mode": True}, sys.executable),
        ({}, ""),
        ({"world_size": "two"}, sys.executable),
        ({"run_id": "a; reboot"}, sys.executable),
    ],
)
def test_without_a_command_it_is_the_module(run_dir: Path, arguments: dict[str, Any], python: str) -> None:
    action = Action(**arguments)
    assert action.step(python) == BY_MODULE and action.modules == [action._task.args]
    assert action.commands == [] and not (run_dir / "go.json").exists()


@pytest.mark.parametrize("python", ["/no/such/python", "echo", "true"])
def test_a_node_that_does_not_answer_with_an_object_is_asked_by_the_module(run_dir: Path, python: str) -> None:
    action = Action()
    assert action.step(python) == BY_MODULE and len(action.commands) == 1 and len(action.modules) == 1


def test_the_program_needs_little_of_a_processor(run_dir: Path) -> None:
    """It imports neither torch nor the code that starts a run: whoever adds an import here sees what it costs."""
    argv = [sys.executable, "-S", "-X", "importtime", "-m", steps.__name__, "go", json.dumps(GO)]
    environment = {**os.environ, "PYTHONPATH": str(run_dir / "payload")}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "json" in imported and not imported & {"torch", "inspect", "statistics", launch.__name__}
