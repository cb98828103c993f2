# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module shared_mounts: what needs no mount. The rest is tried on nodes."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import CommandError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import (
    mounting,
    obstacles,
    settle,
    spec,
    units,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import node as reading
from ansible_collections.baremetal.gpu_cluster.plugins.modules import shared_mounts

MOUNT = spec.Mount("/data", "nas.example.com:/data", "nfs4", "", True, "mounted")


def node(user: str = "") -> Any:
    """The node without Ansible."""
    return reading.Node(SimpleNamespace(params={"timeout_seconds": 1, "user": user}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "rule"),
    [
        ({"root": [1, 1], "entries": [], "writable": True}, None),
        ({"root": [1, 1], "entries": [], "writable": False}, obstacles.ERR_READ_ONLY % "root"),
        ({"hangs": True}, obstacles.ERR_HANGS % (MOUNT.source, 1)),
        ({"error": "Stale file handle", "errno": errno.ESTALE}, obstacles.ERR_STALE % MOUNT.source),
        (
            {"error": "Permission denied", "errno": errno.EACCES},
            obstacles.ERR_UNREADABLE % ("root", "Permission denied"),
        ),
    ],
)
def test_what_was_seen_is_judged(found: dict[str, Any], rule: str | None) -> None:
    assert [problem.rule for problem in obstacles.judge(MOUNT, found, "", 1)] == ([rule] if rule else [])
    if "writable" in found:
        assert obstacles.judge(MOUNT._replace(writable=False), found, "", 1) == []


def test_paths_of_fstab() -> None:
    text = "# /dev/a /comment ext4\nUUID=1 / xfs defaults 0 0\n\nnas:/x\t/data/  nfs4 ro 0 0\nbroken\n"
    assert obstacles.fstab_paths(text) == ["/", "/data"]


def test_the_example_of_the_documentation() -> None:
    (task,) = yaml.safe_load(shared_mounts.EXAMPLES)
    mounts, problems = spec.read(task["baremetal.gpu_cluster.shared_mounts"]["mounts"])
    assert problems == [] and {mount.type for mount in mounts} == {"nfs4", "lustre"}


