# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the oldest ansible-core is tried with is found by the imports, however long the way is."""

from __future__ import annotations

from pathlib import Path

import imports
import project
import pytest
import run_tests

OURS = "ansible_collections.baremetal.gpu_cluster.plugins.module_utils"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose collection has a module that imports Ansible, one that imports that one, and a plain one."""
    monkeypatch.setattr(project, "ROOT", tmp_path)
    monkeypatch.setattr(imports, "_pytest_path", lambda: (tmp_path / "path",))
    package = tmp_path / "path" / OURS.replace(".", "/")
    package.mkdir(parents=True)
    (package / "near.py").write_text("def late():\n    import ansible.errors\n")
    (package / "far.py").write_text(f"from {OURS} import near\n")
    (package / "plain.py").write_text("import json\n")
    (tmp_path / "tests").mkdir()
    return tmp_path / "tests"


@pytest.mark.parametrize(
    ("text", "reaches"),
    [
        ("import ansible", True),
        ("from ansible.errors import AnsibleError", True),
        ("import ansible_collections.baremetal", False),
        ("import ansible_runner", False),
        (f"from {OURS}.near import late", True),
        (f"from {OURS}.far import anything", True),
        (f"from {OURS} import plain, far", True),
        (f"from {OURS} import plain", False),
        ("import helper", True),
        ("import json", False),
    ],
)
def test_a_file_reaches_what_it_imports_itself_or_through_others(tree: Path, text: str, reaches: bool) -> None:
    (tree / "helper.py").write_text(f"from {OURS} import far\n")
    file = tree / "test_one.py"
    file.write_text(f"{text}\n")
    assert imports.reaching("ansible", [file]) == ([file] if reaches else [])


def test_what_pytest_imports_for_a_file_counts(tree: Path) -> None:
    file = tree / "below" / "test_one.py"
    file.parent.mkdir()
    file.write_text("import json\n")
    (tree / "conftest.py").write_text("import ansible\n")
    assert imports.reaching("ansible", [file]) == [file]


def test_modules_that_import_each_other_come_to_an_end(tree: Path) -> None:
    for one, other in (("left", "right"), ("right", "left")):
        (tree / f"{one}.py").write_text(f"import {other}\n")
    assert imports.reaching("ansible", [tree / "left.py"]) == []


def test_the_oldest_ansible_core_is_tried_with_all_that_is_made_for_it() -> None:
    chosen = run_tests.of_ansible()
    for folder in ("action", "filter", "modules", "plugin_utils"):
        assert f"tests/unit/plugins/{folder}" in chosen
    assert "tests/unit/plugins/module_utils" not in chosen
    # Through a module of the collection, and by an import of its own.
    assert "tests/unit/plugins/module_utils/_inventory/test_checks.py" in chosen
    assert "tests/unit/plugins/module_utils/_cuda/test_versions.py" in chosen
