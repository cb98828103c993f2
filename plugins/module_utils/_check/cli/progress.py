# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a check is, on standard error: one line of a terminal that is written again and again, or plain lines."""

from __future__ import annotations

import os
import shutil
import sys

ALWAYS, AUTO = "always", "auto"
#: Back to the first column, and erase the line.
ERASE = "\r\x1b[K"


class Progress:
    """wanted: ``auto``, which is for the terminal of a person, ``always`` for plain lines, or ``never``."""

    def __init__(self, wanted: str) -> None:
        in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
        can_erase = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._plain = wanted == ALWAYS
        self._line = wanted == AUTO and can_erase and not in_ci
        self._title, self._of = "", 0

    def step(self, title: str, hosts: int) -> None:
        """A step begins on so many hosts."""
        self._title, self._of = title, hosts
        if self._plain:
            self._write(f"{title}: {hosts} host(s)\n")
        self.count(0)

    def count(self, done: int) -> None:
        """So many hosts have answered."""
        if self._line:
            columns = shutil.get_terminal_size().columns
            self._write(f"{ERASE}{self._title}: {done}/{self._of}"[: len(ERASE) + columns - 1])

    def erase(self) -> None:
        """Before anything else is written."""
        if self._line:
            self._write(ERASE)

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
