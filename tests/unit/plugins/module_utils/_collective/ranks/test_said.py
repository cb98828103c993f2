# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What counts as an event of a rank."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.ranks import rank, said, store_keys


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
    assert {name for name, _fields in found} == set(said.EVENTS)
    for name, fields in found:
        assert fields == set(said.EVENTS[name]), name
