# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Heat maps of a report's page: connections, latency, bandwidth, ranks.  Pure.

``usual.py`` decides which number has a colour.  Every cell also has its number, in it or as its tip, and where the tip
is all that it has, a coloured cell tells how many times worse it is: a map can be read without seeing colours.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import folded, human_bytes, human_rate
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import grid, linkdata, usual, words
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.markup import (
    escaped,
    folded_away,
    head,
    scrolled,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.style import STRONG
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: Nodes of a map with a cell for each link; beyond it the worst links are listed.
MOST_NODES = 64
#: Nodes of a map with room for a number in each cell. Beyond it the number is a tip, and equal rows are one.
ROOMY = 24
#: Columns that fit on paper and on a telephone with their names side by side.
NARROW = 12
MOST_LINKS = 20
#: Characters of the names of nodes that are one row; more are counted.
MOST_CHARACTERS = 60
MOST_DIGITS = 20
_NUMBER = re.compile(r"[0-9]+")


#: What the cell of a number with a colour begins with.
_SHADED = ' class="h'
#: Where a node meets itself.
SELF = '<td class="self"></td>'


@dataclass(frozen=True)
class Measure:
    """A number of every link.  better: ``low`` or ``high``.  show: for a cell; tell: with its unit.

    least: a median below it counts as this much.  floor: a smaller difference from the median matters to nobody.
    """

    title: str
    key: str
    better: str
    show: Callable[[float], str]
    tell: Callable[[float], str]
    least: float = 0.0
    floor: float = 0.0


MEASURES = (
    # A connection is made once.  A path through some more switches costs microseconds, so less than 0.1 ms is the time
    # that a program waited for a processor of its node.
    Measure(
        "Connect time in ms", "latency_ms", "low", lambda one: f"{one:.2g}", lambda one: f"{one:.3g} ms", floor=0.1
    ),
    Measure(
        "Rate of one connection in GB/s",
        "bytes_per_second",
        "high",
        lambda one: f"{one / 1e9:.2g}",
        human_rate,
    ),
    # One segment sent again is no trouble because the others sent none.  From 5 on, 0.7 % of 1 MiB, a link is lossy for
    # GC-NET-007 (mesh_link_quality.LOSSY_FACTOR).
    Measure(
        "Segments sent again",
        "retransmits",
        "low",
        lambda one: f"{one:.0f}",
        lambda one: f"{one:.0f}",
        least=1.0,
        floor=3.0,
    ),
)


def maps(report: Report) -> str:
    """All maps of the mesh, empty without one."""
    parts = [connections(report), *(_measured(report, one) for one in MEASURES)]
    return "\n".join(f"<div>{part}</div>" for part in parts if part)


def connections(report: Report) -> str:
    """Who reaches whom."""
    hosts = grid.nodes(report)
    if not hosts:
        return ""
    lines = grid.lines(report)
    found = set(chain.from_iterable(lines)) - {None}
    title = "Connections (rows connect to columns)"
    if found <= {probe_ports.OK}:
        return f"<h3>{title}</h3><p>All {len(hosts) * (len(hosts) - 1)} links are open.</p>"
    legend = escaped(words.legend(found))
    each = [[host] for host in hosts]
    whole = (
        _connection_table(grid.Grid(each, each, lines), title, _places(report, hosts))
        if len(hosts) <= MOST_NODES
        else ""
    )
    if len(hosts) <= ROOMY:
        return f'<h3>{title}</h3>{whole}<p class="soft">{legend}</p>'
    shown = grid.fold(hosts, lines, probe_ports.OK)
    note = f"{legend}. Nodes that are alike are one row or column; all other links are open.{_more(shown)}"
    rest = _every(hosts, whole) if whole else ""
    return f'<h3>{title}</h3>{_connection_table(shown, title)}<p class="soft">{note}</p>{rest}'


def _every(hosts: Sequence[str], table: str) -> str:
    """The map with a row for each node, where those that are alike are one row already."""
    return folded_away(f"All {len(hosts)} nodes", table, "every")


def _more(shown: grid.Grid) -> str:
    return f" {shown.hidden} more rows and columns are in report.json." if shown.hidden else ""


def _connection_table(shown: grid.Grid, title: str, places: Sequence[int] = ()) -> str:
    columns = [named(column) for column in shown.columns]
    rows = []
    for names, line in zip(shown.rows, shown.cells):
        row = named(names)
        rows.append((row, "".join(_connection(row, column, result) for column, result in zip(columns, line))))
    return _table(columns, rows, title, places)


def _connection(source: str, target: str, result: str | None) -> str:
    if result is None:
        return SELF
    letter = words.symbol(result)
    kind = {".": "", "?": ' class="unsure"', "S": ' class="unsure"'}.get(letter, ' class="no"')
    tell = f"{source} to {target}: {result or words.MEANING[letter]}"
    return f'<td{kind} title="{escaped(tell)}">{escaped(letter)}</td>'


def named(names: Sequence[str]) -> str:
    """The nodes of a row or column; many that do not follow each other are only counted."""
    ordered = sorted(names, key=_natural)
    text = folded(ordered)
    return text if len(text) <= MOST_CHARACTERS else f"{len(names)} nodes, the first {ordered[0]}"


def _measured(report: Report, measure: Measure) -> str:
    hosts = linkdata.nodes(report, measure.key)
    lines = linkdata.lines(report, measure.key, hosts)
    values = [one for one in chain.from_iterable(lines) if one is not None]
    if not any(values):
        return ""
    norm = usual.of(values, len(hosts), measure.better, measure.floor, measure.least)
    shape = _Map(measure, norm, hosts, lines, _places(report, hosts))
    note = f"median {measure.tell(median(values) if len(values) <= usual.SAMPLE else norm.typical)}"
    if len(hosts) <= ROOMY:
        body = shape.whole(shape.numbers)
    else:
        body = shape.folded()
        if len(hosts) <= MOST_NODES:
            body += _every(hosts, shape.whole(shape.times))
    return f'<h3>{escaped(measure.title)}</h3>{body}<p class="soft">{escaped(note)}</p>'


@dataclass(frozen=True)
class _Map:
    """One measure of one rail.  lines: a line of values for each host.  places: of the hosts among the members."""

    measure: Measure
    norm: usual.Usual
    hosts: list[str]
    lines: list[linkdata.Line]
    places: list[int]

    def whole(self, show: Callable[[float, int], str]) -> str:
        """A cell for each link.  show: value and level to what stands in it."""
        rows = []
        for source, line in zip(self.hosts, self.lines):
            cells = [
                SELF
                if source == target
                else "<td></td>"
                if value is None
                else self._cell(value, show, f"{source} to {target}: {self.measure.tell(value)}")
                for target, value in zip(self.hosts, line)
            ]
            rows.append((source, "".join(cells)))
        return _table(self.hosts, rows, self.measure.title, self.places)

    def numbers(self, value: float, _level: int) -> str:
        """Every number."""
        return self.measure.show(value)

    def times(self, value: float, level: int) -> str:
        """How many times worse, where there is no room for a number."""
        return times_worse(self.norm, value) if level else ""

    def folded(self) -> str:
        """What is worse than usual, with nodes that are alike in one row or column, and for many nodes the worst."""
        levels = self.norm.level
        worse: list[grid.Line] = [[None if one is None else levels(one) > 0 for one in line] for line in self.lines]
        shown = grid.fold(self.hosts, worse, False)
        if not shown.rows:
            return "<p>No link is worse than usual.</p>"
        place = {host: number for number, host in enumerate(self.hosts)}
        rows = []
        for sources, line in zip(shown.rows, shown.cells):
            cells = "".join(
                self._group(sources, targets, place) if is_worse else "<td></td>" if is_worse is False else SELF
                for targets, is_worse in zip(shown.columns, line)
            )
            rows.append((named(sources), cells))
        table = _table([named(one) for one in shown.columns], rows, self.measure.title)
        note = f'<p class="soft">Medians; nodes that are alike are one row or column.{_more(shown)}</p>'
        return table + note + (self._worst() if len(self.hosts) > MOST_NODES else "")

    def _group(self, sources: Sequence[str], targets: Sequence[str], place: Mapping[str, int]) -> str:
        """The links between nodes that are alike."""
        values = [self.lines[place[source]][place[target]] for source in sources for target in targets]
        have = [one for one in values if one is not None]
        middle = median(have)
        worst = (max if self.measure.better == "low" else min)(have)
        tell = f"{named(sources)} to {named(targets)}: {len(have)} links, median {self.measure.tell(middle)}, "
        return self._cell(middle, self.numbers, f"{tell}worst {self.measure.tell(worst)}")

    def _worst(self) -> str:
        values = [
            (value, source, target)
            for source, line in zip(self.hosts, self.lines)
            for target, value in zip(self.hosts, line)
            if self.norm.level(value)
        ]
        worst = (heapq.nlargest if self.measure.better == "low" else heapq.nsmallest)(MOST_LINKS, values)
        rows = [
            (f"{source} to {target}", self._cell(value, self.numbers, self.measure.tell(value)))
            for value, source, target in worst
        ]
        body = "".join(f"<tr>{head(name, 'row')}{cell}</tr>" for name, cell in rows)
        table = scrolled(f'<table class="map"><tbody>{body}</tbody></table>')
        return f'{table}<p class="soft">the worst {len(worst)} of {len(values)} links that are worse than usual</p>'

    def _cell(self, value: float, show: Callable[[float, int], str], tell: str) -> str:
        return cell(self.norm.level(value), show, value, tell)


def cell(level: int, show: Callable[[float, int], str], value: float, tell: str) -> str:
    """One number."""
    kind = f'{_SHADED}{level}{" strong" if level >= STRONG else ""}"' if level else ""
    return f'<td{kind} title="{escaped(tell)}">{escaped(show(value, level))}</td>'


def times_worse(norm: usual.Usual, value: float) -> str:
    """How many times worse than the median, as one digit."""
    return str(max(1, min(9, int(norm.times_worse(value)))))


def ranks(report: Report) -> str:
    """How long each rank took at each size, compared with the other ranks."""
    numbers = sorted({int(rank) for one in report["sizes"] for rank in one["seconds_by_rank"]})
    if not numbers or len(numbers) > MOST_NODES:
        return ""
    rows = []
    for one in report["sizes"]:
        times = {int(rank): seconds for rank, seconds in one["seconds_by_rank"].items()}
        norm = usual.of(list(times.values()), len(times), "low")

        def show(seconds: float, level: int, norm: usual.Usual = norm) -> str:
            if len(numbers) <= ROOMY:
                return f"{seconds * 1e3:.3g}"
            return times_worse(norm, seconds) if level else ""

        cells = [
            cell(norm.level(times[number]), show, times[number], f"rank {number}: {times[number]:.3g} s")
            if number in times
            else "<td></td>"
            for number in numbers
        ]
        rows.append((human_bytes(one["size_bytes"]), "".join(cells)))
    title = "Median time of each rank in ms"
    if len(numbers) > ROOMY and not any(_SHADED in cells for _size, cells in rows):
        return f"<h3>{title}</h3><p>No rank is slower than usual.</p>"
    return f"<h3>{title}</h3>{_table([str(number) for number in numbers], rows, title)}"


def _places(report: Report, hosts: Sequence[str]) -> list[int]:
    place = {host: number for number, host in enumerate(report["members"])}
    return [place.get(host, len(place)) for host in hosts]


def _table(columns: Sequence[str], rows: Sequence[tuple[str, str]], title: str, places: Sequence[int] = ()) -> str:
    """rows: name and cells.  places: of rows and columns among the members, where another order can be chosen."""

    def name(text: str, scope: str, number: int) -> str:
        own = f' data-node="{places[number]}"' if places else ""
        return f'<th scope="{scope}"{own}>{escaped(text)}</th>'

    heads = "".join(name(column, "col", number) for number, column in enumerate(columns))
    body = "".join(f"<tr>{name(row, 'row', number)}{cells}</tr>" for number, (row, cells) in enumerate(rows))
    size = " small" if len(columns) > ROOMY else " many" if len(columns) > NARROW else ""
    kind = f"map{size}{' nodes' if places else ''}"
    return (
        f'<div class="wide grid" tabindex="0" role="region" aria-label="{escaped(title)}"><table class="{kind}">'
        f"<thead><tr>{SELF}{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def orders(report: Report) -> dict[str, str]:
    """Each order of the members that a person can choose for the maps: its name to the places of the members.

    Groups are separated by ``|``.  Empty where there is no map with a row for each node.
    """
    members = report["members"]
    if len(members) > MOST_NODES:
        return {}
    labels: dict[str, dict[str, list[int]]] = {}
    for number, host in enumerate(members):
        for label in {name for own in report["labels"].values() for name in own}:
            value = report["labels"].get(host, {}).get(label, "")
            labels.setdefault(label, {}).setdefault(value, []).append(number)
    by_label = {
        label: "|".join(" ".join(map(str, groups[value])) for value in sorted(groups, key=_natural))
        for label, groups in sorted(labels.items())
        if len(groups) > 1
    }
    return {"inventory": " ".join(map(str, range(len(members)))), **by_label} if by_label else {}


def _natural(text: str) -> str:
    """So that r10 is behind r9."""
    return _NUMBER.sub(lambda number: number.group().zfill(MOST_DIGITS), text)
