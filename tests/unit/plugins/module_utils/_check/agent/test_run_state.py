# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting and ending the worker: the commands and files, with systemd replaced by a recorder."""

from __future__ import annotations

import errno
import json
import os
import py_compile
import shutil
import time
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    guardian,
    launch,
    rank,
    run_state,
    service,
    steps,
    worker,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import (
    limits,
    pattern,
    probe_answer,
    probe_ports,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import NO_JOB, RENDEZVOUS

JOB = {"lifetime_seconds": 95, "address": "127.0.0.1"}


def told(state: str = "waiting", **more: Any) -> dict[str, Any]:
    """What a worker writes."""
    ports = [{"range": RENDEZVOUS, "port": 29500}, {"range": "mpi", "port": 61000}]
    return {"state": state, "hostname": "n1", "ports": ports, "taken": [], "rails": [], **more}


class Systemd:
    """Stands in for ``run_command``; ``state`` is what a started worker would write."""

    def __init__(self, state: Any = None, code: int = 0, units: tuple[str, ...] = ()) -> None:
        self.calls: list[list[str]] = []
        self.state = state
        self.code = code
        self.units = units

    def __call__(self, argv: list[str]) -> tuple[int, str, str]:
        self.calls.append(argv)
        if argv[1] == "list-units":
            return 0, "".join(f"gpu-cluster-check-{one}.service loaded active running\n" for one in self.units), ""
        if argv[0] == "journalctl":
            return 0, "Main process exited, code=killed, status=9/KILL\n", ""
        if argv[0] == "systemd-run" and self.state:
            worker.write_json(os.path.join(argv[-1], "out", "state.json"), self.state)
        return self.code, "", "Failed to connect to bus" if self.code else ""


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_state, "BASE_DIR", str(tmp_path / "runs"))
    # As if systemd were the first process; test_guardian.py has the other case.
    monkeypatch.setattr(service, "SYSTEMD_DIR", str(tmp_path))
    # Nobody runs the code here, and compiling it takes longer than all else.
    monkeypatch.setattr(payload, "py_compile", SimpleNamespace(compile=lambda *_given, **_more: None))
    return tmp_path / "runs"


def test_the_unit_has_its_own_limit_and_kills_its_whole_group() -> None:
    program = ["/usr/bin/python3", "-m", worker.__name__, "/run/there"]
    argv = service.Systemd.argv("run-1", "/run/there", service.Program(program, "train", 95, {}))
    assert argv[0] == "systemd-run" and "--collect" in argv and "--unit=gpu-cluster-check-run-1.service" in argv
    for wanted in (
        "RuntimeMaxSec=105",
        "KillMode=control-group",
        "TimeoutStopSec=5",
        "User=train",
        "Environment=GPU_CLUSTER_CHECK_RUN=run-1",
        "Environment=PYTHONPATH=/run/there/payload",
    ):
        assert f"--property={wanted}" in argv
    assert argv[-5:] == ["--", *program]
    assert not any(
        "User=" in one for one in service.Systemd.argv("run-1", "/run/there", service.Program(program, "", 95, {}))
    )


def test_start_lays_out_the_run_directory(base: Path) -> None:
    systemd = Systemd(told())
    assert launch.start(systemd, "run-1", JOB, "python3", "", 1)["state"] == "waiting"
    assert (base / "run-1" / "out").stat().st_mode & 0o777 == 0o700
    assert (base / "run-1" / "job.json").stat().st_mode & 0o777 == 0o640
    for module in (worker, probe_ports, pattern, rank, guardian):
        path = base / "run-1" / "payload" / (module.__name__.replace(".", "/") + ".py")
        assert path.read_text() == Path(str(module.__file__)).read_text()
    assert json.loads((base / "run-1" / "job.json").read_text())["started_monotonic"] <= time.monotonic()


