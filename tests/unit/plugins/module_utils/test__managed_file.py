# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files replaced in one step, on a real file system."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    read_text,
    replace_file,
    restore_file,
)


class Module:
    """The part of AnsibleModule that is used; it can refuse."""

    def __init__(self, refuse: bool = False) -> None:
        self.refuse = refuse

    def atomic_move(self, src: str, dest: str) -> None:
        if self.refuse:
            raise OSError("refused")
        os.rename(src, dest)

    def set_mode_if_different(self, path: str, mode: int, changed: bool) -> bool:
        os.chmod(path, mode)
        return True


def test_a_new_file_in_a_new_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    replace_file(Module(), str(path), "text\n", 0o600)
    assert read_text(str(path)) == "text\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_everybody_may_enter_new_folders_under_a_strict_umask(tmp_path: Path) -> None:
    # Hardened nodes have 027 or 077, and a user of the cluster has to read what is written.
    before = os.umask(0o077)
    try:
        replace_file(Module(), str(tmp_path / "new" / "folder" / "file"), "text\n")
    finally:
        os.umask(before)
    folders = (tmp_path / "new", tmp_path / "new" / "folder")
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o755, 0o755]


def test_a_refused_move_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(OSError, match="refused"):
        replace_file(Module(refuse=True), str(path), "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert read_text(str(path)) == "old"


def test_bytes_that_are_no_text_survive(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"caf\xe9\n")
    replace_file(Module(), str(path), read_text(str(path)))
    assert path.read_bytes() == b"caf\xe9\n"


def test_restoring_what_was_there_and_what_was_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    restore_file(Module(), str(path), "old", existed=True)
    assert read_text(str(path)) == "old"
    restore_file(Module(), str(path), "", existed=False)
    restore_file(Module(), str(path), "", existed=False)
    assert not path.exists()
    assert read_text(str(path)) == ""
