# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever root of a node answers when it is looked at, and of its GPU stack, there is a verdict and a whole report."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from random_answers import TIMES, spoiled

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import compact, console, files, schema

FACTS: dict[str, Any] = {
    "kernel": {"running": "5.14.0-503.el9.x86_64", "boots": ""},
    "pci": {"gpus": [{"address": "0000:1b:00.0", "driver": "nvidia"}], "nvswitches": [{"address": "0000:07:00.0"}]},
    "driver": {"loaded": "580.95.05", "kind": "open", "user_space": "580.95.05", "nouveau_loaded": False},
    "gpus": [
        {
            "index": 0,
            "uuid": "GPU-0",
            "model": "H100",
            "pci_address": "0000:1b:00.0",
            "ecc": True,
            "mig": False,
            "xids": [79],
        }
    ],
    "smi_problem": "",
    "cuda_gpus": [{"capability": "9.0", "mode": "exclusive process"}],
    "rdma": {"devices": ["mlx5_0"], "peer_memory": False, "redirecting_ports": ["0000:17:00.0"]},
    "fabric_manager": {"version": "580.95.05", "active": True},
    "persistence_active": True,
    "cuda": {"versions": ["12.8"], "default": "12.8"},
    "nccl": {"system": "2.28.9", "torch": "2.29.7"},
    "torch": {"version": "2.13.0+cu130"},
    "openmpi": "4.1.1",
    "images": [{"name": "localhost/train:1", "id": "9a99bb3ddd04"}],
    "nics": [{"name": "fab0", "mtu": 1500, "speed_mbit": 10000, "firmware": "16.35", "model": "CX5", "driver": "mlx5"}],
}


OTHERS: list[Any] = [7, 1.5, True, None, "x", [], [7], {}, {"x": 7}]


def whole_report(sample: Any, facts: dict[str, Any]) -> None:
    report = sample.diagnose(facts=facts, pins={name: {} for name in facts}).as_dict()
    assert list(schema.violations(json.loads(json.dumps(compact.pack(report), allow_nan=False)))) == []
    assert all(line.isprintable() for line in console.lines(report))
    for text in files.contents(report).values():
        text.encode()


@pytest.mark.parametrize("first", [1, 5001, time.time_ns() % 10**9])
def test_no_look_at_a_node_breaks_the_report(make_sample: Any, first: int) -> None:
    for seed in range(first, first + 50 * TIMES):
        chance = random.Random(seed)
        sample = make_sample(3)
        facts = {name: copy.deepcopy(FACTS) for name in sample.names}
        for name in sample.names[: chance.randint(1, 2)]:
            sample.static[name] = sanitize.from_node({"said": spoiled(sample.static[name], chance)})["said"]
            facts[name] = sanitize.from_node({"said": spoiled(facts[name], chance)})["said"]
        try:
            whole_report(sample, facts)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error


def test_the_true_answers_are_judged(make_sample: Any) -> None:
    report = make_sample().diagnose(facts=dict.fromkeys(("n1", "n2", "n3"), FACTS))
    assert "GC-HOST-006" not in [one.id for one in report.findings]
    assert report.stack.keys() == report.hostnames.keys() == {"n1", "n2", "n3"}


def places(value: Any, deep: int) -> Iterator[tuple[Any, ...]]:
    """The ways to all values of a dictionary, and to those of dictionaries in it."""
    for key, below in value.items():
        yield (key,)
        if isinstance(below, dict) and deep > 1:
            yield from ((key, *way) for way in places(below, deep - 1))


def put(value: Any, way: tuple[Any, ...], other: Any) -> None:
    for key in way[:-1]:
        value = value[key]
    value[way[-1]] = other


@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_no_single_value_breaks_the_report(make_sample: Any, other: Any) -> None:
    for way in places(make_sample().static["n2"], 1):
        sample = make_sample()
        put(sample.static["n2"], way, other)
        try:
            whole_report(sample, {name: copy.deepcopy(FACTS) for name in sample.names})
        except Exception as error:
            raise AssertionError(f"static {way}: {error!r}") from error
    for way in places(FACTS, 2):
        sample = make_sample()
        facts = {name: copy.deepcopy(FACTS) for name in sample.names}
        put(facts["n2"], way, other)
        try:
            whole_report(sample, facts)
        except Exception as error:
            raise AssertionError(f"facts {way}: {error!r}") from error
