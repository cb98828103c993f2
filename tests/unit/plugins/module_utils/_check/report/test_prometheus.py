# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as metrics."""

from __future__ import annotations

import re

import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import prometheus

# A line of the text format: name, labels, value, and no timestamp (prometheus.io, "Exposition formats").
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (-?[0-9.e+-]+)\Z')


def series(report: samples.Report) -> dict[str, float]:
    """Every line of the file that is no comment: what stands before the value, and the value."""
    text = prometheus.text(report)
    assert text.endswith("\n") and not text.endswith("\n\n")
    found: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            assert LINE.match(line), line
            key, value = line.rsplit(" ", 1)
            assert key not in found, "a series occurs twice"
            found[key.removeprefix(prometheus.PREFIX)] = float(value)
    return found


@pytest.mark.parametrize("name", samples.all_samples())
def test_every_line_is_in_the_format_whatever_nodes_are_called(name: str) -> None:
    assert series(samples.hostile(samples.all_samples()[name]))


@pytest.mark.parametrize("name", samples.all_samples())
def test_every_metric_has_its_help_and_type_once_and_in_front(name: str) -> None:
    lines = prometheus.text(samples.all_samples()[name]).splitlines()
    names = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert len(names) == len(set(names))
    current = ""
    for line in lines:
        if line.startswith("# TYPE "):
            current = line.split()[2]
            assert current.removeprefix(prometheus.PREFIX) in prometheus.METRICS
        elif not line.startswith("#"):
            assert re.split(r"[{ ]", line)[0] == current


def test_every_documented_metric_is_written() -> None:
    text = prometheus.text(samples.faulty())
    assert [name for name in prometheus.METRICS if f"# TYPE {prometheus.PREFIX}{name} gauge\n" not in text] == []


def test_the_verdict_is_one_or_zero() -> None:
    assert [series(samples.all_samples()[name])["passed"] for name in ("healthy", "faulty", "limited", "lost")] == [
        1,
        0,
        0,
        0,
    ]
    found = series(samples.limited())
    assert found['verdict{verdict="NOT VALIDATED"}'] == 1
    assert found['verdict{verdict="PASSED"}'] == found['verdict{verdict="FAILED"}'] == 0


def test_values() -> None:
    found = series(samples.faulty())
    assert found["start_timestamp_seconds"] == 1795291262
    assert found["duration_seconds"] == 17.1 and found["members"] == 8 and found["participants"] == 7
    assert found['findings{severity="error"}'] == 2 and found['findings{severity="warning"}'] == 2
    assert found['finding{id="GC-NET-001",severity="error",host="gpu03"}'] == 1
    assert found['finding{id="GC-NET-007",severity="warning",host=""}'] == 1
    assert found['culprit{host="gpu03"}'] == 1 and found['culprit{host="gpu08"}'] == 0
    assert found['stage{stage="mesh",result="failed"}'] == 1 and found['stage{stage="mesh",result="passed"}'] == 0
    assert found['links{result="unreachable"}'] == 7 and found['links{result="slow"}'] == 1
    assert found["connect_slowest_seconds"] == pytest.approx(0.00071)
    assert found["link_slowest_bytes_per_second"] == 0.21e9 and found["link_retransmits"] == 143
    size = samples.faulty()["sizes"][2]
    assert found['all_reduce_seconds{size_bytes="1048576"}'] == size["seconds"]
    assert found['all_reduce_busbw_bytes_per_second{size_bytes="1048576"}'] == pytest.approx(
        size["busbw_gb_per_s"] * 1e9
    )


def test_what_was_not_measured_is_not_zero() -> None:
    found = series(samples.lost())
    assert not any(name.startswith(("link", "connect", "all_reduce", "fit")) for name in found)
    assert "all_reduce" not in prometheus.text(samples.lost()), "not even its help"
    assert found['stage{stage="mesh",result="skipped"}'] == 1


def test_the_same_finding_twice_is_one_series() -> None:
    report = samples.faulty()
    report["findings"].append(dict(report["findings"][0], cause="another one"))
    assert series(report)['finding{id="GC-NET-001",severity="error",host="gpu03"}'] == 1
