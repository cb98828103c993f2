# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show in long tasks that the run goes on: a line of the terminal that is written again, or whole lines.

Where a program reads the output, or a CI keeps it, a whole line is printed after some seconds without any other output.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _progress

TICK_SECONDS = 1.0
#: On a terminal it comes sooner, but later than the check's own progress, which it would hide.
TERMINAL_SECONDS = 2.5


class Status:
    """text: what to show now, empty for nothing; and whether it may be written over what is in the line.
    silence_seconds: without any output, 0 to show nothing.  tidy: changes a text that is displayed.

    Everything that the main process displays comes by here, to erase the line first. Processes that Ansible makes for
    tasks display through the main process.
    """

    def __init__(
        self, display: Any, text: Callable[[], tuple[str, bool]], silence_seconds: float, tidy: Callable[[str], str]
    ) -> None:
        #: Taken for whatever changes what ``text`` reads.  It is Ansible's own, which is held while it forks, so that
        #: no thread is in the middle of writing then.  With a second lock, two threads could wait for each other.
        self.lock = getattr(display, "_lock", None) or threading.RLock()
        self._display = display
        self._text = text
        self._tidy = tidy
        self._silence_seconds = silence_seconds
        self._columns = 0 if os.environ.get("CI", "").lower() not in ("", "0", "false") else _progress.COLUMNS
        self._drawn = False
        self._last = time.monotonic()
        self._over = threading.Event()
        self._pid = os.getpid()
        self._original = display.display
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def start(self) -> None:
        self._display.display = self._shown
        if self._silence_seconds > 0:
            self._thread.start()

    def stop(self) -> None:
        """The streams must be free when the interpreter ends."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        with self.lock:
            self._erase()
            if self._display.display == self._shown:
                self._display.display = self._original

    def _shown(self, msg: str, *arguments: Any, **keywords: Any) -> None:
        """In place of Display.display."""
        if os.getpid() != self._pid:
            self._original(msg, *arguments, **keywords)
            return
        with self.lock:
            self._erase()
            self._original(self._tidy(msg), *arguments, **keywords)
            self._last = time.monotonic()
            self._flush()

    @staticmethod
    def _flush() -> None:
        # Ansible does it only at the end of a run. Whoever reads a pipe may have gone.
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()

    def clear(self) -> None:
        """Erase the line: what comes next may not be displayed, such as a question."""
        with self.lock:
            self._erase()

    def _erase(self) -> None:
        if self._drawn:
            self._write(_progress.ERASE)
        self._drawn = False

    @staticmethod
    def _write(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()

    def _tick(self) -> None:
        while not self._over.wait(min(TICK_SECONDS, self._silence_seconds)):
            with self.lock:
                self.show()

    def show(self) -> None:
        """Once a second, while nothing else is displayed."""
        silent = time.monotonic() - self._last
        text, over = self._text()
        if not text:
            self._erase()
        elif self._columns and over:
            if silent >= min(TERMINAL_SECONDS, self._silence_seconds):
                self._write(f"{_progress.ERASE}{text[: self._columns - 1]}\r")
                self._drawn = True
        elif silent >= self._silence_seconds:
            self._display.display(text, screen_only=True)
