# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An answer that no program of a check gives is a failure of its node, and breaks the check of no other one."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from random_answers import TIMES

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import steps
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import coordinator, settings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import answers

PORTS = [{"range": "rendezvous", "port": 29500}, {"range": "ephemeral", "port": 40000}]
STATE = {"state": "waiting", "hostname": "n1", "ports": PORTS, "rails": [], "taken": []}
LINK = {
    "host": "n2",
    "probes": 2,
    "milliseconds": 0.1,
    "bytes_per_second": 10**9,
    "retransmits": 0,
    "failures": [{"port": 40000, "range": "ephemeral", "result": "timeout", "milliseconds": 3000.0}],
    "blocked": [],
    "searched": [],
    "unheard": [],
}
GOOD: dict[str, dict[str, Any]] = {
    "launch": {
        **STATE,
        "changed": False,
        "address": "192.0.2.11",
        "ephemeral_range": [32768, 60999],
        "ranges": [{"name": "rendezvous", "first": 29500, "last": 29599}],
        "kernel": "5.14.0",
        "openmpi": {"prefix": "", "python": "/opt/python", "mpirun": False, "key": False},
        "other_runs": [],
        "stopped_runs": [],
    },
    "probe": {"changed": False, "started": True, "links": [LINK], "rails": []},
    "go": {"changed": False, "started": True},
    "collect": {
        **STATE,
        "changed": False,
        "run_id": "run-1",
        "state": "finished",
        "ranks": [
            {
                "local_rank": 0,
                "events": [{"event": "done", "at": 1.0}],
                "exit_code": 0,
                "process_state": "",
                "stderr_tail": "",
            }
        ],
    },
}
OTHERS: list[dict[str, Any]] = [
    {"changed": False, "run_id": "run-1", "state": "lost"},
    {**GOOD["collect"], "state": "died", "error": "status=9/KILL"},
    {**GOOD["collect"], "state": "expired", "error": "no job came"},
    {"changed": False, "run_id": "run-1", "state": "failed", "error": "no free port"},
]
VALUES: list[Any] = [None, True, 0, -1, 10**400, float("nan"), "", "x", "\ud800", [], [7], {}, {"a": 1}, "waiting"]


@pytest.mark.parametrize("step", GOOD)
def test_what_the_programs_return_is_taken(step: str) -> None:
    assert answers.checked(step, GOOD[step]) == GOOD[step]
    failed = {"failed": True, "msg": "x"}
    assert answers.checked(step, failed) == failed and answers.checked(step, {"skipped": True}) == {"skipped": True}
    assert set(GOOD) == {"launch", *steps.STEPS}


@pytest.mark.parametrize("found", OTHERS, ids=lambda one: str(one["state"]))
def test_every_end_of_a_worker_is_taken(found: dict[str, Any]) -> None:
    assert answers.checked("collect", found) == found


@pytest.mark.parametrize(
    ("step", "change"),
    [
        ("launch", {"state": "waiting", "ports": [{"range": "rendezvous"}]}),
        ("launch", {"address": "{{ x }}"}),
        ("launch", {"openmpi": {}}),
        ("launch", {"state": "running"}),
        ("probe", {"links": [{"host": "n2"}]}),
        ("probe", {"links": 7}),
        ("go", {"started": "yes"}),
        ("go", {"started": False}),
        ("collect", {"ranks": [{"events": 7}]}),
        ("collect", {"state": "lost", "ranks": []}),
        ("collect", {"run_id": 7}),
    ],
)
def test_anything_else_is_a_failure_of_its_node(step: str, change: dict[str, Any]) -> None:
    found = answers.checked(step, {**GOOD[step], **change})
    assert found == {"changed": False, "failed": True, "msg": answers.ERR_ANSWER % step}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in list(pairs):
        yield value, key
        yield from places(one)


@pytest.mark.parametrize("first", [1, time.time_ns() % 10**9])
def test_no_answer_of_a_node_breaks_a_check(first: int) -> None:
    hosts = ["n1", "n2", "n3"]
    taken, draws = 0, 400 * TIMES
    for seed in range(first, first + draws):
        chance = random.Random(seed)
        brought: dict[str, dict[str, Any]] = {step: {} for step in GOOD}
        for step, host in ((step, host) for step in GOOD for host in hosts):
            one = copy.deepcopy(GOOD[step])
            if host == "n2":
                for _change in range(chance.randint(0, 2)):
                    holder, key = chance.choice(list(places(one)))
                    holder[key] = copy.deepcopy(chance.choice(VALUES))
                one = json.loads(json.dumps(one))
            brought[step][host] = answers.checked(step, one)
        taken += sum("failed" not in brought[step]["n2"] for step in GOOD)
        try:
            check(hosts, brought)
            # Where nothing fails in the mesh all of them take part.
            check(hosts, {**brought, "probe": {host: {"started": True, "links": []} for host in hosts}})
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
    assert taken > draws


def check(hosts: list[str], brought: dict[str, dict[str, Any]]) -> None:
    """The way of these answers through a whole check, to its report."""
    play = settings.Play(hosts, hosts, len(hosts), 5)
    found = settings.read({"members": hosts, "user": "train"}, play)
    state = coordinator.begin(found, play, run_id="run-1", nonce="0" * 32, now=0.0)
    state, orders = coordinator.advance(state, {}, 0.0)
    while orders:
        run_id = orders.common.get("run_id")
        if orders.step == "probe_begin":
            given = {host: {"started": True} for host in hosts}
        else:
            given = brought.get(orders.program, {host: {"failed": True, "msg": "none"} for host in hosts})
        # A worker of a round of pairs has the name of its round.
        named = {host: {"run_id": run_id} for host, one in given.items() if one.get("run_id") == "run-1"}
        given = {host: {**one, **named.get(host, {})} for host, one in given.items()}
        state, orders = coordinator.advance(state, {host: given[host] for host in orders.hosts}, 0.0)
    coordinator.judge(state)
