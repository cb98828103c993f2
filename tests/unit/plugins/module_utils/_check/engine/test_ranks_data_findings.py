# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all ranks together say about a wrong sum."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import ranks_data_findings

HOSTS = ["n1", "n2", "n3", "n4"]
MISSING = "the contribution of rank 2 is missing"


def seen(explanation: str = MISSING, **changes: Any) -> dict[str, Any]:
    one = {
        "iteration": 3,
        "elements": 10,
        "first": 0,
        "last": 1023,
        "explanation": explanation,
        "digest": 77,
        "input_changed": False,
        "sum_is_right": False,
    }
    return {**one, **changes}


def ranks(**wrong: dict[str, Any]) -> list[dict[str, Any]]:
    """Four ranks of which some saw a wrong sum of 4096 bytes, of which each chunk has 256 elements."""
    return [
        {
            "rank": number,
            "host": host,
            "events": [{"event": "size", "size_bytes": 4096, "wrong": wrong.get(host)}],
        }
        for number, host in enumerate(HOSTS)
    ]


def found(backend: str = "gloo", **wrong: dict[str, Any]) -> list[tuple[str, tuple[str, ...], str]]:
    return [(one.id, one.hosts, one.cause) for one in ranks_data_findings.findings(ranks(**wrong), backend)]


def test_nothing_wrong() -> None:
    assert found() == []


@pytest.mark.parametrize(
    "explanation",
    [
        MISSING,
        "the contribution of rank 2 is counted twice",
        "the contribution of rank 2 is misplaced by 5 elements",
        "rank 2 took part with its data of the iteration before",
    ],
)
def test_the_rank_that_all_sums_name_is_at_fault_and_not_those_who_saw_it(explanation: str) -> None:
    ((number, hosts, cause),) = found(**{host: seen(explanation) for host in HOSTS})
    assert number == "GC-DATA-001" and hosts == ("n3",)
    assert cause.startswith(f"all_reduce gave wrong sums: {explanation}, on all ranks alike")


def test_rank_1_is_not_taken_for_rank_12() -> None:
    ((_number, hosts, _cause),) = found(**{host: seen("the contribution of rank 12 is missing") for host in HOSTS})
    assert hosts == ()


def test_one_chunk_is_named() -> None:
    ((_number, _hosts, cause),) = found(**{host: seen(first=300, last=310) for host in HOSTS})
    assert "all of it in chunk 1 of 4" in cause


def test_wrong_everywhere_without_a_rank_accuses_no_node() -> None:
    ((_number, hosts, cause),) = found(**{host: seen("noise", first=300, last=310) for host in HOSTS})
    assert hosts == () and "before the sum was handed around" in cause


def test_wrong_from_one_hop_on_accuses_the_one_that_received_it() -> None:
    """Chunk 1 goes from rank 1 to 0, 3 and 2 in turn: 3 and 2 have it wrong, 1 and 0 right."""
    ((_number, hosts, cause),) = found(**{host: seen("noise", first=300, last=310) for host in ("n3", "n4")})
    assert hosts == ("n4",) and "on the way from rank 0 on n1 to rank 3 on n4 or in the memory of n4" in cause


def test_wrong_on_one_rank_alone_accuses_that_one() -> None:
    """It has handed the right sum on, so it became wrong there."""
    ((_number, hosts, cause),) = found(n1=seen(first=0, last=9))
    assert hosts == ("n1",) and MISSING in cause and "chunk 0 of 4" in cause


def test_sums_that_are_wrong_in_different_ways_accuse_their_own_ranks() -> None:
    ((_number, hosts, _cause),) = found(
        **{host: seen("noise", digest=number, first=300, last=310) for number, host in enumerate(HOSTS)}
    )
    assert hosts == tuple(HOSTS)


def test_without_gloo_no_path_is_told() -> None:
    ((_number, hosts, cause),) = found("nccl", **{host: seen("noise", first=300, last=310) for host in ("n3", "n4")})
    assert hosts == ("n3", "n4") and "chunk" not in cause and "on the way" not in cause


def test_an_input_that_changed_in_memory_is_the_cause_of_all_wrong_sums_of_that_iteration() -> None:
    wrong = {host: seen("noise") for host in HOSTS}
    wrong["n2"] = seen("noise", input_changed=True)
    ((number, hosts, cause),) = found(**wrong)
    assert (number, hosts) == ("GC-DATA-002", ("n2",)) and "changed what rank 1 was about to send" in cause


def test_an_input_that_changed_explains_no_other_iteration() -> None:
    wrong = {"n2": seen("noise", input_changed=True), "n1": seen("noise", iteration=9)}
    assert [(number, hosts) for number, hosts, _cause in found(**wrong)] == [
        ("GC-DATA-002", ("n2",)),
        ("GC-DATA-001", ("n1",)),
    ]


def test_a_right_sum_beside_a_wrong_copy_is_the_memory_of_that_node() -> None:
    ((number, hosts, cause),) = found(n4=seen("noise", sum_is_right=True))
    assert (number, hosts) == ("GC-DATA-002", ("n4",)) and "changed the right sum" in cause


def test_what_was_told_at_once_counts_when_the_size_never_ended() -> None:
    table = ranks()
    table[0]["events"] = [dict(seen(), event="wrong", size_bytes=4096)]
    (one,) = ranks_data_findings.findings(table)
    assert one.id == "GC-DATA-001" and one.evidence == (
        "rank 0 on n1: 10 elements, 0 to 1023, 4096 bytes, iteration 3",
    )


def test_how_many_iterations_were_wrong_is_told() -> None:
    (one,) = ranks_data_findings.findings(ranks(n1=seen(iterations=4)))
    assert one.evidence[0].endswith("iteration 3, and 3 more iterations")


def test_two_sizes_with_the_same_trouble_are_one_finding() -> None:
    table = ranks(**{host: seen() for host in HOSTS})
    for rank in table:
        rank["events"].append({"event": "size", "size_bytes": 8192, "wrong": seen(iteration=5, last=2047)})
    (one,) = ranks_data_findings.findings(table)
    assert one.hosts == ("n3",) and len(one.evidence) == 8
