# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a rank of mpirun writes that looks like an event, the job is judged: nobody raises.

The events are drawn by lot around true ones.  A failure prints the seed.
"""

from __future__ import annotations

import copy
import json
import random
import time
from typing import Any

import pytest
from random_answers import spoiled

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import mpi_results, mpi_wrong_data
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import mpi_output

NODES = [{"host": f"n{number}", "address": f"192.0.2.{number}"} for number in (1, 2, 3)]
SIZES = [{"size_bytes": 4, "seconds": [0.03, 0.01], "wrong": 0}, {"size_bytes": 65536, "seconds": [0.1], "wrong": 1}]
SEEN = {"iteration": 3, "elements": 2, "first": 5, "last": 9, "samples": [[5, 3.0], [9, float("nan")]]}
EVENTS: list[dict[str, Any]] = [
    {"gpu_cluster_mpi": "start", "host": "n2"},
    {"gpu_cluster_mpi": "up", "number": 1, "size": 3, "version": "4.1.4", "pml": "ob1"},
    {"gpu_cluster_mpi": "stuck", "last": "up", "calling": [["192.0.2.1", 45000]]},
    {"gpu_cluster_mpi": "wrong", "size_bytes": 65536, **SEEN},
    {"gpu_cluster_mpi": "done", "sizes": SIZES, "peers": 2},
    {"gpu_cluster_mpi": "error", "text": "MPI_Allreduce failed"},
]


def true_events(rank: int, chance: random.Random) -> list[dict[str, Any]]:
    return [dict(copy.deepcopy(one), rank=rank, at=1.5) for one in EVENTS if chance.random() < 0.7]


def judged(text: str, state: str) -> int:
    """How many events were taken."""
    events, rest = mpi_output.events(text)
    given = {"state": state, "code": 0, "seconds": 20.0, "events": events, "text": rest, "ssh": []}
    found = mpi_results.read({"nodes": NODES}, json.loads(json.dumps(given)), {})
    mpi_wrong_data.wrong_results(found)
    json.dumps([found.told(), found.calls(), found.silent(), found.blocks, found.progress()])
    found.words()
    return len(events)


@pytest.mark.parametrize("first", [1, time.time_ns() % 10**9])
def test_no_line_of_a_rank_breaks_the_judgement(first: int) -> None:
    written = taken = 0
    for seed in range(first, first + 500):
        chance = random.Random(seed)
        lines = [json.dumps(one) for rank in range(3) for one in true_events(rank, chance)]
        odd = [json.dumps(spoiled(one, chance)) for one in true_events(1, chance)]
        written += len(lines)
        try:
            taken += judged("\n".join([*lines, *odd]), chance.choice(["finished", "deadline"]))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {odd}: {error!r}") from error
    # Else this would show nothing but a reader that refuses all.
    assert taken > written


def test_every_true_event_is_one() -> None:
    lines = "\n".join(json.dumps(dict(one, rank=0, at=1.5)) for one in EVENTS)
    assert [one["event"] for one in mpi_output.events(lines)[0]] == ["start", "up", "stuck", "wrong", "done", "error"]
