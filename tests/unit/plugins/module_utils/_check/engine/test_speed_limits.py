# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of the site: what is read, and what is refused with its place, rule and fix."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import speed_limits
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.speed_limits import (
    Limits,
    LinkLimits,
    SizeLimit,
)

WHOLE = {
    "sizes": [
        {"size_bytes": 16777216, "busbw_gb_per_s_min": 0.5, "milliseconds_max": 80},
        {"size_bytes": 4096, "milliseconds_max": 5},
    ],
    "links": {"bytes_per_second_min": 5e8, "connect_milliseconds_max": 1, "retransmits_max": 0},
}


def test_everything_that_can_be_limited() -> None:
    limits, problems = speed_limits.read(WHOLE, [4, 4096, 16777216])
    assert problems == []
    assert limits == Limits(
        (SizeLimit(16777216, 0.5, 80.0), SizeLimit(4096, None, 5.0)),
        LinkLimits(5e8, 1.0, 0),
    )
    assert limits.as_dict() == WHOLE


@pytest.mark.parametrize("value", [None, {}, {"sizes": None, "links": None}, {"sizes": [], "links": {}}])
def test_nothing_is_limited_where_nothing_is_set(value: Any) -> None:
    assert speed_limits.read(value, [4]) == (Limits(), []) and Limits().as_dict() == {}


def test_what_a_template_or_an_argument_spec_made_of_it() -> None:
    """Numbers as texts, and keys with nothing for what was not given."""
    entry = {"size_bytes": "4096", "busbw_gb_per_s_min": None, "milliseconds_max": "5.5"}
    limits, problems = speed_limits.read({"sizes": [entry], "links": {"retransmits_max": "3"}})
    assert problems == []
    assert limits.sizes == (SizeLimit(4096, None, 5.5),) and limits.links.retransmits_max == 3


def test_a_size_is_measured_in_whole_elements() -> None:
    assert [SizeLimit(size).measured_bytes for size in (4, 7, 4096, 4098)] == [4, 4, 4096, 4096]


@pytest.mark.parametrize(
    ("value", "place", "rule"),
    [
        ([], "cluster_check_limits", speed_limits.ERR_LIMITS),
        ("busbw 0.5", "cluster_check_limits", speed_limits.ERR_LIMITS),
        ({"size": []}, "cluster_check_limits.size", "expected one of sizes, links"),
        ({"sizes": {"size_bytes": 4}}, "cluster_check_limits.sizes", speed_limits.ERR_SIZES),
        ({"sizes": [4096]}, "cluster_check_limits.sizes[0]", speed_limits.ERR_ENTRY),
        ({"sizes": [{"milliseconds_max": 5}]}, "cluster_check_limits.sizes[0]", speed_limits.ERR_SIZE_MISSING),
        ({"sizes": [{"size_bytes": 4096}]}, "cluster_check_limits.sizes[0]", speed_limits.ERR_NOTHING),
        (
            {"sizes": [{"size_bytes": 2, "milliseconds_max": 5}]},
            "cluster_check_limits.sizes[0].size_bytes",
            speed_limits.ERR_SIZE,
        ),
        (
            {"sizes": [{"size_bytes": 4096.5, "milliseconds_max": 5}]},
            "cluster_check_limits.sizes[0].size_bytes",
            speed_limits.ERR_SIZE,
        ),
        (
            {"sizes": [{"size_bytes": 4096, "milliseconds_max": 0}]},
            "cluster_check_limits.sizes[0].milliseconds_max",
            speed_limits.ERR_NUMBER,
        ),
        (
            {"sizes": [{"size_bytes": 4096, "busbw_min_gbps": 1}]},
            "cluster_check_limits.sizes[0].busbw_min_gbps",
            "expected one of size_bytes, busbw_gb_per_s_min, milliseconds_max",
        ),
        ({"links": [1]}, "cluster_check_limits.links", speed_limits.ERR_LINKS),
        (
            {"links": {"bytes_per_second_min": "1 GB/s"}},
            "cluster_check_limits.links.bytes_per_second_min",
            speed_limits.ERR_NUMBER,
        ),
        (
            {"links": {"bytes_per_second_min": float("inf")}},
            "cluster_check_limits.links.bytes_per_second_min",
            speed_limits.ERR_NUMBER,
        ),
        (
            {"links": {"connect_milliseconds_max": True}},
            "cluster_check_limits.links.connect_milliseconds_max",
            speed_limits.ERR_NUMBER,
        ),
        ({"links": {"retransmits_max": -1}}, "cluster_check_limits.links.retransmits_max", speed_limits.ERR_COUNT),
        ({"links": {"retransmits_max": 1.5}}, "cluster_check_limits.links.retransmits_max", speed_limits.ERR_COUNT),
    ],
)
def test_what_is_refused(value: Any, place: str, rule: str) -> None:
    (problem,) = speed_limits.limit_problems(value)
    assert (problem.variable, problem.rule) == (place, rule)
    assert problem.fix and problem.sentence().startswith(place)


def test_a_misspelled_limit_is_put_right() -> None:
    (problem,) = speed_limits.limit_problems({"links": {"retransmit_max": 3}})
    assert problem.fix == "write retransmits_max instead"


def test_a_size_with_two_entries_is_refused() -> None:
    sizes = [{"size_bytes": 4096, "milliseconds_max": 5}, {"size_bytes": 4096, "busbw_gb_per_s_min": 1}]
    (problem,) = speed_limits.limit_problems({"sizes": sizes})
    assert problem.variable == "cluster_check_limits.sizes[1].size_bytes" and "sizes[0]" in problem.rule


def test_a_limit_for_a_size_that_is_not_measured_is_refused() -> None:
    """It would never be compared with anything."""
    (problem,) = speed_limits.read(WHOLE, [4, 16777216])[1]
    assert problem.value == "4096" and problem.rule.endswith("cluster_check_sizes_bytes has 4, 16777216")
    assert speed_limits.unmeasured(WHOLE, [4, 16777216]) == [problem]
    assert speed_limits.unmeasured(WHOLE, [4096, 16777216]) == []
    assert speed_limits.unmeasured({"sizes": [4]}, []) == [], "the wrong form is told elsewhere"


def test_all_problems_come_at_once() -> None:
    value = {
        "sizes": [{"size_bytes": 1, "milliseconds_max": -1}, {"size_bytes": 8, "milliseconds_max": 1}],
        "links": {"rate": 1, "retransmits_max": -1},
        "nodes": {},
    }
    found = [problem.variable for problem in speed_limits.read(value, [4])[1]]
    assert found == [
        "cluster_check_limits.nodes",
        "cluster_check_limits.sizes[0].size_bytes",
        "cluster_check_limits.sizes[0].milliseconds_max",
        "cluster_check_limits.sizes, size_bytes",
        "cluster_check_limits.links.rate",
        "cluster_check_limits.links.retransmits_max",
    ]
