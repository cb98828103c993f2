# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking at the ranks of one node changes nothing in what is collected, whatever a look finds."""

from __future__ import annotations

import json
import signal
import time
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import progress_note
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _follow, _progress

PYTHON = "/usr/bin/python3"
RUN = "/run/gpu-cluster-check/run-1"
NOTE = {"backend": "gloo", "size_bytes": 4, "number": 1, "of": 2, "iterations": 20, "at_most": 65}


@pytest.fixture(autouse=True)
def no_interpreter_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless variables say it: this checkout's ansible.cfg names one."""
    monkeypatch.setenv("ANSIBLE_PYTHON_INTERPRETER", "auto_silent")


class Node:
    """Answers looks in order, each of which takes one second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *looks: Any) -> None:
        self.now = 1000.0
        self.looks = list(looks)
        self.commands: list[str] = []
        self.shown: list[str] = []
        monkeypatch.setattr(_progress.Line, "_write", staticmethod(lambda text, newline: self.shown.append(text)))
        monkeypatch.setattr(_follow, "time", SimpleNamespace(monotonic=lambda: self.now))

    def command(self, command: str) -> dict[str, Any]:
        self.commands.append(command)
        self.now += 1.0
        answer = self.looks.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return {"rc": 0, "stdout": answer if isinstance(answer, str) else json.dumps(answer) + "\r\n"}

    def follow(self, variables: Any = None, wait_seconds: int = 45) -> int:
        """What is left of the time to wait."""
        action: Any = SimpleNamespace(_templar=SimpleNamespace(template=lambda text: text))
        action._low_level_execute_command = self.command
        found = {"ansible_python_interpreter": PYTHON} if variables is None else variables
        given = {"run_id": "run-1", "wait_seconds": wait_seconds}
        left = _follow.follow(action, _progress.Line(0), given, found)
        assert list(left) == ["wait_seconds"]
        return int(left["wait_seconds"])


def running(**changes: Any) -> dict[str, Any]:
    return {"state": "running", "note": dict(NOTE, **changes)}


def test_the_node_of_rank_0_is_looked_at_until_its_ranks_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch, running(), running(number=2), {"state": "finished", "note": NOTE})
    # What the looks took is not waited for once more.
    assert node.follow() == 42
    assert node.shown == ["gloo 4 B 1/2, iterations 20/65", "gloo 4 B 2/2, iterations 20/65"]
    program = f"{RUN}/payload/{progress_note.__name__.replace('.', '/')}.py"
    # The first one does not wait for a change.
    assert node.commands == [f"{PYTHON} -I -S {program} {RUN} {seconds}" for seconds in (0, 1, 1)]


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
    assert node.follow() == 43
    assert len(node.commands) == 2 and len(node.shown) == 1


def test_no_more_time_is_waited_than_without_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch, *[running(iterations=number) for number in range(20)])
    assert node.follow(wait_seconds=5) == 0
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
    node.follow(variables)
    assert [command.split()[0] for command in node.commands] == ([python] if python else [])


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
