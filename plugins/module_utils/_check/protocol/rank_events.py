# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rank says, told from what else writes to its standard output: loggers, ``sitecustomize``, libraries.

Standard library only; it is part of the payload.  Nothing here imports torch.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import rank_start, shape
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.shape import (
    count,
    each,
    flag,
    number,
    optional,
    text,
)

#: Half of a pair of UTF-16: JSON can hold one alone, and nothing that was decoded does.
_HALF = re.compile("[\ud800-\udfff]")
#: The shortest time that a clock shows.
SHORTEST_SECONDS = 1e-9


def _size(value: Any) -> bool:
    """Whether it is the size of a buffer of float32, in bytes."""
    return count(value) and value >= 4


def _times(value: Any) -> bool:
    """Whether these are the times of iterations, in seconds; there is at least one."""
    return each(number)(value) and min(value, default=0) >= SHORTEST_SECONDS


def _addresses(value: Any) -> bool:
    """Whether it is rank, as text, to address and port."""
    return isinstance(value, dict) and all(
        re.fullmatch("[0-9]{1,9}", rank)
        and isinstance(one, list)
        and len(one) == 2
        and shape.address(one[0])
        and count(one[1])
        for rank, one in value.items()
    )


#: What a wrong sum looks like (``look_at`` of ``rank.py``).
_LOOK: dict[str, shape.Test] = {
    "iteration": count,
    "elements": count,
    "first": count,
    "last": count,
    "explanation": text,
    "digest": count,
    "input_changed": flag,
    "sum_is_right": flag,
}
_WRONG = {"size_bytes": _size, **_LOOK}
#: With all that followed it.
_ALL_WRONG = optional(shape.record({**_LOOK, "iterations": count, "more": each(each(count))}))
#: Every event of ``rank.py`` and its fields, besides ``event`` and ``at``.
EVENTS: dict[str, dict[str, shape.Test]] = {
    "torch": {"path": text, "package": flag, "instead_of": text},
    "ready": {"torch": text, "code": each(text), "seconds": number},
    "late": {"seconds": number},
    "gpu": {},
    "store": {},
    "keys": {"missing": each(count), "addresses": _addresses},
    "joined": {},
    "wrong_inside": _WRONG,
    "inside": {"size_bytes": _size, "seconds": _times, "wrong": _ALL_WRONG},
    "wrong": _WRONG,
    "size": {"size_bytes": _size, "seconds": _times, "checked": count, "settled": flag, "wrong": _ALL_WRONG},
    "plateau": {"size_bytes": _size, "left_out": count},
    "no_time": {"size_bytes": _size, "left_out": count, "needed_seconds": number, "left_seconds": number},
    "done": {},
    "error": {"text": text, "where": each(text)},
}
#: Anything else that was written, in ``text``.
OUTPUT = "output"
TEXT_CHARACTERS = 500


_FIELDS = {name: shape.record({"event": text, "at": number, **fields}) for name, fields in EVENTS.items()}
_FIELDS[OUTPUT] = shape.record({"event": text, "text": text})


def is_event(one: Any) -> bool:
    """Whether this has the shape of what ``event`` returns."""
    name = one.get("event") if isinstance(one, dict) else None
    return isinstance(name, str) and name in _FIELDS and _FIELDS[name](one)


def event(line: bytes) -> dict[str, Any]:
    """The event in a line; a line that has none is one of its own.  A logger of JSON may have a field ``event`` too."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if is_event(found) and found["event"] != OUTPUT:
        return dict(found)
    return {"event": OUTPUT, "text": line.decode("utf-8", "replace")[:TEXT_CHARACTERS]}


def is_report(one: Any) -> bool:
    """Whether this has the shape of what ``worker.RankProcess.report`` returns."""
    return (
        isinstance(one, dict)
        and isinstance(one.get("local_rank"), int)
        and "exit_code" in one
        and optional(shape.integer)(one["exit_code"])
        and shape.text(one.get("process_state"))
        and isinstance(one.get("stderr_tail"), str)
        and not _HALF.search(one["stderr_tail"])
        and isinstance(one.get("events"), list)
        and all(is_event(said) for said in one["events"])
        and ("start" not in one or rank_start.START(one["start"]))
    )
