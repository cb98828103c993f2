# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The grid of a large cluster shows less and loses nothing."""

from __future__ import annotations

import random

import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import grid


def unfolded(shown: grid.Grid) -> dict[tuple[str, str], str]:
    """The cells of a folded grid, link by link."""
    return {
        (source, target): result
        for sources, line in zip(shown.rows, shown.cells)
        for targets, result in zip(shown.columns, line)
        for source in sources
        for target in targets
        if source != target and result is not None
    }


def bad_links(report: samples.Report) -> dict[tuple[str, str], str]:
    return {
        (source, target): result
        for source, row in grid.results(report).items()
        for target, result in row.items()
        if result != "ok"
    }


def test_one_blocked_node_of_many_is_one_cell() -> None:
    shown = grid.folded(samples.large(64))
    assert shown.columns == [["gpu13"]] and shown.cells == [["unreachable"]]
    assert len(shown.rows) == 1 and len(shown.rows[0]) == 63


def test_all_links_bad_is_one_cell_too() -> None:
    report = samples.healthy(30)
    report["mesh"] = {source: dict.fromkeys(row, "timeout") for source, row in report["mesh"].items()}
    shown = grid.folded(report)
    assert shown.cells == [["timeout"]] and shown.rows == shown.columns == [samples.hosts(30)]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_bad_is_lost_and_nothing_is_invented(seed: int) -> None:
    dice = random.Random(seed)
    report = samples.healthy(12)
    for _number in range(dice.randrange(1, 40)):
        source, target = dice.sample(samples.hosts(12), 2)
        report["mesh"][source][target] = dice.choice(["timeout", "unreachable", "stalled"])
    if dice.random() < 0.5:
        report = samples.blocked(report, dice.choice(samples.hosts(12)))
    shown = grid.folded(report)
    cells = unfolded(shown)
    assert {link: result for link, result in cells.items() if result != "ok"} == bad_links(report), f"seed {seed}"
    assert all(grid.results(report)[source][target] == result for (source, target), result in cells.items())


def test_a_node_that_told_nothing_has_no_result_in_its_row_and_column() -> None:
    report = samples.healthy(4)
    del report["mesh"]["gpu02"]
    for row in report["mesh"].values():
        row.pop("gpu02", None)
    results = grid.results(report)
    assert set(results["gpu02"].values()) == {""} and results["gpu01"]["gpu02"] == ""


def test_a_slow_link_is_shown_although_it_is_open() -> None:
    report = samples.faulty()
    assert report["mesh"]["gpu05"]["gpu07"] == "ok"
    assert grid.results(report)["gpu05"]["gpu07"] == "slow"
    # A fault hides that it is slow as well.
    report["mesh"]["gpu05"]["gpu07"] = "timeout"
    assert grid.results(report)["gpu05"]["gpu07"] == "timeout"


@pytest.mark.parametrize(("direction", "slow"), [("inbound", ("gpu01", "gpu05")), ("outbound", ("gpu05", "gpu01"))])
def test_a_node_that_is_slow_in_one_direction(direction: str, slow: tuple[str, str]) -> None:
    report = samples.faulty()
    report["findings"][2]["subject"].update(kind="direction", nodes=["gpu05"], direction=direction)
    results = grid.results(report)
    assert results[slow[0]][slow[1]] == "slow" and results[slow[1]][slow[0]] == "ok"
    # A group is no link, even one of two nodes.
    report["findings"][2]["subject"].update(kind="group", nodes=["gpu01", "gpu05"], direction="")
    assert grid.results(report)["gpu01"]["gpu05"] == "ok"


def test_scattered_trouble_is_cut_and_counted() -> None:
    dice = random.Random(5)
    report = samples.healthy(120)
    for source, row in report["mesh"].items():
        for target in dice.sample([host for host in samples.hosts(120) if host != source], 40):
            row[target] = "timeout"
    shown = grid.folded(report)
    assert len(shown.rows) == grid.MOST and len(shown.columns) == grid.MOST
    assert shown.hidden == (120 - grid.MOST) * 2


def test_without_a_mesh_there_is_no_grid() -> None:
    assert grid.nodes(samples.lost()) == []


def test_a_link_that_breaks_a_limit_is_shown_as_slow() -> None:
    report = samples.healthy()
    about = Subject("link", ("gpu02", "gpu05"))
    report["findings"] = [Finding("GC-PERF-002", ("gpu02", "gpu05"), "c", "f", subject=about).as_dict()]
    assert grid.results(report)["gpu02"]["gpu05"] == "slow" and grid.results(report)["gpu05"]["gpu02"] == "ok"
