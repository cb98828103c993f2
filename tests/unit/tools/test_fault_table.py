# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of faults in the documentation."""

from __future__ import annotations

import json
from pathlib import Path

import fault_table
import pytest


def test_the_rows_are_what_was_measured_in_the_order_of_the_titles() -> None:
    results = {
        "mtu": {"we": {"seconds": 12.3, "text": "FAILED: a | b"}},
        "none": {"we": {"seconds": 8, "text": "PASSED"}, "torch": {"seconds": 0.4, "text": "passes"}},
    }
    assert fault_table.table(results, {}).splitlines()[2:] == [
        "| no fault | passes (0.4 s) | PASSED (8 s) |",
        "| packets of more than 1400 bytes to a node vanish |  | FAILED: a \\| b (12.3 s) |",
    ]


def test_only_what_is_between_the_markers_is_replaced(tmp_path: Path) -> None:
    page, results = tmp_path / "faults.md", tmp_path / "faults.json"
    page.write_text(f"before\n{fault_table.START}\nold\n{fault_table.END}\nafter\n")
    results.write_text(json.dumps({"none": {"we": {"seconds": 8, "text": "PASSED"}}}))
    fault_table.main(results, page)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text and "PASSED (8 s)" in text
    fault_table.main(results, page)
    assert page.read_text() == text


def test_what_was_not_measured_this_time_stays(tmp_path: Path) -> None:
    first = {
        "none": {"we": {"seconds": 8, "text": "PASSED"}, "torch": {"seconds": 0.4, "text": "passes"}},
        "mtu": {"we": {"seconds": 12.3, "text": "FAILED: a | b"}},
    }
    page, results = tmp_path / "faults.md", tmp_path / "faults.json"
    page.write_text(f"{fault_table.START}\n{fault_table.END}\n")
    for measured in (first, {"none": {"we": {"seconds": 9, "text": "PASSED"}}}):
        results.write_text(json.dumps(measured))
        fault_table.main(results, page)
    assert page.read_text().splitlines()[3:-1] == [
        "| no fault | passes (0.4 s) | PASSED (9 s) |",
        "| packets of more than 1400 bytes to a node vanish |  | FAILED: a \\| b (12.3 s) |",
    ]


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(SystemExit, match="has no lines"):
        fault_table.with_table("nothing here", "table")


def test_a_long_text_is_cut() -> None:
    text = fault_table.cell({"seconds": 1, "text": "x" * 500})
    assert len(text) == fault_table.TEXT_LENGTH + len(" (1 s)") and text.endswith("... (1 s)")


def test_every_title_is_one_row_of_its_own() -> None:
    assert len(set(fault_table.TITLES.values())) == len(fault_table.TITLES)


def test_the_page_has_its_markers_and_only_rows_that_are_known() -> None:
    page = fault_table.PAGE.read_text()
    assert fault_table.with_table(page, "0 rows").count("0 rows") == 1
    rows = page.partition(fault_table.START)[2].partition(fault_table.END)[0].splitlines()[3:]
    titles = [row.split("|")[1].strip() for row in rows]
    known = list(fault_table.TITLES.values())
    assert [title for title in known if title in titles] == titles
