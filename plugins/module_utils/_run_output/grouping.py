# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Equal texts of many hosts told once, with the hosts.  Pure.

Problems are alike when they differ only in what every host has of its own: its name and its addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._run_output import texts

_GROUPS = "[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4})"
#: An IPv4 address; an IPv6 address with all groups or with ``::``.
ADDRESS = re.compile(
    r"(?<![\w.:])(?:"
    r"\d{1,3}(?:\.\d{1,3}){3}"
    rf"|(?:{_GROUPS}{{7}}|(?:{_GROUPS}{{0,6}})?::(?:{_GROUPS}{{0,6}})?)(?:%\w+)?"
    r")(?!\w|[.:]\w)"
)
#: A line of a table: a host, or whatever has a name, and a sentence.
ROW = re.compile(r"(\S+) {2,}(\S.*)")
#: More groups are counted.
TOLD = 40
MARGIN = "    "


class Told(NamedTuple):
    """One text of one host.  where: phase, role and task.  host: empty for what is not about one host."""

    host: str
    where: str
    text: str


class Group(NamedTuple):
    """The same text of several hosts."""

    hosts: list[str]
    where: str
    text: str


def grouped(told: Iterable[Told], alike: bool = False) -> list[Group]:
    """In the order in which they came.  alike: texts are equal that differ only in what each host has of its own."""
    groups: dict[tuple[str, str], list[Told]] = {}
    for one in told:
        groups.setdefault((one.where, _common(one.text, one.host) if alike else one.text), []).append(one)
    found = []
    for (where, common), members in groups.items():
        distinct = {one.text for one in members}
        names = list(dict.fromkeys(one.host for one in members if one.host))
        found.append(Group(names, where, distinct.pop() if len(distinct) == 1 else common))
    return found


def _common(text: str, host: str) -> str:
    named = re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "<host>", text) if host else text
    return ADDRESS.sub("<address>", named)


def rows(text: str) -> Iterator[str]:
    """The lines of a text; rows that begin with a name and are alike otherwise are one."""
    block: list[tuple[str, str, str]] = []
    for line in text.splitlines():
        found = ROW.fullmatch(line)
        if found:
            block.append((line, found.group(1), found.group(2)))
        else:
            yield from _folded(block)
            block = []
            yield line
    yield from _folded(block)


def _folded(block: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    groups = grouped((Told(name, "", text) for _line, name, text in block), alike=True)
    if len(groups) == len(block):
        yield from (line for line, _name, _text in block)
        return
    width = max(len(texts.hosts(group.hosts)) for group in groups)
    for group in groups:
        yield f"{texts.hosts(group.hosts):<{width}}  {group.text}"


def table(told: Iterable[Told]) -> Iterator[str]:
    """Problems line by line: the hosts and where it happened, below it the whole text."""
    groups = grouped(told, alike=True)
    width = max((len(texts.hosts(group.hosts)) for group in groups), default=0)
    for group in groups[:TOLD]:
        yield f"  {texts.hosts(group.hosts):<{width}}  {group.where}".rstrip() if width else f"  {group.where}"
        for line in rows(group.text):
            yield f"{MARGIN}{line}".rstrip()
    if len(groups) > TOLD:
        rest = [host for group in groups[TOLD:] for host in group.hosts]
        yield f"  and {texts.count(len(groups) - TOLD, 'more problem')} on {texts.hosts(rest)}; -v shows all"


def lines(group: Group, head: str) -> Iterator[str]:
    """A text behind its head; one with more lines stands below it."""
    if "\n" not in group.text:
        yield f"{head}: {group.text}" if head else group.text
        return
    if head:
        yield f"{head}:"
    for line in group.text.splitlines():
        yield f"{MARGIN}{line}".rstrip() if head else line
