# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of real runs: all of them there, of the published shape, and of one mind; and the exit codes."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import jsonschema
import pytest
import report_samples
from lab_cluster import Cluster, Ended

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import drift, prometheus, schema


class Run(NamedTuple):
    """A finished check and the files that it wrote."""

    ended: Ended
    files: dict[str, str]

    @property
    def report(self) -> Any:
        return drift.read(json.loads(self.files["report.json"]))

    def metric(self, name: str) -> str:
        (line,) = [
            one for one in self.files["report.prom"].splitlines() if one.startswith(f"{prometheus.PREFIX}{name} ")
        ]
        return line.split()[-1]

    def tests(self) -> dict[str, str]:
        """Test of the JUnit file to failure, skipped or passed."""
        return {
            case.get("name", ""): next((one.tag for one in case if one.tag in ("failure", "skipped")), "passed")
            for case in ElementTree.fromstring(self.files["junit.xml"]).iter("testcase")
        }


def run(cluster: Cluster, folder: Path, *arguments: str) -> Run:
    ended = cluster.check("-e", f"cluster_check_report_dir={folder}", *arguments)
    return Run(ended, {path.name: path.read_text() for path in folder.iterdir()})


@pytest.fixture(scope="module", name="runs")
def two_runs(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """A healthy run of the whole cluster, then one under --limit into the same folder."""
    folder = tmp_path_factory.mktemp("reports")
    return run(cluster, folder), run(cluster, folder, "--limit", ",".join(list(cluster.hosts)[:2]))


def test_exit_codes_are_those_of_the_guide(runs: tuple[Run, Run], cluster: Cluster) -> None:
    healthy, limited = runs
    assert healthy.ended.code == 0, healthy.ended.text
    assert limited.ended.code == 2, limited.ended.text
    # No node is to blame: it is the first one of which the recap says so.
    assert re.findall(r"^(\w+) .*failed=1", limited.ended.text, re.MULTILINE) == list(cluster.hosts)[:1]


def test_all_files_of_a_run_tell_the_same(runs: tuple[Run, Run], cluster: Cluster) -> None:
    healthy, limited = runs
    assert set(healthy.files) == {"report.json", "report.txt", "report.html", "junit.xml", "report.prom"}
    assert healthy.report["verdict"] == "PASSED" and limited.report["verdict"] == "NOT VALIDATED"
    for one in runs:
        assert one.files["report.txt"].startswith(one.report["headline"] + "\n")
        assert f'<p class="word">{one.report["verdict"]}</p>' in one.files["report.html"]
        assert one.report["headline"] in one.ended.text
    assert healthy.metric("passed") == "1" and limited.metric("passed") == "0"
    assert set(healthy.tests().values()) == {"passed", "skipped"}
    last = list(cluster.hosts)[-1]
    assert limited.tests()["verdict"] == "failure" and limited.tests()[last] == "skipped"


def test_real_reports_have_the_published_shape_and_no_other_key(runs: tuple[Run, Run]) -> None:
    for one in runs:
        written = json.loads(one.files["report.json"])
        jsonschema.validate(written, report_samples.closed(schema.SCHEMA))
        assert list(schema.violations(written)) == []


def test_a_real_run_fills_what_the_page_shows(runs: tuple[Run, Run], cluster: Cluster) -> None:
    """Or the maps of the page are empty and nobody notices."""
    report = runs[0].report
    hosts = set(cluster.hosts)
    for key in ("mesh", "latency_ms", "bytes_per_second", "retransmits"):
        links = {(source, target) for source, row in report[key].items() for target in row}
        assert links == {(one, two) for one in hosts for two in hosts if one != two}, key
    assert [(stage["name"], stage["result"]) for stage in report["stages"]] == [
        ("static", "passed"),
        ("mesh", "passed"),
        ("collective", "passed"),
        ("openmpi", "passed"),
    ]
    assert set(report["stack"]) == hosts and len(report["sizes"]) >= 3 and report["fit"]
    for title in ("Connections", "Connect time in ms", "Rate of one connection in GB/s", "Median time of each rank"):
        assert f"<h3>{title}" in runs[0].files["report.html"]


def test_the_steps_of_a_real_run_fill_its_time(runs: tuple[Run, Run]) -> None:
    report = runs[0].report
    times = report["times"]
    assert [one["name"] for one in times] == ["static", "launch", "mesh", "collective", "openmpi", "facts", "diagnosis"]
    assert times[0]["begin_seconds"] <= 2
    for before, after in itertools.pairwise(times):
        assert abs(before["begin_seconds"] + before["seconds"] - after["begin_seconds"]) < 0.01
    assert abs(times[-1]["begin_seconds"] + times[-1]["seconds"] - report["seconds"]) < 0.2
    assert all(one["seconds"] > 0 for one in times)
    assert f"took {report['seconds']:.1f} s: look " in runs[0].ended.text
    assert "<h3>How long each step took</h3>" in runs[0].files["report.html"]


def test_the_page_says_what_changed_since_the_run_before(runs: tuple[Run, Run]) -> None:
    healthy, limited = runs
    assert "Since run" not in healthy.files["report.html"]
    page = limited.files["report.html"]
    assert f"Since run {healthy.report['run_id']}" in page
    assert "verdict: PASSED before, NOT VALIDATED now" in page


TOO_MUCH = {
    "sizes": [{"size_bytes": 4096, "busbw_gb_per_s_min": 1000, "milliseconds_max": 60000}],
    "links": {"bytes_per_second_min": 1e15, "connect_milliseconds_max": 60000},
}
#: In a mount namespace of its own, so that nobody else sees the small disk; what is on it in the end is copied.
SMALL_DISK = """
mount -t tmpfs -o size=48k none "$1" || exit 77
disk=$1 copy=$2; shift 2
"$@" 2>&1; code=$?
cp "$disk"/* "$copy"
exit $code
"""


def limited_by(limits: dict[str, Any]) -> str:
    return json.dumps({"cluster_check_limits": limits})


def test_limits_of_the_site_fail_a_run_that_breaks_them(cluster: Cluster, tmp_path: Path) -> None:
    """No network keeps these; all links break them, so it is nobody's fault."""
    found = run(cluster, tmp_path, "-e", limited_by(TOO_MUCH))
    assert found.ended.code == 2, found.ended.text
    errors = [(one["id"], one["hosts"]) for one in found.report["findings"] if one["severity"] == "error"]
    assert errors == [("GC-PERF-002", []), ("GC-PERF-001", [])]
    assert found.report["culprits"] == {} and found.report["limits"] == TOO_MUCH
    assert found.tests()["GC-PERF"] == "failure"


def test_limits_that_cannot_be_meant_are_refused_before_anything_runs(cluster: Cluster, tmp_path: Path) -> None:
    wrong = {"sizes": [{"size_bytes": 12345, "milliseconds_max": 5}], "links": {"retransmits_max": -1}}
    ended = cluster.check("-e", f"cluster_check_report_dir={tmp_path}", "-e", limited_by(wrong))
    assert ended.code == 2, ended.text
    assert "no such size is measured" in ended.text and "retransmits_max = -1" in ended.text
    assert "Start the worker" not in ended.text and list(tmp_path.iterdir()) == []
    assert cluster.check("--check", "-e", f"cluster_check_report_dir={tmp_path}", "-e", limited_by(wrong)).code == 2


def test_a_full_disk_of_the_controller_does_not_lose_the_verdict(cluster: Cluster, tmp_path: Path) -> None:
    disk, copy = tmp_path / "disk", tmp_path / "copy"
    disk.mkdir()
    copy.mkdir()
    command = cluster.command("baremetal.gpu_cluster.check", "-e", f"cluster_check_report_dir={disk}")
    shell = ["unshare", "--mount", "--propagation", "private", "sh", "-c", SMALL_DISK, "sh", str(disk), str(copy)]
    ended = cluster.run([*shell, *command])
    assert ended.code == 0, ended.text
    warning, verdict = ended.text.index("[WARNING]: on the controller: "), ended.text.index("PASSED: ")
    assert warning < ended.text.index("Start the worker") < verdict, "it is told before it costs time"
    missing = ended.text.index("WARNING GC-FILE-001: ")
    assert verdict < missing and "No space left on device" in ended.text[missing:]
    files = {path.name: path.read_text() for path in copy.iterdir()}
    assert 0 < len(files) < 5 and not [name for name in files if name.endswith(".tmp")]
    if "report.json" in files:
        assert list(schema.violations(json.loads(files["report.json"]))) == []
    assert all("GC-FILE-001" in text for name, text in files.items() if name in ("report.json", "report.txt"))
