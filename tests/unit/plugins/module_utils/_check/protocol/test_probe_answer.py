# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the prober leaves is taken, and nothing else that the user of the ranks could have put in its place."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import probe_links
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.probe_dialing import (
    Outcome,
    Step,
    Target,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_answer

TARGET = Target("n2", "192.0.2.12", 40000, "ephemeral", (64,))


def found() -> dict[str, Any]:
    """An answer with everything in it that there can be."""
    step = Step(64, 0.001, 0)
    outcomes = [
        Outcome(TARGET, "ok", 1.5, 0.1, (step,), 0, ""),
        Outcome(TARGET, "stalled", 1.5, 0.1, (step,), 1500, ""),
        Outcome(TARGET, "foreign", 1.5, 0.1, (), 0, "SSH-2.0"),
        Outcome(TARGET, "timeout", 3000.0, None, (), 0, ""),
    ]
    one = probe_links.link("n2", outcomes, None, None, [40001])
    blocked = {"first": 40000, "last": 50000, "result": "timeout"}
    searched = dict(one, milliseconds=None, bytes_per_second=1000, retransmits=0, blocked=[blocked])
    searched["searched"] = [[1024, 65535]]
    return {"links": [one, searched], "rails": [{"name": "rail 2 (192.0.2.0/24)", "links": [one]}]}


def test_what_a_probe_finds_is_an_answer() -> None:
    assert probe_answer.is_answer(json.loads(json.dumps(found()))) and probe_answer.is_answer(
        {"links": [], "rails": []}
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: one.update(ansible_facts={}),
        lambda one: one.pop("rails"),
        lambda one: one["links"].append("n3"),
        lambda one: one["links"][0].pop("failures"),
        lambda one: one["links"][0].update(host=["n2"]),
        lambda one: one["links"][0].update(probes="12"),
        lambda one: one["links"][0].update(milliseconds=True),
        lambda one: one["links"][0].update(milliseconds=float("nan")),
        lambda one: one["links"][0].update(bytes_per_second=float("inf")),
        lambda one: one["links"][0].update(bytes_per_second=-1.0),
        lambda one: one["links"][0].update(bytes_per_second=10**400),
        lambda one: one["links"][0].update(retransmits=-1),
        lambda one: one["links"][0].update(more=1),
        lambda one: one["links"][0]["failures"][0].update(port="22"),
        lambda one: one["links"][0]["failures"][0].update(port=70000),
        lambda one: one["links"][0]["failures"][0].update(milliseconds=float("-inf")),
        lambda one: one["links"][0]["failures"][0].update(said={}),
        lambda one: one["links"][0]["failures"].append({}),
        lambda one: one["links"][0]["unheard"].append("x"),
        lambda one: one["links"][0].update(requests=[]),
        lambda one: one["links"][0].update(requests={"sent": 20, "lost": 5}),
        lambda one: one["links"][0].update(requests={"sent": 20, "lost": -1, "worst_milliseconds": 1.0}),
        lambda one: one["links"][0].update(requests={"sent": 20, "lost": 1, "worst_milliseconds": "1"}),
        lambda one: one["links"][1]["blocked"][0].pop("result"),
        lambda one: one["links"][1]["blocked"][0].update(last=10**12),
        lambda one: one["links"][1]["searched"].append([1]),
        lambda one: one["links"][1]["searched"].append(None),
        lambda one: one["rails"][0].update(name=2),
        lambda one: one["rails"][0]["links"][0].update(blocked={}),
    ],
)
def test_anything_else_is_none(spoil: Callable[[dict[str, Any]], Any]) -> None:
    spoiled = copy.deepcopy(found())
    spoil(spoiled)
    assert not probe_answer.is_answer(spoiled)


@pytest.mark.parametrize("other", [None, [], "x", 1, {}])
def test_what_is_no_dictionary_is_none(other: Any) -> None:
    assert not probe_answer.is_answer(other)
