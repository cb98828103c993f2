# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which rank, node and collective a job waits for."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import why
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import hang
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.hang_ranks import Node, Suspect
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import hang_answer

TORCH = "/opt/torch/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


def stack(*frames: str) -> str:
    """As faulthandler writes it; a frame is ``function line`` of the training."""
    lines = [f'  File "{TORCH}", line 9 in {one}' for one in frames if " " not in one]
    lines += [f'  File "/data/train.py", line {one.split()[1]} in {one.split()[0]}' for one in frames if " " in one]
    return "\n".join(["Current thread 0x01 (most recent call first):", *lines, ""])


WAITS = stack("all_reduce", "<module> 13")
SLEEPS = stack("stuck 5", "<module> 9")


def collective(number: int, name: str = "all_reduce", size: int = 1000, *, done: bool = False, group: str = "0") -> Any:
    return {"group": group, "number": number, "name": name, "sizes": [[size]], "types": ["Float"], "done": done}


def a_rank(number: int, text: str = WAITS, *records: Any, size: int = 3, **more: Any) -> dict[str, Any]:
    return {
        "rank": number,
        "world_size": size,
        "pid": 100 + number,
        "command": "python -u train.py",
        "state": "S",
        "kernel": "do_epoll_wait",
        "cpu": 0.0,
        "stacks": [text, text],
        "records": list(records) or None,
        "moved": False,
        "groups": {},
        "unanswered": [],
        **more,
    }


def node(number: int, *ranks: Any, carrier: bool = True, ras: Any = ()) -> Node:
    """n1 has the first rank."""
    interface = {"name": "fab0", "state": "up" if carrier else "down", "carrier": carrier}
    answer = {"jobs": ["j"], "ranks": list(ranks), "interfaces": [interface], "ras": list(ras)}
    assert hang_answer.ANSWER(answer), answer
    return Node(f"n{number}", f"192.0.2.1{number}", answer)


def dark(number: int) -> Node:
    return Node(f"n{number}", f"192.0.2.1{number}", None, "ssh: connect to host 192.0.2.13 port 22: No route to host")


def first(*nodes: Node, ended: Any = ()) -> Suspect:
    return hang.judge(nodes, ended).suspects[0]


def three(*ranks: Any) -> list[Node]:
    return [node(one["rank"] + 1, one) for one in ranks]


@pytest.mark.parametrize("recorded", [True, False])
def test_a_rank_that_sleeps(recorded: bool) -> None:
    done, waits = ([collective(3, done=True)], [collective(3, done=True), collective(4)]) if recorded else ([], [])
    found = first(*three(a_rank(0, WAITS, *waits), a_rank(1, SLEEPS, *done), a_rank(2, WAITS, *waits)))
    assert (found.cause, found.host, found.rank) == ("STOPPED", "n2", 1)
    assert found.title == "rank 1 on n2 is in no collective: it stands in stuck (train.py:5), and 2 ranks wait for it"
    assert found.collective == ("all_reduce number 4" if recorded else "all_reduce")


def test_a_rank_that_calculates() -> None:
    found = first(*three(a_rank(0), a_rank(1), a_rank(2, SLEEPS, cpu=1.5)))
    assert "calculates in stuck" in found.title and found.rank == 2


@pytest.mark.parametrize("recorded", [True, False])
def test_a_rank_that_has_skipped_a_collective(recorded: bool) -> None:
    usual, other = ([collective(5)], [collective(5, "barrier")]) if recorded else ([], [])
    at_barrier = stack("barrier", "<module> 14")
    found = first(*three(a_rank(0, at_barrier, *other), a_rank(1, WAITS, *usual), a_rank(2, WAITS, *usual)))
    assert (found.cause, found.host, found.rank) == ("DISAGREE", "n1", 0)
    assert "barrier" in found.text and "train.py:14" in found.text and "skipped" in found.fix