def test_no_program_of_a_run_compiles_its_code_again(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "py_compile", py_compile)
    launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)

    def compiled(_loader: Any, _data: Any, path: str, **_more: Any) -> Any:
        raise AssertionError(f"no bytecode for {path}")

    monkeypatch.setattr(SourceFileLoader, "source_to_code", compiled)
    found = list((base / "run-1" / "payload").rglob("*.py"))
    for path in found:
        code = SourceFileLoader(path.stem, str(path)).get_code(path.stem)
        # A traceback names the file.
        assert code and code.co_filename == str(path)
    assert len(found) > len(launch.PROGRAMS)


def test_start_refuses_what_it_knows_to_fail() -> None:
    with pytest.raises(run_state.UnitError, match="user 'nobody-here' does not exist on this node"):
        launch.start(Systemd(), "run-1", JOB, "python3", "nobody-here", 1)
    with pytest.raises(run_state.UnitError, match=r"run_id is '../x'"):
        launch.start(Systemd(), "../x", JOB, "python3", "", 1)
    launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)
    with pytest.raises(run_state.UnitError, match="use a new run_id"):
        launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)


def test_start_reports_systemd_and_a_silent_worker(base: Path) -> None:
    with pytest.raises(run_state.UnitError, match="systemd-run ended with 1: Failed to connect to bus"):
        launch.start(Systemd(code=1), "run-1", JOB, "python3", "", 1)
    silent = Systemd()
    with pytest.raises(run_state.UnitError, match=r"did not open its listeners within 0.1 s"):
        launch.start(silent, "run-2", JOB, "python3", "", 0.1)
    assert ["systemctl", "stop", "gpu-cluster-check-run-2.service"] in silent.calls
    assert not (base / "run-2").exists()


def test_check_node_names_the_interface_and_the_interpreter(tmp_path: Path) -> None:
    with pytest.raises(run_state.UnitError, match=r"interface fab9 does not exist on this node, it has .*lo"):
        launch.check_node({"interface": "fab9", "torch_python": "/bin/sh"})
    with pytest.raises(run_state.UnitError, match="is not an executable file"):
        launch.check_node({"interface": "lo", "torch_python": str(tmp_path / "python")})
    launch.check_node({"interface": "lo", "torch_python": "/bin/sh"})


def test_go_needs_a_worker_and_is_readable_by_its_group_only(base: Path) -> None:
    with pytest.raises(run_state.UnitError, match="no worker of run run-1 was started"):
        run_state.go("run-1", {})
    launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)
    run_state.go("run-1", {"ranks": [0]})
    assert (base / "run-1" / "go.json").stat().st_mode & 0o777 == 0o640


def test_the_state_is_not_read_through_a_link(base: Path, tmp_path: Path) -> None:
    launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)
    state = base / "run-1" / "out" / "state.json"
    state.rename(tmp_path / "elsewhere")
    state.symlink_to(tmp_path / "elsewhere")
    assert run_state.read_state("run-1") is None
    state.unlink()
    os.mkfifo(state)
    assert run_state.read_state("run-1") is None


@pytest.mark.parametrize(
    "rank",
    [
        "0",
        {},
        {"local_rank": 0, "exit_code": 0, "process_state": "", "stderr_tail": "", "events": [{"event": "size"}]},
        {"local_rank": 0, "exit_code": 0, "process_state": None, "stderr_tail": "", "events": []},
        {"local_rank": 0, "process_state": "", "stderr_tail": "", "events": []},
    ],
)
def test_the_user_of_the_ranks_can_write_a_state_and_nothing_else(base: Path, rank: Any) -> None:
    """Ansible would act on a result with these keys, for root and on the controller."""
    evil = {"ansible_facts": {"discovered_interpreter_python": "/home/train/x"}, "add_host": {}, "unreachable": True}
    launch.start(Systemd(told("running", **evil)), "run-1", JOB, "python3", "", 1)
    assert run_state.read_state("run-1") == told("running")
    assert not steps.run_step("collect", Systemd(), {"run_id": "run-1", "wait_seconds": 0}).keys() & evil.keys()
    launch.start(Systemd(told("running")), "run-2", JOB, "python3", "", 1)
    for state in ([], {"state": 1}, told("running", ranks="x"), told("running", ranks=[rank])):
        worker.write_json(str(base / "run-2" / "out" / "state.json"), state)
        assert run_state.read_state("run-2") is None


