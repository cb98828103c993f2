# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text that came from a node, made fit for a terminal, a log and a report.  Pure.

Whoever can write on a node could otherwise move the cursor, colour the terminal, turn text around, hide characters, or
write a line that looks like one of ours.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

#: Every character that this replaces: the controls but tab and line feed, marks that turn text around or that nobody
#: sees, separators of lines, halves of a pair of UTF-16, and what is no character.
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
REPLACEMENT = "\ufffd"
#: A sentence with more characters than this is cut.
MOST_CHARACTERS = 8192
#: Lists and dictionaries in each other; the answers of modules have some 10.
MOST_DEEP = 64
CUT = " ... (cut)"
#: What a line of a text begins with, from its second line on: it can't be taken for a line of ours.
MARGIN = "  | "
#: What Ansible shows of a result by itself, and where it shows it.
SHOWN = ("msg", "warnings", "deprecations", "exception", "module_stdout", "module_stderr", "stdout", "stderr")


def clean(text: object) -> str:
    """The text, line by line as it is, without control characters."""
    return CONTROL.sub(REPLACEMENT, str(text).replace("\r\n", "\n"))


def one_line(text: object) -> str:
    """The same on one line."""
    return " ".join(clean(text).split())


def sentence(text: object) -> str:
    """The same on one line that ends."""
    line = one_line(text)
    return line if len(line) <= MOST_CHARACTERS else line[: MOST_CHARACTERS - len(CUT)] + CUT


def block(text: object) -> str:
    """The same on several lines that end, with a margin from the second one on."""
    lines = clean(text).strip("\n").split("\n")
    whole = f"\n{MARGIN}".join(lines)
    return whole if len(whole) <= MOST_CHARACTERS else whole[: MOST_CHARACTERS - len(CUT)] + CUT


def from_node(answer: dict[str, Any]) -> dict[str, Any]:
    """What a node answered: clean everywhere, and in a block where Ansible shows it by itself."""
    return {_made(clean, name): _made(block if name in SHOWN else clean, one) for name, one in answer.items()}


def _made(fit: Callable[[object], str], value: Any, deep: int = 0) -> Any:
    """The value with every text in it made fit.  Text that is fit stays the object that knows its origin.

    What is nested deeper than any answer of a module would break whoever walks through it, and is left out.

    Since ansible-core 2.19 an error or a warning is a data class.
    """
    if isinstance(value, str):
        made = fit(value)
        return value if made == value else made
    if isinstance(value, (dict, list, tuple)) and deep > MOST_DEEP:
        return REPLACEMENT
    if isinstance(value, dict):
        return {_made(fit, name): _made(fit, one, deep + 1) for name, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_made(fit, one, deep + 1) for one in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        return dataclasses.replace(value, **{name: _made(fit, one, deep + 1) for name, one in fields.items()})
    return value
