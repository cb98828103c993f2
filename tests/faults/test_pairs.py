# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mesh that is open and a collective that goes wrong: pairs of nodes tell who is at fault, and nobody else is."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import results
from checking import Checking, assert_others_shown, check, left_over, running, states, sweep, wait_for
from net_cluster import NetCluster
from test_wrong_data import SIZE, overlay

SIZES = ["-e", json.dumps({"cluster_check_sizes_bytes": [4096, SIZE]})]
#: Bytes from one node to another: more than the mesh sends, less than the ranks do.
STOPS_AFTER = 12_000_000
WORKER = "_check.agent.worker"
#: Of the collective, and the longest of a round.
DEADLINE_SECONDS = 20
#: The lifetime of a worker of a round, 30 s + its deadline, with 3 s + 4 * 3 s for one round of forks; then the
#: guardian 10 s later, and its 5 s to kill.
PAIR_IS_GONE_AFTER = 30 + DEADLINE_SECONDS + 15 + 10 + 5
#: The round waits 25 s more than its deadline for a node that hangs; then two more rounds, and 30 s for its facts.
PAIRS_END_AFTER = 150


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
    assert "Step | Pairs" not in ended.text


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


def hangs_in_a_pair(net: NetCluster, rng: random.Random, folder: Path) -> tuple[str, str, Checking]:
    """A check in its first round of pairs: the node whose rank hangs, the other one of its pair, which waits for it."""
    number = rng.randrange(4)
    bad, partner = net.names[number], net.names[(number + 2) % 4]
    deadline = f"cluster_check_deadline_seconds={DEADLINE_SECONDS}"
    checking = Checking(net, "-i", str(overlay(folder, bad, "hang")), *SIZES, "-e", deadline)

    def joined() -> bool:
        return any(
            run_id.endswith("-p1") and "joined" in str(found["ranks"]) for run_id, found in states(net, partner).items()
        )

    wait_for(joined, 90, f"the pair of {bad} and {partner}")
    return bad, partner, checking


def test_a_worker_that_is_killed_in_a_pair_is_named(swept: NetCluster, rng: random.Random, tmp_path: Path) -> None:
    """It is not held against the other node of the pair, and does not hide who made the collective go wrong."""
    bad, partner, checking = hangs_in_a_pair(swept, rng, tmp_path)
    print(f"the rank of {bad} hangs; SIGKILL to the worker of {partner}")
    (pid,) = [one for one in swept.processes(partner, WORKER) if one not in swept.processes(partner, "guardian")]
    os.kill(pid, signal.SIGKILL)
    struck = time.monotonic()
    ended = checking.ended()
    assert ended.code != 0 and time.monotonic() - struck < PAIRS_END_AFTER, ended.text
    assert sorted(ended.report["culprits"]) == sorted([bad, partner]), ended.text
    (died,) = [one for one in ended.report["findings"] if one["id"] == "GC-HOST-005"]
    assert died["hosts"] == [partner] and "the worker ended with -9" in str(died["evidence"]), died
    assert found_by_pairs(ended.report) == [[bad]], ended.text
    assert_others_shown(ended.report, partner, took_part=True)
    results.record("worker-killed-pairs", "we", time.monotonic() - struck, died["cause"])


def test_a_node_that_hangs_in_a_pair_is_named(swept: NetCluster, rng: random.Random, tmp_path: Path) -> None:
    """The rounds go on without it, and still find who made the collective go wrong."""
    bad, partner, checking = hangs_in_a_pair(swept, rng, tmp_path)
    print(f"the rank of {bad} hangs; {partner} stops")
    swept.pause(partner)
    struck = time.monotonic()
    try:
        ended = checking.ended()
        assert ended.code != 0 and time.monotonic() - struck < PAIRS_END_AFTER, ended.text
        assert sorted(ended.report["culprits"]) == sorted([bad, partner]), ended.text
        (lost,) = [one for one in ended.report["findings"] if one["id"] == "GC-HOST-001"]
        assert lost["hosts"] == [partner] and lost["cause"] == f"{partner} gave no answer to the step 'pairs'", lost
        assert found_by_pairs(ended.report) == [[bad]], ended.text
        assert_others_shown(ended.report, partner, took_part=True)
        results.record("node-paused-pairs", "we", time.monotonic() - struck, lost["cause"])
    finally:
        swept.unpause(partner)
    wait_for(lambda: running(swept) == [], PAIR_IS_GONE_AFTER, f"the end of the worker on {partner}")
    assert check(swept, *SIZES).code == 0


def test_a_controller_that_is_killed_in_a_pair_leaves_nothing_for_long(
    swept: NetCluster, rng: random.Random, tmp_path: Path
) -> None:
    _bad, partner, checking = hangs_in_a_pair(swept, rng, tmp_path)
    os.killpg(checking.process.pid, signal.SIGKILL)
    checking.process.wait()
    killed = time.monotonic()
    assert any(one.startswith(f"{partner}: ") for one in running(swept))
    wait_for(lambda: running(swept) == [], PAIR_IS_GONE_AFTER, "the end of all workers")
    results.record("controller-killed-pairs", "we", time.monotonic() - killed, "nothing runs on any node any more")
    # The files go with the next check, which passes.
    ended = check(swept, *SIZES)
    assert ended.code == 0 and ended.report["verdict"] == "PASSED", ended.text