SAID: dict[str, dict[str, Any]] = {
    "output": {"event": "output", "text": "hello"},
    "ready": {"event": "ready", "at": 1.0, "torch": "2.13.0", "code": [], "seconds": 1.5},
}


def rank_of(*events: str, exit_code: int | None = None) -> dict[str, Any]:
    said = [SAID[name] for name in events]
    return {"local_rank": 0, "events": said, "exit_code": exit_code, "process_state": "", "stderr_tail": ""}


FAR = {"backend": "gloo", "seconds_ago": 0.3, "deadline_seconds": 43, "timeout_seconds": 10}
BEGUN = {"size_bytes": 4096, "number": 2, "of": 6, "iterations": 12, "at_most": 65}
RAIL = {"name": "rail 2", "address": "2001:db8::11", "ports": [{"range": "mpi", "port": 61000}], "error": ""}


@pytest.mark.parametrize(
    "more",
    [
        {"pid": 12, "ranks": [rank_of()]},
        {"rails": [RAIL, dict(RAIL, ports=[], error="Cannot assign requested address")]},
        {"taken": [{"range": "rendezvous", "port": 29500}]},
        {"progress_note": None, "interface_bytes": {}},
        {"progress_note": FAR, "interface_bytes": {"rx_bytes": 1, "tx_bytes": -1}},
        {"progress_note": {**FAR, **BEGUN}},
    ],
)
def test_what_a_worker_writes_is_its_state(base: Path, more: dict[str, Any]) -> None:
    launch.start(Systemd(told(**more)), "run-1", JOB, "python3", "", 1)
    assert run_state.read_state("run-1") == told(**more)


@pytest.mark.parametrize(
    "change",
    [
        {"state": "done"},
        {"state": ["waiting"]},
        {"hostname": None},
        {"pid": True},
        {"ports": []},
        {"ports": [{"range": "mpi", "port": 61000}]},
        *(
            {name: [{"range": "rendezvous", "port": 29500}, port]}
            for name in ("ports", "taken")
            for port in (
                {"range": "x", "port": 70000},
                {"range": "x", "port": 0},
                {"range": "x", "port": True},
                {"range": "x", "port": "29500"},
                {"range": 1, "port": 29500},
                {"port": 29500},
                {"range": "x"},
                {"range": "x", "port": 1, "more": 1},
                29500,
            )
        ),
        *(
            {"rails": [{**RAIL, name: value}]}
            for name, value in (("address", "fab1"), ("ports", [{}]), ("error", None))
        ),
        {"rails": [{name: RAIL[name] for name in ("name", "address", "ports")}]},
        {"rails": [{**RAIL, "more": 1}]},
        {"interface_bytes": {"tx_bytes": 1}},
        {"interface_bytes": {"rx_bytes": "1", "tx_bytes": 1}},
        {"progress_note": {"number": 2}},
        {"progress_note": {**FAR, "number": 2}},
        {"progress_note": {**FAR, **BEGUN, "seconds_ago": float("nan")}},
        {"progress_note": {**FAR, **BEGUN, "size_bytes": "4 KiB"}},
        # What somebody divides by.
        {"progress_note": {**FAR, **BEGUN, "timeout_seconds": 0}},
        {"progress_note": {**FAR, **BEGUN, "deadline_seconds": 0}},
    ],
)
def test_what_would_break_others_is_no_state(base: Path, change: dict[str, Any]) -> None:
    """The ports and rails go to all other nodes: it is the writer that is told, as one that did not open its own."""
    with pytest.raises(run_state.UnitError, match="did not open its listeners"):
        launch.start(Systemd({**told(), **change}), "run-1", JOB, "python3", "", 0.1)


