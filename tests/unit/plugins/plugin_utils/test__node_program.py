# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step is taken by a program that lies on the node or is sent there, and by its module where that can't be."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.playbook.play_context import PlayContext
from ansible.plugins.loader import become_loader, connection_loader

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    begin,
    facts_step,
    launch,
    mpi_step,
    run_state,
    steps,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import worker_state
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import step as facts
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _node_program

GO = {"run_id": "run-1", "ranks": ["0"], "world_size": "2", "master_address": "192.0.2.11", "master_port": 29500}
BY_MODULE = {"changed": False, "msg": "by the module"}
MODULE = "baremetal.gpu_cluster.check_step"


STEP = """
from __future__ import annotations
import os, sys
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import limits
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.service import unit_name
SPEC = {"run_id": {"type": "str"}, "ranks": {"type": "list", "elements": "int"}, "breaks": {"type": "bool"},
        "world_size": {"type": "int", "default": 3}, "master_address": {"type": "str"}, "master_port": {"type": "int"}}
RESULTS = ("changed", "failed", "msg", "said", "seen")
def run_step(run, given):
    if given["breaks"]:
        raise RuntimeError("as it was told")
    ansible = sorted(name for name in sys.modules if name.startswith("ansible."))
    said = run(["sh", "-c", "cat; echo $WORD $SITE"], data="in ", environ_update={"WORD": "out"})
    seen = [os.getcwd(), ansible, limits.out_of_range(given), unit_name("x"), sys.flags.isolated]
    return {"changed": False, "said": list(said), "seen": seen, "ansible_facts": {"x": 1}}
"""


@pytest.fixture(autouse=True)
def no_interpreter_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless variables say it: this checkout's ansible.cfg names one."""
    monkeypatch.setenv("ANSIBLE_PYTHON_INTERPRETER", "auto_silent")


