# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host takes the step that is ordered for it, and what came of it is kept, whatever that is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import constants as C
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.baremetal.gpu_cluster.plugins.action import check_step
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.coordinator import Orders
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _check_folder, _progress

LINK = {
    "probes": 2,
    "milliseconds": 0.1,
    "bytes_per_second": 10**9,
    "retransmits": 0,
    **{name: [] for name in ("failures", "blocked", "searched", "unheard")},
}
LINKS = {"changed": False, "started": True, "links": [{"host": host, **LINK} for host in ("n2", "n3")], "rails": []}
COLLECTED = {
    "changed": False,
    "run_id": "run-1",
    "state": "finished",
    "hostname": "n1",
    "ports": [{"range": "rendezvous", "port": 29500}],
    "rails": [],
    "taken": [],
}


class TaskTimeoutError(BaseException):
    """As Ansible's."""


class Step:
    """One task on n1, whose program gives this answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.folder = _check_folder.Folder(str(tmp_path))
        self.answer: Any = {}
        self.shown: list[str] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.piped = False
        monkeypatch.setattr(C, "DEFAULT_LOCAL_TMP", str(tmp_path))
        monkeypatch.setattr(_progress.Line, "_write", staticmethod(lambda text, newline: self.shown.append(text)))
        monkeypatch.setattr(check_step.ActionBase, "run", lambda *_arguments: {})
        sent = {name: SimpleNamespace(run=self.sender(name)) for name in check_step.SENT}
        monkeypatch.setattr(check_step, "SENT", sent)
        monkeypatch.setattr(check_step._node_program, "step", self.there)

    def sender(self, name: str) -> Any:
        def run(action: Any, _variables: Any) -> dict[str, Any]:
            self.asked.append((name, action._task.args))
            return self.made()

        return run

    def there(
        self, action: Any, _module: str, program: str, _variables: Any, changed: dict[str, Any], piped: bool
    ) -> dict[str, Any]:
        self.asked.append((program, {**action._task.args, **changed}))
        self.piped = piped
        return self.made()

    def made(self) -> dict[str, Any]:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return dict(self.answer)

    def order(
        self, program: str, hosts: tuple[str, ...] = ("n1",), show: dict[str, Any] | None = None, **common: Any
    ) -> None:
        own = {host: {"of": host} for host in hosts}
        orders = Orders(program, program, "Do it", 40, common, own, {"n9": 30}, show or {})
        self.folder.save({"step": program, "plan": {}, "answers": {}}, _check_folder.Step(0, orders))

    def run(self, folder: str = "") -> dict[str, Any]:
        action = check_step.ActionModule.__new__(check_step.ActionModule)
        action._task = SimpleNamespace(args={"folder": folder or self.folder.path}, check_mode=False)
        result: dict[str, Any] = action.run(task_vars={"inventory_hostname": "n1"})
        return result

    def kept(self) -> dict[str, dict[str, Any]]:
        return self.folder.answers(self.folder.step())


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Step:
    return Step(monkeypatch, tmp_path)


def test_the_whole_answer_is_kept_and_little_of_it_is_shown(step: Step) -> None:
    step.order("go", run_id="run-1")
    step.answer = {"changed": False, "started": True}
    assert step.run() == step.answer and step.kept() == {"n1": step.answer}
    assert step.asked == [("go", {"run_id": "run-1", "of": "n1"})]
    step.folder.path += "/x"
    Path(step.folder.path).mkdir()
    step.order("probe", run_id="run-1", wait=False)
    step.answer = LINKS
    assert step.run() == {"changed": False, "started": True} and step.kept() == {"n1": LINKS}


def test_a_host_without_an_order_is_skipped(step: Step) -> None:
    step.order("go", hosts=("n2",))
    assert step.run() == {"changed": False, "skipped": True} and step.asked == [] and step.kept() == {}


def test_without_a_check_there_is_nothing_to_do(step: Step) -> None:
    assert step.run()["failed"] is True and step.asked == []


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (AnsibleConnectionFailure("ssh:\x1b[2J lost"), {"unreachable": True, "msg": "ssh:\ufffd[2J lost"}),
        (KeyError("epoch"), {"failed": True, "msg": "'epoch'"}),
        (TaskTimeoutError(), {"failed": True, "msg": "no answer to the step 'launch' within 40 s"}),
    ],
)
def test_what_ends_a_task_is_kept_and_ends_it(step: Step, error: BaseException, kept: dict[str, Any]) -> None:
    step.order("launch")
    step.answer = error
    with pytest.raises(type(error)):
        step.run()
    assert step.kept() == {"n1": kept}


def test_a_failure_is_an_answer_and_fails_the_task(step: Step) -> None:
    step.order("facts")
    # Since ansible-core 2.19 what a module raised is an object.
    step.answer = {"failed": True, "msg": "no rights", "exception": object()}
    assert step.run()["failed"] is True and step.kept()["n1"]["msg"] == "no rights"


def test_an_answer_that_no_program_gives_is_a_failure(step: Step) -> None:
    step.order("go")
    step.answer = {"started": "perhaps"}
    found = step.run()
    assert found["failed"] is True and "'go' is not what its program returns" in found["msg"]
    assert step.kept()["n1"]["failed"] is True


def test_the_facts_of_a_node_stay_facts(step: Step) -> None:
    step.order("facts")
    facts = {"gpu_node": {"kernel": "5.14"}, "discovered_interpreter_python": "/usr/bin/python3"}
    step.answer = {"changed": False, "ansible_facts": facts}
    assert step.run() == step.answer and step.kept()["n1"] == step.answer


def test_the_clock_is_compared(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 1000 to 1003 of the controller's clock; the look began until 1002.5, when the node's clock was at 1102."""
    now = iter([1000.0, 1003.0])
    monkeypatch.setattr(check_step, "time", SimpleNamespace(time=lambda: next(now)))
    step.order("static")
    step.answer = {"changed": False, "static": {"epoch": 1102.0, "seconds": 0.5}}
    step.run()
    clock = step.kept()["n1"]["static"]["clock"]
    assert clock == {"offset_seconds": 100.75, "uncertainty_seconds": 1.25}