class Systemd:
    """Mount units and the kernel's list of mounts as systemd keeps them; no program runs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mountinfo = folder / "mountinfo"
        self.mountinfo.write_text("")
        self.starts = 0
        self.is_down = False
        self.path = str(folder / "data")
        self.warnings: list[str] = []
        monkeypatch.setattr(reading, "MOUNTINFO", str(self.mountinfo))
        monkeypatch.setattr(reading, "NOTES", str(folder / "notes"))
        monkeypatch.setattr(settle, "is_enabled", lambda mount: True)
        monkeypatch.setattr(units, "FOLDER", str(folder / "units"))
        monkeypatch.setattr(reading.deadline, "run", self.run)

    def run(self, argv: list[str], seconds: int, what: str) -> str:
        if "start" in argv and self.is_down:
            raise CommandError("systemctl start failed")
        if "start" in argv:
            self.starts += 1
            self.mountinfo.write_text(f"1 1 0:1 / {self.path} rw - tmpfs tmpfs rw\n")
        if "stop" in argv:
            self.mountinfo.write_text("")
        return f"{self.starts}\n" if "show" in argv else ""

    def settle(
        self, options: str, unmount_ok: bool = False, check_mode: bool = False, seconds: int = 9
    ) -> tuple[bool, bool]:
        """Whether it changed something, and whether it warned."""
        self.warnings = []
        module = SimpleNamespace(
            params={"timeout_seconds": seconds, "user": "", "unmount_ok": unmount_ok},
            check_mode=check_mode,
            warn=self.warnings.append,
            atomic_move=os.rename,
            set_mode_if_different=lambda path, mode, changed: changed,
        )
        mount = spec.Mount(self.path, "tmpfs", "tmpfs", options, False, "mounted")
        changes, problems = settle.settle(reading.Node(module), mount)  # type: ignore[arg-type]
        self.problems = [problem.rule for problem in problems]
        assert self.is_down or not problems
        return bool(changes), bool(self.warnings)


def test_other_options_come_with_consent_also_in_a_later_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd = Systemd(tmp_path, monkeypatch)
    assert systemd.settle("size=1m") == (True, False) and systemd.starts == 1
    # Without consent the unit is written, and every run says that what is mounted is older.
    assert systemd.settle("size=2m") == (True, True) and systemd.starts == 1
    assert systemd.settle("size=2m") == (False, True) and systemd.starts == 1
    assert systemd.settle("size=2m", unmount_ok=True, check_mode=True) == (True, False) and systemd.starts == 1
    assert systemd.settle("size=2m", unmount_ok=True) == (True, False) and systemd.starts == 2
    assert systemd.settle("size=2m", unmount_ok=True) == (False, False) and systemd.starts == 2
    assert list((tmp_path / "notes").iterdir()) == []


@pytest.mark.parametrize("unmount_ok", [True, False])
def test_another_source_needs_consent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unmount_ok: bool) -> None:
    systemd = Systemd(tmp_path, monkeypatch)
    systemd.settle("size=1m")
    systemd.mountinfo.write_text(f"1 1 0:1 / {systemd.path} rw - nfs4 nas:/old rw\n")
    monkeypatch.setattr(spec, "HELPERS", {"nfs4": "/"})
    params = {"timeout_seconds": 1, "user": "", "unmount_ok": unmount_ok}
    found = reading.Node(SimpleNamespace(params=params, check_mode=False))  # type: ignore[arg-type]
    wanted = spec.Mount(systemd.path, "nas:/new", "nfs4", "", False, "mounted")
    told = [problem.rule for problem in obstacles.problems_at(found, wanted)]
    assert told == ([] if unmount_ok else [obstacles.ERR_SOURCE % "nas:/old"])


def test_a_server_that_goes_away_between_is_told_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd = Systemd(tmp_path, monkeypatch)
    systemd.settle("size=1m")
    systemd.is_down = True
    assert systemd.settle("size=2m", unmount_ok=True) == (False, False)
    reason = "systemctl start failed"
    assert systemd.problems == [
        mounting.ERR_NOT_MOUNTED % ("tmpfs", reason),
        mounting.ERR_NOT_BACK % reason,
    ]
    # The unit is the old one, so the next run goes on from there.
    systemd.is_down = False
    assert systemd.settle("size=1m") == (True, False) and systemd.starts == 2


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd = Systemd(tmp_path, monkeypatch)
    systemd.is_down = True
    systemd.path = "/proc/data"
    assert systemd.settle("size=1m") == (False, False)
    assert systemd.problems == [mounting.ERR_FOLDER % "No such file or directory"]


def test_another_deadline_leaves_the_mount_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd = Systemd(tmp_path, monkeypatch)
    systemd.settle("size=1m")
    assert systemd.settle("size=1m", seconds=40) == (True, False)
    assert systemd.settle("size=1m", seconds=50, unmount_ok=True) == (True, False) and systemd.starts == 1


def test_what_was_mounted_again_by_hand_is_not_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd = Systemd(tmp_path, monkeypatch)
    systemd.settle("size=1m")
    systemd.settle("size=2m")
    systemd.run(["systemctl", "start"], 1, "by hand")
    assert systemd.settle("size=2m") == (False, False)


def test_a_path_in_storage_that_hangs_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd = Systemd(tmp_path, monkeypatch)
    systemd.run(["systemctl", "start"], 1, "the storage above")
    asked: list[str] = []

    def hangs(path: str, user: str, seconds: float) -> dict[str, Any]:
        asked.append(path)
        return {"hangs": True}

    monkeypatch.setattr(reading.look, "look", hangs)
    inside = MOUNT._replace(path=f"{systemd.path}/inside", type="tmpfs")
    (problem,) = obstacles.problems_at(node(), inside)
    assert problem.rule == obstacles.ERR_ABOVE % (systemd.path, "tmpfs", 1) and asked == [systemd.path]
