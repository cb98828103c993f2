# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one line in what a program wrote last that says why it ended, such as the last line of a traceback.  Pure.

Tracebacks of Python 3.9 to 3.14: chained ones, those of groups of exceptions, with notes, without a text; the errors
with which an interpreter does not come up; and what C++ writes of an exception that nobody catches.
"""

from __future__ import annotations

import re

#: ``ValueError: text``, ``package.module.Error`` or ``KeyboardInterrupt``, at the beginning of a line.
EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:: .*|:?)")
#: What begins the stack of an exception, or goes on with it where the beginning was cut off.
STACK = re.compile(
    r"Traceback \(most recent call last\):|Exception Group Traceback \(most recent call last\):|  File \""
)
#: What stands before the lines of a group of exceptions, and what separates its members.
_OF_GROUP = re.compile(r"(?: {2})+[|+] ")
_SEPARATOR = re.compile(r"[ +|-]*-{4,}(?: \d+ -{4,})?\s*")
_SUB_EXCEPTIONS = re.compile(r"\(\d+ sub-exceptions?\)$")
_MEMBER = re.compile(r"[\w.]*(?:Error|Exception|Exit|Interrupt|Group)(?::|$)")
FATAL = re.compile(r"Fatal Python error: .*")
_THROWN = re.compile(r"terminate called after throwing an instance of '([^']+)'")
_WHAT = re.compile(r"\s*what\(\):\s+(.+)")
#: What faulthandler, a finished interpreter and torch write below the line that says it.
_BELOW = re.compile(
    r"\s|Current thread 0x|Thread 0x|Python runtime state: |Extension modules: |frame #|Stack \(most recent|<|"
    r"Aborted\b|Segmentation fault\b|Exception ignored "
)
#: Before the exception that was raised while another one was handled, and before the one that another one led to.
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")


def last_word(text: str) -> str:
    """The line that says why, empty for no text.  Of chained exceptions it is the last: the one that was not caught."""
    lines = text.splitlines()
    thrown = _of_cpp(lines)
    if thrown:
        return thrown
    found = _exceptions(lines)
    fatal = next((one[0] for one in map(FATAL.match, lines) if one), "")
    if fatal:
        # With the exception for which the interpreter does not come up.
        return next((f"{fatal}: {line}" for line in lines if line.startswith("ModuleNotFoundError: ")), fatal)
    if found:
        return found
    plain = [line.strip() for line in lines if line.strip() and not _BELOW.match(line)]
    return plain[-1] if plain else next((line.strip() for line in reversed(lines) if line.strip()), "")


def _of_cpp(lines: list[str]) -> str:
    """What C++ says of an exception that nobody catches: its type, and its text where it has one."""
    for number, line in enumerate(lines):
        name = _THROWN.search(line)
        if name:
            said = next((one[1].strip() for one in map(_WHAT.match, lines[number + 1 : number + 3]) if one), "")
            return f"{name[1]}: {said}" if said else name[1]
    return ""


def _exceptions(lines: list[str]) -> str:
    """The line of the last exception whose stack is there; of a group with its first member."""
    in_stack, found, group = False, "", ""
    for line in lines:
        if _SEPARATOR.fullmatch(line):
            continue
        bare = _OF_GROUP.sub("", line, count=1) if _OF_GROUP.match(line) else line
        if STACK.match(bare):
            in_stack = True
        elif in_stack and bare.strip() and not bare[0].isspace():
            in_stack = False
            if not EXCEPTION.fullmatch(bare):
                continue
            if line == bare:
                found, group = bare, ""
            elif not group:
                found, group = bare, bare if _SUB_EXCEPTIONS.search(bare) else ""
            elif found == group:
                found = f"{group}: {bare}"
        elif group and found == group and bare != line and _MEMBER.match(bare):
            # A member that was never raised has no stack.
            found = f"{group}: {bare}"
    return found
