# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rerun right after a kill: the change that was left armed on the node is waited for, with a line that says so."""

from __future__ import annotations

import hashlib
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.baremetal.gpu_cluster.plugins.action import firewall_peers, network_profiles
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _commit_confirm

BUSY = {"failed": True, "msg": "another run (x, started at 10:00:00 from ?) has a change", "busy_seconds": 30}
DONE = {"changed": False, "diff": []}


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(__import__("time"), name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(_commit_confirm, "time", made)
    return made


@pytest.fixture(params=[network_profiles, firewall_peers])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Any:
    """Run the action with these answers of its module, the last one again and again; result, and what was shown."""

    def run_with(*answers: Any) -> tuple[dict[str, Any], list[str]]:
        action = request.param.ActionModule.__new__(request.param.ActionModule)
        action._task = SimpleNamespace(args={}, check_mode=False)
        action._connection = SimpleNamespace(get_option=lambda _name: "gpu07")
        left, shown = list(answers), []

        def execute(name: str, arguments: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return dict(answer)

        monkeypatch.setattr(_commit_confirm.ActionBase, "run", lambda *_arguments: {})
        monkeypatch.setattr(action, "_execute_module", execute)
        monkeypatch.setattr(
            _commit_confirm.Display, "display", lambda _self, text, *_args, **_named: shown.append(text)
        )
        return action.run(task_vars={"inventory_hostname": "gpu07"}), shown

    return run_with


def test_the_question_whether_the_node_answers_goes_over_a_connection_of_its_own() -> None:
    """One that was open before a firewall closes lives on: it would say yes."""
    options = {
        "host": "a",
        "ssh_args": "-o ControlMaster=auto -o ControlPersist=60s",
        "ssh_common_args": "-J gate",
        "remote_user": "admin",
        "timeout": 30,
        "reconnection_retries": 2,
    }
    before = dict(options)
    fresh = _commit_confirm.FreshConnection(
        SimpleNamespace(get_option=options.__getitem__, set_option=options.__setitem__)
    )
    fresh.open("z")
    # Of an option that is given twice, ssh takes the first.
    assert options["ssh_args"].startswith("-o ControlMaster=no -o ControlPath=none ")
    assert options["host"] == "z" and options["reconnection_retries"] == 0
    assert {name for name in before if options[name] == before[name]} == {"ssh_common_args", "remote_user"}
    fresh.restore()
    assert options == before


@pytest.mark.parametrize(("plugin", "kind"), [(network_profiles, "network"), (firewall_peers, "firewall")])
def test_the_node_is_asked_about_the_change_that_was_started(
    plugin: ModuleType, kind: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def execute(name: str, arguments: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        if name == plugin.ActionModule.module:
            return {"changed": True, "change": {"run_id": "run-1", "confirm_seconds": 60, "tried": "it"}}
        asked.append((name, arguments["kind"], arguments["run_id"], arguments["step"]))
        digest = hashlib.sha256(arguments["payload"].encode()).hexdigest()
        state = {"state": "applied", "applied_for": 5} if arguments["step"] == "look" else {"state": "confirmed"}
        return {**state, "digest": digest, "payload": "", "payload_digest": hashlib.sha256(b"").hexdigest()}

    action = plugin.ActionModule.__new__(plugin.ActionModule)
    action._task = SimpleNamespace(args={}, check_mode=False)
    action._connection = SimpleNamespace(
        get_option=lambda _name: "gpu07", set_option=lambda _name, _value: None, reset=lambda: None
    )
    monkeypatch.setattr(_commit_confirm.ActionBase, "run", lambda *_arguments: {})
    monkeypatch.setattr(action, "_execute_module", execute)
    result = action.run(task_vars={"inventory_hostname": "gpu07"})
    assert result["outcome"] == {"state": "confirmed"} and not result.get("failed")
    step = "baremetal.gpu_cluster.pending_change"
    assert asked == [(step, kind, "run-1", "look"), (step, kind, "run-1", "confirm")]


def test_an_unsettled_change_is_waited_for_with_one_line(run: Any, clock: Clock) -> None:
    result, shown = run(BUSY, BUSY, BUSY, DONE)
    assert not result.get("failed") and result["changed"] is False
    assert len(shown) == 1 and shown[0].startswith("gpu07: another run (x") and "for up to 30 s" in shown[0], shown
    assert 0 < clock.now < 30


def test_a_connection_that_the_old_state_cuts_is_opened_again(run: Any, clock: Clock) -> None:
    unreachable = {"unreachable": True, "msg": "timed out"}
    result, _shown = run(BUSY, AnsibleConnectionFailure("reset"), unreachable, DONE)
    assert not result.get("failed") and not result.get("unreachable")
    # Before anybody was waited for, it is an error as ever.
    with pytest.raises(AnsibleConnectionFailure):
        run(AnsibleConnectionFailure("reset"))


def test_the_wait_has_an_end(run: Any, clock: Clock) -> None:
    result, _shown = run(BUSY)
    assert result["failed"] and "another run (x" in result["msg"] and 30 <= clock.now <= 40
    assert "Repeat the command later" in result["msg"]
    assert "busy_seconds" not in result


@pytest.mark.parametrize("seconds", [0, -1, True, "30", None, 2.5, [30], 10**9, float("nan")])
def test_a_node_that_lies_holds_nobody_up(run: Any, clock: Clock, seconds: Any) -> None:
    result, _shown = run({**BUSY, "busy_seconds": seconds})
    assert result["failed"] and clock.now <= 0
