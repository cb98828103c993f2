# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the rounds of pairs say in a report, and whom they acquit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    ranks_pair_findings,
    ranks_pairs,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ranks_pairs import Labels
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR

HOSTS = [f"n{number}" for number in range(1, 7)]
RACKS = {host: {"rack": f"r{number // 2 + 1}"} for number, host in enumerate(HOSTS)}
TWO_RACKS = {host: {"rack": "r1" if number < 3 else "r2"} for number, host in enumerate(HOSTS)}
SUMMARY = "2 of 6 ranks did not finish the all_reduce"


def state(
    fails: Callable[[str, str], bool], labels: Labels | None = None, hosts: list[str] | None = None
) -> dict[str, Any]:
    """All rounds, as localise.py keeps them."""
    hosts = hosts or HOSTS
    rounds: list[list[ranks_pairs.Tried]] = []
    names = []
    while step := ranks_pairs.next_round(hosts, rounds, labels or {}):
        names.append(step.name)
        rounds.append(
            [
                ranks_pairs.Tried(pair, ranks_pairs.FAILED, f"{pair[1]}: no word")
                if fails(*pair)
                else ranks_pairs.Tried(pair, ranks_pairs.PASSED)
                for pair in step.pairs
            ]
        )
    done = [
        [{"nodes": list(one.nodes), "result": one.result, "why": one.why, "lost": []} for one in each]
        for each in rounds
    ]
    found = [{"name": names[number], "pairs": each} for number, each in enumerate(done)]
    return {"hosts": hosts, "named": False, "rounds": found}


def finding(number: str, *hosts: str, cause: str = SUMMARY) -> Finding:
    return Finding(number, hosts, cause, "fix it", ("seen",))


def only(node: str) -> Callable[[str, str], bool]:
    return lambda one, other: node in (one, other)


def test_without_rounds_nothing_changes() -> None:
    found = [finding("GC-RUN-001", "n1")]
    assert ranks_pair_findings.joined(found, {}, {}) == found and ranks_pair_findings.notes({}, {}) == []


def test_a_node_that_fails_with_everybody_is_the_culprit() -> None:
    silent = finding("GC-RUN-001", "n2", "n3", cause=f"{SUMMARY}; first n2 and n3")
    first, second = ranks_pair_findings.joined([silent], state(only("n3")), {})
    assert first.id == "GC-RUN-005" and first.hosts == ("n3",) and first.confidence >= 0.9
    assert first.cause == (
        "the all_reduce goes wrong on n3 with every partner (2 of 2), and went well in 3 pairs without it"
    )
    assert "n3 with n6 failed: n6: no word" in first.evidence and first.evidence[-1].startswith("passed: ")
    assert first.about.kind == "node" and first.reproduce.endswith("--limit n1,n3,n6")
    assert "n1, n2, n4, n5 and n6" in first.ruled_out[1]
    assert second.hosts == ("n3",) and second.cause == f"{SUMMARY}; first n3"
    assert "n2: in pairs of nodes all went well there" in second.ruled_out


def test_whom_all_pairs_acquit_is_no_culprit_any_more() -> None:
    silent = finding("GC-RUN-001", "n2", cause=f"{SUMMARY}; first n2")
    _first, second = ranks_pair_findings.joined([silent], state(only("n3")), {})
    assert second.hosts == () and second.cause == SUMMARY and second.about.kind == "cluster"


def test_wrong_data_that_leads_to_a_node_comes_first() -> None:
    data = finding("GC-DATA-001", "n3", cause="the contribution of rank 2 is missing")
    found = ranks_pair_findings.joined([data], state(only("n3")), {})
    assert [one.id for one in found] == ["GC-DATA-001", "GC-RUN-005"] and {one.hosts for one in found} == {("n3",)}


def test_wrong_data_that_leads_to_a_node_acquits_the_other_end_of_its_pair() -> None:
    data = finding("GC-DATA-001", "n4", cause="on the way from rank 0 on n1 to rank 3 on n4")
    found = ranks_pair_findings.joined([data], state(lambda one, other: {one, other} == {"n1", "n4"}), {})
    assert [one.hosts for one in found] == [("n4",), ("n4",)]