def test_a_long_book_is_no_part_of_a_command(step: Step) -> None:
    step.order("probe", run_id="run-1", book=[{}], wait=False)
    step.answer = {"changed": False, "started": True}
    step.run()
    assert step.piped is True and step.shown == []


@pytest.mark.parametrize(
    ("answer", "shown", "counted"),
    [(LINKS, ["mesh 6/6 links"], 6), ({"failed": True, "msg": "no"}, [], 4), (ConnectionError(), [], 4)],
)
def test_links_that_are_fetched_are_counted(
    step: Step, tmp_path: Path, answer: Any, shown: list[str], counted: int
) -> None:
    (tmp_path / "mesh-run-1").write_bytes(b"." * 4)
    step.order("probe", show={"progress": "always", "links": 6}, run_id="run-1")
    step.answer = answer
    if isinstance(answer, BaseException):
        with pytest.raises(ConnectionError):
            step.run()
    else:
        step.run()
        assert step.kept()["n1"] == answer
    assert step.shown == shown and (tmp_path / "mesh-run-1").stat().st_size == counted
    assert step.piped is False


def test_a_controller_without_room_for_the_number_probes_all_the_same(
    step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(C, "DEFAULT_LOCAL_TMP", "/dev/null")
    step.order("probe", show={"progress": "always", "links": 6}, run_id="run-1")
    step.answer = LINKS
    step.run()
    assert step.kept()["n1"] == LINKS and step.shown == []


@pytest.mark.parametrize(
    ("host", "progress", "left"), [("n1", "always", 42), ("n2", "always", 48), ("n1", "never", 48)]
)
def test_the_node_of_rank_0_is_looked_at(
    step: Step, monkeypatch: pytest.MonkeyPatch, host: str, progress: str, left: int
) -> None:
    monkeypatch.setattr(check_step._follow, "follow", lambda *_arguments: {"wait_seconds": 42})
    step.order("collect", show={"progress": progress, "host": host}, run_id="run-1", wait_seconds=48)
    step.answer = COLLECTED
    assert step.run() == {"changed": False, "state": "finished"}
    ((_program, given),) = step.asked
    assert given["wait_seconds"] == left


def test_nodes_that_are_not_looked_at_keep_the_terminal_tidy(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "line", lambda _wanted: _progress.Line(80))
    step.order("collect", show={"progress": "auto", "host": "n2"}, run_id="run-1", wait_seconds=48)
    step.answer = COLLECTED
    step.run()
    assert step.shown == [_progress.ERASE]


def test_rounds_of_pairs_show_nothing(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "line", lambda _wanted: _progress.Line(80))
    step.order("collect", run_id="run-1-p1", wait_seconds=22)
    step.answer = dict(COLLECTED, run_id="run-1-p1")
    step.run()
    assert step.shown == []