def test_a_state_without_what_it_needs_is_none(base: Path) -> None:
    launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)
    lacking = [{name: told()[name] for name in told() if name != left} for left in told()]
    for state in (*lacking, {"state": "failed"}, told("expired")):
        worker.write_json(str(base / "run-1" / "out" / "state.json"), state)
        assert run_state.read_state("run-1") is None, state
    failed = {"state": "failed", "error": "no free port"}
    worker.write_json(str(base / "run-1" / "out" / "state.json"), failed)
    assert run_state.read_state("run-1") == failed


def test_wait_returns_at_once_when_the_ranks_have_ended_and_what_there_is_at_the_end() -> None:
    launch.start(Systemd(told("finished")), "run-1", JOB, "python3", "", 1)
    assert run_state.wait(Systemd(), "run-1", 30) == told("finished")
    launch.start(Systemd(told("running")), "run-2", JOB, "python3", "", 1)
    assert run_state.wait(Systemd(), "run-2", 0.2) == told("running")


@pytest.mark.parametrize(
    ("state", "rank", "ready_seconds", "least", "most"),
    [
        ("waiting", rank_of(), 0.6, 0.6, 20),
        ("waiting", rank_of("output", "ready"), 60, 0, 20),
        ("waiting", rank_of(exit_code=1), 60, 0, 20),
        ("running", rank_of(), 60, 0, 20),
    ],
)
def test_a_rank_that_imports_torch_is_waited_for(
    state: str, rank: Any, ready_seconds: float, least: float, most: float
) -> None:
    launch.start(Systemd(told(state, ranks=[rank])), "run-1", JOB, "python3", "", 1)
    began = time.monotonic()
    run_state.wait_for_ranks(Systemd(), "run-1", ready_seconds)
    assert least <= time.monotonic() - began < most


def test_a_worker_that_is_gone_is_not_waited_for(base: Path) -> None:
    launch.start(Systemd(told(ranks=[rank_of()])), "run-1", JOB, "python3", "", 1)
    began = time.monotonic()
    run_state.wait_for_ranks(Systemd(code=3), "run-1", 30)
    run_state.wait_for_ranks(Systemd(), "run-2", 30)
    assert time.monotonic() - began < 20


def test_a_full_disk_is_not_waited_for(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker cannot say that the ranks are ready."""
    launch.start(Systemd(told(ranks=[rank_of()])), "run-1", JOB, "python3", "", 1)
    monkeypatch.setattr(run_state.os, "statvfs", lambda _path: SimpleNamespace(f_bavail=0))
    began = time.monotonic()
    run_state.wait_for_ranks(Systemd(), "run-1", 30)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("umask", [0o027, 0o077])
def test_the_user_of_the_ranks_can_read_his_run_whatever_the_umask_of_root(base: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        base.mkdir()
        launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    for path in (base, base / "run-1", *(base / "run-1" / "payload").rglob("*")):
        wanted = 0o755 if path.is_dir() else 0o644
        assert path.stat().st_mode & 0o777 == wanted, path


def test_what_is_no_run_id_names_no_folder(base: Path, tmp_path: Path) -> None:
    """Where there is no systemd, the processes of any user say which run they belong to."""
    (tmp_path / "home").mkdir()
    (base / "run-1").mkdir(parents=True)
    keeper = Systemd(code=3, units=(str(tmp_path / "home"), "../home", "x/../../home"))
    assert launch.clear_earlier_runs(keeper) == launch.Earlier([], [])
    assert (tmp_path / "home").exists() and not (base / "run-1").exists()


def test_only_directories_of_ended_runs_are_removed(base: Path) -> None:
    launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)
    assert launch.clear_earlier_runs(Systemd()).active == ["run-1"]
    assert (base / "run-1").exists()
    assert launch.clear_earlier_runs(Systemd(code=3)).active == []
    assert not (base / "run-1").exists()


def test_a_run_that_should_be_gone_is_ended_and_named(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JOB lasts 95 s, and systemd has 10 s more, and 5 s to kill."""
    launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)
    now = time.monotonic()
    for later, active, stopped in ((100, ["run-1"], []), (111, [], ["run-1"])):
        systemd = Systemd()
        monkeypatch.setattr(run_state.time, "monotonic", lambda later=later: now + later)
        assert launch.clear_earlier_runs(systemd) == launch.Earlier(active, stopped)
        assert (["systemctl", "stop", "gpu-cluster-check-run-1.service"] in systemd.calls) == bool(stopped)
    assert not (base / "run-1").exists()


