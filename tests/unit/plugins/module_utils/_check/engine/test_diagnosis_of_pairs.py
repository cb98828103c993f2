# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run with rounds of pairs, from what the nodes answer to the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    diagnosis,
    plan,
    ranks_localise,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import Report
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import NO_JOB
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import compact, console, schema

HOSTS = ["n1", "n2", "n3", "n4", "n5"]
SIZE = {"event": "size", "size_bytes": 4096, "seconds": [0.01, 0.02, 0.03], "checked": 5, "wrong": None}
BEGINNING = [{"event": "ready", "torch": "2.13.0+cpu", "seconds": 2.0}, {"event": "store"}, {"event": "joined"}]
TEXT = "RuntimeError: [unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation to complete"

Fails = Callable[[str, str], bool]


def answer(run_id: str, *events: dict[str, Any], killed: bool = False) -> dict[str, Any]:
    exit_code = -9 if killed else 0
    rank = {
        "local_rank": 0,
        "events": [*BEGINNING, *events],
        "exit_code": exit_code,
        "process_state": "",
        "stderr_tail": "",
    }
    moved = {"rx_bytes": 10**8, "tx_bytes": 10**8}
    state = "deadline" if killed else "finished"
    return {"state": state, "hostname": "h", "run_id": run_id, "ranks": [rank], "interface_bytes": moved}


def fine(run_id: str) -> dict[str, Any]:
    return answer(run_id, SIZE, {"event": "done"})


def victim(run_id: str) -> dict[str, Any]:
    return answer(run_id, {"event": "error", "text": TEXT})


def judged(
    main: dict[str, Any], fails: Fails, lost: str = "", without_job: tuple[str, ...] = (), died: str = ""
) -> tuple[Report, int]:
    """The report of a run whose pairs go wrong as told, and how many rounds there were.

    lost: who never answers.  without_job: whose workers get no job in their time.  died: whose worker ends in the first
    round, and in no other.
    """
    launch = {
        host: {
            "state": "waiting",
            "address": f"192.0.2.1{host[1:]}",
            "ports": [{"range": "rendezvous", "port": 29500}],
            "hostname": host,
        }
        for host in HOSTS
    }
    probe = {
        host: {"links": [{"host": peer, "failures": [], "probes": 1} for peer in HOSTS if peer != host]}
        for host in HOSTS
    }
    made = plan.make_plan(HOSTS, launch, probe, 1)
    state = ranks_localise.begin(made, main, [4096, 65536], 40)
    rounds = 0
    while state["next"]["pairs"]:
        rounds += 1
        run_id = f"r-p{state['next']['number']}"
        jobs = ranks_localise.jobs(state, launch, 1)
        assert sorted(jobs) == sorted(host for pair in state["next"]["pairs"] for host in pair)
        collect = {
            host: victim(run_id) if fails(*pair) else fine(run_id)
            for pair in state["next"]["pairs"]
            for host in pair
            if host != lost
        }
        over = {"state": "expired", "run_id": run_id, "error": f"{NO_JOB} 60 s"}
        collect.update({host: over for host in collect if host in without_job})
        if died and rounds == 1:
            collect[died] = {"state": "died", "run_id": run_id, "error": "the worker ended with -9"}
        state = ranks_localise.after(state, launch, collect, run_id)
    run = Run(
        run_id="r",
        backend="gloo",
        members=HOSTS,
        selected=HOSTS,
        plan=made,
        launch=launch,
        probe=probe,
        go={host: {"started": True} for host in HOSTS},
        collect=main,
        pairs=state,
    )
    report = diagnosis.diagnose(run)
    written = json.loads(json.dumps(compact.pack(report.as_dict())))
    assert list(schema.violations(written)) == []
    return report, rounds


def one_silent(name: str) -> dict[str, Any]:
    return {host: answer("r", killed=True) if host == name else victim("r") for host in HOSTS}


def test_a_healthy_run_has_no_rounds() -> None:
    report, rounds = judged({host: fine("r") for host in HOSTS}, lambda one, other: False)
    assert report.verdict == "PASSED" and rounds == 0 and report.rounds == []
    assert "pairs of nodes:" not in list(console.lines(report.as_dict()))


def test_pairs_confirm_whom_the_ranks_have_named() -> None:
    report, rounds = judged(one_silent("n4"), lambda one, other: "n4" in (one, other))
    assert list(report.culprits) == ["n4"] and rounds == 3
    assert report.headline.startswith("FAILED: the all_reduce goes wrong on n4 with every partner")
    text = list(console.lines(report.as_dict()))
    assert "pairs of nodes:" in text
    assert "  round 1, all nodes: 1 of 2 passed; n2 with n4 failed" in text


def test_pairs_acquit_whom_the_ranks_have_named() -> None:
    """The rank of n4 fell silent, because n2 hangs in every collective."""
    report, _rounds = judged(one_silent("n4"), lambda one, other: "n2" in (one, other))
    assert list(report.culprits) == ["n2"]


def test_pairs_name_somebody_when_the_ranks_name_nobody() -> None:
    report, _rounds = judged({host: victim("r") for host in HOSTS}, lambda one, other: {one, other} == {"n2", "n3"})
    assert sorted(report.culprits) == ["n2", "n3"]
    (found,) = [one for one in report.findings if one.id == "GC-RUN-005"]
    assert found.about.nodes == ("n2", "n3") and found.reproduce.endswith("--limit n2,n3")


def test_what_does_not_happen_again_leaves_the_verdict_as_it_was() -> None:
    report, rounds = judged(one_silent("n4"), lambda one, other: False)
    assert list(report.culprits) == ["n4"] and rounds == 2
    assert any("did not happen again in 3 pairs of nodes" in note for note in report.notes)


def test_a_node_that_is_lost_in_a_round_is_named() -> None:
    report, _rounds = judged(one_silent("n4"), lambda one, other: "n4" in (one, other), lost="n1")
    assert sorted(report.culprits) == ["n1", "n4"]
    assert "n1 gave no answer to the step 'pairs'" in report.culprits["n1"]


def test_a_controller_that_was_away_in_a_round_accuses_nobody() -> None:
    report, rounds = judged(one_silent("n4"), lambda one, other: False, without_job=tuple(HOSTS))
    assert list(report.culprits) == ["n4"] and rounds == 1
    (found,) = [one for one in report.findings if one.id.startswith("GC-HOST-")]
    assert (found.id, found.hosts) == (
        "GC-HOST-002",
        (),
    )
    assert found.cause == "the check could not go on on n1, n2, n3, n4: no job came from the controller within 60 s"


def test_a_worker_that_dies_in_a_round_is_named_and_its_partner_is_judged_by_others() -> None:
    report, _rounds = judged(one_silent("n4"), lambda one, other: "n4" in (one, other), died="n2")
    assert sorted(report.culprits) == ["n2", "n4"]
    found = {one.id: one for one in report.findings}
    assert found["GC-HOST-005"].hosts == ("n2",) and found["GC-HOST-005"].evidence == ("the worker ended with -9",)
    assert found["GC-RUN-005"].hosts == ("n4",) and "GC-HOST-001" not in found
    (with_n2,) = [one for each in report.rounds for one in each["pairs"] if "n2" in one["nodes"]]
    assert with_n2["result"] == "lost" and with_n2["why"] == "n2: its worker ended in the middle of its work"