def test_wrong_data_that_many_have_seen_is_left_to_the_pairs() -> None:
    data = finding("GC-DATA-001", "n1", "n2", "n3", cause="wrong sums")
    found = ranks_pair_findings.joined([data], state(only("n2")), {})
    assert sorted((one.id, one.hosts) for one in found) == [("GC-DATA-001", ("n2",)), ("GC-RUN-005", ("n2",))]


@pytest.mark.parametrize("number", ["GC-DATA-002", "GC-RUN-002", "GC-NET-006"])
def test_what_a_node_shows_of_itself_no_pair_takes_back(number: str) -> None:
    own = finding(number, "n1")
    assert own in ranks_pair_findings.joined([own], state(only("n3")), {})


def test_two_nodes_that_fail_with_each_other_only() -> None:
    (found,) = ranks_pair_findings.joined([], state(lambda one, other: {one, other} == {"n1", "n4"}), {})
    assert found.hosts == ("n1", "n4") and found.about.kind == "group"
    assert found.cause == "the all_reduce goes wrong between n1 and n4, and both do well with others"


def test_all_failing_pairs_cross_a_rack() -> None:
    inside = {"n3", "n4"}
    played = state(lambda one, other: (one in inside) != (other in inside), RACKS)
    (found,) = ranks_pair_findings.joined([], played, RACKS)
    assert found.hosts == ("n3", "n4") and found.about.label == "rack=r2"
    assert found.cause.startswith(
        "all failing pairs cross rack=r2: the all_reduce goes wrong between the nodes with rack=r2 and all others, "
    )


def test_between_two_racks_no_node_is_the_culprit() -> None:
    inside = {"n1", "n2", "n3"}
    played = state(lambda one, other: (one in inside) != (other in inside), TWO_RACKS)
    (found,) = ranks_pair_findings.joined([], played, TWO_RACKS)
    assert found.hosts == () and found.about.label == "rack=r1" and found.severity == ERROR


def test_where_everything_fails_nobody_is_named() -> None:
    (found,) = ranks_pair_findings.joined([], state(lambda one, other: True), {})
    assert found.hosts == () and found.about.kind == "cluster" and "in every pair of n1, n2" in found.cause


def test_what_does_not_happen_again_is_noted_and_accuses_nobody_else() -> None:
    silent = finding("GC-RUN-001", "n2")
    played = state(lambda one, other: False)
    assert ranks_pair_findings.joined([silent], played, {}) == [silent]
    (note,) = ranks_pair_findings.notes(played, {})
    assert note.startswith("what went wrong did not happen again in 15 pairs of nodes")


def test_pairs_that_were_slow_are_no_evidence() -> None:
    silent = finding("GC-RUN-001", "n2")
    played = state(lambda one, other: False)
    for one in played["rounds"][0]["pairs"]:
        one.update(result="slow", why="n1: no word")
    assert ranks_pair_findings.joined([silent], played, {}) == [silent]
    again, slow = ranks_pair_findings.notes(played, {})
    assert " in 12 pairs of nodes" in again and slow.endswith("tell nothing: 3")
    assert ranks_pair_findings.notes(dict(played, rounds=played["rounds"][:1]), {}) == [slow]


def test_two_faults_at_once() -> None:
    """Wrong data leads to one node, pairs find another one too."""
    data = finding("GC-DATA-001", "n1", cause="the contribution of rank 0 is missing")
    found = ranks_pair_findings.joined([data], state(lambda one, other: bool({"n1", "n5"} & {one, other})), {})
    assert sorted((one.id, one.hosts) for one in found) == [
        ("GC-DATA-001", ("n1",)),
        ("GC-RUN-005", ("n1",)),
        ("GC-RUN-005", ("n5",)),
    ]


def test_wrong_data_that_leads_to_a_node_is_not_taken_back() -> None:
    """It need not happen every time."""
    data = finding("GC-DATA-001", "n1", cause="the contribution of rank 0 is missing")
    found = ranks_pair_findings.joined([data], state(only("n3")), {})
    assert sorted(one.hosts for one in found) == [("n1",), ("n3",)]
