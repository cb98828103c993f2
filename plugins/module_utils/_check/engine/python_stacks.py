# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stacks of a Python process, as faulthandler (Python 3.9 to 3.14) and py-spy write them.  Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize

#: Of a name of a file or function that is longer, the end or the beginning is kept.
MOST_NAME = 120
#: faulthandler writes 100 frames of a thread, and 100 threads.
MOST_FRAMES, MOST_THREADS = 200, 200

#: ``Thread 0x00007f01 (most recent call first):``; 3.14 writes the name in front of the parenthesis.
_THREAD = re.compile(r"(?:Current thread|Thread) 0x[0-9a-f]+ (?:\[(?P<name>.*)\] )?\(most recent call first\):$")
_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+|\?\?\?) in (?P<function>.+)$')
#: ``Thread 4242 (idle): "MainThread"``, and its frames.
_SPY_THREAD = re.compile(r'Thread \S+ \(.*\)(?:: "(?P<name>.*)")?$')
_SPY_FRAME = re.compile(r"    (?P<function>\S.*) \((?P<file>.+?)(?::(?P<line>\d+))?\)$")

#: Files of Python and of installed packages.  A training hangs in them, but its author knows the line above.
_INSTALLED = re.compile(
    r"/(?:site|dist)-packages/|/lib(?:64)?/python\d|^<frozen |^<string>$|/torch/(?:distributed|nn|optim)/"
)
#: Where torch has its collectives: the functions there have their names.
_COLLECTIVES = re.compile(r"torch/distributed/(?:distributed_c10d|_functional_collectives)\.py$")
#: In these the rank waits, but they are no collective by name.
_WAITING = ("wait", "synchronize", "wait_tensor", "_wait")


class Frame(NamedTuple):
    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """For a person."""
        return f"{self.function} ({self.file.rpartition('/')[2]}:{self.line})"


class Thread(NamedTuple):
    """Innermost frame first."""

    name: str
    frames: tuple[Frame, ...]


def threads(text: str) -> list[Thread]:
    """The threads in the order of the text; a line that belongs to none is left out."""
    found: list[tuple[str, list[Frame]]] = []
    for line in text.splitlines():
        head = _THREAD.match(line) or _SPY_THREAD.match(line)
        frame = _FRAME.match(line) or _SPY_FRAME.match(line)
        if head and len(found) < MOST_THREADS:
            found.append((_name(head["name"] or ""), []))
        elif frame and found and len(found[-1][1]) < MOST_FRAMES:
            number = frame["line"] or ""
            line_of = int(number) if number.isdecimal() and len(number) < 8 else 0
            found[-1][1].append(Frame(_name(frame["file"], end=True), line_of, _name(frame["function"])))
    return [Thread(name, tuple(frames)) for name, frames in found]


def _name(text: str, *, end: bool = False) -> str:
    clean = sanitize.one_line(text)
    return clean[-MOST_NAME:] if end else clean[:MOST_NAME]


def main_thread(text: str) -> tuple[Frame, ...]:
    """The frames of the main thread: its outermost one is the module.  faulthandler writes it last, py-spy first."""
    found = [one for one in threads(text) if one.frames]
    named = [one for one in found if one.name == "MainThread"]
    outer = [one for one in found if one.frames[-1].function == "<module>"]
    chosen = named or outer[-1:] or found[-1:]
    return chosen[0].frames if chosen else ()


def is_installed(frame: Frame) -> bool:
    """Whether it is code of Python or of a package."""
    return bool(_INSTALLED.search(frame.file))


def own(frames: tuple[Frame, ...]) -> Frame | None:
    """The innermost frame of the training's own code, else the innermost."""
    return next((one for one in frames if not is_installed(one)), frames[0] if frames else None)


def collective(frames: tuple[Frame, ...]) -> str:
    """The collective in which a thread stands; empty if it stands in none."""
    names = [one.function for one in frames if _COLLECTIVES.search(one.file)]
    # From the outside, all_reduce may call another of them.
    named = [one for one in names if one not in _WAITING and not one.startswith("_") and one != "<module>"]
    return named[-1] if named else (names[-1].lstrip("_") if names else "")
