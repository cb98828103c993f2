# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node has answered, checked and cleaned.  Pure.

The programs on a node are those of its own users: the answer may have any shape and any text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import shape
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.here import MOST_APPS, MOST_JOBS, SCHEMA
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.processes import (
    JOB,
    MOST_CHARACTERS,
    NUMBERS,
    TEXTS,
)

MOST_CARDS = 1000
#: Of the reason that ssh gives.
MOST_REASON = 300


def _short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST_CHARACTERS


def _job(value: Any) -> bool:
    return isinstance(value, str) and bool(JOB.fullmatch(value))


def _at_most(most: int, test: shape.Test) -> shape.Test:
    every = shape.each(test)
    return lambda value: every(value) and len(value) <= most


#: A number of seconds, MiB or processes that arithmetic and time.localtime take.
def _number(value: Any) -> bool:
    return shape.count(value) and value < 1 << 32


_COUNTS = dict.fromkeys(("started", "agents", "launchers", "ranks", "processes"), _number)
_ABOUT = shape.record({}, {**dict.fromkeys(TEXTS, _short), **dict.fromkeys(NUMBERS, _number)})
_JOB = shape.record({"job": _job, "user": _short, "about": _ABOUT, **_COUNTS})
_SIZES = dict.fromkeys(("memory_mib", "used_mib", "percent"), shape.optional(_number))
_CARD = shape.record({"index": _number, "uuid": _short, "model": _short, **_SIZES})
_APP = shape.record(
    {
        "gpu": lambda value: value == -1 or _number(value),
        "pid": _number,
        "user": _short,
        "name": _short,
        "memory_mib": shape.optional(_number),
        "job": lambda value: value == "" or _job(value),
    }
)
LOOK = shape.record(
    {
        "schema": lambda value: value == SCHEMA and shape.count(value),
        "jobs": _at_most(MOST_JOBS, _JOB),
        "cores": _number,
        "load": _at_most(3, shape.number),
        "memory_mib": _number,
        "free_mib": _number,
        "gpus": _at_most(MOST_CARDS, _CARD),
        "apps": _at_most(MOST_APPS, _APP),
        "gpu_problem": _short,
    }
)
END = shape.record({"signalled": _number, "left": _number})
CLEAN = shape.record({"ended": _number, "killed": _number, "left": _at_most(100_000, _number)})
LOGGED = shape.record({"logs": _number})
#: A line of a log.  rank: None for what starts the ranks of a node.
LINE = shape.record({"rank": shape.optional(_number), "text": shape.text})


@dataclass(frozen=True)
class Answer:
    """Of one member.  found: empty where it has not answered, and reason says why."""

    node: str
    found: Mapping[str, Any]
    reason: str = ""


def last(text: str, test: shape.Test) -> dict[str, Any]:
    """The last line that has the shape, cleaned; empty without one.  A shell may print lines before it."""
    for line in reversed(text.splitlines()):
        found = one(line, test)
        if found:
            return found
    return {}


def one(line: str, test: shape.Test) -> dict[str, Any]:
    """A line that has the shape, cleaned; empty for any other."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return _clean(found) if test(found) else {}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return sanitize.clean(value).replace("\n", sanitize.REPLACEMENT)
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if isinstance(value, dict):
        return {name: _clean(one) for name, one in value.items()}
    return value


def reason(text: str) -> str:
    """The last words of an ssh that has failed."""
    lines = [line for line in sanitize.clean(text).splitlines() if line.strip()]
    return re.sub(r"\s+", " ", lines[-1]).strip()[:MOST_REASON] if lines else "it gave no reason"