def test_a_worker_without_files_is_ended_and_named() -> None:
    systemd = Systemd(units=("run-9",))
    assert launch.clear_earlier_runs(systemd) == launch.Earlier([], ["run-9"])
    assert ["systemctl", "stop", "gpu-cluster-check-run-9.service"] in systemd.calls


def test_nobody_clears_up_while_a_run_is_being_started(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are there and its worker is not: it would look like one that has ended."""
    monkeypatch.setattr(launch, "LOCK_SECONDS", 0.2)
    seen = []

    class Slow(Systemd):
        def __call__(self, argv: list[str]) -> tuple[int, str, str]:
            if argv[0] == "systemd-run":
                with pytest.raises(
                    run_state.UnitError, match=r"another check is starting on this node: .* still was after"
                ):
                    launch.clear_earlier_runs(Systemd(code=3))
                seen.append((base / "run-1" / "job.json").exists())
            return super().__call__(argv)

    launch.start(Slow(told()), "run-1", JOB, "python3", "", 1)
    assert seen == [True]


def test_a_full_disk_is_an_answer_and_leaves_nothing(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(launch.payload, "write", full)
    with pytest.raises(run_state.UnitError, match=r"no space is left for .*run-1, which needs 1 MiB"):
        launch.start(Systemd(), "run-1", JOB, "python3", "", 1)
    assert not (base / "run-1").exists()


def test_a_disk_that_is_full_when_the_job_comes_is_an_answer(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)

    def full(*_arguments: Any, **_options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_state.files, "replace", full)
    with pytest.raises(run_state.UnitError, match=r"no space is left for .*run-1, which needs 1 MiB"):
        run_state.go("run-1", {"ranks": [0]})
    assert not (base / "run-1" / "go.json").exists()


BOOK = [{"host": "n2", "address": "192.0.2.12", "ports": [], "ranges": [], "rails": []}]
ASKED = {"run_id": "run-1", "host": "n1", "book": BOOK, "timeout_seconds": 3.0, "wait": True, "wait_seconds": 1}
FOUND: dict[str, Any] = {"links": [], "rails": []}


def probe(run: Systemd, **changes: Any) -> dict[str, Any]:
    return steps.run_step("probe", run, {**ASKED, "ready_seconds": 0.0, **changes})


def test_a_probe_is_begun_once_and_its_answer_fetched(base: Path) -> None:
    launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)
    assert probe(Systemd(), wait=False) == {"changed": False, "started": True}
    asked = base / "run-1" / worker.PROBE
    assert asked.stat().st_mode & 0o777 == 0o640
    first = json.loads(asked.read_text())
    assert (first["host"], first["book"], first["timeout_seconds"]) == ("n1", BOOK, 3.0)
    worker.write_json(str(base / "run-1" / probe_answer.PATH), FOUND)
    assert probe(Systemd()) == {"changed": False, "started": True, **FOUND} == probe(Systemd(), book=[])
    assert json.loads(asked.read_text()) == first


def test_ranks_that_import_torch_are_waited_for_from_the_begin_of_the_probe(base: Path) -> None:
    launch.start(Systemd(told(ranks=[rank_of()])), "run-1", JOB, "python3", "", 1)
    began = time.monotonic()
    probe(Systemd(), wait=False)
    worker.write_json(str(base / "run-1" / probe_answer.PATH), FOUND)
    assert probe(Systemd(), ready_seconds=3)["started"] and time.monotonic() - began >= 3
    began = time.monotonic()
    assert probe(Systemd(), ready_seconds=3)["started"] and time.monotonic() - began < 2.5


def test_a_probe_without_an_answer_says_why(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no worker of run run-1 was started" in probe(Systemd())["error"]
    launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)
    refused = probe(Systemd(), book=[], wait_seconds=0)
    assert not refused["started"] and "no probe of run run-1 was begun on this node" in refused["error"]
    assert probe(Systemd(), wait_seconds=0)["error"] == "the probe had not ended after 0 s"
    assert "ended before it had probed its peers" in probe(Systemd(code=3), wait_seconds=0)["error"]
    monkeypatch.setattr(run_state.os, "statvfs", lambda _path: SimpleNamespace(f_bavail=0))
    assert "no space is left for" in probe(Systemd(), wait_seconds=0)["error"]
    worker.write_json(str(base / "run-1" / "out" / "state.json"), told(probe_error="it broke"))
    assert probe(Systemd(), wait_seconds=0)["error"] == "it broke"


def test_the_user_of_the_ranks_can_write_links_and_nothing_else(base: Path, tmp_path: Path) -> None:
    launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)
    probe(Systemd(), wait=False)
    path = base / "run-1" / probe_answer.PATH
    worker.write_json(str(path), {**FOUND, "ansible_facts": {}})
    assert "is not what a probe writes" in probe(Systemd())["error"]
    path.unlink()
    worker.write_json(str(tmp_path / "elsewhere"), FOUND)
    path.symlink_to(tmp_path / "elsewhere")
    assert "had not ended" in probe(Systemd(), wait_seconds=0)["error"]


def test_a_worker_whose_time_is_over_takes_no_job(base: Path) -> None:
    expired = told("expired", error=f"{NO_JOB} 147 s")
    launch.start(Systemd(expired), "run-1", JOB, "python3", "", 1)
    with pytest.raises(run_state.UnitError, match="no job came from the controller within 147 s"):
        run_state.go("run-1", {"ranks": [0]})
    assert not (base / "run-1" / "go.json").exists()
    # It has not died, and nobody waits for it.
    for code in (0, 3):
        began = time.monotonic()
        assert run_state.wait(Systemd(code=code), "run-1", 30) == expired and time.monotonic() - began < 20
    assert run_state.last_state(service.choose(Systemd()), "run-1") == expired


def test_a_worker_is_ended_whatever_is_wrong_with_its_state(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_run_id: str) -> None:
        raise KeyError("state")

    launch.start(Systemd(told()), "run-1", JOB, "python3", "", 1)
    monkeypatch.setattr(run_state, "read_state", breaks)
    systemd = Systemd()
    with pytest.raises(KeyError):
        steps.run_step("collect", systemd, {"run_id": "run-1", "wait_seconds": 0})
    assert ["systemctl", "stop", "gpu-cluster-check-run-1.service"] in systemd.calls and not (base / "run-1").exists()


def test_a_worker_that_died_is_told_from_one_that_is_still_at_work(base: Path) -> None:
    launch.start(Systemd(told("running")), "run-1", JOB, "python3", "", 1)
    started = time.monotonic()
    found = run_state.wait(Systemd(code=3), "run-1", 30)
    assert found == told("died", error="Main process exited, code=killed, status=9/KILL")
    assert time.monotonic() - started < 20
    # Nobody waits for a worker that got no job: it may have died all the same.
    assert run_state.wait(Systemd(code=3), "run-1", 0) == found
    assert run_state.wait(Systemd(), "run-1", 0) == told("running")
    shutil.rmtree(base / "run-1")
    assert run_state.wait(Systemd(code=3), "run-1", 2.5) is None


def test_limits_name_every_violation() -> None:
    found = limits.out_of_range({"world_size": 1, "sizes_bytes": [4096, 3], "iterations": 20, "user": "train"})
    assert found == ["world_size is 1, expected 2 to 4096", f"sizes_bytes is 3, expected 4 to {2**33}"]
