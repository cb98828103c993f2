# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The look at a node from the controller's side: two readings of its clock, and failures that become results."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ansible_collections.baremetal.gpu_cluster.plugins.action import host_preflight


def look(
    monkeypatch: pytest.MonkeyPatch, answer: Any, seconds: float = 0.0, listed: bool = False, **arguments: Any
) -> dict[str, Any]:
    """Run the action; the module answers, or raises, after so many seconds of the controller's clock."""
    now = [1000.0]
    monkeypatch.setattr(host_preflight, "time", SimpleNamespace(time=lambda: now[0]))

    def execute(**given: Any) -> Any:
        assert given["module_name"] == "baremetal.gpu_cluster.host_preflight"
        assert given["module_args"] == arguments
        now[0] += seconds
        if isinstance(answer, Exception):
            raise answer
        return answer

    action = host_preflight.ActionModule.__new__(host_preflight.ActionModule)
    action._task = SimpleNamespace(args=arguments, ignore_unreachable=listed)
    action._execute_module = execute
    monkeypatch.setattr(host_preflight.ActionBase, "run", lambda *_arguments: {})
    return action.run(task_vars={})


def answer(clock: float) -> dict[str, Any]:
    return {"changed": False, "problems": [], "notes": [], "observed": {"clock_seconds": clock}}


@pytest.mark.parametrize("clock", [995.0, 1000.0, 1007.0, 1060.0, 1065.0])
def test_a_slow_node_is_not_accused(monkeypatch: pytest.MonkeyPatch, clock: float) -> None:
    assert look(monkeypatch, answer(clock), seconds=60.0)["problems"] == []


@pytest.mark.parametrize(("clock", "offset"), [(900.0, -100.0), (1102.0, 100.0)])
def test_a_clock_that_is_off_is_a_problem(monkeypatch: pytest.MonkeyPatch, clock: float, offset: float) -> None:
    result = look(monkeypatch, answer(clock), seconds=2.0)
    assert result["observed"]["clock_offset_seconds"] == offset
    (problem,) = result["problems"]
    assert problem["variable"] == "preflight_max_time_offset_seconds"
    assert "100.0 s" in problem["rule"]


@pytest.mark.parametrize("limit", [200, "200"])
def test_the_limit_is_the_callers(monkeypatch: pytest.MonkeyPatch, limit: Any) -> None:
    assert look(monkeypatch, answer(900.0), max_time_offset_seconds=limit)["problems"] == []
    assert len(look(monkeypatch, answer(700.0), max_time_offset_seconds=limit)["problems"]) == 1


def test_a_failing_become_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(monkeypatch, AnsibleError("Missing sudo password")) == {"failed": True, "msg": "Missing sudo password"}


def test_a_failing_module_is_a_result_without_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"failed": True, "msg": "boom"}
    assert look(monkeypatch, failed, max_time_offset_seconds="many") == failed


def test_a_node_that_cannot_be_reached_stays_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AnsibleConnectionFailure):
        look(monkeypatch, AnsibleConnectionFailure("no route"))


def test_a_task_that_goes_on_gets_it_as_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    result = look(monkeypatch, AnsibleConnectionFailure("no\nroute"), listed=True)
    assert result == {"failed": True, "msg": "no route", "no_contact": True}
