# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where answers of several nodes are compared, one that is no answer costs its node the comparison, and nobody else.

The answers are drawn by lot around a true one.  A failure prints the seed of its answer.
"""

from __future__ import annotations

import copy
import random
import time
from typing import Any

import pytest
from random_answers import spoiled

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _host_login, _host_preflight
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._rebuild import differences
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import seen

ANSWERS_OF_A_TEST = 500
ENTRY = {"variable": "gpus", "value": "7", "rule": "expected 8", "fix": "look"}
LOOKED: dict[str, Any] = {
    "problems": [ENTRY],
    "notes": [ENTRY],
    "observed": {"hostname": "n1", "gpus": [], "clock_seconds": 1.5},
}
SNAPSHOT: dict[str, Any] = {
    **{section: {"a": "1", "b": "2"} for section in differences.SECTIONS},
    "problems": ["rpm did not answer"],
    "unknown_addresses": ["192.0.2.1 as n1 in /etc/hosts"],
}
STORAGES = [{"path": "/data", "source": "nas:/x", "root": [1, 2], "entries": [["a", 11, 1000]], "writable": True}]


def preflight(answer: Any) -> bool:
    """Whether the answer was taken."""
    good = {"problems": [ENTRY], "notes": [ENTRY]}
    found = _host_login.collected_problems([("n1", answer), ("n2", good)])
    _host_preflight.collected_notes([("n1", answer), ("n2", good)])
    _host_preflight.own_name(answer, None)
    assert [one.host for one in found].count("n2") == 1
    odd = [one for one in found if one.rule == _host_preflight.ERR_ODD]
    assert all(one.host == "n1" for one in odd)
    return not odd


def rebuild(answer: Any) -> bool:
    report = differences.compare(["n1"], {"n1": copy.deepcopy(SNAPSHOT), "n2": answer, "n3": copy.deepcopy(SNAPSHOT)})
    assert all(line.isprintable() for line in differences.lines(report))
    assert "n3" in report.peers
    assert ("n2" in report.peers) != (report.unread.get("n2") == differences.ODD)
    return "n2" in report.peers


def storage(answer: Any) -> bool:
    found = seen.differences({"n1": STORAGES, "n2": answer, "n3": [{**STORAGES[0], "root": [7, 7], "entries": []}]})
    assert any(sentence.startswith("/data: other storage") for sentence in found)
    return seen.ERR_ANSWER % "n2" not in found


@pytest.mark.parametrize(
    ("compared", "true"), [(preflight, LOOKED), (rebuild, SNAPSHOT), (storage, STORAGES)], ids=lambda one: str(one)[:20]
)
@pytest.mark.parametrize("first", [1, time.time_ns() % 10**9])
def test_one_answer_that_is_none_costs_nobody_else_the_comparison(compared: Any, true: Any, first: int) -> None:
    taken = 0
    for seed in range(first, first + ANSWERS_OF_A_TEST):
        answer = spoiled(copy.deepcopy(true), random.Random(seed))
        try:
            taken += compared(answer)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {answer!r}: {error!r}") from error
    # Else this would show nothing but a reader that refuses all, or takes all.
    assert ANSWERS_OF_A_TEST / 10 < taken < ANSWERS_OF_A_TEST


@pytest.mark.parametrize("answer", [None, 1, "x", [], {}, [[]], {"problem": 7}, ["problem"], {"stack": 1}])
def test_what_is_no_answer_at_all(answer: Any) -> None:
    for compared in (preflight, storage):
        compared(answer)
    report = differences.compare(["n1"], {"n1": SNAPSHOT, "n2": answer, "n3": SNAPSHOT})
    assert set(report.unread) >= {"n2"}
