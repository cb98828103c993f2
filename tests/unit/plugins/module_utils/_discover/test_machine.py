# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of machines whose root is not to be trusted: texts are cleaned and cut, and other shapes are refused."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.machine import (
    ERR_ODD,
    MOST_CHARACTERS,
    machine,
)

Answers = Callable[..., list[dict[str, Any]]]
ATTACK = "x\x1b[2J\r\n\nPASSED: {{ lookup('pipe', 'id') }}\u202e y\n    evil: true\n"
#: libyaml's loader where PyYAML was built with it.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ODD: list[Any] = [None, -1, 2**70, ATTACK, [ATTACK], {ATTACK: ATTACK}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in an answer, once for each shape of card."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, one in value.items():
            yield from places(one, (*path, key))
    elif isinstance(value, list):
        for index in (0, len(value) - 1) if value else ():
            yield from places(value[index], (*path, index))


def spoiled(answer: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    found = copy.deepcopy(answer)
    place: Any = found
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return found


def test_what_is_no_answer(twelve: Answers) -> None:
    for data in (None, [], "x", {}, {**twelve()[0], "cards": None}, {**twelve()[0], "gpus": []}):
        with pytest.raises(ValueError, match="its answer is not one"):
            machine("gpu01", "10.1.1.11", data)


def test_texts_are_cut_and_cleaned(twelve: Answers) -> None:
    found = machine("gpu01", "10.1.1.11", {**twelve()[0], "system": ATTACK * 50, "hostname": ATTACK})
    for text in (found.system, found.hostname):
        assert text == sanitize.one_line(text) and len(text) <= MOST_CHARACTERS


def test_names_and_addresses_are_such_or_left_out(twelve: Answers) -> None:
    answer = twelve(fast=1)[0]
    answer["cards"].append({**answer["cards"][0], "name": "{{ x }}"})
    answer["cards"][-2].update(addresses=["127.0.0.1/8", "10.9.1.1", "x", 7, "10.9.1.1/24"], heard=["x", "{{ y }}"])
    answer["routes"] = ["10.0.0.0/8", "x/24", 7]
    found = machine("gpu01", "10.1.1.11", answer)
    assert [card.name for card in found.cards] == ["eno1", "eno2", "ens1np0"]
    assert list(map(str, found.cards[2].addresses)) == ["10.9.1.1/24"] and not found.cards[2].heard
    assert found.routes[-1] == "10.0.0.0/8" and found.ssh_card == "eno1" and found.controllers == ("usb0",)


def test_every_place_with_every_odd_value(twelve: Answers, text: Callable[..., str]) -> None:
    """It is refused as a whole, or the file is one whose values are of the form that they should have."""
    answers = twelve(fast=1)[:2]
    for one in answers:
        one["cards"] = [one["cards"][0], one["cards"][-1]]
    for path in places(answers[1]):
        for value in ODD:
            bad = [answers[0], spoiled(answers[1], path, value)]
            try:
                machine("gpu02", "10.1.1.12", bad[1])
            except ValueError as error:
                assert str(error) == ERR_ODD, (path, value)
                continue
            made = text(bad)
            assert made == sanitize.clean(made), (path, value)
            found = yaml.load(made, LOADER)
            assert list(found) == ["gpu_cluster"] and set(found["gpu_cluster"]) == {"hosts", "vars"}, (path, value)
            assert "lookup" not in str(found), (path, value)
