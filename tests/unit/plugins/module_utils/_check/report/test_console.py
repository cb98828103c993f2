# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in a terminal."""

from __future__ import annotations

import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import console, grid


def shown(report: samples.Report) -> list[str]:
    return list(console.lines(report))


@pytest.mark.parametrize("name", samples.all_samples())
def test_the_first_line_is_the_answer(name: str) -> None:
    report = samples.all_samples()[name]
    assert shown(report)[0] == report["headline"] and report["headline"].startswith(report["verdict"])


def test_a_finding_says_what_why_not_what_else_and_how_to_mend_it() -> None:
    text = "\n".join(shown(samples.faulty()))
    assert "ERROR GC-NET-001: gpu03 rejects inbound connections on the data network, ports 40000-50000\n" in text
    for part in (
        "  about: gpu03 inbound, ports 40000-50000, 97% sure",
        "  seen: 7 of 7 peers",
        "  not the cause: MTU: 64 B to 1 MiB pass on the open ports",
        "  fix: put these ports into the port plan",
        '  set for group gpu_cluster:\n    gpu_cluster_ports:\n      ephemeral: "32768-60999"\n',
        "  set for host gpu06:\n    static_network_interfaces:\n",
        "  run: ansible-playbook site.yml -i prod --tags cluster_firewall --limit gpu03\n",
        '  look: ansible gpu05,gpu07 -i prod --become -m ansible.builtin.command -a "ip -s -s link"\n',
        "  see it again: ansible-playbook baremetal.gpu_cluster.check -i prod --limit gpu01,gpu03\n",
    ):
        assert part in text


def test_errors_come_before_warnings() -> None:
    report = samples.faulty()
    report["findings"].reverse()
    found = [line.split()[0] for line in shown(report) if line.startswith(("ERROR ", "WARNING "))]
    assert found == ["ERROR", "ERROR", "WARNING", "WARNING"]


def test_what_was_skipped_is_told_with_its_reason() -> None:
    lines = shown(samples.lost())
    assert "mesh skipped (fewer than two nodes are left)" in lines[3]


def test_texts_without_a_finding_are_listed_and_count_when_strict() -> None:
    report = samples.faulty()
    assert "texts that no finding explains:" in shown(report)
    assert "  gpu04 rank 2: UserWarning: something that no table knows" in shown(report)
    report["strict"] = True
    assert "texts that no finding explains (this fails the run, as it is strict):" in shown(report)
    report["unexplained"][0]["rank"] = None
    assert "  gpu04: UserWarning: something that no table knows" in shown(report)


def test_the_grid_has_a_row_for_each_source() -> None:
    lines = shown(samples.faulty())
    start = lines.index("mesh, rows connect to columns: . ok, R rejected, M stalls with payload, S slow or lossy")
    assert lines[start + 2] == "    1 gpu01   . R . . . . ."
    assert lines[start + 3] == "    2 gpu02 .   R . . M . ."
    assert lines[start + 6] == "    5 gpu05 . . R .   . S ."


def test_a_healthy_mesh_is_one_line() -> None:
    lines = shown(samples.healthy(5))
    assert "mesh: all 20 directed links open on all sampled ports" in lines
    assert not any(line.startswith("mesh, ") for line in lines)


@pytest.mark.parametrize(("count", "whole"), [(grid.WIDE, True), (grid.WIDE + 1, False)])
def test_a_large_grid_shows_only_what_is_not_fine(count: int, whole: bool) -> None:
    lines = shown(samples.large(count))
    rows = [line for line in lines if line.endswith((" R", " ."))]
    assert len(rows) == (count if whole else 1)
    assert ("  column 1: gpu13" in lines) is not whole
    assert ("  all other links are open" in lines) is not whole


def test_of_many_ranks_only_those_that_did_not_end_are_shown() -> None:
    report = samples.healthy(40)
    report["ranks"][7]["events"].pop()
    lines = shown(report)
    assert "39 of 40 ranks got to the end" in lines
    assert [line.split()[1] for line in lines if line.startswith("  rank")] == ["7"]


def test_long_evidence_is_cut_and_counted() -> None:
    report = samples.faulty()
    report["findings"][0]["evidence"] = [f"link {number}" for number in range(20)]
    seen = [line for line in shown(report) if line.startswith(("  seen: link", "  seen: and"))]
    assert len(seen) == console.MOST_LINES + 1 and seen[-1] == "  seen: and 12 more in report.json"


def test_bandwidth_is_shown_with_its_fit_and_the_slowest_rank() -> None:
    report = samples.healthy(2)
    report["sizes"] = [dict(report["sizes"][2], seconds=0.002, algbw_gb_per_s=0.524, busbw_gb_per_s=0.5)]
    report["sizes"][0]["seconds_by_rank"] = {"0": 0.001, "1": 0.002}
    lines = shown(report)
    (row,) = [line for line in lines if line.strip().startswith("1 MiB")]
    assert row.split() == ["1", "MiB", "2.000", "0.524", "0.500", "20", "1"]
    assert "time = 310 us + size / 620 MB/s" in lines


def test_the_slowest_link_is_named() -> None:
    text = "\n".join(shown(samples.faulty()))
    assert "slowest 0.71 ms (gpu05 -> gpu07)" in text and "slowest 210 MB/s (gpu05 -> gpu07)" in text


@pytest.mark.parametrize("name", samples.all_samples())
def test_what_a_node_sent_neither_colours_the_terminal_nor_adds_lines(name: str) -> None:
    report = samples.all_samples()[name]
    lines = shown(samples.hostile(report))
    assert len(lines) == len(shown(report))
    assert not any(character in line for line in lines for character in "\x1b\u202e\n\r")


def test_it_says_how_long_each_step_took() -> None:
    lines = shown(samples.healthy())
    assert (
        "took 17.1 s: static 1.9, launch 1.6, mesh 3.1, collective 5.2, openmpi 2.9, facts 1.9, diagnosis 0.3" in lines
    )
    report = dict(samples.healthy(), times=[])
    assert not any(line.startswith("took") for line in shown(report))


def test_the_limits_of_the_site_are_told() -> None:
    assert (
        "limits: 64 MiB at least 0.5 GB/s busbw and at most 250 ms, each link at least 500 MB/s, "
        "connecting at most 1 ms, at most 5 segments sent again"
    ) in shown(samples.limited())
    assert not any(line.startswith("limits") for line in shown(samples.healthy()))


@pytest.mark.parametrize("name", samples.all_samples())
def test_the_end_of_a_run_has_the_findings_and_no_measurement(name: str) -> None:
    report = samples.all_samples()[name]
    hostile = list(console.brief(samples.hostile(report), with_notes=True))
    assert not any(character in line for line in hostile for character in "\x1b\u202e\n\r")
    brief, whole = list(console.brief(report, with_notes=False)), shown(report)
    assert len(hostile) - len(brief) == len(report["notes"])
    assert set(brief) <= set(whole)
    findings = [line.split(":")[0] for line in brief if line.startswith(("ERROR ", "WARNING "))]
    assert len(findings) == len(report["findings"])
    assert not any(line.startswith(("run ", "stages: ", "  rank ", "mesh: ", report["headline"])) for line in brief)
