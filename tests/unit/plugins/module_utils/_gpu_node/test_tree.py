# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root reads files of an environment that may belong to a user: nothing there makes it wait, or read for ever."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import tree


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def large(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(1 << 40)


@pytest.mark.parametrize("make", [pipe, device, large])
def test_what_is_no_file_is_not_read(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "version.py")
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(tree.read(str(tmp_path), "version.py")), daemon=True)
    reader.start()
    reader.join(60)
    assert not reader.is_alive() and len(found[0]) <= 16 << 20


def test_files_are_read() -> None:
    assert tree.read("/", "proc/sys/kernel/ostype") == "Linux"
    assert tree.read("/", "proc") == tree.read("/", "no/such/file") == ""
