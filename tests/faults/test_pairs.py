# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mesh that is open and a collective that goes wrong: pairs of nodes tell who is at fault, and nobody else is."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checking import check, left_over, sweep, wait_for
from net_cluster import NetCluster
from test_wrong_data import SIZE, overlay

SIZES = ["-e", json.dumps({"cluster_check_sizes_bytes": [4096, SIZE]})]
#: Bytes from one node to another: more than the mesh sends, less than the ranks do.
STOPS_AFTER = 12_000_000


@pytest.fixture(scope="module")
def five() -> Iterator[NetCluster]:
    with NetCluster(5) as net:
        yield net


@pytest.fixture
def swept(five: NetCluster) -> Iterator[NetCluster]:
    """Five nodes on which nothing is left when the test has ended."""
    yield five
    try:
        wait_for(lambda: not left_over(five), 2, "nothing to be left over on any node")
    finally:
        sweep(five)


def pairs_of(report: dict[str, Any], result: str) -> list[set[str]]:
    return [set(one["nodes"]) for each in report["rounds"] for one in each["pairs"] if one["result"] == result]


def found_by_pairs(report: dict[str, Any]) -> list[list[str]]:
    return [one["hosts"] for one in report["findings"] if one["id"] == "GC-RUN-005"]


def test_a_healthy_cluster_is_not_tried_in_pairs(swept: NetCluster) -> None:
    ended = check(swept, *SIZES)
    assert ended.code == 0 and ended.report["rounds"] == [], ended.text
    assert "Pairs |" not in ended.text


@pytest.mark.parametrize("kind", ["hang", "missing"])
def test_a_node_that_fails_with_everybody_is_named(
    swept: NetCluster, rng: random.Random, kind: str, tmp_path: Path
) -> None:
    name = rng.choice(swept.names)
    print(f"{kind} on {name}")
    ended = check(swept, "-i", str(overlay(tmp_path, name, kind)), *SIZES)
    assert ended.code != 0 and list(ended.report["culprits"]) == [name], ended.text
    assert found_by_pairs(ended.report) == [[name]], ended.text
    failed = pairs_of(ended.report, "failed")
    assert len(failed) == 2 and all(name in pair for pair in failed), ended.text
    assert set().union(*pairs_of(ended.report, "passed")) == set(swept.names) - {name}
    recap = [line.split(":")[0].strip() for line in ended.text.splitlines() if "failed=1" in line]
    assert recap == [name], ended.text


def test_two_nodes_between_which_the_data_stops_are_named(swept: NetCluster, rng: random.Random) -> None:
    """The mesh sends less and passes. It is nothing of either node: both do well with others."""
    number = rng.randrange(len(swept.names))
    # gloo's ring has the data between neighbours only.
    ends = [swept.names[number], swept.names[(number + 1) % len(swept.names)]]
    print(f"the data stops between {' and '.join(ends)}")
    for here, there in (ends, ends[::-1]):
        peer = swept.node(there).address
        for command in (
            "add table inet stops",
            "add chain inet stops input { type filter hook input priority 0; }",
            f"add rule inet stops input ip saddr {peer} quota over {STOPS_AFTER} bytes counter drop",
        ):
            swept.run(here, "nft", command)
    ended = check(swept, *SIZES)
    assert ended.code != 0 and sorted(ended.report["culprits"]) == sorted(ends), ended.text
    assert [sorted(hosts) for hosts in found_by_pairs(ended.report)] == [sorted(ends)], ended.text
    assert {frozenset(pair) for pair in pairs_of(ended.report, "failed")} == {frozenset(ends)}
    assert all(stage["result"] == "passed" for stage in ended.report["stages"] if stage["name"] == "mesh")
    # The ring has its data in one direction only.
    assert any("packets 0 " not in swept.run(name, "nft", "list", "ruleset") for name in ends)
