# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One value of every directed link, in one character each.  Pure; report.json and all formats of a report use it.

A thousand nodes have a million links.  A row is a text with a character for each target, in the order of the nodes;
``values`` tells what a character stands for.  A source without a row of its own has the row ``usual``.  As long as the
alphabet has a character for every number that was measured, each is exact; beyond it numbers that are close to each
other share one, and ``within`` is the relative error that this makes.

To a reader a table is a mapping, source to target to value, as if each link had an entry of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

#: Source to target to value.
Pairs = Mapping[str, Mapping[str, Any]]
#: Value, source and target.
Found = tuple[Any, str, str]

#: In place of a value: a link that has none, and a node with itself.
NONE = "-"
#: For numbers, the smallest first; without what JSON, HTML or a shell would have to escape.
ALPHABET = "".join(sorted("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#%()*+,./:;=?@[]^_{|}~"))
#: Those of them that are taken as long as they are enough.
PLAIN = "".join(one for one in ALPHABET if one.isalnum())
LETTERS = {
    probe_ports.OK: ".",
    probe_ports.TIMEOUT: "D",
    probe_ports.UNREACHABLE: "R",
    probe_ports.REFUSED: "C",
    probe_ports.STALLED: "M",
    probe_ports.FOREIGN: "F",
}
#: For the names of errors of the kernel.
OTHER_LETTERS = "".join(one for one in ALPHABET if one.isalpha() and one not in LETTERS.values())
OTHER = "another error"
#: Relative widths of what shares a character, in thousandths.
STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 10**7)


class Table(Mapping[str, Mapping[str, Any]]):
    """See above.  within: 0 where all values are exact."""

    def __init__(
        self, nodes: Sequence[str], values: Mapping[str, Any], rows: Mapping[str, str], usual: str, within: float = 0.0
    ) -> None:
        self.nodes = list(nodes)
        self.values_of = dict(values)
        self.rows = dict(rows)
        self.usual = usual
        self.within = within
        self._place = {node: number for number, node in enumerate(self.nodes)}

    @classmethod
    def of(cls, pairs: Pairs, nodes: Sequence[str] = ()) -> Table:
        """The table of any such mapping.  nodes: the order of the first nodes."""
        if isinstance(pairs, Table) and (not nodes or pairs.nodes == list(nodes)):
            return pairs
        named = dict.fromkeys([*nodes, *pairs])
        for row in pairs.values():
            named.update(dict.fromkeys(row))
        order = list(named)
        code, values, within = _codes(set().union(*(row.values() for row in pairs.values())) - {None})
        code[None] = NONE
        rows = {
            source: "".join(map(code.__getitem__, map(row.get, order))) for source, row in pairs.items() if any_of(row)
        }
        whole = [_without(rows.get(node, ""), number) for number, node in enumerate(order)]
        usual = _usual([rows.get(node, "") for node in order])
        shown = {
            node: rows.get(node, "")
            for number, node in enumerate(order)
            if not usual or whole[number] != _without(usual, number)
        }
        return cls(order, values, shown, usual, within)

    @classmethod
    def read(cls, nodes: Sequence[str], found: Mapping[str, Any]) -> Table:
        """The table of what ``as_dict`` gave."""
        return cls(nodes, found["values"], found["rows"], found.get("usual", ""), found.get("within", 0.0))

    def as_dict(self) -> dict[str, Any]:
        """For report.json; the nodes stand beside it, once for all tables."""
        within = {"within": self.within} if self.within else {}
        usual = {"usual": self.usual} if self.usual else {}
        return {"values": self.values_of, **within, **usual, "rows": self.rows}

    def row(self, source: str) -> str:
        """The characters of a source, empty for one that is not known.  That of the node itself means nothing."""
        return self.rows.get(source, self.usual) if source in self._place else ""

    def __getitem__(self, source: str) -> dict[str, Any]:
        found = self._told(source)
        if not found:
            raise KeyError(source)
        return found

    def __iter__(self) -> Iterator[str]:
        return (node for number, node in enumerate(self.nodes) if set(_without(self.row(node), number)) - {NONE})

    def __len__(self) -> int:
        return sum(1 for _source in self)

    def __repr__(self) -> str:
        return repr({source: self[source] for source in self})

    def _told(self, source: str) -> dict[str, Any]:
        found = {node: self.values_of[one] for node, one in zip(self.nodes, self.row(source)) if one in self.values_of}
        found.pop(source, None)
        return found

    def counts(self) -> dict[Any, int]:
        """How many links have which value."""
        found: Counter[str] = Counter()
        sharing = Counter(self.row(node) for node in self.nodes)
        for row, times in sharing.items():
            found.update({one: number * times for one, number in Counter(row).items()})
        found.subtract(row[number] for number, row in enumerate(map(self.row, self.nodes)) if number < len(row))
        merged: dict[Any, int] = {}
        for one, number in found.items():
            if number and one in self.values_of:
                merged[self.values_of[one]] = merged.get(self.values_of[one], 0) + number
        return merged

    def links(self, wanted: Iterable[Any]) -> Iterator[Found]:
        """The links that have one of these values."""
        chosen = set(wanted)
        letters = {one for one, value in self.values_of.items() if value in chosen}
        for number, source in enumerate(self.nodes):
            row = self.row(source)
            if letters.intersection(row):
                for place, one in enumerate(row):
                    if one in letters and place != number:
                        yield self.values_of[one], source, self.nodes[place]

    def worst(self, most: int, largest: bool) -> list[Found]:
        """So many links with the largest or the smallest values, the worst first, then in the order of the nodes."""
        counts = self.counts()
        wanted: list[Any] = []
        for value in sorted(counts, reverse=largest):
            if sum(counts[one] for one in wanted) >= most:
                break
            wanted.append(value)
        found = sorted(self.links(wanted), key=lambda one: -one[0] if largest else one[0])
        return found[:most]

    def aligned(self, nodes: Sequence[str]) -> list[str]:
        """The rows of these sources with a character for each of these targets."""
        if list(nodes) == self.nodes:
            return [self.row(node) or NONE * len(self.nodes) for node in nodes]
        places = [self._place.get(node) for node in nodes]
        rows = map(self.row, nodes)
        return ["".join(NONE if place is None else row[place : place + 1] or NONE for place in places) for row in rows]


