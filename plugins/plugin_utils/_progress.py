# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the progress of a step is shown: one line of a terminal that is written again and again, or plain lines.

Always on standard error, so that what is on standard output stays as it is for programs, and never in Ansible's log.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator

from ansible import constants as C
from ansible.utils.display import Display

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import progress

ALWAYS = "always"
AUTO = "auto"
#: From here on Ansible tells each connection, which would tear the line apart.
VERBOSE = 3
#: Callbacks whose output is read by a program, also where that program makes a terminal for them.
FOR_PROGRAMS = ("awx_display", "json", "jsonl", "null")
#: Back to the first column, and erase the line.
ERASE = "\r\x1b[K"
TICK_SECONDS = 1.0


def terminal_columns() -> int:
    """Columns of the terminal that a person looks at; 0 where there is none."""
    if not (os.isatty(1) and os.isatty(2)) or os.environ.get("TERM", "dumb") == "dumb":
        return 0
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 0


#: Found out when Ansible's main process loads an action: the processes that it makes for tasks have no terminal.
COLUMNS = terminal_columns()


class Line:
    """columns: of the terminal, 0 for plain lines, of which there are few."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._key: tuple[int, ...] = ()

    def show(self, shown: progress.Shown) -> None:
        if self._columns:
            # The cursor goes back to the first column: whatever Ansible writes now begins there.
            self._write(f"{ERASE}{shown.text[: self._columns - 1]}\r", newline=False)
        elif shown.key != self._key:
            self._write(shown.text, newline=True)
        self._key = shown.key

    def erase(self) -> None:
        """Before a task returns: its result is written where the line is."""
        if self._columns:
            self._write(ERASE, newline=False)

    @staticmethod
    def _write(text: str, newline: bool) -> None:
        # In a process made for a task this goes to the main process, in order with the result of the task.
        Display().display(text, stderr=True, screen_only=True, newline=newline)


def line(wanted: str) -> Line | None:
    """wanted: ``auto``, ``always`` or ``never``.  None where nobody wants to see progress, or nobody is there."""
    if wanted == ALWAYS:
        return Line(0)
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    callback = str(C.DEFAULT_STDOUT_CALLBACK).rsplit(".", 1)[-1]
    if wanted != AUTO or not COLUMNS or in_ci or Display().verbosity >= VERBOSE or callback in FOR_PROGRAMS:
        return None
    return Line(COLUMNS)


class Sum:
    """A number to which the hosts of a task add, each in a process of its own: the length of a file.

    The file goes with Ansible's folder for temporary files, at the end of its run.
    """

    def __init__(self, name: str) -> None:
        path = os.path.join(C.DEFAULT_LOCAL_TMP, name)
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    @classmethod
    def opened(cls, name: str) -> Sum | None:
        """None where the controller cannot keep it; then nothing is shown."""
        try:
            return cls(name)
        except OSError:
            return None

    def add(self, number: int) -> None:
        # A full disk: fewer are shown than there are.
        with contextlib.suppress(OSError):
            os.write(self._handle, b"." * number)

    def read(self) -> tuple[int, float]:
        """The number, and how many seconds ago it last changed."""
        found = os.fstat(self._handle)
        return found.st_size, max(0.0, time.time() - found.st_mtime)

    def is_mine_to_show(self) -> bool:
        """One of the processes shows the number, until it ends; none where the folder knows no locks."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def close(self) -> None:
        os.close(self._handle)


@contextlib.contextmanager
def counted(where: Line, total: Sum, of: int) -> Iterator[None]:
    """Show how many of the links are done while the caller waits for its own, which it adds in the end."""
    over = threading.Event()

    def tick() -> None:
        while not over.wait(TICK_SECONDS):
            if total.is_mine_to_show():
                show(where, total, of)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
        if total.read()[0] >= of:
            show(where, total, of)
    finally:
        over.set()
        thread.join()
        where.erase()
        total.close()


def show(where: Line, total: Sum, of: int) -> None:
    done, idle_seconds = total.read()
    where.show(progress.mesh(done, of, idle_seconds))
