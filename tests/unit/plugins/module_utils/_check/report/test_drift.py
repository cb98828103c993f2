# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed since the report before: real changes, and no noise."""

from __future__ import annotations

import json
import random

import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import compact, drift, files, schema


@pytest.mark.parametrize("seed", range(2, 22))
def test_two_healthy_runs_show_no_change(seed: int) -> None:
    assert drift.compare(samples.healthy(8, seed=1), samples.healthy(8, seed=seed)) == [], f"seed {seed}"


def test_faults_that_came_and_went() -> None:
    came = drift.compare(samples.healthy(), samples.faulty())
    assert came[0] == "verdict: PASSED before, FAILED now"
    assert "new: error GC-NET-001, gpu03 inbound, ports 40000-50000" in came
    assert "new: warning GC-NET-007, gpu05 -> gpu07" in came
    assert "the running kernel on gpu08: 6.12.0-170.el10.x86_64 before, 6.12.0-158.el10.x86_64 now" in came
    went = drift.compare(samples.faulty(), samples.healthy())
    assert "gone: error GC-NET-001, gpu03 inbound, ports 40000-50000" in went


def test_the_same_finding_with_other_numbers_is_not_new() -> None:
    before, now = samples.faulty(), samples.faulty()
    now["findings"][0].update(evidence=["6 of 7 peers"], cause="other words", confidence=0.5)
    assert drift.compare(before, now) == []


def test_members_that_came_and_went() -> None:
    found = drift.compare(samples.healthy(6), samples.healthy(8))
    assert "members new: gpu07, gpu08" in found
    assert "members gone: gpu07, gpu08" in drift.compare(samples.healthy(8), samples.healthy(6))


def test_times_are_compared_only_when_the_same_nodes_took_part() -> None:
    found = drift.compare(samples.healthy(6), samples.healthy(8))
    assert "times are not compared: another backend, or other nodes or ranks took part" in found
    assert not any(line.startswith("all_reduce") for line in found)


@pytest.mark.parametrize(("factor", "told"), [(1.15, False), (1.25, True), (0.85, False), (0.75, True)])
def test_a_time_changed_when_it_is_beyond_the_noise(factor: float, told: bool) -> None:
    before, now = samples.healthy(), samples.healthy()
    now["sizes"][3]["seconds"] *= factor
    found = drift.compare(before, now)
    assert bool(found) is told
    if told:
        assert found[0].startswith("all_reduce of 16 MiB: 26.9 ms before, ") and f"({factor - 1:+.0%})" in found[0]


def test_wide_confidence_intervals_hide_a_small_change() -> None:
    before, now = samples.healthy(), samples.healthy()
    now["sizes"][3]["seconds"] *= 1.3
    for report in (before, now):
        size = report["sizes"][3]
        size.update(low_seconds=size["seconds"] * 0.8, high_seconds=size["seconds"] * 1.2)
    assert drift.compare(before, now) == []
    now["sizes"][3]["seconds"] *= 1.2
    assert len(drift.compare(before, now)) == 1


def test_a_link_that_became_slow_is_named() -> None:
    now = samples.healthy(seed=2)
    now["latency_ms"]["gpu01"]["gpu02"] = 3.0
    now["bytes_per_second"]["gpu04"]["gpu03"] = 0.1e9
    found = drift.compare(samples.healthy(), now)
    assert len(found) == 2
    assert found[0].startswith("connect time of gpu01 -> gpu02: ") and found[0].endswith(" before, 3 ms now")
    assert found[1].startswith("rate of gpu04 -> gpu03: ") and found[1].endswith(" before, 100 MB/s now")


def test_a_busy_machine_slows_all_links_and_names_none() -> None:
    now = samples.healthy(seed=2)
    now["latency_ms"] = {one: {two: value * 10 for two, value in row.items()} for one, row in now["latency_ms"].items()}
    assert drift.compare(samples.healthy(), now) == []


@pytest.mark.parametrize(("factor", "told"), [(2.5, False), (3.5, True)])
def test_a_link_is_not_named_for_a_little(factor: float, told: bool) -> None:
    now = samples.healthy()
    now["latency_ms"]["gpu01"]["gpu02"] *= factor
    assert bool(drift.compare(samples.healthy(), now)) is told


def test_few_links_are_not_compared() -> None:
    now = samples.healthy(4)
    now["latency_ms"]["gpu01"]["gpu02"] = 30.0
    assert drift.compare(samples.healthy(4), now) == []


@pytest.mark.parametrize("seed", range(20))
def test_rates_that_scatter_by_factors_name_no_link(seed: int) -> None:
    """As on the machine of the lab, where 1 MiB between idle nodes took from 1 to 20 ms."""
    dice = random.Random(seed)
    before, now = samples.healthy(6), samples.healthy(6)
    for report in (before, now):
        for row in report["bytes_per_second"].values():
            row.update({target: 10 ** dice.uniform(7.5, 9) for target in row})
    assert drift.compare(before, now) == [], f"seed {seed}"


def test_a_link_that_stayed_while_the_others_became_faster_is_not_named() -> None:
    now = samples.healthy(seed=2)
    now["latency_ms"] = {one: {two: value / 10 for two, value in row.items()} for one, row in now["latency_ms"].items()}
    now["latency_ms"]["gpu01"]["gpu02"] = samples.healthy()["latency_ms"]["gpu01"]["gpu02"]
    assert drift.compare(samples.healthy(), now) == []


def test_many_links_are_counted() -> None:
    now = samples.healthy(seed=2)
    for host in samples.hosts(8)[:7]:
        now["latency_ms"][host]["gpu08"] = 5.0
    found = drift.compare(samples.healthy(), now)
    assert len(found) == drift.MOST_LINKS + 1 and found[-1] == "connect time: worse on 2 more links"


def test_only_a_whole_report_of_this_version_is_an_earlier_report() -> None:
    report = samples.healthy()
    packed = compact.pack(report)
    assert drift.readable(json.dumps(packed)) == report
    assert drift.readable(json.dumps(dict(packed, schema_version=1))) is None
    assert drift.readable(json.dumps(dict(packed, findings="none"))) is None
    for text in ("", "{", "[]", "null", json.dumps(report)[:500]):
        assert drift.readable(text) is None


def test_a_report_from_before_there_were_times_and_limits_is_an_earlier_report() -> None:
    """Keys that came later within this version: what has none of them can be read, and written again."""
    report = samples.healthy()
    for name in schema.LATER:
        report.pop(name, None)
    before = drift.readable(json.dumps(compact.pack(report)))
    assert before == report
    assert files.contents(samples.faulty(), before)["report.html"].count("Since run") == 1
    for text in files.contents(report).values():
        assert text


def test_only_the_first_rail_is_compared() -> None:
    before, now = samples.railed(), samples.railed()
    for rail in now["rails"]:
        rail["bytes_per_second"]["gpu02"]["gpu05"] /= 100
    assert drift.compare(before, now) == []
    now["bytes_per_second"]["gpu02"]["gpu05"] /= 100
    assert len(drift.compare(before, now)) == 1
