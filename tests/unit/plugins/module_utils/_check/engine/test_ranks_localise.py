# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the modules returned to rounds of pairs: whether there are any, what they run, and what came of them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import ranks_localise

HOSTS = ["n1", "n2", "n3", "n4", "n5"]
PLAN = {"hosts": HOSTS, "ranks": {host: [number] for number, host in enumerate(HOSTS)}, "world_size": len(HOSTS)}
MIB = 1 << 20
SIZES = [4096, MIB]
READY = {"event": "ready", "torch": "2.13.0+cpu", "seconds": 2.5}
JOINED = {"event": "joined"}
DONE = {"event": "done"}
NO_ANSWER = {"event": "error", "text": "RuntimeError: Timed out waiting 8000ms for recv operation to complete"}
WRONG = {"iteration": 2, "explanation": "the contribution of rank 1 is missing", "elements": 5, "first": 0, "last": 4}


def size(size_bytes: int, wrong: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"event": "size", "size_bytes": size_bytes, "seconds": [0.01, 0.02, 0.03], "checked": 5, "wrong": wrong}


FINE = (READY, JOINED, size(4096), size(MIB), DONE)
VICTIM = (READY, JOINED, size(4096), NO_ANSWER)
HANGS = (READY, JOINED, size(4096))


def answer(*events: dict[str, Any], state: str = "finished", exit_code: int = 0, run_id: str = "r") -> dict[str, Any]:
    rank = {"local_rank": 0, "events": list(events), "exit_code": exit_code, "process_state": "", "stderr_tail": ""}
    return {"state": state, "hostname": "h", "run_id": run_id, "ranks": [rank]}


def hung(run_id: str = "r") -> dict[str, Any]:
    return answer(*HANGS, state="deadline", exit_code=-9, run_id=run_id)


def at_work(*, seconds_ago: float = 0.2, run_id: str = "r") -> dict[str, Any]:
    """The node of rank 0 of a pair that was killed in the middle of its work."""
    note = {"size_bytes": MIB, "number": 2, "of": 2, "iterations": 3, "at_most": 65}
    told = {**note, "seconds_ago": seconds_ago, "deadline_seconds": 17, "timeout_seconds": 8}
    return {**hung(run_id), "progress_note": told}


def one_hangs(name: str = "n3") -> dict[str, Any]:
    return {host: hung() if host == name else answer(*VICTIM, exit_code=1) for host in HOSTS}


def launch(*hosts: str) -> dict[str, Any]:
    return {
        host: {
            "state": "waiting",
            "address": f"192.0.2.1{host[1:]}",
            "ports": [{"range": "rendezvous", "port": 29500 + int(host[1:])}, {"range": "ephemeral", "port": 40000}],
        }
        for host in hosts or HOSTS
    }


def begin(collect: dict[str, Any], plan: dict[str, Any] | None = None) -> dict[str, Any]:
    return ranks_localise.begin(PLAN if plan is None else plan, collect, SIZES, 40)


def test_no_pairs_where_all_went_well() -> None:
    state = begin({host: answer(*FINE) for host in HOSTS})
    assert state["next"]["pairs"] == [] and state["rounds"] == []


def test_no_pairs_where_a_program_breaks_after_its_work() -> None:
    """Its sums were right: in pairs it would do the same, and that accuses no node."""
    state = begin({host: answer(*FINE, exit_code=-11 if host == "n2" else 0) for host in HOSTS})
    assert state["next"]["pairs"] == []
    state = ranks_localise.after(
        begin(one_hangs()), launch(), {"n1": answer(*FINE), "n3": answer(*FINE, exit_code=5)}, "r"
    )
    assert state["rounds"][0]["pairs"][0]["result"] == "passed"


def test_a_rank_that_hangs_is_looked_for_among_all() -> None:
    state = begin(one_hangs())
    assert state["next"] == {"number": 1, "name": "all nodes", "pairs": [["n1", "n3"], ["n2", "n4"]]}
    assert state["named"] is True
    # 4 KiB went well, 1 MiB did not; PyTorch took 2.5 s and may take twice as long.
    assert state["sizes_bytes"] == SIZES and state["deadline_seconds"] == 12 + 5 and state["iterations"] == 20


