# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as JUnit XML: what was not looked at is skipped, never passed."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import junit

# Of testsuite and testcase in the schema of the Jenkins xUnit plugin, what is used here.
ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors", "skipped"},
    "testsuite": {"name", "timestamp", "tests", "failures", "errors", "skipped"},
    "testcase": {"classname", "name"},
    "failure": {"type", "message"},
    "skipped": {"message"},
    "system-out": set(),
}


def read(report: samples.Report) -> ElementTree.Element:
    return ElementTree.fromstring(junit.xml(report))


def outcomes(report: samples.Report, suite: str) -> dict[str, str]:
    """Test to passed, failure or skipped."""
    (found,) = [one for one in read(report) if one.get("name") == f"gpu_cluster_check.{suite}"]
    results = {}
    for case in found:
        kinds = [child.tag for child in case if child.tag != "system-out"]
        assert len(kinds) <= 1
        results[case.get("name", "")] = kinds[0] if kinds else "passed"
    return results


@pytest.mark.parametrize("name", samples.all_samples())
def test_the_document_has_the_known_form_and_counts_right(name: str) -> None:
    root = read(samples.hostile(samples.all_samples()[name]))
    assert root.tag == "testsuites"
    for element in root.iter():
        assert set(element.attrib) == ATTRIBUTES[element.tag], element.tag
    for element in (root, *root.findall("testsuite")):
        cases = list(element.iter("testcase"))
        assert int(element.get("tests", "")) == len(cases)
        assert int(element.get("failures", "")) == len([case for case in cases if case.find("failure") is not None])
        assert int(element.get("skipped", "")) == len([case for case in cases if case.find("skipped") is not None])
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(names) == len(set(names))


def test_a_healthy_run_has_no_failure() -> None:
    root = read(samples.healthy())
    assert root.get("failures") == "0"
    assert set(outcomes(samples.healthy(), "nodes").values()) == {"passed"}


def test_only_the_culprits_fail() -> None:
    nodes = outcomes(samples.faulty(), "nodes")
    assert {host for host, result in nodes.items() if result == "failure"} == {"gpu02", "gpu03", "gpu06"}
    assert {host for host, result in nodes.items() if result == "passed"} == {
        "gpu01",
        "gpu04",
        "gpu05",
        "gpu07",
        "gpu08",
    }


def test_the_failure_names_the_id_the_cause_and_the_fix() -> None:
    (case,) = read(samples.faulty()).findall(".//testcase[@name='gpu03']")
    failure = case.find("failure")
    assert failure is not None and failure.get("type") == "GC-NET-001"
    assert "ports 40000-50000" in (failure.get("message") or "") and "fix: put these ports" in (failure.text or "")


def test_classes_fail_by_errors_and_not_by_warnings() -> None:
    classes = outcomes(samples.faulty(), "findings")
    assert classes["GC-NET"] == "failure" and classes["GC-VER"] == "passed" and classes["GC-HOST"] == "passed"
    (net,) = read(samples.faulty()).findall(".//testcase[@name='GC-NET']/failure")
    assert net.get("type") == "GC-NET-001 GC-NET-005"


def test_a_class_that_is_not_known_here_is_not_lost() -> None:
    report = samples.faulty()
    report["findings"][0]["id"] = "GC-NEW-001"
    assert outcomes(report, "findings")["GC-NEW"] == "failure"


def test_what_was_not_looked_at_is_skipped() -> None:
    report = samples.lost()
    skipped_too = dict.fromkeys(("mesh", "collective", "openmpi"), "skipped")
    assert outcomes(report, "stages") == {"static": "failure", **skipped_too}
    classes = outcomes(report, "findings")
    skipped = {name for name, result in classes.items() if result == "skipped"}
    assert skipped == {"GC-NET", "GC-PERF", "GC-RUN", "GC-DATA", "GC-TEXT", "GC-MPI", "GC-VER", "GC-SSH", "GC-GPU"}
    assert classes["GC-HOST"] == "failure"
    assert outcomes(report, "nodes") == {"gpu01": "skipped", "gpu02": "failure"}


def test_gpus_pass_only_where_some_took_part() -> None:
    report = samples.healthy()
    assert outcomes(report, "findings")["GC-GPU"] == "skipped"
    report["gpu_verified"] = list(report["members"])
    assert outcomes(report, "findings")["GC-GPU"] == "passed"


def test_a_limited_run_is_red_and_the_others_are_skipped() -> None:
    report = samples.limited()
    assert outcomes(report, "verdict")["verdict"] == "failure"
    nodes = outcomes(report, "nodes")
    assert [nodes[host] for host in ("gpu01", "gpu02", "gpu03", "gpu08")] == ["passed", "passed", "skipped", "skipped"]
    (skipped,) = read(report).findall(".//testcase[@name='gpu03']/skipped")
    assert skipped.get("message") == "not selected, see --limit"


def test_texts_without_a_finding_fail_when_strict() -> None:
    report = samples.faulty()
    assert outcomes(report, "verdict")["every text is explained"] == "passed"
    report["strict"] = True
    assert outcomes(report, "verdict")["every text is explained"] == "failure"


def test_limits_are_looked_at_only_where_some_are_set() -> None:
    assert outcomes(samples.healthy(), "findings")["GC-PERF"] == "skipped"
    (skipped,) = read(samples.healthy()).findall(".//testcase[@name='GC-PERF']/skipped")
    assert skipped.get("message") == "no limit is set"
    assert outcomes(samples.limited(), "findings")["GC-PERF"] == "passed"
