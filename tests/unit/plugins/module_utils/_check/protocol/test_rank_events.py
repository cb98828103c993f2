# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What counts as an event of a rank."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import rank, store_keys
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import rank_events


def called(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def told(tree: ast.AST) -> set[str]:
    """The names that ``Exchanges`` may give to its event: its default, and what others ask for."""
    asked = [one.value for node in called(tree, "Exchanges") for one in node.keywords if one.arg == "told"]
    return {"wrong", *(ast.literal_eval(one) for one in asked)}


def emitted() -> list[tuple[str, set[str]]]:
    """Name and fields of each event that rank.py writes."""
    tree = ast.parse(inspect.getsource(rank))
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
    (seen,) = (node for node in assigned if ast.unparse(node.target) == "seen")
    assert isinstance(seen.value, ast.Dict)
    spread = {
        "self.wrong": {str(ast.literal_eval(key)) for key in seen.value.keys if key},
        "seen": set(store_keys.summary({}, 2)),
    }
    found = []
    for call in called(tree, "emit"):
        name, fields = call.args[0], set()
        for one in call.keywords:
            fields |= {one.arg} if one.arg else spread[ast.unparse(one.value)]
        names = [name.value] if isinstance(name, ast.Constant) else sorted(told(tree))
        found += [(str(each), {str(field) for field in fields}) for each in names]
    return found


def test_every_event_that_a_rank_writes_is_known_with_its_fields() -> None:
    found = emitted()
    assert len(found) > 10 and {"inside", "wrong_inside"} < {name for name, _fields in found}
    assert {name for name, _fields in found} == set(rank_events.EVENTS)
    for name, fields in found:
        assert fields == set(rank_events.EVENTS[name]), name


LOOK = {"iteration": 2, "elements": 1, "first": 7, "last": 7, "explanation": "single bits are flipped", "digest": 3}
LOOK.update(input_changed=False, sum_is_right=False)
REAL: dict[str, dict[str, Any]] = {
    "ready": {"torch": "2.13.0", "code": ["sm_90"], "seconds": 1.5},
    "keys": {"missing": [1], "addresses": {"0": ["192.0.2.11", 40000], "2": ["2001:db8::12", 40001]}},
    "size": {"size_bytes": 4, "seconds": [0.01], "checked": 6, "settled": True, "wrong": None},
    "wrong": {"size_bytes": 4096, **LOOK},
    "inside": {"size_bytes": 4, "seconds": [0.01], "wrong": {**LOOK, "iterations": 2, "more": [[3, 99]]}},
    "error": {"text": "RuntimeError: x", "where": ["a", "b"]},
    "done": {},
}


@pytest.mark.parametrize("name", REAL)
def test_an_event_is_taken_with_all_its_fields_and_without_one_it_is_output(name: str) -> None:
    real = {"event": name, "at": 1.0, **REAL[name]}
    assert rank_events.event(json.dumps(real).encode()) == real and rank_events.is_event(real)
    for key in [*real, None]:
        line = json.dumps({**{one: real[one] for one in real if one != key}, **({} if key else {"more": 1})})
        assert rank_events.event(line.encode()) == {"event": "output", "text": line}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("done", {"at": "now"}),
        ("done", {"at": float("nan")}),
        ("ready", {"torch": None}),
        ("ready", {"code": "sm_90"}),
        ("ready", {"seconds": True}),
        ("keys", {"missing": ["1"]}),
        ("keys", {"addresses": []}),
        ("keys", {"addresses": {"0": ["fab0", 40000]}}),
        ("keys", {"addresses": {"0": "192.0.2.11"}}),
        ("keys", {"addresses": {"first": ["192.0.2.11", 40000]}}),
        ("size", {"seconds": []}),
        ("size", {"seconds": [0.0]}),
        ("size", {"seconds": [float("inf")]}),
        ("size", {"seconds": 0.01}),
        ("size", {"size_bytes": 0}),
        ("size", {"wrong": {}}),
        ("wrong", {"explanation": 1}),
        ("wrong", {"first": -1}),
        ("inside", {"wrong": LOOK}),
        ("error", {"text": ["RuntimeError"]}),
        ("error", {"where": "here"}),
    ],
)
def test_what_nobody_could_judge_is_no_event(name: str, change: dict[str, Any]) -> None:
    spoiled = {"event": name, "at": 1.0, **REAL[name], **change}
    assert (
        not rank_events.is_event(spoiled)
        and rank_events.event(json.dumps(spoiled).encode())["event"] == rank_events.OUTPUT
    )


@pytest.mark.parametrize(
    "line", [b'{"event": "size", "at": 1.0, "size_by', b"", b"\xff", b'{"event": ["done"]}', b"[]", b"[" * 200_000]
)
def test_whatever_else_a_rank_writes_is_output(line: bytes) -> None:
    """A rank that is killed in the middle of a line leaves a part of it."""
    found = rank_events.event(line)
    assert found == {
        "event": rank_events.OUTPUT,
        "text": line.decode("utf-8", "replace")[:500],
    } and rank_events.is_event(found)


def report(**changes: Any) -> dict[str, Any]:
    report = {"local_rank": 0, "events": [{"event": "done", "at": 1.0}], "exit_code": 0, "process_state": ""}
    return {**report, "stderr_tail": "", **changes}


def test_a_report_has_all_its_keys_and_events_only() -> None:
    assert rank_events.is_report(report()) and rank_events.is_report(report(exit_code=None, events=[]))
    for key in report():
        assert not rank_events.is_report({name: value for name, value in report().items() if name != key}), key
    assert not rank_events.is_report(report(exit_code=True)) and rank_events.is_report(report(exit_code=-9))
    # Half of a pair of UTF-16, which JSON can hold and no file.
    assert not rank_events.is_report(report(stderr_tail="\ud800"))
    for events in ([{"event": "size"}], [{"event": "unknown", "at": 1.0}], ["done"], [{"event": "output"}]):
        assert not rank_events.is_report(report(events=events)), events
