# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The note of rank 0, and the program that reads it on the node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import progress_note

JOB = {"sizes_bytes": [4, 4096], "warmup": 5, "iterations": 20, "max_iterations": 60}


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path


@pytest.fixture
def worker(run_dir: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with the folder of the run among its words, as the worker has it."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", str(run_dir)])
    try:
        # For a moment a process that has just started has no words.
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()


def state(run_dir: Path, name: str, pid: int) -> None:
    (run_dir / progress_note.STATE).write_text(json.dumps({"state": name, "pid": pid, "ranks": []}))


def look(run_dir: Path, seconds: float = 0) -> Any:
    """As the controller calls it."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", progress_note.__file__, str(run_dir), str(seconds)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


def test_a_look_finds_the_note_of_rank_0(run_dir: Path, worker: subprocess.Popen[bytes]) -> None:
    state(run_dir, "running", worker.pid)
    assert look(run_dir) == {"state": "running", "note": None}
    note = progress_note.Note(0, str(run_dir / progress_note.NOTE))
    note.write(backend="gloo")
    note.begin(JOB, 1)
    expected = {"backend": "gloo", "size_bytes": 4096, "number": 2, "of": 2, "at_most": 65}
    # Nothing of the longer one is left.
    for iterations in (1000, 1):
        note.write(iterations=iterations)
        seen = look(run_dir)
        assert abs(time.monotonic() - seen["note"].pop("written_monotonic")) < 30
        assert seen == {"state": "running", "note": dict(expected, iterations=iterations)}


def test_within_a_group_the_note_is_renewed_once_a_second(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress_note, "time", SimpleNamespace(monotonic=lambda: now[0]))
    note = progress_note.Note(0, str(run_dir / progress_note.NOTE))
    note.begin(JOB, 0)
    seen = []
    for number in range(1, 9):
        now[0] += 0.25
        note.count(number)
        seen.append(progress_note.read(str(run_dir / progress_note.NOTE), 1000)["iterations"])
    assert seen == [0, 0, 0, 4, 4, 4, 4, 8]


def test_other_ranks_write_nothing(run_dir: Path) -> None:
    progress_note.Note(1, str(run_dir / progress_note.NOTE)).write(backend="gloo")
    assert os.listdir(run_dir / "out") == []


def test_a_note_that_cannot_be_written_stops_no_rank(run_dir: Path) -> None:
    progress_note.Note(0, str(run_dir / "missing" / "note")).write(backend="gloo")
    full = progress_note.Note(0, "/dev/full")
    full.write(backend="gloo")
    assert full._fields["backend"] == "gloo"


def test_a_look_waits_for_the_end_and_no_longer(run_dir: Path, worker: subprocess.Popen[bytes]) -> None:
    state(run_dir, "running", worker.pid)
    began = time.monotonic()
    assert progress_note.look(str(run_dir), 0.5)["state"] == "running" and time.monotonic() - began >= 0.5
    state(run_dir, "finished", worker.pid)
    began = time.monotonic()
    assert progress_note.look(str(run_dir), 30)["state"] == "finished" and time.monotonic() - began < 10


def test_a_worker_that_is_no_more_is_noticed(run_dir: Path) -> None:
    """Also when another process has its number now."""
    state(run_dir, "running", os.getpid())
    assert progress_note.look(str(run_dir), 30)["state"] == progress_note.GONE


#: Deeper than the JSON parser goes down.
DEEP = "[" * 200_000


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", DEEP])
def test_a_state_that_is_none_ends_the_look(run_dir: Path, content: str) -> None:
    (run_dir / progress_note.STATE).write_text(content)
    assert progress_note.look(str(run_dir), 30)["state"] == progress_note.GONE


def test_what_the_user_puts_there_is_not_followed(run_dir: Path) -> None:
    """The folder is theirs, and the look is made by root."""
    secret = run_dir / "secret"
    secret.write_text('{"backend": "secret"}')
    (run_dir / progress_note.NOTE).symlink_to(secret)
    assert progress_note.read(str(run_dir / progress_note.NOTE), 100) is None
    (run_dir / progress_note.NOTE).unlink()
    os.mkfifo(run_dir / progress_note.NOTE)
    assert look(run_dir)["note"] is None


def test_when_the_ranks_have_ended_the_note_has_an_age(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress_note.when_ended(str(run_dir)) is None
    now = [100.0]
    monkeypatch.setattr(progress_note, "time", SimpleNamespace(monotonic=lambda: now[0]))
    progress_note.Note(0, str(run_dir / progress_note.NOTE)).begin(JOB, 0)
    now[0] += 2.52
    found = progress_note.when_ended(str(run_dir), timeout_seconds=10)
    assert found is not None and found.pop("seconds_ago") == 2.5
    assert found == {"size_bytes": 4, "number": 1, "of": 2, "iterations": 0, "at_most": 65, "timeout_seconds": 10}


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"written_monotonic": "now"}', "no JSON", DEEP[: progress_note.NOTE_BYTES]]
)
def test_a_note_that_is_none_has_no_age(run_dir: Path, content: str) -> None:
    (run_dir / progress_note.NOTE).write_text(content)
    assert progress_note.when_ended(str(run_dir)) is None
