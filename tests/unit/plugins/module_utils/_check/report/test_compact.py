# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.json: nothing of a report is lost in it, it stays small, and what does not fit together is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import compact, drift, former


def written(report: samples.Report) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(compact.laid_out(compact.pack(report)))
    return found


@pytest.mark.parametrize("name", [name for name in samples.all_samples() if name != "large"])
def test_nothing_is_lost(name: str) -> None:
    report = samples.all_samples()[name]
    assert compact.unpack(written(report)) == report
    assert written(compact.same(report)) == written(report)


def test_of_many_nodes_the_numbers_are_rounded_once() -> None:
    report = samples.large(64)
    read = compact.unpack(written(report))
    assert read["mesh"] == report["mesh"] and read["ranks"] == report["ranks"] and read["stack"] == report["stack"]
    assert read["latency_ms"]["gpu03"]["gpu04"] == pytest.approx(report["latency_ms"]["gpu03"]["gpu04"], rel=0.01)
    assert written(read) == written(report)


def test_the_size_of_a_large_report() -> None:
    """Two characters for the numbers of a link, and a line for each rank: 1,000 nodes stay below 5 MB."""
    count = 150
    assert len(compact.laid_out(compact.pack(samples.large(count)))) < 2.1 * count**2 + 600 * count


def test_ranks_that_differ_from_the_usual_one() -> None:
    report = samples.healthy(4)
    odd = report["ranks"][2]
    odd.update(state="failed", exit_code=-9, hostname="", text="killed", events=odd["events"][:2])
    report["ranks"][3].update(events=[{"event": "no time of its own"}])
    packed = written(report)["ranks"]
    assert packed["usual"]["state"] == "finished" and "text" not in packed["usual"]
    assert set(packed["each"][0]) == {"rank", "host", "at"}
    assert packed["each"][2]["last"] == "store" and packed["each"][2]["hostname"] == ""
    assert compact.unpack(written(report))["ranks"] == report["ranks"]


def test_single_iterations_are_left_out() -> None:
    """They were more than nine tenths of a report of three nodes; seconds_by_rank has their median."""
    report = samples.healthy(2)
    for rank in report["ranks"]:
        rank["events"][3]["seconds"] = [0.1] * 60
    assert "0.1, 0.1" not in compact.laid_out(compact.pack(report))


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("links", "mesh", "rows", "gpu02"), "..", "links: the row gpu02 of mesh has 2 characters for 8 nodes"),
        (("links", "retransmits", "usual"), "0", "links: the row usual of retransmits has 1 characters for 8 nodes"),
        (
            ("rails", 0, "links", "mesh", "usual"),
            ".",
            "rail 2 (198.51.100.0/24): the row usual of mesh has 1 characters",
        ),
        (("ranks", "each", 3, "at"), [1], "ranks: rank 3 has 1 times for 6 events"),
        (("ranks", "usual"), {}, "ranks: rank 0 and the usual one have no state and no exit_code and no events"),
    ],
)
def test_what_does_not_fit_together(place: tuple[Any, ...], value: Any, said: str) -> None:
    packed = written(samples.railed())
    inside: Any = packed
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    assert next(compact.problems(packed)).startswith(said)
    with pytest.raises(ValueError, match=re.escape(said)):
        drift.read(packed)
    assert drift.readable(json.dumps(packed)) is None


def test_a_character_that_nobody_knows_is_a_link_without_a_value() -> None:
    packed = written(samples.healthy())
    packed["links"]["latency_ms"]["rows"]["gpu02"] = "~" * 8
    read = drift.read(packed)
    assert "gpu02" not in read["latency_ms"] and "gpu02" in read["bytes_per_second"]


def test_the_layout_is_json_whatever_is_in_it() -> None:
    value = {"a": ["x" * 200, 1], "b": [{"c": "]{\n"}] * 20, "d": {}, "e": [], "f": {"g": {"h": "i" * 130}}, "j": None}
    text = compact.laid_out(value)
    assert json.loads(text) == value and len(text.splitlines()) == 33


@pytest.mark.parametrize("name", [name for name in samples.all_samples() if name != "large"])
def test_a_report_of_the_version_before_is_read_and_compared(name: str) -> None:
    """It had what the formats still have, with the iterations of each rank."""
    report = json.loads(json.dumps({**samples.all_samples()[name], "schema_version": former.VERSION}))
    assert drift.read(report) == samples.all_samples()[name]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mesh", {"n1": {"n2": 3}}),
        ("latency_ms", {"n1": {"n2": "a"}}),
        ("latency_ms", {"n1": {"n2": -1}}),
        ("ranks", [7]),
        ("sizes", [{"seconds_by_rank": {"first": 0.1}}]),
        ("members", 3),
        ("findings", 3),
        ("schema_version", 1),
        ("schema_version", [2]),
    ],
)
def test_what_is_no_report_of_the_version_before_either(key: str, value: Any) -> None:
    report = {**samples.faulty(), "schema_version": former.VERSION, key: value}
    assert drift.readable(json.dumps(report)) is None
