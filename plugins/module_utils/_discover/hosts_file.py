# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An inventory as a file that a person could have written: ranges of hosts, and once what is the same for all.  Pure.

A text of a machine stands in comments only, on one line; what becomes a value was tested for its form.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover import expressions
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.inventory import (
    GPUS,
    INTERFACE,
    Inventory,
    Values,
)

HEAD = "The machines, as they described themselves. discover replaces this file as long as nobody has edited it."
NOT_MEMBERS = "not_members"
#: The longest line of a comment, before it is indented.
WIDTH = 114
#: A host may differ from the others in these.
_USUAL = (GPUS, INTERFACE)
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*|[0-9]{1,3}(\.[0-9]{1,3}){3}(/[0-9]{1,2})?|[A-Za-z0-9._-]+\[[0-9:]+\]")
_WORDS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n", "~")


@dataclass
class _Host:
    """What stands below a host; lines before it."""

    before: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    proposed: dict[str, Any] = field(default_factory=dict)


def scalar(value: Any) -> str:
    """A value on one line of YAML, read back as what it is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(str(key))}: {scalar(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(scalar(one) for one in value) + "]"
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and "[" not in text:
        return text
    return json.dumps(text, ensure_ascii=False)


def key(name: str) -> str:
    """A name of a host, a range of them, or of a variable."""
    return name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else json.dumps(name)


def comment(text: str, first: str = "", more: str = "") -> list[str]:
    """A text as lines of a comment.  first, more: what the first line and the others begin with."""
    lines: list[str] = []
    line = f"# {first}"
    for word in sanitize.one_line(text).split(" "):
        if len(line) + len(word) > WIDTH:
            lines.append(line.rstrip())
            line = f"# {more}"
        line += f"{word} "
    return [*lines, line.rstrip()]


def text(inventory: Inventory) -> str:
    """The file, without its mark."""
    hosts = {name: _Host() for name in inventory.names}
    common: list[str] = []
    for name, value in _kept(inventory, hosts):
        common.append(f"    {key(name)}: {scalar(value)}")
    number = 0
    for one in inventory.values:
        asked: list[str] = []
        if one.question is not None:
            number += 1
            first, *others = one.question.lines(number)
            asked += comment(first, more="  ")
            for line in others:
                asked += comment(line, "  ", "    ")
        asked += comment(one.note) if one.note else []
        common += _placed(one, hosts, asked)
    for name, lost in inventory.lost.items():
        hosts[name].before += [
            f"# {one}: its value cannot be shown here; move it to host_vars or group_vars" for one in lost
        ]
    return "\n".join(
        [
            "---",
            *comment(HEAD),
            *(line for said in inventory.head for line in comment(said, more="  ")),
            *_count(number),
            f"{key(inventory.group)}:",
            "  hosts:",
            *_hosts(hosts),
            *(
                ["  vars:", *common]
                if any(not line.lstrip().startswith("#") for line in common)
                else _as_comments(common)
            ),
            *_left_out(inventory.left_out),
            "",
        ]
    )


def _count(questions: int) -> list[str]:
    if not questions:
        return ["# Nothing is left to decide."]
    what = "1 QUESTION is" if questions == 1 else f"{questions} QUESTIONS are"
    return [f"# {what} left below. A value behind a # is a proposal: a run stops as long as it is missing."]


def _as_comments(common: Iterable[str]) -> list[str]:
    """Comments need no key above them."""
    return ["  # vars:", *common] if common else []


def _kept(inventory: Inventory, hosts: Mapping[str, _Host]) -> list[tuple[str, Any]]:
    """Variables that all hosts have in one form; the others go to their hosts."""
    names = dict.fromkeys(name for own in inventory.kept.values() for name in own)
    common = []
    for name in names:
        held = {host: own[name] for host, own in inventory.kept.items() if name in own}
        if len(held) == len(hosts) and len({json.dumps(one, sort_keys=True) for one in held.values()}) == 1:
            common.append((name, next(iter(held.values()))))
        else:
            for host, value in held.items():
                hosts[host].values[name] = value
    return common


def _placed(one: Values, hosts: Mapping[str, _Host], asked: Sequence[str]) -> list[str]:
    """Lines for all hosts; what only some have goes to these."""
    shared, alone = _split(one, list(hosts))
    for index, host in enumerate(host for host in hosts if host in alone):
        (hosts[host].values if one.active else hosts[host].proposed)[one.variable] = alone[host]
        if index == 0 and shared is None:
            hosts[host].before += asked
    if alone and shared is None:
        return []
    inside = ["", *(f"    {line}" for line in asked)] if asked else []
    if shared is not None:
        inside += _line(one.variable, shared[0], "    " if one.active else "    # ")
    return inside


def _line(variable: str, value: Any, start: str) -> list[str]:
    """A value on one line, or a long list on several."""
    whole = f"{start}{variable}: {scalar(value)}"
    if len(whole) <= WIDTH or not isinstance(value, list):
        return [whole]
    return [f"{start}{variable}:", *(f"{start}  - {scalar(one)}" for one in value)]


def _split(one: Values, names: Sequence[str]) -> tuple[tuple[Any] | None, dict[str, Any]]:
    """What stands once for all, if anything does, and what stands beside hosts."""
    if len(one.hosts) < len(names):
        return None, one.hosts
    if isinstance(one.expression, expressions.Expression):
        return (one.expression.text,), {
            host: value for host, value in one.hosts.items() if host not in one.expression.values
        }
    counted = Counter(scalar(value) for value in one.hosts.values())
    usual, number = counted.most_common(1)[0]
    if number == len(names) or (one.variable in _USUAL and number > 1):
        value = next(value for value in one.hosts.values() if scalar(value) == usual)
        return (value,), {host: value for host, value in one.hosts.items() if scalar(value) != usual}
    return None, one.hosts


def _hosts(hosts: Mapping[str, _Host]) -> list[str]:
    lines: list[str] = []
    plain: list[str] = []
    for name, own in [*hosts.items(), ("", _Host())]:
        if name and not (own.before or own.values or own.proposed):
            plain.append(name)
            continue
        lines += [f"    {key(one)}:" for one in expressions.ranges(plain)]
        plain = []
        if not name:
            break
        lines += [f"    {line}" for line in own.before]
        if own.proposed:
            lines.append(f"    {key(name)}:")
            lines += [f"      {key(variable)}: {scalar(value)}" for variable, value in own.values.items()]
            lines += [f"      # {key(variable)}: {scalar(value)}" for variable, value in own.proposed.items()]
        else:
            lines.append(f"    {key(name)}: {scalar(own.values)}" if own.values else f"    {key(name)}:")
    return lines


def _left_out(left_out: Mapping[str, Mapping[str, Any]]) -> list[str]:
    if not left_out:
        return []
    lines = [
        "# Not asked, and no members: write them below the hosts above when they answer.",
        f"{NOT_MEMBERS}:",
        "  hosts:",
    ]
    return lines + [f"    {key(name)}: {scalar(own)}" if own else f"    {key(name)}:" for name, own in left_out.items()]