def any_of(row: Mapping[str, Any]) -> bool:
    """Whether a row has a value at all."""
    return any(value is not None for value in row.values())


def median(counts: Mapping[float, int]) -> float:
    """The median of numbers of which each is there so many times; there is at least one."""
    total = sum(counts.values())
    low, high = (total - 1) // 2, total // 2
    passed, first = 0, None
    for value in sorted(counts):
        passed += counts[value]
        if first is None and passed > low:
            first = value
        if passed > high:
            return value if first == value else ((first or 0) + value) / 2
    raise ValueError("no numbers")


def changes(old: Table, new: Table) -> Counter[tuple[Any, Any]]:
    """The values of a link in both tables, and how many links have just these; links that one lacks are left out."""
    found: Counter[tuple[str, str]] = Counter()
    for number, (was, now) in enumerate(zip(old.aligned(new.nodes), new.aligned(new.nodes))):
        found.update(zip(was, now))
        found[was[number], now[number]] -= 1
    merged: Counter[tuple[Any, Any]] = Counter()
    for (was, now), times in found.items():
        if times and was in old.values_of and now in new.values_of:
            merged[old.values_of[was], new.values_of[now]] += times
    return merged


def changed(old: Table, new: Table, wanted: Iterable[tuple[Any, Any]]) -> Iterator[tuple[str, str, Any, Any]]:
    """Source, target and both values of the links that have one of these pairs of values."""
    chosen = set(wanted)
    letters = {
        (one, two) for one, was in old.values_of.items() for two, now in new.values_of.items() if (was, now) in chosen
    }
    if not letters:
        return
    for number, (before, after) in enumerate(zip(old.aligned(new.nodes), new.aligned(new.nodes))):
        for place, ends in enumerate(zip(before, after)):
            if ends in letters and place != number:
                yield new.nodes[number], new.nodes[place], old.values_of[ends[0]], new.values_of[ends[1]]


def _without(row: str, number: int) -> str:
    """A row without the character of the node itself."""
    return row[:number] + row[number + 1 :]


def _usual(rows: Sequence[str]) -> str:
    """The row that most sources have, empty where each has its own.

    The character of a node with itself is that of the source after it in the same column.
    """
    if len(rows) < 2:
        return ""
    filled = [
        row[:number] + rows[(number + 1) % len(rows)][number : number + 1] + row[number + 1 :]
        for number, row in enumerate(rows)
        if row and rows[(number + 1) % len(rows)]
    ]
    (row, times) = Counter(filled).most_common(1)[0] if filled else ("", 0)
    return row if times > 1 else ""


def _codes(distinct: set[Any]) -> tuple[dict[Any, str], dict[str, Any], float]:
    """Value to character, character to the value that it stands for, and the relative error."""
    if any(isinstance(value, str) for value in distinct):
        return _letters(distinct)
    ordered = sorted(distinct)
    if len(ordered) <= len(ALPHABET):
        letters = PLAIN if len(ordered) <= len(PLAIN) else ALPHABET
        return dict(zip(ordered, letters)), dict(zip(letters, ordered)), 0.0
    return _shared(ordered)


def _letters(distinct: set[Any]) -> tuple[dict[Any, str], dict[str, Any], float]:
    """A known result has its letter of the grid; when there are very many others, the last ones are no longer told."""
    others = sorted(str(value) for value in distinct if value not in LETTERS)
    code: dict[Any, str] = {value: LETTERS[value] for value in LETTERS if value in distinct}
    code.update(zip(others, OTHER_LETTERS))
    values = {letter: value for value, letter in code.items()}
    if len(others) > len(OTHER_LETTERS):
        values[OTHER_LETTERS[-1]] = OTHER
        code.update(dict.fromkeys(others[len(OTHER_LETTERS) :], OTHER_LETTERS[-1]))
    return code, values, 0.0


def _shared(ordered: Sequence[float]) -> tuple[dict[Any, str], dict[str, Any], float]:
    """Numbers that are close to each other have one character; how close, is as little as the alphabet allows."""
    keys = {value: round(math.log(value) * 1000) if value > 0 else None for value in ordered}
    places = sorted({key for key in keys.values() if key is not None})
    room = len(ALPHABET) - 1
    step, groups = next((step, found) for step in STEPS for found in [_groups(places, step)] if len(found) <= room)
    whole = all(isinstance(value, int) for value in ordered)
    letter: dict[int | None, str] = {None: ALPHABET[0]}
    values: dict[str, Any] = {ALPHABET[0]: 0} if None in keys.values() else {}
    for one, group in zip(ALPHABET[1:], groups):
        typical = math.exp((group[0] + group[-1]) / 2000)
        values[one] = round(typical) if whole else float(f"{typical:.4g}")
        letter.update(dict.fromkeys(group, one))
    return {value: letter[key] for value, key in keys.items()}, values, step / 2000


def _groups(places: Sequence[int], step: int) -> list[list[int]]:
    """Neighbours together, as long as the first and the last of a group are no more than ``step`` apart."""
    found: list[list[int]] = []
    for place in places:
        if found and place - found[-1][0] <= step:
            found[-1].append(place)
        else:
            found.append([place])
    return found