def test_a_rank_with_another_size_that_has_gone_on() -> None:
    """Nothing to reduce: gloo lets it go on, to where it waits for those that wait for it."""
    odd = [collective(4, size=0, done=True), collective(5)]
    found = first(*three(a_rank(0, WAITS, collective(4)), a_rank(1, WAITS, *odd), a_rank(2, WAITS, collective(4))))
    assert (found.cause, found.host, found.rank) == ("DISAGREE", "n2", 1)
    assert "another size" in found.title and "0 Float" in found.text and "1000 Float" in found.text


def test_sizes_differ_where_they_may() -> None:
    """Of a scatter only the root has tensors."""
    ranks = [a_rank(number, WAITS, collective(4, "scatter", number)) for number in range(3)]
    assert first(*three(*ranks)).cause == "UNKNOWN"


def test_two_ranks_that_differ_are_both_named() -> None:
    ranks = [a_rank(0, WAITS, collective(4), size=2), a_rank(1, WAITS, collective(4, "barrier"), size=2)]
    found = first(*three(*ranks))
    assert found.cause == "DISAGREE" and found.rank is None and not found.host
    assert "rank 0 on n1" in found.title and "rank 1 on n2" in found.title


def test_a_node_that_does_not_answer() -> None:
    found = first(node(1, a_rank(0, WAITS, collective(4))), node(2, a_rank(1, WAITS, collective(4))), dark(3))
    assert (found.cause, found.host, found.rank) == ("INTERFACE", "n3", 2)
    assert found.title == "n3 does not answer on the data network: rank 2 runs there"
    assert found.collective == "all_reduce number 4" and "No route" in found.text


def test_a_node_without_ranks_of_the_job_may_be_silent() -> None:
    ranks = [a_rank(number, WAITS, collective(4), size=2) for number in range(2)]
    assert first(*three(*ranks), dark(3)).cause == "UNKNOWN"


def test_an_interface_without_a_link() -> None:
    ranks = [a_rank(number, WAITS, collective(4)) for number in range(3)]
    found = first(node(1, ranks[0]), node(2, ranks[1], carrier=False), node(3, ranks[2]))
    assert (found.cause, found.host, found.rank) == ("INTERFACE", "n2", 1) and "fab0" in found.title


def test_a_node_without_a_link_sees_itself() -> None:
    """It reaches nobody, but its own interface is the cause."""
    found = hang.judge([dark(1), dark(2), node(3, a_rank(2, WAITS, collective(4)), carrier=False)]).suspects
    assert [(one.cause, one.host) for one in found] == [("INTERFACE", "n3")]


def test_a_node_that_confirms_nothing() -> None:
    ranks = [a_rank(number, WAITS, collective(4)) for number in range(3)]
    ranks[0]["unanswered"] = ranks[1]["unanswered"] = ["192.0.2.13"]
    found = first(*three(*ranks))
    assert (found.cause, found.host, found.rank) == ("INTERFACE", "n3", 2)
    ranks[1]["unanswered"], ranks[2]["unanswered"] = [], ["192.0.2.11"]
    found = first(*three(*ranks))
    assert (found.cause, found.host) == ("BLOCKED", "")


def test_a_stopped_process_and_one_that_waits_for_storage() -> None:
    for state, cause in (("T", "STOPPED"), ("t", "STOPPED"), ("D", "FILES")):
        found = first(*three(a_rank(0), a_rank(1, SLEEPS, state=state, kernel="rpc_wait_bit_killable"), a_rank(2)))
        assert (found.cause, found.host, found.rank) == (cause, "n2", 1)


def test_a_rank_that_has_ended() -> None:
    found = first(node(1, a_rank(0)), node(2), node(3, a_rank(2)))
    assert (found.cause, found.rank) == ("STOPPED", 1) and "has ended" in found.title


def test_ranks_that_gave_up_are_not_missed() -> None:
    found = first(node(1), node(2, a_rank(1, SLEEPS)), node(3), ended=[0, 2])
    assert (found.cause, found.host, found.rank) == ("STOPPED", "n2", 1) and "2 ranks gave up" in found.title


