# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files for a scheduler: beside the inventory, in check mode none, and what changes is told."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.action import handoff_files

FILES = {"a.yml": "a: 1\n", "b.yml": "b: 1\n"}


@pytest.fixture(name="prod")
def make_inventory(tmp_path: Path) -> Path:
    (tmp_path / "prod" / "group_vars").mkdir(parents=True)
    return tmp_path / "prod"


def run(prod: Path, monkeypatch: pytest.MonkeyPatch, *, check: bool = False, **given: Any) -> dict[str, Any]:
    action = handoff_files.ActionModule.__new__(handoff_files.ActionModule)
    action._task = SimpleNamespace(check_mode=check, diff=True)
    arguments = {"name": "kubernetes", "files": FILES, "dest": "", **given}
    monkeypatch.setattr(handoff_files.ActionBase, "run", lambda *_arguments: {})
    monkeypatch.setattr(action, "validate_argument_spec", lambda **_arguments: (None, arguments))
    done: dict[str, Any] = action.run(task_vars={"ansible_inventory_sources": [str(prod)]})
    return done


def test_the_folder_lies_beside_the_inventory_and_a_second_run_changes_nothing(
    prod: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = prod.parent / "kubernetes" / "prod"
    first = run(prod, monkeypatch)
    assert first["changed"] and first["path"] == str(folder) and first["written"] == ["a.yml", "b.yml"]
    assert first["msg"] == f"{folder}: written a.yml, b.yml"
    assert sorted(path.name for path in folder.iterdir()) == ["a.yml", "b.yml"]
    second = run(prod, monkeypatch)
    assert not second["changed"] and second["msg"] == f"{folder}: nothing changed" and second["diff"] == []


def test_check_mode_says_what_would_be_written_and_writes_nothing(prod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(prod, monkeypatch)
    told = run(prod, monkeypatch, check=True, files={"a.yml": "a: 2\n"})
    assert told["changed"] and told["written"] == ["a.yml"] and told["removed"] == ["b.yml"]
    assert "would be written: a.yml" in told["msg"] and "would be removed: b.yml" in told["msg"]
    assert [(one["before"][-5:], one["after"][-5:]) for one in told["diff"]] == [("a: 1\n", "a: 2\n"), ("b: 1\n", "")]
    assert sorted(path.name for path in (prod.parent / "kubernetes" / "prod").iterdir()) == ["a.yml", "b.yml"]


def test_an_edited_file_refuses_the_run(prod: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run(prod, monkeypatch, dest=str(tmp_path / "own"))
    (tmp_path / "own" / "a.yml").write_text("mine\n", encoding="utf-8")
    done = run(prod, monkeypatch, dest=str(tmp_path / "own"), files={**FILES, "b.yml": "b: 2\n"})
    assert (
        done["failed"]
        and not done["changed"]
        and "a.yml was edited since baremetal.gpu_cluster.kubernetes" in done["msg"]
    )
    assert (tmp_path / "own" / "b.yml").read_text(encoding="utf-8").endswith("b: 1\n")


def test_a_folder_that_cannot_be_made_is_an_answer(prod: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = run(prod, monkeypatch, dest=str(tmp_path / "file" / "below"))
    assert done["failed"] and "Nothing was written" in done["msg"]
