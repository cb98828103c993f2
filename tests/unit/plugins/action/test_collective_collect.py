# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking at the ranks of one node changes nothing in what is collected, whatever a look finds."""

from __future__ import annotations

import json
import shlex
import signal
import time
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.baremetal.gpu_cluster.plugins.action import collective_collect
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import progress_note, steps
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _follow, _progress

MODULE = "baremetal.gpu_cluster.collective_collect"
PYTHON = "/usr/bin/python3"
RUN = "/run/gpu-cluster-check/run-1"
ANSWER = {
    "changed": False,
    "run_id": "run-1",
    "state": "finished",
    "hostname": "n1",
    "ports": [{"range": "rendezvous", "port": 29500}],
    "rails": [],
    "taken": [],
}
NOTE = {"backend": "gloo", "size_bytes": 4, "number": 1, "of": 2, "iterations": 20, "at_most": 65}


def validate(given: dict[str, Any], argument_spec: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """As ActionBase does it, of a task with these arguments."""
    found = ArgumentSpecValidator(argument_spec).validate(given)
    if found.error_messages:
        raise AnsibleActionFail("; ".join(found.error_messages))
    return found, found.validated_parameters


class Node:
    """Answers looks in order, and then the module.  A number is a time that passes; each look takes one second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *looks: Any) -> None:
        self.now = 1000.0
        self.has_program = True
        self.looks = list(looks)
        self.commands: list[str] = []
        self.modules: list[dict[str, Any]] = []
        self.programs: list[dict[str, Any]] = []
        self.shown: list[str] = []
        monkeypatch.setattr(_progress.Line, "_write", staticmethod(lambda text, newline: self.shown.append(text)))
        monkeypatch.setattr(_follow, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(collective_collect.ActionBase, "run", lambda *_arguments: {})

    def execute(self, name: str, given: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        assert name == MODULE
        self.modules.append(given)
        return dict(ANSWER)

    def command(self, command: str, chdir: str | None = None, in_data: bytes | None = None) -> dict[str, Any]:
        assert in_data is None
        if progress_note.__name__.replace(".", "/") in command:
            self.commands.append(command)
            self.now += 1.0
        if f"{steps.__name__} collect" in command and not self.has_program:
            return {"rc": 1, "stdout": "", "stderr": "No module named ..."}
        if f"{steps.__name__} collect" in command:
            self.programs.append(json.loads(shlex.split(command)[-1]))
            return {"rc": 0, "stdout": f"a line of sudo\r\n{json.dumps(ANSWER)}\r\n"}
        answer = self.looks.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return {"rc": 0, "stdout": answer if isinstance(answer, str) else json.dumps(answer) + "\r\n"}

    def collect(self, variables: Any = None, check_mode: bool = False, **arguments: Any) -> dict[str, Any]:
        action = collective_collect.ActionModule.__new__(collective_collect.ActionModule)
        given = {"run_id": "run-1", "wait_seconds": 45, "progress": "always", "look": True, **arguments}
        action._task = SimpleNamespace(args=given, check_mode=check_mode)
        action._templar = SimpleNamespace(template=lambda text: text)
        action._execute_module = self.execute
        action._low_level_execute_command = self.command
        action._compute_environment_string = lambda: ""
        action.validate_argument_spec = partial(validate, given)
        found = {"ansible_python_interpreter": PYTHON} if variables is None else variables
        result: dict[str, Any] = action.run(task_vars=found)
        assert result == ANSWER
        (asked,) = self.modules + self.programs
        return asked


def running(**changes: Any) -> dict[str, Any]:
    return {"state": "running", "note": dict(NOTE, **changes)}


def test_the_node_of_rank_0_is_looked_at_until_its_ranks_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch, running(), running(number=2), {"state": "finished", "note": NOTE})
    # What the looks took is not waited for once more.
    assert node.collect()["wait_seconds"] == 42
    assert node.shown == ["gloo 4 B 1/2, iterations 20/65", "gloo 4 B 2/2, iterations 20/65"]
    program = f"{RUN}/payload/{progress_note.__name__.replace('.', '/')}.py"
    # The first one does not wait for a change.
    assert node.commands == [f"{PYTHON} -I -S {program} {RUN} {seconds}" for seconds in (0, 1, 1)]


def test_the_module_waits_no_longer_than_the_program_would(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch, running(), {"state": "finished", "note": NOTE})
    node.has_program = False
    assert node.collect()["wait_seconds"] == 43 and len(node.modules) == 1


@pytest.mark.parametrize("arguments", [{"look": False}, {"progress": "never"}, {"look": "False"}, {"check_mode": True}])
def test_otherwise_the_results_are_all_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> None:
    node = Node(monkeypatch)
    assert node.collect(**arguments)["wait_seconds"] == 45
    assert node.commands == [] and node.shown == []
    # Only a module knows what check mode is.
    assert len(node.modules) == int("check_mode" in arguments)


def test_nodes_that_are_not_looked_at_keep_the_terminal_tidy(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch)
    monkeypatch.setattr(_progress, "line", lambda _wanted: _progress.Line(80))
    node.collect(look=False)
    assert node.commands == [] and node.shown == [_progress.ERASE]


@pytest.mark.parametrize(
    "look",
    [
        AnsibleConnectionFailure("lost"),
        OSError(24, "too many open files"),
        _follow.TooLongError(),
        "",
        "sudo: a password is required",
        "[1]",
        {"state": "gone", "note": None},
        {"state": "deadline", "note": NOTE},
        {},
    ],
)
def test_a_look_that_fails_is_the_last_one(monkeypatch: pytest.MonkeyPatch, look: Any) -> None:
    node = Node(monkeypatch, running(), look)
    assert node.collect()["wait_seconds"] == 43
    assert len(node.commands) == 2 and len(node.shown) == 1


def test_no_more_time_is_waited_than_without_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch, *[running(iterations=number) for number in range(20)])
    assert node.collect(wait_seconds=5)["wait_seconds"] == 0
    assert len(node.commands) == 5


@pytest.mark.parametrize(
    ("variables", "python"),
    [
        ({}, ""),
        ({"ansible_facts": {"discovered_interpreter_python": "/usr/bin/python3.9"}}, "/usr/bin/python3.9"),
        (
            {
                "ansible_python_interpreter": "auto_silent",
                "ansible_facts": {"discovered_interpreter_python": "/usr/bin/python3.9"},
            },
            "/usr/bin/python3.9",
        ),
    ],
)
def test_it_is_the_python_of_the_modules(monkeypatch: pytest.MonkeyPatch, variables: Any, python: str) -> None:
    node = Node(monkeypatch, {"state": "finished"})
    node.collect(variables)
    assert [command.split()[0] for command in node.commands] == ([python] if python else [])


@pytest.mark.parametrize("wrong", [{"run_id": "a; reboot"}, {"wait_seconds": "soon"}])
def test_wrong_arguments_are_left_to_the_module(monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]) -> None:
    node = Node(monkeypatch)
    given = node.collect(**wrong)
    assert node.commands == [] and given.items() >= wrong.items()


class TaskTimeoutError(BaseException):
    """As Ansible's."""


def dawdle() -> None:
    """For 20 s. A signal that another thread has got is seen between two sleeps."""
    for _number in range(400):
        time.sleep(0.05)


def test_a_look_is_ended_and_the_limit_of_the_task_goes_on() -> None:
    def task_timeout(_number: int, _frame: Any) -> None:
        raise TaskTimeoutError

    before = signal.signal(signal.SIGALRM, task_timeout)
    began = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 3)
        with pytest.raises(_follow.TooLongError), _follow.at_most(0.2):
            dawdle()
        assert signal.getitimer(signal.ITIMER_REAL)[0] <= 2.8 and signal.getsignal(signal.SIGALRM) is task_timeout
        with _follow.at_most(2):
            pass
        with pytest.raises(TaskTimeoutError):
            dawdle()
        assert 2.9 < time.monotonic() - began < 15
        # The limit of the task comes first.
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(TaskTimeoutError), _follow.at_most(10):
            dawdle()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_task_without_a_limit_has_none_after_a_look() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with _follow.at_most(5):
        pass
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0 and signal.getsignal(signal.SIGALRM) is before
