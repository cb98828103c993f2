# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one line in what a program wrote last that says why it ended, such as the last line of a traceback.  Pure.

Tracebacks of Python 3.9 to 3.14: chained ones, those of groups of exceptions, with notes, without a text; the errors
with which an interpreter does not come up; and what C++ writes of an exception that nobody catches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: ``ValueError: text``, ``package.module.Error`` or ``KeyboardInterrupt``, at the beginning of a line.
EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:: .*|:?)")
#: What begins the stack of an exception, or goes on with it where the beginning was cut off.
STACK = re.compile(
    r"Traceback \(most recent call last\):|Exception Group Traceback \(most recent call last\):|  File \""
)
_BEGINNINGS = ("Traceback (most recent", '  File "', "  + Exception Group Traceback")
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
    thrown = thrown_by_cpp(lines)
    if thrown:
        return list(thrown.values())[-1]
    found = exceptions(lines)
    fatal = next((one[0] for one in map(FATAL.match, lines) if one), "")
    if fatal:
        # With the exception for which the interpreter does not come up.
        return next((f"{fatal}: {line}" for line in lines if line.startswith("ModuleNotFoundError: ")), fatal)
    if found:
        return list(found.values())[-1]
    plain = [line.strip() for line in lines if line.strip() and not _BELOW.match(line)]
    return plain[-1] if plain else next((line.strip() for line in reversed(lines) if line.strip()), "")


def thrown_by_cpp(lines: Sequence[str]) -> dict[int, str]:
    """The same of what C++ says of exceptions that nobody catches: their type, and their text where they have one."""
    found = {}
    for number, line in enumerate(lines):
        name = _THROWN.search(line) if "terminate called" in line else None
        if name:
            said = next((one[1].strip() for one in map(_WHAT.match, lines[number + 1 : number + 3]) if one), "")
            found[number] = f"{name[1]}: {said}" if said else name[1]
    return found


def exceptions(lines: Iterable[str]) -> dict[int, str]:
    """The exceptions whose stacks are there: number of the line, from 0, to its text; a group has its first member."""
    found: dict[int, str] = {}
    in_stack, group, has_member = False, -1, False
    for number, line in enumerate(lines):
        # A job writes millions of lines, and few are part of a stack.
        if not in_stack and group < 0 and not line.startswith(_BEGINNINGS):
            continue
        if _SEPARATOR.fullmatch(line):
            continue
        bare = _OF_GROUP.sub("", line, count=1)
        if bare == line:
            group = -1
        if STACK.match(bare):
            in_stack = True
            continue
        if not bare.strip() or bare[0].isspace():
            continue
        if in_stack and not EXCEPTION.fullmatch(bare):
            in_stack = False
        elif in_stack and group < 0:
            in_stack, found[number] = False, bare
            if bare != line and _SUB_EXCEPTIONS.search(bare):
                group, has_member = number, False
        elif group >= 0 and not has_member and (in_stack or _MEMBER.match(bare)):
            # A member that was never raised has no stack.
            in_stack, has_member = False, True
            found[group] += f": {bare}"
        else:
            in_stack = False
    return found
