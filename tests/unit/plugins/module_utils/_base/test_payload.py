# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a program imports of this collection is found in its text, as Python's own parser finds it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

import project
import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import begin, facts_step, launch, steps
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import limits
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import step as facts
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher import main, rank

ROOT = project.ROOT / "plugins" / "module_utils"
FILES = sorted(path for path in ROOT.rglob("*.py") if f"from {payload.COLLECTION}" in path.read_text())


def parsed(text: str) -> set[tuple[str, str]]:
    """Each module and what is taken out of it."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return {(str(node.module), one.name) for node in found for one in node.names}


def searched(text: str) -> set[tuple[str, str]]:
    """The same, as the program looks for it."""
    return {
        (module, word)
        for module, in_parentheses, in_line in payload.IMPORT.findall(text)
        for word in payload.WORD.findall(in_parentheses or in_line)
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_import_of_this_collection_is_found(path: Path) -> None:
    text = path.read_text()
    wanted = {one for one in parsed(text) if one[0].startswith(payload.COLLECTION)}
    # The new name of something that is renamed is found too, and is no module.
    assert wanted and wanted <= searched(text)
    assert {f"{module}.{word}" for module, word in searched(text) - wanted}.isdisjoint(sys.modules)


def test_each_source_is_there_once_with_all_that_it_needs() -> None:
    found = payload.needed([begin])
    names = {module.__name__ for module in (*launch.PROGRAMS, begin, launch, limits, steps)}
    assert names <= found.keys() and list(found) == sorted(found)
    for text in found.values():
        for module, word in parsed(text):
            one = sys.modules.get(f"{module}.{word}", sys.modules.get(module))
            if module.startswith(payload.COLLECTION):
                assert one and one.__name__ in found, (module, word)


def test_what_a_function_imports_goes_along_before_it_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, rank.__name__)
    assert rank.__name__ in payload.needed([main])


@pytest.mark.parametrize("program", [begin, facts, facts_step], ids=["launch", "facts", "look"])
def test_a_node_is_sent_nothing_that_judges_an_inventory(program: ModuleType) -> None:
    """It would be compiled there in every run."""
    names = [name.rpartition("module_utils.")[2] for name in payload.needed([program])]
    assert not [name for name in names if name.startswith(("_inventory.", "_port_plan", "_host_preflight"))]
