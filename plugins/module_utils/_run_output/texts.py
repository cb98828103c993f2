# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of tasks as text for a person: clean, bounded, and nothing that `no_log` hides.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import folded

#: The names of hosts in a line: more characters are cut.
NAMES_MOST = 60
#: Of what a program printed, its last lines.
TAIL_LINES = 5
#: Of a message that a playbook prints, such as that of `debug`.
MESSAGE_MOST = 65536
NO_TEXT = "the task failed without a message"
HIDDEN = "the message is hidden by no_log"
#: A result with one of these is of a program, whose output says more than `msg`.
OF_A_PROGRAM = ("rc", "module_stderr", "module_stdout")
EXCERPT = re.compile(r"(?P<head>\[ERROR\]: )(?P<error>.*?)\s*\nOrigin: (?P<origin>[^\n]+)\n.*", re.DOTALL)
REFUSED = re.compile(r"Error processing keyword 'hosts': The filter plugin 'baremetal\.gpu_cluster\.\w+' failed: ")
OUTPUTS = ("module_stderr", "stderr", "module_stdout", "stdout")


def hosts(names: Iterable[str], most: int = NAMES_MOST) -> str:
    """gpu1, gpu2, gpu3 and m as ``gpu[1-3], m``; what is longer than ``most`` is counted."""
    wanted = sorted(set(names), key=_natural)
    text = sanitize.one_line(folded(wanted))
    if len(text) <= most:
        return text
    shown = text[: most - len(" ...")].rpartition(",")[0] or text[: most - len(" ...")]
    return f"{shown} ... ({count(len(wanted), 'host')})"


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def count(number: int, word: str) -> str:
    """``1 host``, ``3 hosts``."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def duration(seconds: float) -> str:
    """65 as ``1 min 05 s``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def failure(result: Mapping[str, Any]) -> str:
    """Why a task failed, with the end of what its program printed; each failed item of a loop with its label."""
    if is_hidden(result):
        return HIDDEN
    items = [one for one in result.get("results") or () if isinstance(one, Mapping) and _is_bad(one)]
    if items:
        return _bounded("\n".join(f"{label(one)}: {failure(one)}" for one in items))
    message = plain(result.get("msg") or result.get("reason") or result.get("exception") or NO_TEXT)
    parts = [sanitize.clean(message).strip()]
    if any(key in result for key in OF_A_PROGRAM):
        said = next((str(result[key]) for key in OUTPUTS if str(result.get(key) or "").strip()), "")
        tail = sanitize.clean(said).strip().splitlines()[-TAIL_LINES:]
        known = {line.strip() for line in parts[0].splitlines()} | {""}
        if result.get("rc"):
            parts[0] += f" ({result['rc']})" if "code" in parts[0] else f" (exit code {result['rc']})"
        parts += [line for line in tail if line.strip() not in known]
    return _bounded("\n".join(part for part in parts if part))


def _is_bad(item: Mapping[str, Any]) -> bool:
    return bool(item.get("failed_when_result", item.get("failed")) or item.get("unreachable"))


def _bounded(text: str) -> str:
    most = sanitize.MOST_CHARACTERS
    return text if len(text) <= most else text[: most - len(sanitize.CUT)] + sanitize.CUT


def is_hidden(result: Mapping[str, Any]) -> bool:
    """Whether ``no_log`` hides it."""
    return "censored" in result or bool(result.get("_ansible_no_log"))


def label(item: Mapping[str, Any]) -> str:
    """What an item of a loop is called."""
    return "item" if is_hidden(item) else sanitize.sentence(item.get("_ansible_item_label", item.get("item", "item")))


def message(result: Mapping[str, Any], dump: Callable[[Mapping[str, Any]], str]) -> str:
    """What a task that prints by itself prints.  dump: writes a result that has no message."""
    if is_hidden(result):
        return HIDDEN
    text = sanitize.clean(plain(result["msg"]) if result.get("msg") is not None else dump(result)).strip("\n")
    return text if len(text) <= MESSAGE_MOST else text[:MESSAGE_MOST] + sanitize.CUT


def without_excerpt(text: str, is_ours: Callable[[str], bool]) -> str:
    """An error that ended the run, without the lines of a playbook of ours that ansible-core 2.19 prints below it.

    is_ours: whether a path is of a playbook of ours.  What its filters refuse is about the inventory or the command.
    """
    found = EXCERPT.fullmatch(text)
    if not found or not is_ours(found.group("origin").split(":")[0]):
        return text
    return found.group("head") + REFUSED.sub("", found.group("error"))


def plain(value: Any) -> str:
    """A text, or the lines of a list of texts."""
    if isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value):
        return "\n".join(value)
    return str(value)
