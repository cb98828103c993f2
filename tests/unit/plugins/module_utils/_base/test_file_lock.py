# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks that other processes hold: waited for, with an end, and with a name."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import file_lock


@contextmanager
def held(path: Path, command: str = "exec cat", fork: str = "--no-fork") -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another process that has the lock until its input ends, and the process that is to be named."""
    argv = ["flock", fork, str(path), "sh", "-c", f"echo $$; {command}"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def take(path: Path, seconds: float, said: list[str]) -> None:
    with open(path, "a", encoding="ascii") as stream:
        file_lock.take(stream.fileno(), str(path), seconds, said.append)


def test_a_free_lock_is_taken_without_a_word(tmp_path: Path) -> None:
    said: list[str] = []
    take(tmp_path / "a.lock", 0, said)
    assert (said, file_lock.holder(str(tmp_path / "a.lock")), file_lock.holder("/none")) == ([], "", "")


def test_it_waits_for_another_process_and_names_it_once(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    said: list[str] = []
    with held(path) as (process, pid):

        def free(who: str) -> None:
            said.append(who)
            process.kill()

        with open(path, "a", encoding="ascii") as stream:
            file_lock.take(stream.fileno(), str(path), 60, free)
    assert len(said) == 1 and said[0].startswith(f"process {pid} (")


def test_what_a_killed_process_has_started_is_named_and_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    said: list[str] = []
    with held(path, "exec sleep 600 >/dev/null", "--verbose") as (process, child):

        def free(who: str) -> None:
            said.append(who)
            os.kill(child, signal.SIGKILL)

        process.kill()
        process.wait()
        # Its shell has said its number before it becomes this program.
        while Path(f"/proc/{child}/cmdline").read_bytes() != b"sleep\x00600\x00":
            time.sleep(0.01)
        with open(path, "a", encoding="ascii") as stream:
            file_lock.take(stream.fileno(), str(path), 60, free)
    assert said == [f"process {child} ('sleep 600')"]


def test_the_wait_has_an_end_and_says_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with held(path) as (_process, pid), pytest.raises(file_lock.LockError) as caught:
        take(path, 0.2, [])
    assert f"{path} is held by process {pid} (" in str(caught.value)
    assert ", and still was after 0 s. Fix: let it end (`ps -fp PID` shows what it is), and run again" in str(
        caught.value
    )


def test_a_file_that_cannot_be_locked_is_no_lock_of_others(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_PATH)
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            file_lock.take(handle, str(tmp_path), 5)
    finally:
        os.close(handle)


def test_a_command_cannot_write_to_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes(b"\x1b]0;x\x07\n" + b"a" * 9000)
    said = file_lock._described(7, str(tmp_path))
    assert said.isprintable() and len(said) < 110