def test_wrong_sums_are_looked_for_at_their_size() -> None:
    events = (READY, JOINED, size(4096), size(MIB, WRONG), DONE)
    state = ranks_localise.begin(PLAN, {host: answer(*events) for host in HOSTS}, [4096, 65536, MIB, 16 * MIB], 40)
    assert state["next"]["pairs"] and state["sizes_bytes"] == SIZES


def test_a_large_size_does_not_make_the_rounds_long() -> None:
    state = ranks_localise.begin(PLAN, {host: answer(READY, JOINED, NO_ANSWER) for host in HOSTS}, [1 << 30], 15)
    assert state["sizes_bytes"] == [1 << 26]
    assert state["deadline_seconds"] == 15 and state["iterations"] == 4


@pytest.mark.parametrize(
    "collect",
    [
        {**one_hangs(), "n5": {"unreachable": True, "msg": "Connection timed out"}},
        {**one_hangs(), "n5": {"state": "died", "error": "killed", "ranks": []}},
        {host: one_hangs()[host] for host in HOSTS[:4]},
        {},
    ],
)
def test_no_pairs_where_a_node_was_lost(collect: dict[str, Any]) -> None:
    """It explains what went wrong, and has its finding."""
    assert begin(collect)["next"]["pairs"] == []


def test_no_pairs_where_a_rank_says_itself_what_it_lacks() -> None:
    own = {"event": "error", "text": "OSError: [Errno 24] Too many open files"}
    collect = {host: answer(*VICTIM, exit_code=1) for host in HOSTS}
    state = begin({**collect, "n2": answer(READY, own, exit_code=1)})
    assert state["next"]["pairs"] == []


@pytest.mark.parametrize("plan", [{}, {"hosts": [], "ranks": {}, "world_size": 0}])
def test_no_pairs_where_nobody_took_part(plan: dict[str, Any]) -> None:
    assert begin({}, plan)["next"]["pairs"] == []


def test_no_pairs_where_the_ranks_were_only_slow() -> None:
    """Each pair would do what all together did: move data, slowly."""
    collect = {host: hung() for host in HOSTS}
    assert begin(collect)["next"]["pairs"]
    collect["n1"] = at_work()
    assert begin(collect)["next"]["pairs"] == []
    # Wrong sums are another matter: they are looked for.
    wrong = {"event": "wrong", "size_bytes": 4096, **WRONG}
    for host in HOSTS:
        collect[host]["ranks"][0]["events"].append(wrong)
    assert begin(collect)["next"]["pairs"]


def test_two_nodes_are_a_pair_already() -> None:
    two = {"hosts": HOSTS[:2], "ranks": {"n1": [0], "n2": [1]}, "world_size": 2}
    assert begin({"n1": answer(*VICTIM, exit_code=1), "n2": hung()}, two)["next"]["pairs"] == []


def test_each_pair_has_a_world_of_its_own() -> None:
    jobs = ranks_localise.jobs(begin(one_hangs()), launch(), 2)
    assert sorted(jobs) == ["n1", "n2", "n3", "n4"]
    assert jobs["n1"] == {
        "ranks": [0, 1],
        "world_size": 4,
        "master_address": "192.0.2.11",
        "master_port": 29501,
    }
    assert jobs["n3"] == dict(jobs["n1"], ranks=[2, 3])
    assert jobs["n4"]["master_address"] == "192.0.2.12"


def test_nobody_waits_for_a_partner_that_did_not_start() -> None:
    jobs = ranks_localise.jobs(begin(one_hangs()), launch("n1", "n2", "n4"), 1)
    assert sorted(jobs) == ["n2", "n4"]


def test_rounds_go_on_until_the_culprit_is_known() -> None:
    state = begin(one_hangs())
    ids = []
    while state["next"]["pairs"]:
        ids.append(run_id := f"p{state['next']['number']}")
        collect = {
            host: (hung(run_id) if "n3" in pair and host == "n3" else answer(*VICTIM, exit_code=1, run_id=run_id))
            if "n3" in pair
            else answer(*FINE, run_id=run_id)
            for pair in state["next"]["pairs"]
            for host in pair
        }
        state = ranks_localise.after(state, launch(), collect, run_id)
    assert ids == ["p1", "p2", "p3"]
    failed = [one for each in state["rounds"] for one in each["pairs"] if one["result"] == "failed"]
    assert len(failed) == 2 and all("n3" in one["nodes"] for one in failed)
    assert "n3: no word, last event size, ended with -9" in failed[0]["why"]
    assert "n1: RuntimeError: Timed out waiting" in failed[0]["why"]


