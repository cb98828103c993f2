# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Storage that does not answer, is stale, or is only far away. A dead file server is a program that sleeps here."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import home, question, silence, spec

MOUNTINFO = """\
21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 21 0:43 / /data rw,relatime shared:170 - nfs4 nas:/export/data rw,vers=4.2
41 21 0:44 / /data/my\\040sets rw shared:171 - lustre 192.0.2.5@tcp:/scratch rw
42 21 0:45 / /run rw - tmpfs tmpfs rw
"""


@pytest.fixture(name="dead")
def fixture_dead(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A path whose server never answers, within this process."""
    over, real = threading.Event(), os.statvfs

    def ask(path: str) -> os.statvfs_result:
        if path.startswith("/dead"):
            over.wait(60)
        return real(path)

    monkeypatch.setattr(os, "stat", lambda path: None)
    monkeypatch.setattr(os, "statvfs", ask)
    yield "/dead/server"
    over.set()


def test_a_path_that_hangs_costs_the_others_nothing(tmp_path: Path, dead: str) -> None:
    began = time.monotonic()
    found = question.look_at([dead, str(tmp_path)], 0.3)
    assert list(found) == [str(tmp_path)] and found[str(tmp_path)]["free_bytes"] > 0
    assert time.monotonic() - began < 30


def test_the_nearest_folder_that_exists_answers_for_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    missing, below_a_file = str(tmp_path / "a" / "b"), str(tmp_path / "file" / "b")
    found = silence.ask([str(tmp_path), missing, below_a_file])
    assert found[missing] == found[str(tmp_path)]._replace(free_bytes=found[missing].free_bytes)
    assert (found[below_a_file].place, found[below_a_file].silent) == (str(tmp_path / "file"), False)


def test_a_program_that_says_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence.payload, "source", lambda module: "import time; time.sleep(600)")
    monkeypatch.setattr(silence, "START_SECONDS", 0)
    assert silence.ask(["/data"], seconds=1) == {"/data": silence.Answer(True)}


def test_mounts_of_other_machines(tmp_path: Path) -> None:
    assert [one.path for one in silence.remote_mounts(MOUNTINFO)] == ["/data", "/data/my sets"]
    for path, mounted in (("/data/my sets/x", "/data/my sets"), ("/data2", "/"), ("/data", "/data")):
        found = silence.mount_of(path, MOUNTINFO)
        assert found is not None and found.path == mounted


def test_what_hangs_and_what_is_stale_are_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTINFO)
    monkeypatch.setattr(silence, "MOUNTINFO", str(tmp_path / "mountinfo"))
    stale = silence.Answer(False, "/data/my sets", 0, "Stale file handle", errno.ESTALE)
    monkeypatch.setattr(silence, "ask", lambda paths, seconds: dict(zip(paths, (silence.Answer(True), stale))))
    hangs, handle = (problem.sentence() for problem in silence.problems(seconds=7))
    assert "/data (nfs4, from nas:/export/data)" in hangs and "does not answer within 7 s" in hangs
    assert "umount -l /data" in hangs
    assert "/data/my sets (lustre, from 192.0.2.5@tcp:/scratch)" in handle and "its handle is stale" in handle


def test_without_such_mounts_no_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTINFO.splitlines()[0])
    monkeypatch.setattr(silence, "MOUNTINFO", str(tmp_path / "mountinfo"))
    monkeypatch.setattr(silence, "ask", None)
    assert silence.problems() == []


@pytest.mark.parametrize(
    ("kind", "enforce", "boolean", "path", "told"),
    [
        ("nfs4", "1", "0 0", "/", True),
        ("nfs4", "1", "1 1", "/", False),
        ("nfs4", "0", "0 0", "/", False),
        ("nfs4", "", "", "/", False),
        ("tmpfs", "1", "0 0", "/", False),
        ("nfs4", "1", "0 0", "/elsewhere", False),
    ],
)
def test_a_home_that_selinux_keeps_from_sshd(
    tmp_path: Path, kind: str, enforce: str, boolean: str, path: str, told: bool
) -> None:
    if enforce:
        (tmp_path / "booleans").mkdir()
        (tmp_path / "enforce").write_text(enforce)
        (tmp_path / "booleans" / home.BOOLEAN).write_text(boolean)
    above = "/root" if path == "/" else path
    mount = spec.Mount(above, "nas:/home", kind, "", True, "mounted")
    found = home.warnings(mount, "root", str(tmp_path))
    assert bool(found) is told
    assert not told or "selinux_policy_booleans: {use_nfs_home_dirs: true}" in found[0]
    assert home.warnings(mount, "no such user", str(tmp_path)) == home.warnings(mount, "", str(tmp_path)) == []
