# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every attribute of an object of Ansible that our plugins read exists in the ansible-core that runs this test.

`make oldest` runs it with the oldest one.  Read an attribute that a newer one has added with getattr() and a default.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from ansible import constants
from ansible.module_utils.basic import AnsibleModule
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.task import Task
from ansible.plugins.action import ActionBase
from ansible.plugins.become import BecomeBase
from ansible.plugins.connection import ConnectionBase
from ansible.template import Templar
from ansible.utils.display import Display

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"
FILES = sorted(
    path for kind in ("action", "filter", "modules", "plugin_utils") for path in (PLUGINS / kind).glob("*.py")
)
#: What an expression of a plugin on the controller ends with, and the class of the object that it names.
OBJECTS: dict[str, type] = {
    "_task": Task,
    "_connection": ConnectionBase,
    "connection": ConnectionBase,
    "become": BecomeBase,
    "_loader": DataLoader,
    "_templar": Templar,
    "action": ActionBase,
    "Display": Display,
}
#: The same for a module.
OF_MODULES: dict[str, type] = {"module": AnsibleModule}
#: The base classes of our own actions.
ACTIONS = ("ActionBase", "ConfirmedAction")


@cache
def names_of(kind: type) -> frozenset[str]:
    """The attributes of a class, and those that its methods set on an object."""
    names = set(dir(kind))
    for one in kind.__mro__[:-1]:
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
        except (OSError, TypeError):  # a class that is written in C
            continue
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and written_on_self(node)}
    return frozenset(names)


def written_on_self(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self"


def last_name(node: ast.expr) -> str:
    """The last name of an expression: ``become`` of ``connection.become``, ``Display`` of ``Display()``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return node.id if isinstance(node, ast.Name) else ""


def read_of_ansible(tree: ast.AST, objects: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The object of Ansible and the attribute, for each that is read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and last_name(node.value) in objects:
            yield last_name(node.value), node.attr
        if isinstance(node, ast.ClassDef) and {last_name(base) for base in node.bases} & set(ACTIONS):
            yield from read_of_self(node)


def read_of_self(action: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """What an action reads of itself and does not define: it is inherited."""
    own = {node.name for node in ast.walk(action) if isinstance(node, ast.FunctionDef)}
    own |= {last_name(target) for node in action.body if isinstance(node, ast.Assign) for target in node.targets}
    own |= {last_name(node.target) for node in action.body if isinstance(node, ast.AnnAssign)}
    for node in ast.walk(action):
        if isinstance(node, ast.Attribute) and last_name(node.value) == "self" and node.attr not in own:
            yield "action", node.attr


def missing(tree: ast.AST, objects: Mapping[str, type] = OBJECTS) -> list[str]:
    known = {name: names_of(kind) for name, kind in objects.items()} | {"C": frozenset(dir(constants))}
    return sorted({f"{name}.{attr}" for name, attr in read_of_ansible(tree, known) if attr not in known[name]})


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_ansible_has_what_our_plugin_reads(path: Path) -> None:
    objects = OF_MODULES if path.parent.name == "modules" else OBJECTS
    assert missing(ast.parse(path.read_text(encoding="utf-8")), objects) == []


def test_what_ansible_lacks_is_found() -> None:
    text = """
class ActionModule(ActionBase):
    kept = 1
    def run(self):
        return self._connection.become.nothing, self._task.args, Display().none, C.NO, self.kept, self.run, self.absent
"""
    assert missing(ast.parse(text)) == ["C.NO", "Display.none", "action.absent", "become.nothing"]
