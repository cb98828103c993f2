# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every program does that waits for a confirmation: its files, its commands, and its way from begin to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import program, ssh_connection


class Lamp(program.Program):
    """Changes one file from dark to light."""

    not_armed = "no lamp"
    broken = ""

    def arm(self) -> None:
        if self.broken == "arm":
            raise OSError(28, "No space left on device")
        self.before = {"lamp": "dark"}
        self.remember()
        self.say("armed")

    def apply(self) -> None:
        self.lamp("light")
        if self.broken == "apply":
            raise program.ChangeError("the bulb burst")

    def keep(self) -> dict[str, Any]:
        if self.broken == "keep":
            raise ZeroDivisionError("oh")
        return {"note": "on"}

    def undo(self, reason: str) -> None:
        self.lamp(self.before["lamp"])
        self.say("undone", reason=reason, restored=True)

    def lamp(self, text: str) -> None:
        Path(self.folder, "lamp").write_text(text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Its process id is beyond what a kernel gives, so nobody is waited for.
    job = {"run_id": "run-1", "client": "192.0.2.1", "confirm_seconds": 0.3, "starter": 2**31}
    (tmp_path / "job.json").write_text(json.dumps(job))
    monkeypatch.setattr(program, "HANDOVER_SECONDS", 0)
    # The program ignores the signal while it takes a change back, and this process outlives it.
    monkeypatch.setattr(program.signal, "signal", lambda number, handler: signal.SIG_DFL)
    return tmp_path


def run(folder: Path, broken: str = "") -> tuple[dict[str, Any], str]:
    lamp = Lamp(str(folder))
    lamp.broken = broken
    lamp.run()
    return json.loads((folder / "state.json").read_text()), (folder / "lamp").read_text() if broken != "arm" else ""


def test_what_is_confirmed_stays(folder: Path) -> None:
    (folder / "confirm").touch()
    state, lamp = run(folder)
    assert (state["state"], state["note"], lamp) == ("confirmed", "on", "light")
    assert state["client"] == "192.0.2.1" and "applied_at" in state


def test_what_nobody_confirms_is_taken_back(folder: Path) -> None:
    state, lamp = run(folder)
    assert (state["state"], lamp, state["own_reason"]) == ("undone", "dark", False)
    assert state["reason"] == "nobody confirmed the change within 0.3 s"


def test_what_the_controller_gives_up_is_taken_back_at_once(folder: Path) -> None:
    (folder / "abort").touch()
    state, lamp = run(folder)
    assert (state["reason"], lamp, state["own_reason"]) == ("the controller gave the change up", "dark", False)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("apply", "the bulb burst"),
        ("keep", "the program that makes the change broke: ZeroDivisionError: oh"),
    ],
)
def test_what_fails_is_taken_back(folder: Path, broken: str, reason: str) -> None:
    (folder / "confirm").touch()
    state, lamp = run(folder, broken)
    assert (state["state"], state["reason"], lamp, state["own_reason"]) == ("undone", reason, "dark", True)


def test_what_cannot_be_prepared_is_not_begun(folder: Path) -> None:
    state, _lamp = run(folder, "arm")
    assert state["state"] == "failed" and state["reason"] == "no lamp: [Errno 28] No space left on device"
    assert not (folder / "lamp").exists()


@pytest.mark.parametrize(("state", "lamp"), [("applied", "dark"), ("confirmed", "light"), ("undone", "light")])
def test_after_its_end_systemd_calls_it_again_and_only_what_is_unsettled_is_taken_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, state: str, lamp: str
) -> None:
    (folder / "state.json").write_text(json.dumps({"state": state}))
    (folder / "before.json").write_text(json.dumps({"lamp": "dark"}))
    (folder / "lamp").write_text("light")
    monkeypatch.setattr(sys, "argv", ["worker", str(folder), program.AFTERWARDS])
    program.main(Lamp)
    assert (folder / "lamp").read_text() == lamp
    if state == "applied":
        assert "was killed" in json.loads((folder / "state.json").read_text())["reason"]


def test_a_program_that_was_killed_before_it_noted_anything_has_changed_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["worker", str(folder), program.AFTERWARDS])
    program.main(Lamp)
    assert not (folder / "lamp").exists()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("192.0.2.1 50022 198.51.100.2 2222", ("192.0.2.1", "198.51.100.2", 2222)),
        ("2001:db8::1 50022 2001:db8::2 22", ("2001:db8::1", "2001:db8::2", 22)),
        ("UNKNOWN 65535 UNKNOWN 65535", ("", "", 0)),
        ("", ("", "", 0)),
    ],
)
def test_the_ssh_connection(text: str, found: tuple[str, str, int]) -> None:
    assert ssh_connection.parse(text) == found


def test_the_ssh_connection_is_found_in_a_parent_that_kept_it() -> None:
    code = (
        "import os, subprocess, sys; sys.path[:0] = os.environ.pop('WAY').split(':'); "
        f"from {ssh_connection.__name__} import current; print(tuple(current()))"
    )
    # As under sudo: the process itself has no such variable, the one that started it has.
    shell = ["sh", "-c", 'env -u SSH_CONNECTION "$0" -c "$1"; :', sys.executable, code]
    variables = {**os.environ, "SSH_CONNECTION": "192.0.2.1 5 198.51.100.2 2222", "WAY": ":".join(sys.path)}
    said = subprocess.run(shell, env=variables, capture_output=True, text=True, check=True).stdout
    assert said.strip() == "('192.0.2.1', '198.51.100.2', 2222)"


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "profile"
    program.write_whole(str(path), "old", 0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    program.write_whole(str(path), "old", 0o644)
    assert path.stat().st_mode & 0o777 == 0o644

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(program.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        program.write_whole(str(path), "new", 0o600)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["profile"]


def test_putting_back(tmp_path: Path) -> None:
    path = tmp_path / "file"
    program.put_back(str(path), None, 0o600)
    program.put_back(str(path), "text", 0o600)
    assert path.read_text() == "text"
    program.put_back(str(path), None, 0o600)
    assert not path.exists()
    assert program.read_text(str(path)) is None


def test_a_command_that_fails_says_what_it_was(tmp_path: Path) -> None:
    with pytest.raises(program.ChangeError, match=r"'sh -c echo why >&2; exit 3' failed: why"):
        program.command("sh", "-c", "echo why >&2; exit 3")
    with pytest.raises(program.ChangeError, match="did not end within 0 s"):
        program.command("sleep", "5", seconds=0.1)
    with pytest.raises(program.ChangeError, match="could not be started: No such file"):
        program.command(str(tmp_path / "nothing"))
