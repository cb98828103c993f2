# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All files of a report, also of a cluster of a thousand nodes."""

from __future__ import annotations

import json

import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import compact, drift, files


def test_all_files_are_there_and_tell_the_same_verdict() -> None:
    found = files.contents(samples.faulty())
    assert set(found) == {"report.json", "report.txt", "report.html", "junit.xml", "report.prom"}
    assert compact.unpack(json.loads(found["report.json"])) == samples.faulty()
    assert found["report.txt"].startswith("FAILED: ") and 'verdict{verdict="FAILED"} 1' in found["report.prom"]
    assert all(text.endswith("\n") for text in found.values())


def test_what_it_does_not_understand_before_is_no_earlier_report() -> None:
    earlier = files.contents(samples.healthy())["report.json"]
    assert "Since run" in files.contents(samples.faulty(), drift.readable(earlier))["report.html"]
    for text in ("", "garbage", '{"schema_version": 1}', earlier.replace('"findings": []', '"findings": [1]')):
        assert "Since run" not in files.contents(samples.faulty(), drift.readable(text))["report.html"]


def test_every_file_can_be_written_whatever_a_node_sent() -> None:
    report = samples.faulty()
    report["notes"].append("half a character: \ud800")
    for text in files.contents(samples.hostile(report)).values():
        text.encode("utf-8")


def test_a_run_that_does_not_know_when_it_started() -> None:
    """As a report that was not made by a check may have it."""
    found = files.contents(dict(samples.faulty(), started=""))
    assert "start_timestamp" not in found["report.prom"] and "timestamp=" not in found["junit.xml"]
    assert "at an unknown time" in found["report.txt"] and "unknown" in found["report.html"]


def test_the_texts_of_a_large_cluster_stay_small() -> None:
    """The mesh of 150 nodes has 22,350 links."""
    found = files.contents(samples.large(150))
    for name in ("report.txt", "report.html", "junit.xml", "report.prom"):
        assert len(found[name]) < 60_000, name
    assert compact.unpack(json.loads(found["report.json"]))["mesh"]["gpu01"]["gpu13"] == "unreachable"
