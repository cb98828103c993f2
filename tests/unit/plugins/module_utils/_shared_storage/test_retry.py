# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timer that mounts again: there as long as a mount of ours waits for the network, and gone afterwards."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import node as reading
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage import retry, spec, units

NFS = spec.Mount("/data", "nas:/data", "nfs4", "", False, "mounted")
LOCAL = spec.Mount("/memory", "tmpfs", "tmpfs", "", False, "mounted")


@pytest.fixture(name="folder")
def fixture_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(units, "FOLDER", str(tmp_path))
    return tmp_path


def settle(monkeypatch: pytest.MonkeyPatch, *mounts: spec.Mount, check_mode: bool = False) -> tuple[int, list[str]]:
    """How many files were changed, and what systemctl was told."""
    told: list[str] = []
    module: Any = SimpleNamespace(
        params={"timeout_seconds": 9, "user": ""},
        check_mode=check_mode,
        atomic_move=os.rename,
        set_mode_if_different=lambda path, mode, changed: changed,
    )
    monkeypatch.setattr(reading.deadline, "run", lambda argv, seconds, what: told.append(" ".join(argv[2:])) or "")
    return len(retry.settle(reading.Node(module), mounts)), told


def test_it_comes_once_with_a_mount_of_the_network_and_goes_with_the_last(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settle(monkeypatch, LOCAL) == (0, [])
    assert settle(monkeypatch, NFS, check_mode=True) == (2, []) and not list(folder.iterdir())
    assert settle(monkeypatch, NFS) == (2, ["daemon-reload", f"enable --now {retry.TIMER}"])
    assert settle(monkeypatch, NFS) == (0, [])
    # One of an earlier run, which this run does not name.
    (folder / "sets.mount").write_text(units.unit_text(NFS._replace(path="/sets"), 30))
    gone = NFS._replace(state="absent")
    assert settle(monkeypatch, gone) == (0, [])
    (folder / "sets.mount").unlink()
    assert settle(monkeypatch, gone) == (2, [f"disable --now {retry.TIMER}", "daemon-reload"])
    assert list(folder.iterdir()) == []


def test_the_shell_gets_its_own_variable(folder: Path) -> None:
    """systemd replaces $NAME, and reads $$ as one sign (systemd.service(5), "Command lines")."""
    text = retry.texts(True)[retry.SERVICE]
    assert f'"^{units.OURS}" "{folder}/$$unit"' in text and "$unit" not in text.replace("$$unit", "")
