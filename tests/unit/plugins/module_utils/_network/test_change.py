# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting a change on the node, and what is found of earlier ones."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import change as confirmed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import (
    BusyError,
    ChangeError,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import change, worker

IDLE = {"is-active": "inactive\n"}
CHECKPOINT = "/org/freedesktop/NetworkManager/Checkpoint/7"


class Commands:
    """Records what is run; answers by the first words that fit."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.seen: list[list[str]] = []

    def __call__(self, argv: list[str], **options: Any) -> tuple[int, str, str]:
        self.seen.append(argv)
        line = " ".join(argv)
        for words, answer in self.answers.items():
            if words in line:
                return 0, answer, ""
        return 0, "", ""

    def ran(self, words: str) -> bool:
        return any(words in " ".join(argv) for argv in self.seen)


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(change, "NETWORK", dataclasses.replace(change.NETWORK, base=str(tmp_path / "base")))
    monkeypatch.setattr(worker, "RUNTIME", str(tmp_path / "run"))
    monkeypatch.setattr(worker, "PERSISTENT", str(tmp_path / "etc"))
    (tmp_path / "base").mkdir()
    (tmp_path / "run").mkdir()
    return tmp_path / "base"


def earlier(base: Path, state: str, **more: Any) -> Path:
    """A run that left its folder behind."""
    folder = base / "run-1"
    folder.mkdir()
    written = {
        "run_id": "run-1",
        "state": state,
        "client": "192.0.2.1",
        "started": "05:12:04",
        "checkpoint": CHECKPOINT,
        "deadline": time.time() + 30,
        **more,
    }
    (folder / "state.json").write_text(json.dumps(written))
    job = {"run_id": "run-1", "client": "", "confirm_seconds": 60}
    (folder / "job.json").write_text(json.dumps({**job, "profiles": [{"name": "gpu-cluster-eth0.nmconnection"}]}))
    (folder / "before.json").write_text(json.dumps({"interfaces": {}, "routes": [], "digests": {}, "active": {}}))
    return folder


def test_nothing_earlier(base: Path) -> None:
    (base / "Not a run").mkdir()
    assert change.clear_way(Commands(IDLE), check_mode=False) == []


def test_a_change_of_another_run_is_named_and_left_alone(base: Path) -> None:
    folder = earlier(base, "applied")
    with pytest.raises(
        ChangeError, match=r"run-1, started at 05:12:04 from 192\.0\.2\.1.* undone in (29|30) s"
    ) as busy:
        change.clear_way(Commands({"is-active": "active\n"}), check_mode=False)
    # The program may still need time for bringing the old state back.
    assert isinstance(busy.value, BusyError) and 119 <= busy.value.seconds <= 121
    assert folder.exists()
    assert change.clear_way(Commands({"is-active": "active\n"}), check_mode=True) == []


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_change_that_was_undone_while_nobody_looked_is_told_once(base: Path, check_mode: bool) -> None:
    folder = earlier(base, "undone", restored=True, reason="nobody confirmed the change within 60 s")
    notes = change.clear_way(Commands(IDLE), check_mode=check_mode)
    assert len(notes) == 1 and "run-1, 05:12:04" in notes[0] and "nobody confirmed" in notes[0]
    assert folder.exists() is check_mode


def test_a_change_whose_end_was_heard_is_not_told_again(base: Path) -> None:
    folder = earlier(base, "undone", restored=True, reason="x")
    change.NETWORK.mark_seen("run-1")
    assert change.clear_way(Commands(IDLE), check_mode=False) == []
    assert not folder.exists()


def test_what_was_not_brought_back_is_told(base: Path) -> None:
    earlier(base, "undone", restored=False, differences=["eth0 has no address"], reason="x")
    (note,) = change.clear_way(Commands(IDLE), check_mode=False)
    assert "eth0 has no address" in note


@pytest.fixture
def commands_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []

    def command(*argv: str, **options: Any) -> str:
        seen.append(" ".join(argv))
        return "[]" if argv[0] == "ip" else ""

    monkeypatch.setattr(worker, "command", command)
    return seen


def test_what_a_killed_program_left_is_taken_back(base: Path, commands_of_the_worker: list[str]) -> None:
    earlier(base, "applied")
    profile = Path(worker.RUNTIME) / "gpu-cluster-eth0.nmconnection"
    profile.write_text("x")
    foreign = Path(worker.RUNTIME) / "lo.nmconnection"
    foreign.write_text("x")
    (note,) = change.clear_way(Commands(IDLE), check_mode=False)
    assert "killed" in note and any(f"CheckpointRollback o {CHECKPOINT}" in line for line in commands_of_the_worker)
    assert not profile.exists() and foreign.exists() and "nmcli connection reload" in commands_of_the_worker


def test_a_program_that_is_killed_while_a_controller_waits_is_replaced(
    base: Path, commands_of_the_worker: list[str]
) -> None:
    earlier(base, "applied")
    state = change.NETWORK.wait_for_end(Commands(IDLE), "run-1", 5)
    assert state["state"] == "undone" and state["restored"] and "killed" in state["reason"]


def test_a_program_that_runs_is_waited_for_and_not_replaced(base: Path, commands_of_the_worker: list[str]) -> None:
    earlier(base, "applied")
    state = change.NETWORK.wait_for_end(Commands({"is-active": "active\n"}), "run-1", 0)
    assert state["state"] == "applied" and commands_of_the_worker == []


def test_a_checkpoint_of_another_program_is_named_and_not_touched(base: Path) -> None:
    created = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)
    held = {"Checkpoints": f'ao 1 "{CHECKPOINT}"\n', "RollbackTimeout": f"x {created}\nu 40\n"}
    commands = Commands({**IDLE, **held})
    with pytest.raises(ChangeError, match=r"not ours \(.*Checkpoint/7, it ends by itself in (39|40) s\)"):
        change.clear_way(commands, check_mode=False)
    # It has an end, so the action waits for it. One without an end is nothing to wait for.
    with pytest.raises(BusyError) as busy:
        change.clear_way(commands, check_mode=False)
    assert 38 <= busy.value.seconds <= 41
    endless = Commands({**IDLE, **held, "RollbackTimeout": f"x {created}\nu 0\n"})
    with pytest.raises(ChangeError, match="it has no end") as refused:
        change.clear_way(endless, check_mode=False)
    assert not isinstance(refused.value, BusyError)
    assert not commands.ran("CheckpointRollback") and not commands.ran("call")


def test_a_checkpoint_without_an_end() -> None:
    assert change.parse_checkpoint("x 1000\nu 0\n", 5000) == 0
    assert change.parse_checkpoint("x 1000\nu 10\n", 5000) == 6
    assert change.parse_checkpoint("x 1000\nu 2\n", 9000) == 1


@pytest.mark.parametrize("run_id", ["", "a", "../../etc", "Run-1", "x" * 41])
def test_a_run_id_is_no_path(run_id: str) -> None:
    with pytest.raises(ChangeError, match="run_id"):
        change.NETWORK.folder_of(run_id)


def test_a_start_that_systemd_refuses_leaves_nothing(base: Path) -> None:
    def refuse(argv: list[str], **options: Any) -> tuple[int, str, str]:
        return 1, "", "Unit gpu-cluster-network.service was already loaded"

    job = {"run_id": "run-2", "confirm_seconds": 60}
    with pytest.raises(ChangeError, match="nothing was changed: systemd-run ended with 1: Unit gpu"):
        change.start(refuse, job)
    assert not (base / "run-2").exists()


def test_the_state_after_the_start(base: Path) -> None:
    def run(argv: list[str], **options: Any) -> tuple[int, str, str]:
        folder = Path(argv[-1])
        files = sorted(path.name for path in (folder / "payload").rglob("*.py"))
        assert files == ["command.py", "files.py", "iproute.py", "program.py", "worker.py"] and worker.__name__ in argv
        job = json.loads((folder / "job.json").read_text())
        state = {"state": "armed", "deadline": time.time() + job["confirm_seconds"]}
        (folder / "state.json").write_text(json.dumps(state))
        return 0, "", ""

    state = change.start(run, {"run_id": "run-2", "confirm_seconds": 60})
    assert state["state"] == "armed" and 59 < state["left"] <= 60


@pytest.mark.parametrize(("confirm_seconds", "waited"), [(15, 20), (60, 20), (180, 60)])
def test_a_program_that_says_nothing_has_its_share_of_the_time_to_confirm(
    base: Path, monkeypatch: pytest.MonkeyPatch, confirm_seconds: int, waited: int
) -> None:
    clock = [0.0]
    monkeypatch.setattr(confirmed.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(confirmed.time, "sleep", lambda seconds: clock.append(clock.pop() + seconds))
    commands: list[list[str]] = []

    def run(argv: list[str], **options: Any) -> tuple[int, str, str]:
        commands.append(argv)
        return 0, "", ""

    with pytest.raises(ChangeError, match=f"nothing was changed: the program .* said nothing for {waited} s"):
        change.NETWORK.start(run, {"run_id": "run-2", "confirm_seconds": confirm_seconds})
    assert waited <= clock[0] < waited + 1
    assert commands[-1] == ["systemctl", "stop", "gpu-cluster-network.service"]


def test_words_reach_the_folder_of_the_run(base: Path) -> None:
    (base / "run-2").mkdir()
    change.NETWORK.leave_word("run-2", "confirm")
    assert (base / "run-2" / "confirm").exists()
    change.NETWORK.leave_word("run-3", "confirm")
    assert not (base / "run-3").exists()
    assert change.NETWORK.read_state("run-3")["state"] == "unknown"
