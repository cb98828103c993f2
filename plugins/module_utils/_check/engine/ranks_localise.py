# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the ranks of a run leave open who is at fault, and the rounds of pairs that find out.  Pure.

The state between two rounds is one dict, which the tasks of the role hand from filter to filter:

* ``hosts``: who takes part, in rank order.  ``named``: whether the ranks have named somebody, not only
  the other end of a connection.
* ``sizes_bytes``, ``iterations`` of each and ``deadline_seconds`` of a round.
* ``died``: host whose worker ended in the middle of a round to the result that says so.
* ``rounds``: each with its ``name`` and ``pairs`` (``nodes``, ``result``, ``why``, ``lost``; see pairs.Tried).
* ``next``: the pairs of the next round, ``name`` and ``number`` of that; no pairs when there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    ranks_findings,
    ranks_pairs,
    ranks_results,
    ranks_slow,
    unfinished_ranks,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ranks_pairs import (
    FAILED,
    LOST,
    PASSED,
    SLOW,
    Labels,
    Tried,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import worker_state

Results = Mapping[str, Mapping[str, Any]]
State = dict[str, Any]

#: Wrong sums.
WRONG = "GC-DATA-001"
#: Findings that accuse by what others saw: a pair of nodes says more than they do.
INDIRECT = (WRONG, unfinished_ranks.SUMMARY, causes.BLOCKED, causes.STOPPED)
#: Those that name the peers of a connection that broke, which may be victims.
WEAK = (causes.BLOCKED, causes.STOPPED)
#: Sizes that went wrong are tried again up to this one, or every round would last.
MOST_BYTES = 1 << 26
#: Iterations of the larger size: enough to move ``ROUND_BYTES``, within these bounds.
ITERATIONS = (4, 20)
ROUND_BYTES = 1 << 25
#: A pair of nodes has nothing to wait for but each other, and PyTorch.
PAIR_SECONDS = 12
#: How much longer PyTorch may take than it took the slowest rank, while the others did the same.
IMPORT_TIMES = 2
WHY_CHARACTERS = 200


def begin(
    the_plan: Mapping[str, Any],
    collect: Results,
    sizes_bytes: Sequence[int],
    deadline_seconds: int,
    labels: Labels | None = None,
) -> State:
    """The state before the first round; with no next pairs where pairs would tell nothing new.

    the_plan: what ``plan.make_plan`` returned, or nothing.  collect: host to the answer to the step collect.
    sizes_bytes and deadline_seconds: those of the run, which no round exceeds.
    """
    hosts = list(the_plan.get("hosts", []))
    state: State = {
        "hosts": hosts,
        "named": False,
        "sizes_bytes": [],
        "iterations": 0,
        "deadline_seconds": 0,
        "died": {},
        "rounds": [],
    }
    if len(hosts) > 2 and all(collect.get(host, {}).get("state") in worker_state.ENDED for host in hosts):
        ranks = ranks_results.table(the_plan, collect)
        if not all(passed(rank) for rank in ranks):
            errors = _errors(the_plan, collect)
            state["named"] = any(one.hosts for one in errors if one.id not in WEAK)
            state["sizes_bytes"] = _sizes(ranks, sizes_bytes)
            least, most = ITERATIONS
            state["iterations"] = max(least, min(most, ROUND_BYTES // state["sizes_bytes"][-1]))
            state["deadline_seconds"] = _deadline(ranks, deadline_seconds)
            if _is_open(errors):
                return _with_next(state, labels or {})
    return dict(state, next={"number": 0, "name": "", "pairs": []})


def passed(rank: Mapping[str, Any]) -> bool:
    """Whether a rank did all its work, with right sums only.  How its program ends after that is no fault of nodes."""
    return bool(ranks_results.events(rank, "done")) and not _is_wrong(rank)


def _is_wrong(rank: Mapping[str, Any]) -> bool:
    return bool(ranks_results.events(rank, "wrong")) or any(one["wrong"] for one in ranks_results.events(rank, "size"))


def _errors(the_plan: Mapping[str, Any], collect: Results) -> list[Finding]:
    found = ranks_findings.findings(the_plan, collect, {}, []).findings
    return [one for one in found if one.severity == ERROR]


def _is_open(errors: Sequence[Finding]) -> bool:
    """Whether nobody was named, or somebody by what others saw: a rank that says itself what it lacks needs no pairs.

    What nobody explains is open too, and so are wrong sums, which hardly ever come from where they are seen.  Ranks
    that were only slow are not: in pairs they would do what they did.
    """
    found = {one.id for one in errors}
    if WRONG in found or ranks_slow.SLOW_ID in found:
        return WRONG in found
    named = [one for one in errors if one.hosts]
    return not named or any(one.id in INDIRECT for one in named)


def _sizes(ranks: Sequence[Mapping[str, Any]], sizes_bytes: Sequence[int]) -> list[int]:
    """The smallest size that went wrong or was not finished, and the smallest of all."""
    wrong = {
        event["size_bytes"]
        for rank in ranks
        for event in rank["events"]
        if event["event"] == "wrong" or (event["event"] == "size" and event["wrong"])
    }
    finished = [{event["size_bytes"] for event in ranks_results.events(rank, "size")} for rank in ranks]
    known = [max(1, size // 4) * 4 for size in sizes_bytes]
    left = wrong or {size for size in known if not all(size in done for done in finished)}
    return sorted({min(MOST_BYTES, *few) for few in (known, left or known)})


def _deadline(ranks: Sequence[Mapping[str, Any]], most: int) -> int:
    slowest = max(
        (event.get("seconds", most) for rank in ranks for event in ranks_results.events(rank, "ready")), default=most
    )
    return min(most, PAIR_SECONDS + math.ceil(IMPORT_TIMES * slowest))


def _with_next(state: State, labels: Labels) -> State:
    step = ranks_pairs.next_round(state["hosts"], tried(state), labels, state["named"])
    found = [list(pair) for pair in step.pairs] if step else []
    return dict(state, next={"number": len(state["rounds"]) + 1, "name": step.name if step else "", "pairs": found})


def tried(state: Mapping[str, Any]) -> list[list[Tried]]:
    """The rounds of a state, as pairs.py takes them."""
    return [
        [
            Tried((one["nodes"][0], one["nodes"][1]), one["result"], one["why"], tuple(one["lost"]))
            for one in each["pairs"]
        ]
        for each in state.get("rounds", [])
    ]


def jobs(state: Mapping[str, Any], launch: Results, ranks_per_node: int) -> dict[str, dict[str, Any]]:
    """Host to what it is told to run: ``ranks``, ``world_size``, ``master_address`` and ``master_port``.

    launch: host to the answer to the step launch of this round.  Of a pair with a node whose worker does not listen
    nobody runs anything.
    """
    found = {}
    for pair in state["next"]["pairs"]:
        if not all(_listens(launch, host) for host in pair):
            continue
        first = launch[pair[0]]
        port = next(one["port"] for one in first["ports"] if one["range"] == "rendezvous")
        for number, host in enumerate(pair):
            found[host] = {
                "ranks": list(range(number * ranks_per_node, (number + 1) * ranks_per_node)),
                "world_size": 2 * ranks_per_node,
                "master_address": first["address"],
                "master_port": port,
            }
    return found


def _listens(launch: Results, host: str) -> bool:
    return launch.get(host, {}).get("state") == "waiting"


def after(state: State, launch: Results, collect: Results, run_id: str, labels: Labels | None = None) -> State:
    """The state after a round.

    collect: host to the answer to the step collect.  run_id: that of this round; a result of another one is that of
    a host that has given no answer since.
    """
    answers = {host: result for host, result in collect.items() if result.get("run_id") == run_id}
    done = [_outcome(pair, launch, answers) for pair in state["next"]["pairs"]]
    now = {"name": state["next"]["name"], "pairs": done}
    died = {host: answer for host, answer in answers.items() if answer["state"] == worker_state.DIED}
    return _with_next(dict(state, rounds=[*state["rounds"], now], died={**state["died"], **died}), labels or {})


def _outcome(pair: Sequence[str], launch: Results, answers: Results) -> dict[str, Any]:
    """How one pair ended."""
    lost = {host: _lost(host, launch, answers) for host in pair if not _listens(launch, host)}
    if not lost:
        gone = [host for host in pair if answers.get(host, {}).get("state") not in worker_state.ENDED]
        lost = {host: _lost(host, launch, answers) for host in gone}
    if lost:
        return {"nodes": list(pair), "result": LOST, "why": "; ".join(lost.values()), "lost": list(lost)}
    said = [_said(host, answers[host]) for host in pair]
    why = "; ".join(one for one in said if one)
    result = (SLOW if _is_slow(pair, answers) else FAILED) if why else PASSED
    return {"nodes": list(pair), "result": result, "why": why, "lost": []}


def _is_slow(pair: Sequence[str], answers: Results) -> bool:
    """Whether both nodes were at work when their time was over, and with right sums until then."""
    own = {host: answers[host] for host in pair}
    local = {host: [one["local_rank"] for one in answer.get("ranks", [])] for host, answer in own.items()}
    ranks = ranks_results.table({"hosts": pair, "ranks": local}, own)
    fine = all(local.values()) and not any(_is_wrong(rank) for rank in ranks)
    return fine and ranks_slow.at_work(own, ranks) is not None


def _lost(host: str, launch: Results, answers: Results) -> str:
    error = str(launch.get(host, {}).get("error", "")).strip().splitlines()
    if not _listens(launch, host) and error:
        return f"{host} could not start: {error[0][:WHY_CHARACTERS]}"
    if answers.get(host, {}).get("state") == worker_state.EXPIRED:
        return f"{host}: {answers[host]['error'][:WHY_CHARACTERS]}"
    if answers.get(host, {}).get("state") == worker_state.DIED:
        return f"{host}: its worker ended in the middle of its work"
    return f"{host} gave no answer"


def _said(host: str, answer: Mapping[str, Any]) -> str:
    """What went wrong on a node, in words; empty when nothing did."""
    ranks = answer.get("ranks", [])
    if not ranks:
        return f"{host}: {str(answer.get('error', 'no rank was started'))[:WHY_CHARACTERS]}"
    return next((f"{host}: {_trouble(rank)}" for rank in ranks if not passed(rank)), "")


def _trouble(rank: Mapping[str, Any]) -> str:
    """Why a rank did not pass."""
    for event in rank["events"]:
        seen = event if event["event"] == "wrong" else event.get("wrong") if event["event"] == "size" else None
        if seen:
            return f"wrong sum of {event['size_bytes']} bytes: {seen['explanation']}"
    for event in ranks_results.events(rank, "error"):
        return str(event["text"])[:WHY_CHARACTERS]
    last = rank["events"][-1]["event"] if rank["events"] else "nothing"
    return f"no word, last event {last}, ended with {rank['exit_code']}"
