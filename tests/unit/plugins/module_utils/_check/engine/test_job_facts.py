# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the agents of a job say of their nodes, and what that makes of the texts of ranks."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import explain, job_facts, job_logs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.explain import Explanation

FULL = "OSError: [Errno 28] No space left on device"
BUS = "Fatal Python error: Bus error"
LOCKED = "misc/ibvwrap.cc:255 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory"
ORDINAL = "RuntimeError: CUDA error: invalid device ordinal"
CLOSED = "RuntimeError: [pair.cc:554] Connection closed by peer [192.0.2.12]:56325"
UNKNOWN = "FrobError: out of cheese"
MISSING = "AttributeError: module 'torch' has no attribute 'frob'"


def explained(*lines: str) -> list[Explanation]:
    files = [("job.log", job_logs.Origin(), list(lines))]
    return explain.explain(job_logs.processes(files, {"n1", "n2", "n3"}))


def fact(node: str, **said: Any) -> str:
    return f"[{node}] {job_facts.HEAD}{json.dumps(said)}"


def torch(*versions: str) -> list[str]:
    return [fact(f"n{number}", torch=version) for number, version in enumerate(versions, 1)]


def test_the_node_with_another_torch_leads_where_it_has_failed() -> None:
    found = explained(*torch("2.13.0", "2.12.0", "2.13.0"), f"[n2:1] {UNKNOWN}", f"[n1:0] {CLOSED}")
    assert [one.cause for one in found] == ["VERSIONS", "UNKNOWN", "STOPPED"]
    first = found[0]
    assert first.about == ["n2"] and first.finding == "GC-TEXT-005" and first.line == 2 and first.severity == "error"
    assert first.title.endswith("PyTorch 2.13.0 on n1, n3; PyTorch 2.12.0 on n2") and first.confidence < 0.9


def test_it_comes_after_what_a_node_knows_of_itself_and_the_error_of_another_node() -> None:
    other = torch("2.13.0", "2.12.0", "2.13.0")
    assert [one.cause for one in explained(*other, f"[n3:2] {FULL}")] == ["RESOURCES", "VERSIONS"]
    assert [one.cause for one in explained(*other, f"[n3:2] {UNKNOWN}")] == ["UNKNOWN", "VERSIONS"]
    assert [one.cause for one in explained(*other, f"[n1:0] {CLOSED}")] == ["VERSIONS", "STOPPED"]


def test_what_the_node_says_of_its_torch_is_confirmed() -> None:
    (found,) = explained(*torch("2.13.0", "2.12.0", "2.13.0"), f"[n2:1] {MISSING}")
    assert found.cause == "VERSIONS" and found.title.endswith(": PyTorch 2.13.0 on n1, n3; PyTorch 2.12.0 on n2")
    assert found.text == MISSING
    other = explained(*torch("2.13.0", "2.12.0", "2.13.0"), f"[n3:2] {MISSING}")
    assert [one.about for one in other] == [["n3"], ["n2"]]


def test_a_job_that_ended_well_has_only_a_note_of_it() -> None:
    (found,) = explained(*torch("2.13.0", "2.12.0"), "[n1:0] epoch 1")
    assert found.severity == "note" and found.about == ["n1", "n2"]


@pytest.mark.parametrize("versions", [["2.13.0", "2.13.0"], ["2.13.0"], []])
def test_one_torch_is_no_difference(versions: list[str]) -> None:
    assert [one.cause for one in explained(*torch(*versions), f"[n1:0] {FULL}")] == ["RESOURCES"]


def test_nodes_that_only_say_what_they_are_are_no_silent_ranks() -> None:
    """Two ranks complain, and none is silent."""
    lines = [fact(f"n{number}", cards=0) for number in (1, 2)]
    closed = "RuntimeError: Timed out waiting 10000ms for send operation to complete"
    alone = explained(f"[n1:0] {closed}", f"[n2:1] {closed}")
    assert [one.about for one in explained(*lines, f"[n1:0] {closed}", f"[n2:1] {closed}")] == [
        one.about for one in alone
    ]


def test_what_is_full_is_named() -> None:
    (found,) = explained(fact("n2", full=["/dev/shm"], roomy=["/", "/tmp"]), f"[n2:1] {FULL}")
    assert "; without room there: /dev/shm" in found.title
    (found,) = explained(fact("n2", full=[], roomy=["/", "/tmp"]), f"[n2:1] {FULL}")
    assert "; with room there afterwards: /, /tmp" in found.title


def test_the_size_of_shared_memory_stands_beside_a_bus_error() -> None:
    (found,) = explained(fact("n2", shm=64 << 20, shm_free=1 << 20), f"[n2:1] {BUS}")
    assert ": /dev/shm has 64 MiB, 1 MiB of them free afterwards; " in found.title


def test_the_number_of_cards_stands_beside_a_gpu_that_is_not_there() -> None:
    (found,) = explained(fact("n2", cards=4), f"[n2:1] {ORDINAL}")
    assert found.cause == "DISAGREE" and ": this node has 4 GPUs; " in found.title


def test_a_limit_that_is_none_is_not_too_low() -> None:
    assert explained(fact("n2", memlock=8 << 20), f"[n2:1] {LOCKED}")[0].cause == "RESOURCES"
    assert explained(fact("n2", memlock=-1), f"[n2:1] {LOCKED}")[0].cause == "RDMA"
    assert explained(fact("n1", memlock=-1), f"[n2:1] {LOCKED}")[0].cause == "RESOURCES"


def test_the_facts_of_another_node_are_not_those_of_this_one() -> None:
    assert "room" not in explained(fact("n1", full=["/tmp"]), f"[n2:1] {FULL}")[0].title


def test_what_many_nodes_say_stays_one_cause() -> None:
    lines = [fact("n1", full=["/tmp"]), fact("n2", full=["/"]), f"[n1:0] {FULL}", f"[n2:1] {FULL}"]
    (found,) = explained(*lines)
    assert found.about == ["n1", "n2"] and "room" not in found.title


def test_the_last_word_of_a_node_counts() -> None:
    lines = [fact("n2", full=[], roomy=["/tmp"], torch="2.13.0"), fact("n2", full=["/tmp"], roomy=[])]
    assert "without room there: /tmp" in explained(*lines, f"[n2:1] {FULL}")[0].title


@pytest.mark.parametrize("first", [1, time.time_ns() % 10**9])
def test_a_line_of_any_shape_adds_nothing_or_what_it_should(first: int) -> None:
    noise: list[Any] = [None, True, -1, 10**400, "x", "\x1b[2J", [], ["/x\x1b"], ["/"] * 9, {}, 1e308]
    good = {"torch": "2.13.0", "cards": 0, "memlock": -1, "shm": 1, "shm_free": 1, "full": ["/"], "roomy": []}
    for seed in range(first, first + 500):
        chance = random.Random(seed)
        said = {**good, chance.choice([*good, "more"]): chance.choice(noise)}
        found = explained(fact("n1", **said), fact("n2", torch="2.12.0"), f"[n1:0] {FULL}", f"[n1:0] {BUS}")
        assert found[0].cause == "RESOURCES" and "\x1b" not in "".join(one.title for one in found), f"seed {seed}"
