# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rank says, told from what else writes to its standard output: loggers, ``sitecustomize``, libraries.

Standard library only; it is part of the payload.  Nothing here imports torch.
"""

from __future__ import annotations

import json
from typing import Any

#: What an event about a wrong sum has.
_WRONG = (
    *("size_bytes", "iteration", "elements", "first", "last", "explanation", "digest"),
    *("input_changed", "sum_is_right"),
)
#: Every event of ``rank.py`` and its fields, besides ``event`` and ``at``.
EVENTS: dict[str, tuple[str, ...]] = {
    "ready": ("torch", "seconds"),
    "late": ("seconds",),
    "gpu": (),
    "store": (),
    "keys": ("missing", "addresses"),
    "joined": (),
    "wrong_inside": _WRONG,
    "inside": ("size_bytes", "seconds", "wrong"),
    "wrong": _WRONG,
    "size": ("size_bytes", "seconds", "checked", "settled", "wrong"),
    "plateau": ("size_bytes", "left_out"),
    "done": (),
    "error": ("text", "where"),
}
#: Anything else that was written, in ``text``.
OUTPUT = "output"
TEXT_CHARACTERS = 500


def event(line: bytes) -> dict[str, Any]:
    """The event in a line; a line that has none is one of its own.  A logger of JSON may have a field ``event`` too."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if isinstance(found, dict) and isinstance(found.get("event"), str) and "at" in found:
        fields = EVENTS.get(found["event"])
        if fields is not None and found.keys() >= set(fields):
            return found
    return {"event": OUTPUT, "text": line.decode("utf-8", "replace")[:TEXT_CHARACTERS]}


def is_report(one: Any) -> bool:
    """Whether this has the shape of what ``worker.RankProcess.report`` returns."""
    return (
        isinstance(one, dict)
        and isinstance(one.get("local_rank"), int)
        and isinstance(one.get("exit_code"), (int, type(None)))
        and isinstance(one.get("process_state"), str)
        and isinstance(one.get("stderr_tail"), str)
        and isinstance(one.get("events"), list)
        and all(isinstance(each, dict) and isinstance(each.get("event"), str) for each in one["events"])
    )
