# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of the reports: whole files or none, and what is missing is told."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import folder


@contextlib.contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """The kernel refuses to let a file of this process grow beyond it, as a full disk does.  size: in bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_files_are_written_into_a_folder_that_is_made(tmp_path: Path) -> None:
    where = tmp_path / "a" / "b"
    assert folder.write(str(where), {"one": "1\n", "two": "\u2713\n"}) == {}
    assert {path.name: path.read_text(encoding="utf-8") for path in where.iterdir()} == {
        "one": "1\n",
        "two": "\u2713\n",
    }


def test_a_file_that_does_not_fit_leaves_the_old_one_whole_and_the_others_are_written(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("old")
    with no_file_above(1000):
        missing = folder.write(str(tmp_path), {"small": "x" * 500, "large": "x" * 5000, "last": "y"})
    assert missing == {"large": "File too large"}
    assert (tmp_path / "large").read_text() == "old" and (tmp_path / "last").read_text() == "y"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large", "last", "small"], "nothing half-written"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    where = str(tmp_path / "file" / "reports")
    assert folder.write(where, {"one": "", "two": ""}) == dict.fromkeys(("one", "two"), "Not a directory")
    assert folder.problem(where, 3) == f"the reports cannot be written to {where}: Not a directory"
    assert folder.earlier(where, "one") == ""


def test_two_checks_at_once_do_not_write_into_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one has opened its file and not renamed it yet."""
    names = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: (names.append(old), replace(old, new)))
    folder.write(str(tmp_path), {"report.json": "a"})
    monkeypatch.setattr(os, "getpid", lambda: 1)
    folder.write(str(tmp_path), {"report.json": "b"})
    assert len(set(names)) == 2


def test_a_folder_that_will_do_is_left_as_it_was(tmp_path: Path) -> None:
    assert folder.problem(str(tmp_path / "new"), 3) == ""
    assert list((tmp_path / "new").iterdir()) == []


def test_a_disk_on_which_nothing_can_be_written_any_more(tmp_path: Path) -> None:
    with no_file_above(0):
        assert folder.problem(str(tmp_path), 3).endswith(": File too large")
    assert list(tmp_path.iterdir()) == []


def test_little_room_is_named_with_what_is_needed(tmp_path: Path) -> None:
    """So many members that no disk has the room: the larger the cluster, the larger its mesh."""
    assert folder.needed_bytes(64) < 5 * folder.MIB < folder.needed_bytes(1000)
    trouble = folder.problem(str(tmp_path), 10**9)
    assert trouble.startswith(f"{tmp_path} has ") and "the reports of 1000000000 members need" in trouble


def test_the_finding_names_the_file_and_why_and_blames_no_node() -> None:
    assert folder.finding("/r", {}, "") is None
    missing = folder.finding("/r", {"report.json": "No space left on device"}, "/r has 0 MiB free")
    assert missing is not None
    assert (missing.id, missing.severity, missing.hosts) == ("GC-FILE-001", "warning", ())
    assert missing.cause == (
        "report.json of this run could not be written to /r on the controller: No space left on device"
    )
    assert missing.evidence == ("report.json: No space left on device", "/r has 0 MiB free")
    little = folder.finding("/r", {}, "/r has 1 MiB free, the reports of 3 members need 5")
    assert little is not None
    assert little.cause == "on the controller: /r has 1 MiB free, the reports of 3 members need 5"
    assert little.about.label == "the controller"
