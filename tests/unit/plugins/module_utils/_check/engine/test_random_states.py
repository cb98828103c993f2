# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever the user of the ranks writes into the files of a run, the reader or a judge takes it: nobody raises.

The states are drawn by lot around a true one.  A failure prints the seed of its state.
"""

from __future__ import annotations

import copy
import json
import random
import time
from typing import Any

import pytest
from random_answers import TIMES, spoiled

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    diagnosis,
    mpi_plan,
    plan,
    ranks_localise,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_answer, worker_state
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    compact,
    console,
    files,
    progress,
    schema,
)

HOSTS = ["n1", "n2", "n3"]
STATES_OF_A_TEST = 60 * TIMES
PORTS = [{"range": "rendezvous", "port": 29500}, {"range": "ephemeral", "port": 40000}]
LOOK = {
    "iteration": 3,
    "elements": 7,
    "first": 0,
    "last": 9,
    "explanation": "bit 3 of one element is flipped",
    "digest": 77,
    "input_changed": False,
    "sum_is_right": True,
}
EVENTS: list[dict[str, Any]] = [
    {"event": "torch", "path": "/opt/site/torch.py", "package": False, "instead_of": ""},
    {"event": "ready", "torch": "2.13.0+cpu", "code": ["sm_90"], "seconds": 2.5},
    {"event": "late", "seconds": 1.0},
    {"event": "gpu"},
    {"event": "store"},
    {"event": "keys", "missing": [1], "addresses": {"0": ["198.18.20.11", 41000]}},
    {"event": "joined"},
    {"event": "inside", "size_bytes": 4096, "seconds": [0.01, 0.02], "wrong": None},
    {"event": "wrong", "size_bytes": 4096, **LOOK},
    {
        "event": "size",
        "size_bytes": 4096,
        "seconds": [0.01, 0.02],
        "checked": 2,
        "settled": True,
        "wrong": {**LOOK, "iterations": 4, "more": [[3, 77], [4, 78]]},
    },
    {"event": "size", "size_bytes": 1048576, "seconds": [0.1, 0.2], "checked": 2, "settled": True, "wrong": None},
    {"event": "plateau", "size_bytes": 1048576, "left_out": 1},
    {"event": "no_time", "size_bytes": 4194304, "left_out": 1, "needed_seconds": 9.5, "left_seconds": 1.5},
    {"event": "output", "text": "hello"},
    {"event": "error", "text": "RuntimeError: Timed out waiting 8000ms for recv", "where": ["rank.py 12 in step"]},
    {"event": "done"},
]
START = {
    "variables": [{"name": "PYTHONPATH", "value": "/opt/site", "source": "/etc/environment"}],
    "shadows": [{"module": "random", "path": "/opt/site/random.py"}],
}
HOW_FAR = {
    "backend": "gloo",
    "seconds_ago": 0.5,
    "deadline_seconds": 60,
    "timeout_seconds": 10,
    "size_bytes": 4096,
    "number": 1,
    "of": 3,
    "iterations": 5,
    "at_most": 20,
}
LINK = {
    "host": "n2",
    "probes": 2,
    "milliseconds": 0.1,
    "bytes_per_second": 10**9,
    "retransmits": 0,
    "failures": [{"port": 40000, "range": "ephemeral", "result": "timeout", "milliseconds": 3000.0}],
    "blocked": [{"first": 40000, "last": 40001, "result": "timeout"}],
    "searched": [[40000, 50000]],
    "unheard": [40000],
    "requests": {"sent": 20, "lost": 5, "worst_milliseconds": 1030.5},
}


def a_state(chance: random.Random) -> dict[str, Any]:
    """A true state of one rank or two, which wrote some of its events."""
    ranks = []
    for local_rank in range(chance.randint(1, 2)):
        events = [dict(copy.deepcopy(one), at=1.5) for one in EVENTS if chance.random() < 0.6]
        for one in events:
            if one["event"] == "output":
                del one["at"]
        ranks.append(
            {
                "local_rank": local_rank,
                "events": events,
                "exit_code": chance.choice([0, 1, -9, None]),
                "process_state": chance.choice(["", "T", "D"]),
                "stderr_tail": chance.choice(["", "RuntimeError: Connection reset by peer"]),
            }
        )
        if chance.random() < 0.5:
            ranks[-1]["start"] = copy.deepcopy(START)
    return {
        "state": chance.choice(["finished", "deadline", "deadline", "running", "waiting"]),
        "pid": 12,
        "hostname": "n1",
        "ports": copy.deepcopy(PORTS),
        "taken": [],
        "rails": [{"name": "rail 2", "address": "198.18.21.11", "ports": copy.deepcopy(PORTS), "error": ""}],
        "interface_bytes": {"rx_bytes": 10**8, "tx_bytes": 10**8},
        "progress_note": chance.choice([None, dict(HOW_FAR)]),
        "ranks": ranks,
    }


def as_collected(state: Any, run_id: str) -> dict[str, Any]:
    """As ``steps.collect`` returns it."""
    return {"changed": False, "run_id": run_id, **(worker_state.state_in(state) or {"state": "lost"})}


def judged(states: dict[str, Any], links: dict[str, Any]) -> None:
    """All that works with what the nodes brought, from the first reader to the last page."""
    launch: dict[str, Any] = {
        host: {"state": "waiting", "address": f"198.18.20.1{host[1:]}", "ports": PORTS, "ranges": [], "hostname": host}
        for host in HOSTS
    }
    tools = {"prefix": "/opt/openmpi", "python": "/opt/python", "mpirun": True, "key": True}
    launch = {host: dict(one, openmpi=tools) for host, one in launch.items()}
    probe = {host: one if probe_answer.is_answer(one) else {"error": "no answer"} for host, one in links.items()}
    plan.make_plan(HOSTS, launch, probe, 1)
    made = plan.make_plan(HOSTS, launch, {host: {"links": []} for host in HOSTS}, 1)
    collect = {host: as_collected(state, "run-1") for host, state in states.items()}
    pairs = ranks_localise.begin(made, collect, [4096, 1048576], 40)
    for number in range(2):
        if not pairs["next"]["pairs"]:
            break
        ranks_localise.jobs(pairs, launch, 1)
        again = {host: as_collected(state, f"pair-{number}") for host, state in states.items()}
        pairs = ranks_localise.after(pairs, launch, again, f"pair-{number}")
    job = mpi_plan.make_job(mpi_plan.AUTO, made, launch, collect, pairs["rounds"], "train")
    assert set(job) >= {"why", "host"}
    for state in states.values():
        note = state.get("progress_note") if isinstance(state, dict) else None
        progress.Collective(0.0).line(note, 1.0)
    for backend in ("gloo", "nccl"):
        run = Run(
            run_id="run-1",
            backend=backend,
            members=HOSTS,
            selected=HOSTS,
            launch=launch,
            probe=probe,
            go={host: {"started": True} for host in HOSTS},
            collect=collect,
            plan=made,
            pairs=pairs,
            started="2026-01-31T12:00:00Z",
        )
        # Without the net that ``diagnose`` has for a judge that breaks.
        report = diagnosis.make_report(run).as_dict()
        assert list(schema.violations(json.loads(json.dumps(compact.pack(report))))) == []
        assert all(line.isprintable() for line in console.lines(report))
        for text in files.contents(report).values():
            text.encode()


@pytest.mark.parametrize("first", [1, 10_001, time.time_ns() % 10**9])
def test_no_state_and_no_answer_of_a_node_breaks_the_verdict(first: int) -> None:
    taken = 0
    for seed in range(first, first + STATES_OF_A_TEST):
        chance = random.Random(seed)
        states = {host: spoiled(a_state(chance), chance) for host in HOSTS}
        links = {
            host: spoiled({"links": [dict(copy.deepcopy(LINK), host=other) for other in HOSTS], "rails": []}, chance)
            for host in HOSTS
        }
        taken += sum(worker_state.state_in(state) is not None for state in states.values())
        try:
            judged(states, links)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
    # Else this would show nothing but a reader that refuses all.
    assert taken > STATES_OF_A_TEST / 2, f"seed {first}: {taken} states were taken"
