# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No answer of a node breaks who asks, or moves its cursor."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from queue_samples import JOB, app, job, look

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import answers, listing, overview
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.answers import Answer

NOISE: list[Any] = [None, True, 0, -1, 1.5, 10**400, "x", "\x1b[2J", "\ud800", "x" * 400, [], [1], {}, {"a": 1}, 1e308]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with every key in it."""
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(one, (dict, list)):
            yield from places(one)


def test_the_last_line_of_the_shape_counts() -> None:
    line = json.dumps(look(job()))
    assert answers.last(f'hello\n{{"schema": 1}}\n{line}\n5\nbye\n', answers.LOOK) == look(job())
    assert answers.last("hello\n[1]\n" + "[" * 100_000, answers.LOOK) == {}


def test_texts_are_cleaned() -> None:
    said = look(job(about={"command": "x\x1b[2J\n\u202ey"}), apps=[app(0, 1, name="a\r\nb")])
    found = answers.last(json.dumps(said), answers.LOOK)
    assert found["jobs"][0]["about"]["command"] == "x\ufffd[2J\ufffd\ufffdy" and found["apps"][0]["name"] == "a\ufffdb"


@pytest.mark.parametrize("first", [1, time.time_ns() % 10**9])
def test_answers_by_lot(first: int) -> None:
    taken = 0
    for seed in range(first, first + 3000):
        chance = random.Random(seed)
        said = copy.deepcopy(look(job(), job(launchers=1), apps=[app(0, 1), app(-1, 2, of=JOB)]))
        for _change in range(chance.choice([0, 1, 1, 2])):
            container, key = chance.choice(list(places(said)))
            container[key] = copy.deepcopy(chance.choice(NOISE))
        line = json.dumps(said)
        found = [Answer("n1", answers.last(line, answers.LOOK), "no")]
        taken += bool(found[0].found)
        try:
            shown = listing.text(found, 1e9) + overview.text(found)
            json.dumps([listing.as_dict(found), overview.as_dict(found)])
        except Exception as error:
            raise AssertionError(f"seed {seed}: {line}: {error!r}") from error
        assert not sanitize.CONTROL.search(shown), f"seed {seed}"
    assert 700 < taken < 2900


def test_an_answer_has_bounds() -> None:
    assert answers.last(json.dumps(look(*[job()] * 501)), answers.LOOK) == {}
    assert answers.last(json.dumps(look(apps=[app(0, 1)] * 2001)), answers.LOOK) == {}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", "it gave no reason"),
        (
            "banner\nssh: connect to host x port 22: No route to host\r\n\n",
            "ssh: connect to host x port 22: No route to host",
        ),
        ("a\x1b[2J\tb", "a\ufffd[2J b"),
        ("x" * 5000, "x" * 300),
    ],
)
def test_the_last_words_of_ssh(said: str, reason: str) -> None:
    assert answers.reason(said) == reason