class Action:
    """Runs commands here; what a module would be called with is kept."""

    def __init__(self, check_mode: bool = False, **arguments: Any) -> None:
        self._task = SimpleNamespace(args={**GO, **arguments}, check_mode=check_mode)
        self._connection = connection_with("")
        self._templar = SimpleNamespace(template=lambda text: text)
        self.modules: list[dict[str, Any]] = []
        self.commands: list[str] = []
        self.environment = ""
        #: Where a connection begins.
        self.home = "."

    def validate_argument_spec(self, argument_spec: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        found = ArgumentSpecValidator(argument_spec).validate(self._task.args)
        if found.error_messages:
            raise AnsibleActionFail("; ".join(found.error_messages))
        return found, found.validated_parameters

    def _low_level_execute_command(
        self, command: str, chdir: str | None = None, in_data: bytes | None = None
    ) -> dict[str, Any]:
        self.commands.append(command)
        done = subprocess.run(
            ["sh", "-c", command], input=in_data, capture_output=True, check=False, cwd=chdir or self.home
        )
        return {"rc": done.returncode, "stdout": done.stdout.decode(), "stderr": done.stderr.decode()}

    def _compute_environment_string(self) -> str:
        return self.environment

    def _execute_module(self, name: str, given: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        assert name == MODULE
        self.modules.append(given)
        return dict(BY_MODULE)

    def step(self, python: str = sys.executable, piped: bool = False, **changed: Any) -> dict[str, Any]:
        variables = {"ansible_python_interpreter": python} if python else {}
        return _node_program.step(self, MODULE, "go", variables, changed, piped)  # type: ignore[arg-type]

    def sent(self, program: _node_program.Program, python: str = sys.executable) -> dict[str, Any]:
        variables = {"ansible_python_interpreter": python} if python else {}
        return program.run(self, variables)  # type: ignore[arg-type]


SENT = _node_program.Program(MODULE, facts, reads_only=True)


@pytest.fixture
def step_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A step that needs other files of this collection, and commands."""
    name = f"{payload.COLLECTION}module_utils._step_of_a_test"
    (tmp_path / "there.py").write_text(STEP)
    spec = importlib.util.spec_from_file_location(name, tmp_path / "there.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose program lies where launch puts it, with a job that its worker would have."""
    directory = tmp_path / "run-1"
    payload.write(str(directory / "payload"), launch.PROGRAMS, 0o644)
    program = directory / "payload" / (worker_state.__name__.replace(".", "/") + ".py")
    program.write_text(program.read_text().replace(f'"{worker_state.RUNS_DIR}"', f'"{tmp_path}"'))
    (directory / "job.json").write_text("{}")
    monkeypatch.setattr(run_state, "BASE_DIR", str(tmp_path))
    return directory


def test_the_program_does_what_the_module_would(run_dir: Path) -> None:
    action = Action()
    assert action.step() == {"changed": False, "started": True} and action.modules == []
    found = json.loads((run_dir / "go.json").read_text())
    # The arguments have the types of the module's, and its defaults.
    assert found["ranks"] == [0] and found["collective"]["world_size"] == 2
    assert found["collective"].keys() == steps.COLLECTIVE.keys() and found["deadline_seconds"] == 60


def test_what_has_changed_since_the_orders_comes_before_them(run_dir: Path) -> None:
    action = Action(deadline_seconds=50)
    assert action.step(deadline_seconds=42)["started"] is True and action.modules == []
    assert json.loads((run_dir / "go.json").read_text())["deadline_seconds"] == 42


def test_long_arguments_are_not_part_of_the_command(run_dir: Path) -> None:
    action = Action(ranks=list(range(50000)))
    assert action.step(piped=True) == {"changed": False, "started": True} and action.modules == []
    assert json.loads((run_dir / "go.json").read_text())["ranks"][-1] == 49999
    assert len(action.commands[0]) < 500


def connection_with(become: str) -> Any:
    """Ansible's own connection plugin, which has a become plugin of Ansible: a stand-in may have what theirs lack."""
    connection = connection_loader.get("local", PlayContext(), os.devnull)
    if become:
        connection.set_become_plugin(become_loader.get(become))
    return connection


@pytest.mark.parametrize(("become", "taken"), [("", True), ("sudo", True), ("runas", True), ("su", False)])
def test_input_is_given_where_the_real_become_plugin_takes_it(become: str, taken: bool) -> None:
    action = Action()
    action._connection = connection_with(become)
    assert _node_program.takes_input(action) is taken  # type: ignore[arg-type]


@pytest.mark.parametrize("has_pipelining", [True, False])
def test_a_connection_that_passes_no_input_takes_the_module(run_dir: Path, has_pipelining: bool) -> None:
    action = Action()
    action._connection = connection_with("su" if has_pipelining else "")
    action._connection.has_pipelining = has_pipelining
    assert action.step(piped=True) == BY_MODULE == action.sent(SENT) and action.commands == []
    assert action.step() == {"changed": False, "started": True}


def test_root_imports_nothing_from_the_folder_of_the_user_who_logs_in(run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported')\n")
    action = Action()
    action.home = str(tmp_path)
    assert action.step() == {"changed": False, "started": True} and action.modules == []


def test_a_result_has_nothing_that_ansible_acts_on(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"started": True, "ansible_facts": {"x": 1}, "add_host": {"host_name": "n9"}, "unreachable": True}
    monkeypatch.setattr(_node_program, "last_object", lambda _answer: said)
    assert Action().step() == {"started": True}
    monkeypatch.setattr(
        Action, "_execute_module", lambda *_arguments, **_more: {**said, "torch_runtime_lock_file": "/x"}
    )
    assert Action().step(python="") == {"started": True} and Action().sent(SENT, python="") == {}


def test_only_the_facts_of_the_step_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    python, wanted = {"discovered_interpreter_python": "/usr/bin/python3"}, {"gpu_node": {}}
    said = {"ansible_facts": {**python, **wanted, "gpu_cluster_user": "root"}, "gpu_cluster_user": "root"}
    monkeypatch.setattr(Action, "_execute_module", lambda *_arguments, **_more: said)
    assert Action().sent(SENT, python="") == {"ansible_facts": {**python, **wanted}}


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
    assert action.step(python) == BY_MODULE
    assert action.modules == [{"program": "go", "arguments": action._task.args}]
    assert action.commands == [] and not (run_dir / "go.json").exists()


@pytest.mark.parametrize("python", ["/no/such/python", "echo", "true"])
def test_a_node_that_does_not_answer_with_an_object_is_asked_by_the_module(run_dir: Path, python: str) -> None:
    action = Action()
    assert action.step(python) == BY_MODULE and len(action.commands) == 1 and len(action.modules) == 1


def test_a_program_is_sent_with_all_that_it_imports(step_module: ModuleType) -> None:
    program = _node_program.Program(MODULE, step_module)
    # It comes out of memory: no file of this checkout is in the path of the node's Python.
    action = Action(world_size="1")
    action.environment = "SITE='of the task'"
    assert action.sent(program) == {
        "changed": False,
        "said": [0, "in out of the task\n", ""],
        "seen": ["/", [], ["world_size is 1, expected 2 to 4096"], "gpu-cluster-check-x.service", 1],
    }
    assert action.modules == [] and len(action.commands[0]) < 500


def test_a_program_that_breaks_says_where_and_is_not_repeated_by_the_module(step_module: ModuleType) -> None:
    action = Action(breaks=True)
    answer = action.sent(_node_program.Program(MODULE, step_module))
    assert answer["failed"] and "_step_of_a_test.py" in answer["msg"] and "as it was told" in answer["msg"]
    assert action.modules == []


@pytest.mark.parametrize(
    ("arguments", "python"), [({"check_mode": True}, sys.executable), ({}, ""), ({"ranks": "x"}, sys.executable)]
)
def test_what_can_not_be_sent_is_the_module(step_module: ModuleType, arguments: dict[str, Any], python: str) -> None:
    action = Action(**arguments)
    assert action.sent(_node_program.Program(MODULE, step_module), python) == BY_MODULE and action.commands == []
    assert action.modules == [action._task.args]


@pytest.mark.parametrize("path", ["~/torch", "$HOME/torch", "/opt/${SITE}/torch"])
def test_what_a_path_means_on_the_node_only_the_module_knows(path: str) -> None:
    action = Action()
    action._task.args = {"torch_prefix": path}
    assert action.sent(SENT) == BY_MODULE and action.commands == []


@pytest.mark.parametrize("python", ["/no/such/python", "echo", "true"])
def test_a_node_that_does_not_run_the_program_is_asked_by_the_module(step_module: ModuleType, python: str) -> None:
    action = Action()
    assert action.sent(_node_program.Program(MODULE, step_module), python) == BY_MODULE and len(action.commands) == 1


def test_what_only_reads_is_sent_in_check_mode_too(step_module: ModuleType) -> None:
    action = Action(check_mode=True)
    assert action.sent(_node_program.Program(MODULE, step_module, reads_only=True))["changed"] is False
    assert action.modules == []


@pytest.mark.parametrize(
    ("step", "given"),
    [
        (facts, {"torch_prefix": "/nowhere"}),
        (facts_step, {"host": "n9", "members": [], "plan": {}}),
        (begin, {"run_id": "x", "nonce": "x", "address": "x", "interface": "x", "torch_python": "x", "samples": 99}),
    ],
    ids=["facts", "look", "begin"],
)
def test_the_steps_of_a_check_need_nothing_of_ansible(step: ModuleType, given: dict[str, Any]) -> None:
    """The node has no Ansible: what one of them imports of it is not among the sources."""
    action = Action()
    action._task.args = given
    answer = action.sent(_node_program.Program(MODULE, step, reads_only=True))
    assert action.modules == [] and "Traceback" not in answer.get("msg", ""), answer
    assert answer.get("failed") or answer["ansible_facts"]["gpu_node"]["torch"]["version"] == ""


def test_the_program_needs_little_of_a_processor(run_dir: Path) -> None:
    """It imports neither torch nor the code that starts a run: whoever adds an import here sees what it costs."""
    argv = [sys.executable, "-S", "-X", "importtime", "-m", steps.__name__, "go", json.dumps(GO)]
    environment = {**os.environ, "PYTHONPATH": str(run_dir / "payload")}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "json" in imported and not imported & {"torch", "inspect", "statistics", launch.__name__}


@pytest.mark.parametrize("said", ["", "[]", "NaN", "[" * 100_000, '{"x":' * 100_000, '{"x": ' + "9" * 5000 + "}"])
def test_what_is_no_object_of_json_is_one_error(said: str) -> None:
    with pytest.raises(ValueError):
        _node_program.last_object({"stdout": said})


def test_a_module_for_several_programs_is_told_which() -> None:
    action = Action()
    given = {"ranks": [1]}
    action.step(python="", **given)
    _node_program.Program(MODULE, facts, program="facts").run(action, {})  # type: ignore[arg-type]
    assert action.modules == [
        {"program": "go", "arguments": {**GO, **given}},
        {"program": "facts", "arguments": GO},
    ]


def test_the_job_of_open_mpi_can_be_sent() -> None:
    """With all that it imports, and nothing that a Python without its site lacks."""
    program = _node_program.Program(MODULE, mpi_step, program="mpi")
    action = Action()
    nodes = [{"host": host, "address": "192.0.2.1"} for host in ("n1", "n2")]
    for arguments, expected in (
        ({"clear": True}, {"ended": []}),
        ({"nodes": nodes, "user": "no such user"}, {"state": "failed", "unclean": False}),
    ):
        action._task.args = {"run_id": "run-1-mpi", **arguments}
        assert action.sent(program).items() >= expected.items() and action.modules == []
