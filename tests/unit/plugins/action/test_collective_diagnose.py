# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judge on the controller: times by its own clock, and files that cannot be written."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.action import collective_diagnose, collective_report_dir
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import schema

START = 1769860800.0
FILES = {"report.json", "report.txt", "report.html", "junit.xml", "report.prom"}
Judge = Callable[..., dict[str, Any]]


def action(module: Any, arguments: dict[str, Any], *inventory: str) -> dict[str, Any]:
    """The action with these arguments, as Ansible would run it with these inventories."""
    made = module.ActionModule.__new__(module.ActionModule)
    made._task = SimpleNamespace(args=arguments, check_mode=False)
    result: dict[str, Any] = made.run(task_vars={"ansible_inventory_sources": list(inventory)})
    return result


@pytest.fixture(name="printed")
def what_is_on_the_console(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(collective_diagnose, "Display", lambda: SimpleNamespace(display=lines.append))
    return lines


@pytest.fixture(name="judge")
def judging(monkeypatch: pytest.MonkeyPatch, printed: list[str]) -> Judge:
    """Judge a run of two members that did not start, nine seconds after it began."""
    now = [START + 8.75]

    def clock() -> float:
        now[0] += 0.25
        return now[0]

    monkeypatch.setattr(collective_diagnose, "time", SimpleNamespace(time=clock))
    for module in (collective_diagnose, collective_report_dir):
        monkeypatch.setattr(module.ActionBase, "run", lambda *_arguments: {})
    failed = {"state": "failed", "error": "no torch"}
    given = {
        "run_id": "r1",
        "members": ["n1", "n2"],
        "selected": ["n1", "n2"],
        "launch": {"n1": failed, "n2": failed},
        **{name: {} for name in ("probe", "go", "collect", "plan")},
    }

    def run(**more: Any) -> dict[str, Any]:
        inventory = more.pop("inventory", ())
        return action(collective_diagnose, {**given, **more}, *inventory)

    return run


def test_the_times_of_the_steps_are_in_the_report(judge: Judge, printed: list[str]) -> None:
    times = {"static": "2026-01-31T12:00:00.500000Z", "launch": "2026-01-31T12:00:03.000000Z"}
    report = judge(started="2026-01-31T12:00:00Z", times=times)["report"]
    assert report["seconds"] == 9.2 and report["times"] == [
        {"name": "static", "begin_seconds": 0.5, "seconds": 2.5},
        {"name": "launch", "begin_seconds": 3.0, "seconds": 6.0},
        {"name": "diagnosis", "begin_seconds": 9.0, "seconds": 0.25},
    ]
    assert "took 9.2 s: static 2.5, launch 6.0, diagnosis 0.2" in printed
    assert list(schema.violations(json.loads(json.dumps(report)))) == []


def test_commands_can_be_pasted(judge: Judge, printed: list[str], tmp_path: Path) -> None:
    report = judge(inventory=("/srv/prod", "/srv/more"), report_dir=str(tmp_path))["report"]
    assert all("-i /srv/prod -i /srv/more" in one["reproduce"] for one in report["findings"]), report["findings"]
    assert "<inventory>" not in json.dumps(report) + "".join(printed) + (tmp_path / "report.json").read_text()


def test_without_times_the_report_has_none(judge: Judge) -> None:
    report = judge()["report"]
    assert report["times"] == [] and report["seconds"] == 0.0
    report = judge(started="2026-01-31T12:00:00Z")["report"]
    assert report["times"] == [] and report["seconds"] > 9


def test_everything_that_is_wrong_is_refused_at_once(judge: Judge) -> None:
    result = judge(started="noon", times={"static": "1"}, limits={"links": {"retransmits_max": -1}})
    assert result["failed"] is True
    for part in ("started is 'noon'", "static is '1'", "cluster_check_limits.links.retransmits_max = -1"):
        assert part in result["msg"]


def test_a_node_that_is_lost_when_its_facts_are_read_is_told_from_one_without_facts(judge: Judge) -> None:
    facts = {"n1": {"unreachable": True, "msg": "ssh: timed out"}, "n2": {"failed": True, "msg": "no rights"}}
    found = judge(facts=facts)["report"]["findings"]
    assert [one["hosts"] for one in found if one["id"] == "GC-HOST-001"] == [("n1",)]


def test_a_node_that_is_lost_when_what_mpirun_left_is_ended_is_told(judge: Judge) -> None:
    """It takes no further part, so there are no facts of it."""
    found = judge(openmpi_clear={"n2": {"unreachable": True, "msg": "ssh: timed out"}}, facts={"n1": {}, "n2": {}})
    (lost,) = [one for one in found["report"]["findings"] if one["id"] == "GC-HOST-001"]
    assert lost["hosts"] == ("n2",) and lost["evidence"] == ("n2: ssh: timed out",)


def test_all_files_are_written(judge: Judge, tmp_path: Path) -> None:
    result = judge(report_dir=str(tmp_path / "new"))
    assert {path.name for path in (tmp_path / "new").iterdir()} == FILES and result["missing_files"] == []
    assert json.loads((tmp_path / "new" / "report.json").read_text()) == json.loads(json.dumps(result["report"]))
    assert [one["id"] for one in result["report"]["findings"]] == ["GC-HOST-002", "GC-HOST-002"]


def test_a_disk_that_is_full_does_not_lose_the_verdict(judge: Judge, printed: list[str], tmp_path: Path) -> None:
    """The kernel refuses the large files, as a disk does that fills up meanwhile."""
    (tmp_path / "report.html").write_text("of an earlier run")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    try:
        result = judge(report_dir=str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result["verdict"] == "FAILED" and set(result["culprits"]) == {"n1", "n2"} and "failed" not in result
    assert "report.html" in result["missing_files"] and "report.txt" not in result["missing_files"]
    assert (tmp_path / "report.html").read_text() == "of an earlier run"
    assert {path.name for path in tmp_path.iterdir()} == (FILES - set(result["missing_files"])) | {"report.html"}
    finding = result["report"]["findings"][-1]
    assert (finding["id"], finding["severity"], finding["hosts"]) == ("GC-FILE-001", "warning", ())
    assert "report.html: File too large" in finding["evidence"]
    told = f"WARNING GC-FILE-001: {finding['cause']}"
    assert printed[0].startswith("FAILED: ") and told in printed
    assert told in (tmp_path / "report.txt").read_text(), "what could be written says what is missing"


def test_a_folder_that_cannot_be_made_does_not_lose_the_verdict(
    judge: Judge, printed: list[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    result = judge(report_dir=str(tmp_path / "file" / "reports"))
    assert result["verdict"] == "FAILED" and set(result["missing_files"]) == FILES
    assert any("Not a directory" in line for line in printed)


@pytest.mark.usefixtures("judge")
def test_the_folder_is_looked_at_before_the_check_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, members, why in (
        (tmp_path / "file", 3, "File exists"),
        (tmp_path / "file" / "reports", 3, "Not a directory"),
        (tmp_path, 10**9, "MiB free"),
    ):
        result = action(collective_report_dir, {"path": str(path), "members": members})
        assert why in result["problem"] and result["changed"] is False and "failed" not in result
        (warning,) = result["warnings"]
        assert warning.startswith(f"on the controller: {result['problem']}. The check goes on")
    assert action(collective_report_dir, {"path": str(tmp_path / "new")}) == {"changed": False, "problem": ""}
