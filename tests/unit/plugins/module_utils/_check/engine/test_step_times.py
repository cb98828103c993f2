# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long each step took, by one clock."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import step_times

START = 1769860800.0


def test_a_step_ends_where_the_next_one_begins() -> None:
    began = {"static": START + 0.5, "launch": START + 3, "diagnosis": START + 9.25}
    assert step_times.spans(began, START, START + 10) == [
        {"name": "static", "begin_seconds": 0.5, "seconds": 2.5},
        {"name": "launch", "begin_seconds": 3.0, "seconds": 6.25},
        {"name": "diagnosis", "begin_seconds": 9.25, "seconds": 0.75},
    ]


def test_the_order_is_that_of_the_clock() -> None:
    began = {"facts": START + 5, "look": START}
    assert [one["name"] for one in step_times.spans(began, START, START + 6)] == ["look", "facts"]


def test_a_clock_that_was_set_back_makes_nothing_negative() -> None:
    spans = step_times.spans({"static": START - 7, "launch": START + 1}, START, START - 3)
    assert [(one["begin_seconds"], one["seconds"]) for one in spans] == [(0.0, 8.0), (1.0, 0.0)]


def test_nobody_noted_anything() -> None:
    assert step_times.spans({}, START, START + 9) == []
