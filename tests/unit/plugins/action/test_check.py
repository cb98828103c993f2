# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller keeps a check in files between its tasks, gives the orders, and in the end the verdict."""

from __future__ import annotations

import json
import resource
import stat
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import constants as C

from ansible_collections.baremetal.gpu_cluster.plugins.action import check
from ansible_collections.baremetal.gpu_cluster.plugins.filter.report_folder import report_folder
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import compact, schema
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _check_folder

START = 1769860800.25
HOSTS = ["n1", "n2"]
VARIABLES = {
    "ansible_play_hosts": HOSTS,
    "ansible_play_hosts_all": HOSTS,
    "ansible_play_batch": HOSTS,
    "ansible_forks": 5,
    "ansible_inventory_sources": ["/srv/prod", "/srv/more"],
    "cluster_check_members": HOSTS,
    "cluster_check_samples": "8",
}
FILES = {"report.json", "report.txt", "report.html", "junit.xml", "report.prom"}
Check = Callable[..., dict[str, Any]]


@pytest.fixture(name="printed")
def what_is_on_the_console(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(check, "Display", lambda: SimpleNamespace(display=lines.append))
    return lines


@pytest.fixture(name="run")
def running(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, printed: list[str]) -> Check:
    """Run the action; a second passes each time that it looks at the clock."""
    now = [START - 1]

    def clock() -> float:
        now[0] += 1
        return now[0]

    monkeypatch.setattr(check, "time", SimpleNamespace(time=clock, strftime=time.strftime, gmtime=time.gmtime))
    monkeypatch.setattr(C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    monkeypatch.setattr(check.ActionBase, "run", lambda *_arguments: {})

    def run(variables: dict[str, Any] | None = None, check_mode: bool = False, **arguments: Any) -> dict[str, Any]:
        action = check.ActionModule.__new__(check.ActionModule)
        action._task = SimpleNamespace(args=arguments, check_mode=check_mode)
        action._templar = SimpleNamespace(template=lambda value: value)
        result: dict[str, Any] = action.run(task_vars=VARIABLES if variables is None else variables)
        return result

    return run


def answer(found: dict[str, Any], **answers: dict[str, Any]) -> None:
    """As check_step keeps them."""
    folder = _check_folder.Folder(found["folder"])
    for host, one in answers.items():
        folder.keep(folder.step(), host, one)


def test_a_check_is_begun_and_kept_for_nobody_else(run: Check, tmp_path: Path) -> None:
    found = run(hosts={host: {"address": f"192.0.2.{host[1:]}"} for host in HOSTS})
    assert {name: found[name] for name in ("done", "step", "title", "timeout_seconds", "timeouts", "changed")} == {
        "done": False,
        "step": "launch",
        "title": "Start the workers",
        "timeout_seconds": 40,
        "timeouts": {},
        "changed": False,
    }
    folder = Path(found["folder"])
    assert folder.parent == tmp_path and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name for path in folder.iterdir()} == {
        *("state.json", "orders.json", "answers-0", "judged-static.json")
    }
    step = _check_folder.Folder(str(folder)).step()
    assert step.number == 0 and step.orders.hosts["n2"]["address"] == "192.0.2.2"
    # From the variable of the role, which a template has made.
    assert step.orders.common["samples"] == 8 and len(step.orders.common["nonce"]) == 32
    assert step.orders.common["run_id"].startswith("20260131t120000z-")


def test_what_is_given_comes_before_the_variables(run: Check) -> None:
    found = run(settings={"samples": 2, "members": ["n1", "n2", "n3"]})
    assert _check_folder.Folder(found["folder"]).step().orders.common["samples"] == 2


def test_everything_that_is_wrong_is_refused_at_once(run: Check, tmp_path: Path) -> None:
    found = run(settings={"samples": 99, "warmup": -1})
    assert found["failed"] is True and list(tmp_path.iterdir()) == []
    for text in ("cluster_check_samples is 99, expected 1 to 32.", "cluster_check_warmup is -1, expected 0 to 1000."):
        assert text in found["msg"]


def test_answers_lead_to_the_next_orders_and_to_the_verdict(run: Check, printed: list[str], tmp_path: Path) -> None:
    failed = {"state": "failed", "error": "no torch", "openmpi": {}}
    begun = run(settings={"report_dir": str(tmp_path / "reports")})
    answer(begun, n1=failed, n2={"unreachable": True, "msg": "ssh: timed out"})
    facts = run(folder=begun["folder"])
    assert (facts["step"], facts["done"], facts["folder"]) == ("facts", False, begun["folder"])
    assert list(_check_folder.Folder(facts["folder"]).step().orders.hosts) == ["n1"]
    answer(facts, n1={"ansible_facts": {"gpu_node": {}}})
    found = run(folder=begun["folder"])
    assert found["done"] is True and "folder" not in found and not Path(begun["folder"]).exists()
    assert found["verdict"] == "FAILED" and set(found["culprits"]) == {"n1", "n2"} and found["missing_files"] == []
    assert found["_ansible_verbose_override"] is True and printed[0] == found["headline"]
    report = json.loads((tmp_path / "reports" / "report.json").read_text())
    assert list(schema.violations(report)) == [] and report == json.loads(json.dumps(found["report"]))
    assert {path.name for path in (tmp_path / "reports").iterdir()} == FILES
    assert report["findings"] and all("-i /srv/prod -i /srv/more" in one["reproduce"] for one in report["findings"])
    assert report["origin"]["inventory"] == ["/srv/prod", "/srv/more"]
    assert "<inventory>" not in json.dumps(report) + "".join(printed)
    assert [one["name"] for one in report["times"]] == ["static", "launch", "mesh", "collective", "facts", "diagnosis"]
    assert report["seconds"] == 5.2
    assert report["times"][-1] == {"name": "diagnosis", "begin_seconds": 4.25, "seconds": 1.0}
    assert "took 5.2 s: static 1.0, launch 1.0, mesh 0.0, collective 0.0, facts 2.0, diagnosis 1.0" in printed
    # A judged check cannot go on.
    assert run(folder=begun["folder"])["failed"] is True


def test_nothing_is_printed_under_the_callback_that_shows_the_verdict(
    run: Check, printed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check._stdout, "shows_verdict", True)
    begun = run()
    answer(begun, **{host: {"unreachable": True, "msg": "ssh: timed out"} for host in HOSTS})
    found = run(folder=begun["folder"])
    assert found["verdict"] == "FAILED" and found["report"]["findings"] and printed == []


def test_long_answers_are_not_read_again_until_they_are_judged(run: Check, tmp_path: Path) -> None:
    launched = {
        host: {"state": "waiting", "address": f"192.0.2.{host[1:]}", "ports": [{"range": "rendezvous", "port": 29500}]}
        for host in HOSTS
    }
    begun = run(settings={"openmpi": False})
    answer(begun, **{host: {**one, "ranges": [], "openmpi": {}} for host, one in launched.items()})
    assert run(folder=begun["folder"])["step"] == "probe_begin"
    answer(begun, **{host: {"started": True} for host in HOSTS})
    assert run(folder=begun["folder"])["step"] == "probe"
    link = {"probes": 1, "milliseconds": 0.1, "bytes_per_second": 7, "retransmits": 0, "blocked": [], "searched": []}
    for host, peer in (HOSTS, HOSTS[::-1]):
        answer(begun, **{host: {"started": True, "links": [{**link, "host": peer, "failures": []}]}})
    assert run(folder=begun["folder"])["step"] == "go"
    state = _check_folder.Folder(begun["folder"]).state()
    assert state["answers"]["probe"] == {} and state["answers"]["launch"].keys() == set(HOSTS)
    answer(begun, **{host: {"started": True} for host in HOSTS})
    assert run(folder=begun["folder"])["step"] == "collect"
    answer(begun, **{host: {"state": "finished", "run_id": "r", "hostname": host, "ranks": []} for host in HOSTS})
    assert run(folder=begun["folder"])["step"] == "facts"
    report = run(folder=begun["folder"])["report"]
    assert compact.unpack(report)["bytes_per_second"] == {"n1": {"n2": 7}, "n2": {"n1": 7}}


def over(run: Check, reports: Path) -> dict[str, Any]:
    """A check in which no worker starts, before its verdict."""
    found = run(settings={"report_dir": str(reports)})
    answer(found, **{host: {"state": "failed", "error": "no torch", "openmpi": {}} for host in HOSTS})
    facts = run(folder=found["folder"])
    answer(facts, **{host: {"ansible_facts": {"gpu_node": {}}} for host in HOSTS})
    return facts


def test_a_disk_that_is_full_does_not_lose_the_verdict(run: Check, printed: list[str], tmp_path: Path) -> None:
    """The kernel refuses the large files, as a disk does that fills up meanwhile."""
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "report.html").write_text("of an earlier run")
    facts = over(run, reports)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    try:
        result = run(folder=facts["folder"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result["verdict"] == "FAILED" and set(result["culprits"]) == {"n1", "n2"} and "failed" not in result
    assert "report.html" in result["missing_files"] and "report.txt" not in result["missing_files"]
    assert (reports / "report.html").read_text() == "of an earlier run"
    assert {path.name for path in reports.iterdir()} == (FILES - set(result["missing_files"])) | {"report.html"}
    finding = result["report"]["findings"][-1]
    assert (finding["id"], finding["severity"], finding["hosts"]) == ("GC-FILE-001", "warning", ())
    assert "report.html: File too large" in finding["evidence"]
    told = f"WARNING GC-FILE-001: {finding['cause']}"
    assert printed[0].startswith("FAILED: ") and told in printed
    assert told in (reports / "report.txt").read_text(), "what could be written says what is missing"


def test_a_folder_that_cannot_be_made_does_not_lose_the_verdict(run: Check, printed: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run(folder=over(run, tmp_path / "file" / "reports")["folder"])
    assert result["verdict"] == "FAILED" and set(result["missing_files"]) == FILES
    assert any("Not a directory" in line for line in printed)


def test_a_host_that_left_no_answer_has_failed(run: Check) -> None:
    begun = run()
    answer(begun, n1={"failed": True, "msg": "no room"})
    facts = run(folder=begun["folder"])
    assert facts["step"] == "facts" and facts["timeouts"] == {"n1": 30, "n2": 30}


def test_check_mode_begins_with_what_only_reads(run: Check) -> None:
    assert run(check_mode=True)["step"] == "facts"


def test_the_folder_of_the_reports_is_tried_before_the_check_costs_time(run: Check, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (warning,) = run(settings={"report_dir": str(tmp_path / "file")})["warnings"]
    assert warning.startswith("on the controller: the reports cannot be written to ") and "File exists" in warning
    assert "The check goes on" in warning
    assert "warnings" not in run(settings={"report_dir": str(tmp_path / "new")})


def test_the_room_for_the_reports_is_that_of_all_members(run: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check.folder, "problem", lambda where, members: f"{where} is small for {members}")
    (warning,) = run(settings={"report_dir": "/reports", "members": [*HOSTS, "n3", "n4", "n5"]})["warnings"]
    assert "/reports is small for 5. The check goes on" in warning


def test_a_controller_that_can_keep_nothing_says_so(
    run: Check, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(C, "DEFAULT_LOCAL_TMP", str(tmp_path / "gone"))
    found = run()
    assert found["failed"] is True and found["msg"].startswith(f"the controller cannot keep the check in {tmp_path}")


def test_the_strategy_of_the_play_is_known(run: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check._play, "strategy", lambda _task: "free")
    assert "the play runs with strategy free" in run()["msg"]


def test_hosts_may_be_called_as_the_inventory_likes(monkeypatch: pytest.MonkeyPatch, run: Check) -> None:
    hosts = ["../n1", "n2/x", ".."]
    names = {name: hosts for name in VARIABLES if "hosts" in name or name.endswith(("batch", "members"))}
    begun = run({**VARIABLES, **names})
    answer(begun, **{host: {"state": "failed", "error": host, "openmpi": {}} for host in hosts})
    folder = _check_folder.Folder(begun["folder"])
    assert {host: one["error"] for host, one in folder.answers(folder.step()).items()} == {host: host for host in hosts}


@pytest.fixture(name="usual")
def variables_of_the_role(tmp_path: Path) -> dict[str, Any]:
    """As the role has them, where nobody named a folder."""
    (tmp_path / "site" / "prod").mkdir(parents=True)
    sources = [str(tmp_path / "site" / "prod")]
    return {**VARIABLES, "ansible_inventory_sources": sources, "cluster_check_report_dir": report_folder(sources)}


def ended(run: Check, variables: dict[str, Any], check_mode: bool = False) -> dict[str, Any]:
    """The verdict of a check in which no worker starts."""
    found = run(variables, check_mode)
    if not check_mode:
        answer(found, **{host: {"state": "failed", "error": "no torch", "openmpi": {}} for host in HOSTS})
        found = run(variables, folder=found["folder"])
    answer(found, **{host: {"ansible_facts": {"gpu_node": {}}} for host in HOSTS})
    return run(variables, check_mode, folder=found["folder"])


def test_the_reports_are_beside_the_inventory_and_the_last_line_says_where(
    run: Check, printed: list[str], usual: dict[str, Any], tmp_path: Path
) -> None:
    result = ended(run, usual)
    folder = tmp_path / "site" / "reports" / "prod"
    assert result["report_file"] == str(folder / "report.html") and printed[-1] == f"report: {folder}/report.html"
    assert {path.name for path in folder.iterdir()} == FILES
    ended(run, {**usual, "cluster_check_members": [*HOSTS, "n3"]})
    assert printed[-1] == f"report: {folder}/limit/report.html", "a part of the cluster replaces no report of the whole"
    ended(run, usual, check_mode=True)
    assert printed[-1] == f"report: {folder}/check/report.html"
    assert {path.name for path in folder.iterdir()} == {*FILES, "limit", "check"}
    assert list((tmp_path / "site" / "prod").iterdir()) == []


def test_a_folder_that_somebody_named_is_the_one_of_all_runs(run: Check, usual: dict[str, Any], tmp_path: Path) -> None:
    named = {**usual, "cluster_check_report_dir": str(tmp_path / "mine"), "cluster_check_members": [*HOSTS, "n3"]}
    assert ended(run, named)["report_file"] == str(tmp_path / "mine" / "report.html")
    assert ended(run, named, check_mode=True)["report_file"] == str(tmp_path / "mine" / "report.html")


def test_no_files_for_who_wants_none(run: Check, printed: list[str], usual: dict[str, Any], tmp_path: Path) -> None:
    result = ended(run, {**usual, "cluster_check_report_dir": ""})
    assert result["report_file"] == "" and not any("report" in line for line in printed[-1:])
    assert {path.name for path in (tmp_path / "site").iterdir()} == {"prod"}


def test_a_folder_beside_the_inventory_that_cannot_be_written_is_a_note(
    run: Check, printed: list[str], usual: dict[str, Any], tmp_path: Path
) -> None:
    """Nobody asked for these files, so it is no finding."""
    (tmp_path / "site" / "reports").write_text("a file")
    (warning,) = run(usual)["warnings"]
    assert warning.startswith("on the controller: the reports cannot be written to ") and "The check goes on" in warning
    result = ended(run, usual)
    assert result["report_file"] == "" and result["missing_files"] == []
    assert printed[-1].startswith("no report files: the reports cannot be written to ")
    assert [one["id"] for one in result["report"]["findings"] if one["id"] == "GC-FILE-001"] == []