@pytest.mark.parametrize(
    ("n3", "why"),
    [
        (
            answer(READY, JOINED, {"event": "wrong", "size_bytes": MIB, **WRONG}),
            "wrong sum of 1048576 bytes: the contr",
        ),
        (answer(READY, JOINED, size(MIB, WRONG), DONE), "wrong sum of 1048576 bytes: the contribution of rank 1"),
        (answer(READY, JOINED, exit_code=-11), "no word, last event joined, ended with -11"),
    ],
)
def test_what_failed_on_a_node_is_told(n3: dict[str, Any], why: str) -> None:
    state = ranks_localise.after(begin(one_hangs()), launch(), {"n1": answer(*FINE), "n3": n3}, "r")
    first = state["rounds"][0]["pairs"][0]
    assert first["result"] == "failed" and first["why"].startswith(f"n3: {why}")


def test_a_pair_that_was_only_slow_did_not_fail() -> None:
    """It is neither for nor against its nodes, and is not tried again."""
    state = ranks_localise.after(begin(one_hangs()), launch(), {"n1": at_work(), "n3": hung()}, "r")
    first = state["rounds"][0]["pairs"][0]
    assert (first["nodes"], first["result"], first["lost"]) == (["n1", "n3"], "slow", [])
    assert first["why"].startswith("n1: no word, last event size")
    assert ["n1", "n3"] not in state["next"]["pairs"]


@pytest.mark.parametrize(
    ("n1", "n3"),
    [
        (at_work(seconds_ago=5.0), hung()),
        (at_work(), answer(READY, state="deadline", exit_code=-9)),
        (at_work(), {"state": "failed", "error": "no rank was started", "run_id": "r"}),
        (at_work(), answer(*HANGS, {"event": "wrong", "size_bytes": MIB, **WRONG}, state="deadline")),
        (hung(), hung()),
    ],
    ids=["no progress", "never joined", "not started", "wrong sums", "nothing known"],
)
def test_a_pair_of_which_more_is_known_failed(n1: dict[str, Any], n3: dict[str, Any]) -> None:
    other_pair = {"n2": at_work(), "n4": hung()}
    state = ranks_localise.after(begin(one_hangs()), launch(), {"n1": n1, "n3": n3, **other_pair}, "r")
    assert [one["result"] for one in state["rounds"][0]["pairs"]] == ["failed", "slow"]


@pytest.mark.parametrize(
    ("collect", "launched", "lost", "why"),
    [
        ({"n1": answer(*FINE)}, launch(), ["n3"], "n3 gave no answer"),
        ({"n1": answer(*FINE), "n3": answer(*FINE, run_id="earlier")}, launch(), ["n3"], "n3 gave no answer"),
        ({"n1": answer(*FINE), "n3": answer(*FINE, state="running")}, launch(), ["n3"], "n3 gave no answer"),
        (
            {"n1": hung(), "n3": {"state": "died", "error": "out of memory", "run_id": "r"}},
            launch(),
            ["n3"],
            "n3: its worker ended in the middle of its work",
        ),
        (
            {"n1": answer(READY, state="waiting")},
            {**launch("n1", "n2", "n4"), "n3": {"state": "failed", "error": "no space is left"}},
            ["n3"],
            "n3 could not start: no space is left",
        ),
    ],
)
def test_a_node_without_an_answer_tells_nothing_of_its_partner(
    collect: dict[str, Any], launched: dict[str, Any], lost: list[str], why: str
) -> None:
    fine = {host: answer(*FINE) for host in ("n2", "n4")}
    state = ranks_localise.after(begin(one_hangs()), launched, {**fine, **collect}, "r")
    assert state["rounds"][0]["pairs"][0] == {"nodes": ["n1", "n3"], "result": "lost", "why": why, "lost": lost}
    assert ["n1", "n2"] in state["next"]["pairs"] and "n3" not in str(state["next"])
