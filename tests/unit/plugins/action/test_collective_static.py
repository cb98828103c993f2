# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The static look from the controller's side: its clock before and after."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.action import collective_static


def look(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]) -> dict[str, Any]:
    """Run the action from 1000 to 1003 of the controller's clock."""
    now = [1000.0]
    monkeypatch.setattr(collective_static, "time", SimpleNamespace(time=lambda: now[0]))

    def run(_action: Any, _task_vars: Any) -> dict[str, Any]:
        now[0] += 3.0
        return answer

    monkeypatch.setattr(collective_static, "PROGRAM", SimpleNamespace(run=run))
    action = collective_static.ActionModule.__new__(collective_static.ActionModule)
    action._task = SimpleNamespace(args={"host": "n1"})
    monkeypatch.setattr(collective_static.ActionBase, "run", lambda *_arguments: {})
    result: dict[str, Any] = action.run(task_vars={})
    return result


def test_the_clock_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    result = look(monkeypatch, {"changed": False, "static": {"epoch": 1102.0, "seconds": 0.5}})
    # The look began between 1000.0 and 1002.5, when the node's clock said 1102.0.
    assert result["static"]["clock"] == {"offset_seconds": 100.75, "uncertainty_seconds": 1.25}


def test_a_failure_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(monkeypatch, {"failed": True, "msg": "no"}) == {"failed": True, "msg": "no"}


@pytest.mark.parametrize(
    ("order", "refused"), [("free", True), ("ansible.builtin.host_pinned", True), ("linear", False)]
)
def test_a_play_that_does_not_keep_hosts_together_is_refused(
    monkeypatch: pytest.MonkeyPatch, order: str, refused: bool
) -> None:
    block = SimpleNamespace(_play=None, _parent=SimpleNamespace(_play=SimpleNamespace(strategy=order)))
    action = collective_static.ActionModule.__new__(collective_static.ActionModule)
    action._task = SimpleNamespace(args={}, _parent=block)
    monkeypatch.setattr(collective_static, "PROGRAM", SimpleNamespace(run=lambda *_given: {"changed": False}))
    monkeypatch.setattr(collective_static.ActionBase, "run", lambda *_arguments: {})
    result = action.run(task_vars={})
    assert result.get("failed", False) is refused
    assert not refused or (result["strategy"] == order and "Fix: run it with strategy linear" in result["msg"])


def test_members_that_are_text_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(
        collective_static, "PROGRAM", SimpleNamespace(run=lambda action, _vars: seen.append(action._task.args) or {})
    )
    monkeypatch.setattr(collective_static.ActionBase, "run", lambda *_arguments: {})
    action = collective_static.ActionModule.__new__(collective_static.ActionModule)
    action._task = SimpleNamespace(args={"members": json.dumps([{"name": "n1"}])})
    action.run(task_vars={})
    assert seen == [{"members": [{"name": "n1"}]}]
