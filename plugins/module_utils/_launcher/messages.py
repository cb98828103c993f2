# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What agents and ranks say, the test of each field, and texts of a node that move no cursor."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

#: The agent's answer to a rank that has said how its script ended.
HEARD = b"heard\n"


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_count(value: Any) -> bool:
    """Whether it is a number of ranks, attempts, ports or processes."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def is_code(value: Any) -> bool:
    """Whether it is an exit code."""
    return is_count(value) and value < 256


def is_signal(value: Any) -> bool:
    """Whether it is a signal or 0: 128 + a larger one would be no exit code, or be 0 for whoever started us."""
    return is_count(value) and value < 128


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


#: All that an agent says, and the test of every field.  Whatever else comes is a line that the user's shell has
#: printed, also where it is JSON with an ``event``.
EVENTS: dict[str, dict[str, Any]] = {
    "beat": {},
    "note": {"text": is_text},
    "ready": {"problems": are_texts, "horovod": is_text, "port": is_count, "image": is_text},
    "line": {"rank": lambda one: one is None or is_count(one), "stream": ("out", "err").__contains__, "text": is_text},
    "rank": {"rank": is_count, "attempt": is_count},
    "facts": {"text": is_text},
    "exit": {
        "rank": is_count,
        "code": is_code,
        "signal": is_signal,
        "told": is_flag,
        "tail": are_texts,
        "log": is_text,
    },
    "ended": {"code": is_code, "signal": is_signal, "tail": are_texts, "turn": is_count},
    "etcd": {"problem": is_text},
    "stopped": {"killed": is_count, "left": lambda one: isinstance(one, list) and all(map(is_count, one))},
}
#: What an agent may say at any time; ``ready`` comes first, and all others after it.
ALWAYS = ("beat", "note")
#: What a rank says: what it is, and how its script has ended, and whether it was told to end.
HELLO = dict.fromkeys(("rank", "local_rank", "attempt"), is_count)
FAREWELL = {"code": is_code, "signal": is_signal, "told": is_flag}


def read_object(line: str) -> dict[str, Any]:
    """The JSON object in a line; empty where there is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def has_fields(found: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Whether these are the fields of a message, no more and no less, and each passes its test."""
    return found.keys() == fields.keys() and all(test(found[name]) for name, test in fields.items())


def read_event(line: str) -> tuple[str, dict[str, Any]]:
    """An event of an agent and its fields, with texts of one line.  An empty name where the line is none."""
    found = read_object(line)
    event = found.pop("event", None)
    known = isinstance(event, str) and event in EVENTS and has_fields(found, EVENTS[event])
    return (str(event), {name: on_one_line(value) for name, value in found.items()}) if known else ("", {})


#: What moves the cursor, colours the terminal, turns text around or hides it: as in ``_base/sanitize.py``.
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def printable(text: str) -> str:
    """What a node has said, on as many lines as it has."""
    return CONTROL.sub("\ufffd", text)


def on_one_line(value: Any) -> Any:
    """The same for a text of a message, or several.  A second line could be taken for one of ours."""
    if isinstance(value, list):
        return [on_one_line(one) for one in value]
    return printable(value).replace("\n", "\ufffd") if isinstance(value, str) else value
