# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks that ended before they had PyTorch: their last words, and the file or variable that is at fault.  Pure.

Facts of the node come first: a file that stands in the place of PyTorch or of a module of Python, and variables of jobs
that decide which code a rank begins with.  Without one the last line that the rank wrote is the cause.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.last_word import last_word
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ranks_results import (
    Rank,
    events,
    reproduce,
)

ID = "GC-RUN-007"
#: The events that come before PyTorch is imported.
BEFORE_TORCH = ("torch", "output", "error")
#: How sure it is: a file that Python names or takes, a variable beside an end without a word, the last words alone.
CERTAIN, LIKELY, UNKNOWN = 1.0, 0.8, 0.6
#: The first line of a report is to fit on a screen: last words are cut to what is left of it, but not below this.
FIRST_LINE, LEAST_WORD = 130, 30
#: Of a path in a sentence, and of the traceback in the evidence.
PATH_CHARACTERS, LINES, LINE_CHARACTERS = 120, 20, 200
#: Python does not find its own library.
NO_LIBRARY = re.compile(
    r"No module named '?encodings|Fatal Python error: (?:init|Py_Initialize|Failed to import encod)"
)
#: Python takes these at every start, so nothing of theirs need be named.
AT_EVERY_START = ("sitecustomize", "usercustomize")
SOURCES = "/etc/environment or launcher_environment"


class Ended(NamedTuple):
    """Why a rank ended.

    how: what it did, after its name.  word: its last words.  note: for the evidence, empty for nothing.
    """

    how: str
    word: str
    fix: str
    confidence: float
    note: str = ""


def findings(ranks: Sequence[Rank], known: Mapping[int, bool]) -> list[tuple[Finding, list[int]]]:
    """One finding for all ranks that ended for the same, and their numbers.

    known: the ranks that are to be explained, and whether a table knows what they wrote.  That counts for more than the
    last words alone, and for less than a fact.
    """
    groups: dict[Ended, list[Rank]] = {}
    for rank in ranks:
        if rank["rank"] in known and all(event["event"] in BEFORE_TORCH for event in rank["events"]):
            why = _why(rank)
            if why and (why.confidence > UNKNOWN or not known[rank["rank"]]):
                groups.setdefault(why, []).append(rank)
    return [(_finding(why, group, ranks), [rank["rank"] for rank in group]) for why, group in groups.items()]


def _why(rank: Rank) -> Ended | None:
    """None for a rank that did not end by itself, unless it hangs in a file that stands in the place of PyTorch."""
    text = str(rank["stderr_tail"])
    by_itself = rank["state"] == "finished" and not rank["process_state"] and rank["exit_code"] is not None
    torch = next((one for one in events(rank, "torch") if not one["package"] or one["instead_of"]), None)
    if torch and (by_itself or rank["state"] == "deadline"):
        return _shadowed(rank, "PyTorch", torch["path"])
    if not by_itself:
        return None
    if _variable(rank, "PYTHONHOME") and NO_LIBRARY.search(text):
        return _by_variable(rank, "PYTHONHOME", CERTAIN)
    for module, path in _shadows(rank):
        named = path in text or re.search(rf"(?:module|from) '{re.escape(module)}'", text)
        if named or (module in AT_EVERY_START and not text):
            return _shadowed(rank, module, path)
    if _variable(rank, "LD_PRELOAD") and (rank["exit_code"] < 0 or "symbol lookup error" in text):
        return _by_variable(rank, "LD_PRELOAD", LIKELY)
    fix = "run python -c 'import torch' there as the jobs' user with their variables, and mend what it says"
    return Ended("ended before it had PyTorch", word(rank), fix, UNKNOWN)


def word(rank: Rank) -> str:
    """How it ended: its last words, or else its exit code or signal."""
    said = sanitize.one_line(last_word(str(rank["stderr_tail"])))
    if said or rank["process_state"] or rank["exit_code"] is None:
        return said or "it hung"
    code = rank["exit_code"]
    return f"killed by {_signal(-code)}" if code < 0 else f"exit code {code} without a word"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _shadowed(rank: Rank, what: str, path: str) -> Ended:
    """path: of the file that is taken for something else."""
    path = _cut(sanitize.one_line(path), PATH_CHARACTERS)
    found = _variable(rank, "PYTHONPATH")
    reached = found is not None and any(path.startswith(f"{one.rstrip('/')}/") for one in found.split(":") if one)
    fix = "rename that file" + (" or unset PYTHONPATH" if reached else "")
    note = _set(rank, "PYTHONPATH") if reached else ""
    return Ended(f"took {path} for {what}", word(rank), fix, CERTAIN, note)


def _by_variable(rank: Rank, name: str, confidence: float) -> Ended:
    how = f"had {_cut(f'{name}={_variable(rank, name)}', PATH_CHARACTERS)}"
    fix = f"take {name} out of {_source(rank, name) or SOURCES}"
    return Ended(how, word(rank), fix, confidence, _set(rank, name))


def _set(rank: Rank, name: str) -> str:
    """A variable with the file that sets it."""
    source = _source(rank, name)
    return f"{name}={_variable(rank, name)}" + (f" is set in {source}" if source else "")


def _of_start(rank: Rank, name: str, field: str) -> str | None:
    for one in (rank.get("start") or {}).get("variables", []):
        if one["name"] == name:
            return sanitize.one_line(one[field])
    return None


def _variable(rank: Rank, name: str) -> str | None:
    """The value with which the rank was started."""
    return _of_start(rank, name, "value")


def _source(rank: Rank, name: str) -> str:
    return _of_start(rank, name, "source") or ""


def _shadows(rank: Rank) -> list[tuple[str, str]]:
    return [(one["module"], one["path"]) for one in (rank.get("start") or {}).get("shadows", [])]


def _finding(why: Ended, group: Sequence[Rank], ranks: Sequence[Rank]) -> Finding:
    hosts = tuple(dict.fromkeys(rank["host"] for rank in group))
    numbers = [str(rank["rank"]) for rank in group]
    name = f"rank {numbers[0]}" if len(group) == 1 else f"ranks {listed(numbers)}"
    what = f"{name} on {listed(hosts)} {why.how}: "
    lines = [sanitize.clean(line) for line in str(group[0]["stderr_tail"]).splitlines() if line.strip()]
    seen = [line[:LINE_CHARACTERS] for line in lines[-LINES:]] or ["it wrote nothing to standard error"]
    return Finding(
        ID,
        hosts,
        what + _cut(why.word, max(LEAST_WORD, FIRST_LINE - len(what) - len(why.fix))),
        why.fix,
        tuple([why.note, *seen] if why.note else seen),
        confidence=why.confidence,
        reproduce=reproduce(hosts, ranks),
    )
