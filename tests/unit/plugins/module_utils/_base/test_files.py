# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files replaced in one step, on a real file system."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import files


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A file under a umask that hardened nodes have."""
    umask = os.umask(0o027)
    found = tmp_path / "file"
    found.write_text("old", encoding="utf-8")
    yield found
    os.umask(umask)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("mode", "expected"), [(None, 0o640), (0o600, 0o600), (0o4755, 0o4755)])
def test_the_mode_is_as_asked_or_as_the_umask_leaves_it(path: Path, mode: int | None, expected: int) -> None:
    path.chmod(0o666)
    files.replace(str(path), "new", mode, owner=(os.getuid(), os.getgid()))
    assert (path.read_text(encoding="utf-8"), mode_of(path)) == ("new", expected)
    assert os.listdir(path.parent) == ["file"]


def test_nobody_else_can_read_a_secret_before_its_mode_is_set(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    chmod = os.chmod
    monkeypatch.setattr(os, "chmod", lambda name, mode: (seen.append(mode_of(Path(name))), chmod(name, mode)))
    files.replace(str(path), "secret", 0o640)
    assert seen == [0o600]


def test_the_owner_is_set_before_the_rename_and_before_the_mode(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []
    for name in ("chown", "chmod", "replace"):
        monkeypatch.setattr(os, name, lambda _path, *rest, name=name: calls.append((name, *rest)))
    files.replace(str(path), "new", 0o640, owner=(12, 34))
    assert calls == [("chown", 12, 34), ("chmod", 0o640), ("replace", str(path))]


@pytest.mark.parametrize("call", ["fsync", "chown", "chmod", "replace"])
def test_a_failure_leaves_the_old_file_and_nothing_else(path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left"):
        files.replace(str(path), "new", 0o600, owner=(os.getuid(), os.getgid()))
    assert (path.read_text(encoding="utf-8"), os.listdir(path.parent)) == ("old", ["file"])


def test_only_what_must_survive_a_loss_of_power_is_synced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.pread(handle, 9, 0) or b"empty"))
    monkeypatch.setattr(os, "O_WRONLY", os.O_RDWR)
    files.replace(str(path), "quick", sync=False)
    files.replace(str(path), "kept")
    assert synced == [b"kept"]


def test_a_link_is_replaced_and_not_what_it_points_to(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    files.replace(str(link), b"\xe9")
    assert not link.is_symlink() and link.read_bytes() == b"\xe9" and path.read_text(encoding="utf-8") == "old"


def test_bytes_that_are_no_text_survive(path: Path) -> None:
    files.replace(str(path), b"caf\xe9\n".decode("utf-8", "surrogateescape"))
    assert path.read_bytes() == b"caf\xe9\n"


def test_two_writers_do_not_meet_and_a_rename_is_up_to_the_caller(path: Path) -> None:
    with files.written_beside(str(path), "one") as one, files.written_beside(str(path), "two") as two:
        assert one != two and {os.path.dirname(one), os.path.dirname(two)} == {str(path.parent)}
        assert os.path.basename(one).startswith(files.PREFIX)
        os.rename(two, path)
    assert (path.read_text(encoding="utf-8"), os.listdir(path.parent)) == ("two", ["file"])