def test_a_rank_that_gave_up_and_has_not_ended_yet_is_no_suspect() -> None:
    """Seen in the lab: the interpreter of rank 0 was ending and answered nothing."""
    suspects = hang.judge(three(a_rank(0, ""), a_rank(1, SLEEPS), a_rank(2, "")), ended=[0]).suspects
    assert [one.rank for one in suspects] == [1, 2] and suspects[0].text.startswith("its stack: stuck")


def test_groups_of_ranks() -> None:
    """Ranks 0 and 1 wait in their own group; 2 and 3 in another, for nobody but 3, which sleeps."""
    groups = {"tp0": [0, 1], "tp1": [2, 3]}
    ranks = [
        a_rank(0, WAITS, collective(7, group="dp"), size=4, groups={**groups, "dp": [0, 2]}),
        a_rank(1, WAITS, collective(9, group="dq"), size=4, groups={**groups, "dq": [1, 3]}),
        a_rank(2, WAITS, collective(5, group="tp1"), size=4, groups={**groups, "dp": [0, 2]}),
        a_rank(3, SLEEPS, collective(4, group="tp1", done=True), size=4, groups={**groups, "dq": [1, 3]}),
    ]
    found = hang.judge([node(one["rank"] + 1, one) for one in ranks]).suspects
    assert [one.rank for one in found] == [3]


def test_a_job_that_goes_on_does_not_hang() -> None:
    ranks = [a_rank(0, WAITS, collective(4), moved=True), a_rank(1, SLEEPS), a_rank(2, WAITS, collective(4))]
    found = hang.judge(three(*ranks))
    assert not found.suspects and found.notes[0].startswith("no hang: rank 0 on n1 has gone on")


def test_no_rank_waits() -> None:
    found = hang.judge(three(*(a_rank(number, SLEEPS) for number in range(3))))
    assert not found.suspects and found.notes[1] == "ranks 0, 1, 2: stuck (train.py:5)"


def test_the_answer_of_nccl_is_shown() -> None:
    found = hang.judge([node(1, a_rank(0), ras=["#0-0 (01) MISMATCH", "2 ranks have launched", "a third line"])])
    assert found.notes == ["NCCL on n1: #0-0 (01) MISMATCH", "NCCL on n1: 2 ranks have launched"]


def test_whatever_a_node_answers_is_judged_and_printable() -> None:
    """Any mixture that has the shape; at most eight lines of at most so many characters."""
    rng = random.Random(37)
    texts = [WAITS, SLEEPS, "", "\x1b[31m" + WAITS, stack("barrier", "f\u202e 3"), stack("x" * 5000, "y 1")]
    names = ["all_reduce", "barrier", "", "\x1b[2J" * 60, "scatter"]
    for _once in range(400):
        ranks = []
        for _rank in range(rng.randrange(5)):
            records = [
                collective(
                    rng.randrange(4),
                    rng.choice(names),
                    rng.randrange(2),
                    done=rng.random() < 0.5,
                    group=rng.choice("ab"),
                )
                for _record in range(rng.randrange(5))
            ]
            more = {
                "state": rng.choice(["S", "R", "D", "T", "", "\x1b"]),
                "moved": rng.random() < 0.3,
                "groups": rng.choice([{}, {"a": [0, 1]}, {"b": []}]),
                "unanswered": rng.choice([[], ["192.0.2.11"], ["192.0.2.99", "\x1b"]]),
                "stacks": rng.choice([[], [""], [rng.choice(texts), rng.choice(texts)]]),
            }
            ranks.append(a_rank(rng.randrange(6), "", *records, size=rng.choice([0, *[3] * 6, 1 << 40]), **more))
        nodes = [node(1, *ranks, carrier=rng.random() < 0.5, ras=["\x1b[1m"])] + [dark(2)] * rng.randrange(2)
        for line in (lines := why.text(hang.judge(nodes, range(rng.randrange(3)))).splitlines()):
            assert line.isprintable() and len(line) <= why.MOST_CHARACTERS + 10
        assert 1 <= len(lines) <= why.MOST_LINES
