# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far the ranks are, for a person who waits: rank 0 keeps a note, and this program reads it on its node.

    progress_note.py /run/gpu-cluster-check/RUN SECONDS

It runs beside ranks that measure, so it imports as little as it can and mostly sleeps: some 40 ms of a processor for
each look, less than a tenth of what a module costs.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import Any

#: In the folder of the run that belongs to the user of the ranks, who could put anything there.
NOTE = os.path.join("out", "progress_note.json")
STATE = os.path.join("out", "state.json")
#: A note is filled up to this length: one that is shorter than the one before leaves nothing of it.
NOTE_BYTES = 256
STATE_BYTES = 64 << 20
#: Within a group of collectives, which one after the other are timed, the note is this old at most.
NOTE_SECONDS = 1.0
#: States of a worker whose ranks have not ended.
UNDERWAY = ("waiting", "running")
#: What is said in place of ``running`` where the worker is no more.
GONE = "gone"


class Note:
    """What rank 0 writes into a file, for some microseconds each time.  Any other rank writes nothing."""

    def __init__(self, rank: int, path: str) -> None:
        self._handle: int | None = None
        self._fields: dict[str, Any] = {}
        self._written = 0.0
        if rank == 0 and path:
            with contextlib.suppress(OSError):
                self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)

    def write(self, **fields: Any) -> None:
        """Change these fields.  A full disk is no reason to end a measurement."""
        if self._handle is not None:
            self._fields.update(fields)
            self._written = self._fields["written_monotonic"] = time.monotonic()
            with contextlib.suppress(OSError):
                os.pwrite(self._handle, json.dumps(self._fields).ljust(NOTE_BYTES).encode(), 0)

    def count(self, iterations: int) -> None:
        """So many are done, in the middle of a group: written seldom."""
        if self._handle is not None and time.monotonic() - self._written >= NOTE_SECONDS:
            self.write(iterations=iterations)

    def begin(self, job: dict[str, Any], index: int) -> None:
        """A size begins.  index: that in ``sizes_bytes``."""
        sizes = job["sizes_bytes"]
        at_most = job["warmup"] + max(job["iterations"], job.get("max_iterations", 0))
        self.write(size_bytes=sizes[index], number=index + 1, of=len(sizes), iterations=0, at_most=at_most)


#: For whoever has nobody to tell.
NO_NOTE = Note(0, "")


def read(path: str, most: int) -> Any:
    """The JSON of a file of at most so many bytes; None where there is none, or one that is nested too deep to be read.

    Links and pipes are not followed.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as stream:
            return json.loads(stream.read(most))
    except (OSError, ValueError, RecursionError):
        return None


def when_ended(directory: str, **limits: float) -> dict[str, Any] | None:
    """The note of ranks that have ended just now, with ``seconds_ago``: since rank 0 wrote it.  None without a note.

    limits: what the ranks were told, to be judged together with it.

    CLOCK_MONOTONIC counts for all processes of the machine, and no correction of the time of day moves it.
    """
    note = read(os.path.join(directory, NOTE), NOTE_BYTES)
    written = note.pop("written_monotonic", None) if isinstance(note, dict) else None
    if not isinstance(written, float):
        return None
    return dict(note, seconds_ago=round(time.monotonic() - written, 1), **limits)


def works(directory: str, pid: Any) -> bool:
    """Whether the worker of this run is that process."""
    try:
        with open(f"/proc/{int(pid)}/cmdline", "rb") as stream:
            return os.fsencode(directory) in stream.read().split(b"\0")
    except (OSError, TypeError, ValueError):
        return False


def look(directory: str, seconds: float) -> dict[str, Any]:
    """The state of the worker and the note of rank 0, after ``seconds`` or as soon as the ranks have ended."""
    end = time.monotonic() + seconds
    while True:
        found = read(os.path.join(directory, STATE), STATE_BYTES)
        state = found.get("state", GONE) if isinstance(found, dict) else GONE
        if state in UNDERWAY and not works(directory, found.get("pid")):
            state = GONE
        if state not in UNDERWAY or time.monotonic() >= end:
            return {"state": state, "note": read(os.path.join(directory, NOTE), NOTE_BYTES)}
        time.sleep(0.2)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(look(sys.argv[1], float(sys.argv[2]))) + "\n")
