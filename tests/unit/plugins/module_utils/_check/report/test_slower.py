# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became slower since the report before."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import slower

Report = dict[str, Any]


def slowed(count: int, factor: float, source: str = "", target: str = "") -> Report:
    now = samples.healthy(count, seed=2)
    for one, row in now["bytes_per_second"].items():
        for other in row:
            if source in ("", one) and target in ("", other):
                row[other] /= factor
    for size in now["sizes"] if factor > 1 else ():
        size["busbw_gb_per_s"] /= 4
    return now


def told(before: Report | None, now: Report) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.id, one.hosts) for one in slower.findings(before, now)]


@pytest.mark.parametrize("count", [2, 3, 8])
def test_the_first_run_and_an_equal_one_have_nothing_to_say(count: int) -> None:
    now = samples.healthy(count, seed=2)
    assert told(None, now) == told(samples.healthy(count), now) == []


@pytest.mark.parametrize("count", [3, 8])
def test_the_node_that_became_slow_is_named(count: int) -> None:
    (one,) = slower.findings(samples.healthy(count), slowed(count, 20, target="gpu02"))
    assert (one.id, one.severity, one.hosts) == ("GC-PERF-003", "warning", ("gpu02",))
    assert re.match(r"the data network became (19|20|21) times slower to gpu02: .* in run 2026", one.cause)


def test_two_nodes() -> None:
    assert told(samples.healthy(2), slowed(2, 20, "gpu01")) == []
    assert told(samples.healthy(2), slowed(2, 40, "gpu01")) == [("GC-PERF-003", ("gpu01", "gpu02"))]
    ((number, hosts),) = told(samples.healthy(2), slowed(2, 40))
    assert number == "GC-PERF-003" and set(hosts) in ({"gpu01", "gpu02"}, set())


def test_where_all_became_slow_it_is_the_cluster() -> None:
    (one,) = slower.findings(samples.healthy(4), slowed(4, 20))
    assert one.hosts == () and "between all 4 nodes" in one.cause


def test_one_link_alone_needs_more() -> None:
    assert told(samples.healthy(8), slowed(8, 20, "gpu01", "gpu02")) == []
    assert told(samples.healthy(8), slowed(8, 40, "gpu01", "gpu02")) == [("GC-PERF-003", ("gpu01", "gpu02"))]


@pytest.mark.parametrize("seed", range(50))
def test_rates_that_differ_by_a_factor_of_ten_are_no_finding(seed: int) -> None:
    """As those of healthy namespaces on two busy cores did."""
    before, now, chance = samples.healthy(3), samples.healthy(3), random.Random(seed)
    for report in (before, now):
        for row in report["bytes_per_second"].values():
            for other in row:
                row[other] *= 10 ** chance.uniform(-0.5, 0.5)
    assert told(before, now) == []


def test_a_node_that_was_not_there_is_not_compared() -> None:
    assert told(samples.healthy(2), slowed(8, 50, target="gpu07")) == []


def test_what_another_finding_names_is_not_told_twice() -> None:
    now = slowed(4, 50, target="gpu03")
    now["findings"] = [{"id": "GC-NET-007", "subject": {"nodes": ["gpu03"]}}]
    assert told(samples.healthy(4), now) == []


def test_the_all_reduce_alone() -> None:
    now = samples.healthy(4)
    for size in now["sizes"]:
        size["busbw_gb_per_s"] /= 7
    (one,) = slower.findings(samples.healthy(4), now)
    assert one.hosts == () and one.cause.startswith("the all_reduce became 7 times slower: busbw ")
    assert told(samples.healthy(4), dict(now, backend="nccl")) == []
    assert told(samples.healthy(5), now) == []


def test_a_machine_that_is_busy_is_slower_on_most_links() -> None:
    """Eight healthy namespaces, when others used the cores: the median 20 times slower, one link 38 times."""
    now = slowed(8, 20)
    now["bytes_per_second"]["gpu01"]["gpu08"] /= 1.9
    now["bytes_per_second"]["gpu02"]["gpu05"] *= 2
    assert told(samples.healthy(8), now) == []


def test_an_all_reduce_that_is_as_fast_as_before_refutes_slow_links() -> None:
    now = slowed(3, 100, target="gpu02")
    assert len(told(samples.healthy(3), now)) == 1
    now["sizes"] = samples.healthy(3)["sizes"]
    assert told(samples.healthy(3), now) == []
    now["sizes"] = now["sizes"][:2]
    assert len(told(samples.healthy(3), now)) == 1, "latency refutes nothing"


@pytest.mark.parametrize("seed", range(50))
def test_links_of_eight_busy_nodes_are_no_finding(seed: int) -> None:
    before, now, chance = samples.healthy(8), slowed(8, 10), random.Random(seed)
    for report in (before, now):
        for row in report["bytes_per_second"].values():
            for other in row:
                row[other] *= 10 ** chance.gauss(0, 0.35)
    assert told(before, now) == []


def test_the_all_reduce_that_became_twice_as_slow_is_no_finding() -> None:
    now = samples.healthy(4)
    for size in now["sizes"]:
        size["busbw_gb_per_s"] /= 2.5
    assert told(samples.healthy(4), now) == []
