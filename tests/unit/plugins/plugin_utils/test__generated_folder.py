# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of generated files: whole or not at all, and never over the work of a person."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _generated_folder
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._generated_file import is_unedited

BY = "baremetal.gpu_cluster.kubernetes"
TEXTS = {"a.yml": "a: 1\n", "b.sh": "echo b\n"}


def write(folder: Path, texts: dict[str, str], by: str = BY) -> list[str]:
    plan = _generated_folder.plan(str(folder), texts, by)
    _generated_folder.write(plan)
    return plan.changed()


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}


def test_all_files_are_there_with_a_mark_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "kubernetes" / "prod"
    assert write(folder, TEXTS) == ["a.yml", "b.sh"]
    before = content(folder)
    assert all(is_unedited(text) and text.endswith(TEXTS[name]) for name, text in before.items())
    assert write(folder, TEXTS) == [] and content(folder) == before


def test_a_plan_alone_writes_nothing(tmp_path: Path) -> None:
    assert _generated_folder.plan(str(tmp_path / "x"), TEXTS, BY).changed() == ["a.yml", "b.sh"]
    assert list(tmp_path.iterdir()) == []


def test_an_edited_file_keeps_all_of_them(tmp_path: Path) -> None:
    write(tmp_path, TEXTS)
    (tmp_path / "b.sh").write_text((tmp_path / "b.sh").read_text(encoding="utf-8") + "mine\n", encoding="utf-8")
    before = content(tmp_path)
    with pytest.raises(
        _generated_folder.Refused, match=r"b\.sh was edited since baremetal\.gpu_cluster\.kubernetes wrote"
    ):
        write(tmp_path, {"a.yml": "a: 2\n", "b.sh": "echo b\n"})
    assert content(tmp_path) == before


def test_all_reasons_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("by hand\n", encoding="utf-8")
    (tmp_path / "b.sh").mkdir()
    with pytest.raises(_generated_folder.Refused) as caught:
        write(tmp_path, TEXTS)
    assert [reason.split(str(tmp_path))[1][:6] for reason in caught.value.reasons] == ["/a.yml", "/b.sh:"]


def test_what_is_no_longer_written_goes_and_what_others_wrote_stays(tmp_path: Path) -> None:
    write(tmp_path, {"old.yml": "x: 1\n", "edited.yml": "x: 1\n", **TEXTS})
    (tmp_path / "edited.yml").write_text("x: 2\n", encoding="utf-8")
    (tmp_path / "own.txt").write_text("own\n", encoding="utf-8")
    write(tmp_path / "other", {"slurm.conf": ""}, by="baremetal.gpu_cluster.slurm")
    (tmp_path / "other" / "slurm.conf").rename(tmp_path / "slurm.conf")
    (tmp_path / "other").rmdir()
    assert write(tmp_path, TEXTS) == ["old.yml"]
    assert list(content(tmp_path)) == ["a.yml", "b.sh", "edited.yml", "own.txt", "slurm.conf"]


def test_a_file_in_the_place_of_the_folder_and_names_that_leave_it_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(_generated_folder.Refused, match="no folder"):
        write(tmp_path / "file", TEXTS)
    with pytest.raises(_generated_folder.Refused, match="expected the name of a file"):
        write(tmp_path, {"../a.yml": ""})


@pytest.mark.parametrize("number", [1, 2])
def test_an_error_in_between_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    write(tmp_path, TEXTS)
    before = content(tmp_path)
    real, calls = os.replace, []

    def replace(one: str, other: str) -> None:
        calls.append(other)
        if len(calls) == number:
            raise OSError(errno.ENOSPC, "No space left on device", other)
        real(one, other)

    monkeypatch.setattr(_generated_folder.os, "replace", replace)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, {"a.yml": "a: 2\n", "b.sh": "echo 2\n", "c.yml": "c: 1\n"})
    monkeypatch.undo()
    assert content(tmp_path) == before


def test_a_folder_that_could_not_be_filled_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_named: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_generated_folder.files, "written_beside", full)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "kubernetes" / "prod", TEXTS)
    assert list(tmp_path.iterdir()) == []
