# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No text of a node gets to a terminal as it is: every door in plugins, and every message of a role or playbook."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import project
import pytest
import yaml

#: What brings the answer of a node, and what it has to be handed to at once.
DOORS = ("_execute_module", "_low_level_execute_command")
CLEANED = "from_node"
#: What makes text fit for a terminal.
FIT = ("clean", "one_line", "sentence", "block")
#: Writes lines of its own on standard error, made of numbers.
WITHOUT_TEXT = {"plugins/plugin_utils/_progress.py"}
#: What a message of Ansible is called.
MESSAGES = ("msg", "fail_msg", "success_msg")
FILTER = "node_text"
#: Answers of Ansible itself about a task, which quote ssh and whatever answers there.
ANSWERS = re.compile(r"\.(msg|stdout|stderr|stdout_lines|stderr_lines)\b|ansible_failed_result|ansible_facts")
#: Filters that judge the answers of nodes, and clean what they say.
JUDGES = re.compile(r"\| *baremetal\.gpu_cluster\.(problem_table|driver_problems|shared_storage_differences)\b")


def parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}


def called(node: ast.AST) -> str:
    """The last name of what a call calls."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def raw_answers(source: str) -> list[int]:
    """The lines in which an answer of a node is not handed to ``from_node`` at once."""
    tree = ast.parse(source)
    above = parents(tree)

    def is_handed_over(node: ast.AST) -> bool:
        while isinstance(node := above[node], ast.Call):
            if called(node) == CLEANED:
                return True
        return False

    return [node.lineno for node in ast.walk(tree) if called(node) in DOORS and not is_handed_over(node)]


def raw_lines(source: str) -> list[int]:
    """The lines in which text is displayed that was not made fit for it."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if called(node) in ("display", "warning", "v", "vv", "vvv", "error")
        and isinstance(node, ast.Call)
        and called(getattr(node.func, "value", node)) == "Display"
        and not all(called(one) in FIT or isinstance(one, ast.Constant) for one in node.args)
    ]


def on_the_controller() -> list[Path]:
    return [
        file
        for file in project.source_files()
        if file.suffix == ".py" and file.parts[:2] in (("plugins", "action"), ("plugins", "plugin_utils"))
    ]


def test_every_module_has_an_action_that_cleans_its_answer() -> None:
    names = {
        kind: {
            file.stem
            for file in project.source_files()
            if file.parent == Path("plugins") / kind and file.suffix == ".py"
        }
        for kind in ("modules", "action")
    }
    assert names["modules"] - names["action"] == set()


@pytest.mark.parametrize("file", on_the_controller(), ids=str)
def test_every_answer_of_a_node_is_cleaned_where_it_comes_in(file: Path) -> None:
    assert raw_answers((project.ROOT / file).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("file", on_the_controller(), ids=str)
def test_every_line_on_the_terminal_is_made_fit_for_it(file: Path) -> None:
    if str(file) not in WITHOUT_TEXT:
        assert raw_lines((project.ROOT / file).read_text(encoding="utf-8")) == []


def test_raw_texts_are_found_in_code() -> None:
    assert raw_answers("a = self._execute_module('m')\nb = sanitize.from_node(dict(self._execute_module('m')))") == [1]
    assert raw_lines("Display().display(line)\nDisplay().display(sanitize.clean(line))\nDisplay().warning(f'{x}')") == [
        1,
        3,
    ]


def tasks(node: Any) -> Iterator[dict[str, Any]]:
    """Every dictionary in a file of tasks or plays."""
    if isinstance(node, dict):
        yield node
    for one in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from tasks(one)


def actions() -> set[str]:
    """Modules whose answers the collection cleans on the controller."""
    folder = project.ROOT / "plugins" / "action"
    return {f"baremetal.gpu_cluster.{file.stem}" for file in folder.glob("*.py")}


class Book:
    """Names of variables to their texts, and those that hold the answer of a node."""

    def __init__(self, documents: list[Any]) -> None:
        self.texts: dict[str, str] = {}
        self.raw: set[str] = set()
        clean = actions()
        for task in (task for document in documents for task in tasks(document)):
            if isinstance(task.get("register"), str) and not clean & task.keys():
                self.raw.add(task["register"])
            for holder in ("vars", "ansible.builtin.set_fact"):
                given = task.get(holder)
                for name, value in given.items() if isinstance(given, dict) else ():
                    self.texts[name] = f"{self.texts.get(name, '')} {value}"

    def is_raw(self, text: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a node's answer gets into a template, also by way of other variables."""
        if FILTER in text:
            return False
        names = set(re.findall(r"\b[A-Za-z_]\w*\b", text)) - seen
        if JUDGES.search(text):
            return False
        if names & self.raw or ANSWERS.search(text):
            return True
        return any(self.is_raw(self.texts[name], seen | names) for name in names & self.texts.keys())


def documents_of(files: list[Path]) -> list[Any]:
    return [yaml.safe_load((project.ROOT / file).read_text(encoding="utf-8")) for file in files]


def groups() -> dict[str, list[Path]]:
    """The files that share variables: those of a role, and those of all playbooks."""
    found: dict[str, list[Path]] = {}
    for file in project.source_files():
        if file.suffix == ".yml" and file.parts[0] == "roles" and file.parts[2] in ("tasks", "vars", "handlers"):
            found.setdefault(file.parts[1], []).append(file)
        elif file.suffix == ".yml" and file.parts[0] == "playbooks":
            found.setdefault("playbooks", []).append(file)
    return found


def raw_messages(documents: list[Any]) -> list[str]:
    """The messages that quote a node as it is."""
    plain = [{"vars": one} for one in documents if isinstance(one, dict)]
    book = Book([*documents, *plain])
    said = [
        str(one)
        for document in documents
        for task in tasks(document)
        for name in MESSAGES
        if name in task
        for one in (task[name] if isinstance(task[name], list) else [task[name]])
    ]
    expressions = [(one, part) for one in said for part in re.findall(r"{{.*?}}|{%.*?%}", one, re.DOTALL)]
    return list(dict.fromkeys(one for one, part in expressions if book.is_raw(part)))


@pytest.mark.parametrize("group", groups())
def test_no_message_quotes_a_node_as_it_is(group: str) -> None:
    assert raw_messages(documents_of(groups()[group])) == []


def test_raw_messages_are_found() -> None:
    asked = {"ansible.builtin.command": "true", "register": "__x"}
    ours = {"baremetal.gpu_cluster.gpu_node_facts": None, "register": "__y"}
    through = {"vars": {"__z": "{{ __x.words }}"}}
    for text, is_raw in (
        ("{{ __x.words }}", True),
        ("{{ __z }}", True),
        ("{{ __y.words }}", False),
        ("{{ __y.msg }}", True),
        ("{{ __x.words | baremetal.gpu_cluster.node_text }}", False),
        ("{{ name }} is __x", False),
    ):
        assert bool(raw_messages([[asked, ours, through, {"msg": text}]])) == is_raw, text
