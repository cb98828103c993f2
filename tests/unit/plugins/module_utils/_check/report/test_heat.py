# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The maps of more nodes than have room: equal rows are one, the whole map is folded away, and can be sorted."""

from __future__ import annotations

import re

import pytest
import report_samples as samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import heat, html


def slow_rack(count: int) -> samples.Report:
    """The links of the nodes 5 to 8 to all others are three times slower."""
    report = samples.healthy(count)
    rack = set(samples.hosts(count)[4:8])
    for source, row in report["bytes_per_second"].items():
        for target in row:
            if (source in rack) != (target in rack):
                row[target] = 3.8e8
    return report


def rates(report: samples.Report) -> str:
    return heat.maps(report).split("<h3>Rate of one connection in GB/s</h3>")[1].split("<h3>")[0]


def heads(table: str) -> list[str]:
    return re.findall(r'<th scope="\w+"[^>]*>([^<]*)</th>', table)


@pytest.mark.parametrize("count", [40, 90])
def test_rows_that_are_alike_are_one(count: int) -> None:
    found = rates(slow_rack(count)).split("<table")[1]
    others = f"gpu[01-04], gpu[09-{count}]"
    assert heads(found) == [others, "gpu[05-08]", others, "gpu[05-08]"]
    tell = f"{others} to gpu[05-08]: {(count - 4) * 4} links, median 380 MB/s, worst 380 MB/s"
    assert f'title="{tell}">0.38</td>' in found and found.count("<td></td>") == 2


def test_the_map_of_every_node_is_folded_away_and_not_made_for_many() -> None:
    found = rates(slow_rack(40))
    assert '<details class="every"><summary>All 40 nodes</summary>' in found
    assert heads(found.split("<details")[1]) == samples.hosts(40) * 2
    assert "<details" not in heat.maps(slow_rack(65))
    assert "<details" not in heat.maps(slow_rack(24)) and heads(rates(slow_rack(24))) == samples.hosts(24) * 2


def test_where_nothing_is_worse_than_usual_there_is_no_table() -> None:
    assert rates(samples.healthy(25)).startswith("<p>No link is worse than usual.</p><details")
    ranks = heat.ranks(samples.healthy(25))
    assert ranks.endswith("<p>No rank is slower than usual.</p>") and "<table" in heat.ranks(samples.healthy(24))


def test_four_nodes_have_no_colour_and_the_page_says_why() -> None:
    for count, colour in ((4, False), (5, True)):
        report = samples.healthy(count)
        report["bytes_per_second"]["gpu01"]["gpu02"] = 1e7
        page = html.page(report)
        assert ("With fewer than 5 nodes no number has a colour" in page) is not colour
        assert bool(re.search(r'<td class="h\d', page)) is colour
    report["mesh"]["gpu01"]["gpu02"] = "timeout"
    assert '<td class="no"' in html.page(report)


def test_names_that_do_not_follow_each_other_are_counted() -> None:
    assert heat.named(["a9", "a10", "a8"]) == "a[8-10]"
    assert heat.named([f"node-{2 * number}" for number in range(40)]) == "40 nodes, the first node-0"


def test_the_orders_are_that_of_the_inventory_and_one_for_each_label() -> None:
    report = samples.healthy(4)
    report["labels"] = {
        "gpu01": {"rack": "r10", "os": "9"},
        "gpu02": {"rack": "r9", "os": "9"},
        "gpu03": {"rack": "r10", "os": "9"},
        "gpu04": {"os": "9", "rack": "r9", "leaf": "l1"},
    }
    # All have the same os, so it orders nothing. A node without a label is in front.
    assert heat.orders(report) == {"inventory": "0 1 2 3", "leaf": "0 1 2|3", "rack": "1 3|0 2"}
    assert '<option value="1 3|0 2">rack</option>' in html.page(report)
    assert heat.orders(dict(report, labels={})) == {} == heat.orders(samples.healthy(65))
    assert "<select>" not in html.page(dict(report, labels={}))


def test_a_row_and_a_column_have_their_place_among_the_members() -> None:
    """Also those of a rail that lacks a node."""
    report = samples.healthy(5)
    for row in (report["latency_ms"], *report["latency_ms"].values()):
        row.pop("gpu02", None)
    found = heat.maps(report).split("<h3>Connect time in ms</h3>")[1].split("<h3>")[0]
    assert (
        re.findall(r'data-node="(\d+)">([^<]+)', found)
        == [("0", "gpu01"), ("2", "gpu03"), ("3", "gpu04"), ("4", "gpu05")] * 2
    )
