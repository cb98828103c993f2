# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command with a time limit, whose output comes from a machine that may be hostile."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import IO, NamedTuple

#: How often a running command is looked at, besides its end.
TICK_SECONDS = 0.2
#: As the programs of a node limit their answers themselves; a hostile one must not fill the memory of this machine.
MOST_BYTES = 64 << 20
#: A process of root, as of sudo, cannot be killed by another user.
KILL_SECONDS = 2


class Ended(NamedTuple):
    """How a command ended.  trouble: why it was killed, empty where it ended by itself."""

    code: int
    out: str
    err: str
    trouble: str


def run(argv: Sequence[str], data: bytes, seconds: float, stop: threading.Event, cwd: str | None = None) -> Ended:
    """Run a command to its end, or kill it.  data: its standard input.  stop: when set, the command is killed.

    OSError where it cannot be started.
    """
    end = time.monotonic() + seconds
    # Files, not pipes: the master of an ssh connection lives on and may keep a pipe open, and a command may read its
    # input as late as it likes.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(data)
        given.seek(0)
        process = subprocess.Popen(
            argv, stdin=given, stdout=out, stderr=err, cwd=cwd, start_new_session=True, close_fds=True
        )
        trouble = ""
        while not trouble:
            try:
                process.wait(max(0.0, min(TICK_SECONDS, end - time.monotonic())))
                break
            except subprocess.TimeoutExpired:
                trouble = _trouble([out, err], end, seconds, stop)
        if trouble:
            _kill(process)
        return Ended(-1 if process.returncode is None else process.returncode, _text(out), _text(err), trouble)


def _trouble(files: Sequence[IO[bytes]], end: float, seconds: float, stop: threading.Event) -> str:
    """Why a running command has to be killed now."""
    if stop.is_set():
        return "interrupted"
    if time.monotonic() >= end:
        return f"no answer within {seconds:g} s"
    if any(os.fstat(one.fileno()).st_size > MOST_BYTES for one in files):
        return f"the answer is longer than {MOST_BYTES} bytes"
    return ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With all processes that it has started and that are still of its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILL_SECONDS)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MOST_BYTES).decode("utf-8", "replace")
