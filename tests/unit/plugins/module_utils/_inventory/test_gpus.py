# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The number of GPUs in the inventory."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import gpus


@pytest.mark.parametrize("value", [0, 8, 64, -1, "8", "-1"])
def test_a_number_that_is_accepted(value: Any) -> None:
    assert gpus.inventory_gpu_problems({"n1": {gpus.GPUS: value}, "n2": {}}, ["n1", "n2"]) == []


@pytest.mark.parametrize("value", [65, -2, 8.0, True, "eight", "", None, [8], "8 "])
def test_a_number_that_is_refused(value: Any) -> None:
    (problem,) = gpus.inventory_gpu_problems({"n1": {gpus.GPUS: 8}, "n2": {gpus.GPUS: value}}, ["n1", "n2"])
    assert (problem.host, problem.variable, problem.rule) == ("n2", "gpu_cluster_gpus", gpus.ERR_COUNT)


def test_a_number_that_cannot_be_evaluated() -> None:
    (problem,) = gpus.inventory_gpu_problems({"n1": {gpus.GPUS: Unreadable("'x' is undefined")}}, ["n1"])
    assert "'x' is undefined" in problem.rule


def answer(count: int) -> dict[str, Any]:
    return {"observed": {"gpus": [f"0000:{number:02x}:00.0" for number in range(count)]}}


@pytest.mark.parametrize(
    ("given", "found", "expected"),
    [
        (None, answer(8), 8),
        (-1, answer(8), 8),
        ("-1", answer(8), 8),
        (4, answer(8), 4),
        ("4", answer(8), "4"),
        (0, answer(8), 0),
        (None, answer(0), 0),
        (None, None, -1),
        (None, {"unreachable": True}, -1),
        (None, {"observed": {"gpus": "many"}}, -1),
        (None, {"observed": ["gpus"]}, -1),
        (None, answer(65), -1),
    ],
)
def test_a_rank_on_every_gpu_that_was_counted(given: Any, found: Any, expected: Any) -> None:
    assert gpus.ranks(given, gpus.counted(found)) == expected


@pytest.mark.parametrize(
    ("seen", "slots", "planned", "variables"),
    [
        (8, None, 8, []),
        (8, 8, 8, []),
        (8, 1, 8, ["launcher_slots"]),
        (8, 16, 8, ["launcher_slots"]),
        (8, {"n1": "4", "n2": 8}, 8, ["launcher_slots"]),
        (8, {"n2": 1}, 8, []),
        (16, None, 8, ["gpu_cluster_ports.ranks_per_node"]),
        (-1, 1, 8, []),
        (0, 1, 8, []),
        (8, "x", 8, []),
    ],
)
def test_a_node_with_more_gpus_than_ranks_is_noted(seen: int, slots: Any, planned: int, variables: list[str]) -> None:
    assert [note.variable for note in gpus.rank_notes("n1", seen, slots, planned)] == variables
