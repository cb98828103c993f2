# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Heat maps of a report's page: connections, latency, bandwidth, ranks.  Pure.

A shade says how much worse a link is than the median of all links, so it needs no limit that some other hardware would
break: none at the median, full at ``FULL`` times worse.  Every cell also has its number, in it or as its tip, for those
who do not see colours.
"""

from __future__ import annotations

import heapq
import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import folded, human_bytes, human_rate
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import grid, words
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.style import SHADES
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: Nodes of a map with a cell for each link; beyond it the worst links are listed.
MOST_NODES = 64
#: Nodes of a map with room for a number in each cell; beyond it the number is the tip of a cell.
ROOMY = 24
MOST_LINKS = 20
FULL = 4.0


@dataclass(frozen=True)
class Measure:
    """A number of every link.  better: ``low`` or ``high``.  show: for a cell; tell: with its unit.

    least: a median below it counts as this much.  One segment sent again is no trouble because the others sent none.
    """

    title: str
    key: str
    better: str
    show: Callable[[float], str]
    tell: Callable[[float], str]
    least: float = 0.0


MEASURES = (
    Measure("Connect time in ms", "latency_ms", "low", lambda one: f"{one:.2g}", lambda one: f"{one:.3g} ms"),
    Measure(
        "Rate of one connection in GB/s",
        "bytes_per_second",
        "high",
        lambda one: f"{one / 1e9:.2g}",
        human_rate,
    ),
    Measure("Segments sent again", "retransmits", "low", lambda one: f"{one:.0f}", lambda one: f"{one:.0f}", least=1.0),
)


def escaped(text: object) -> str:
    """Text that is safe in HTML, also in an attribute.  Everything from a report goes through here."""
    return html.escape(sanitize.clean(text), quote=True)


def shade(value: float, typical: float, better: str) -> int:
    """0 (not worse than typical) to ``SHADES - 1`` (``FULL`` times worse, or more)."""
    worse, good = (value, typical) if better == "low" else (typical, value)
    if worse <= good:
        return 0
    if good <= 0:
        return SHADES - 1
    return min(SHADES - 1, round((SHADES - 1) * math.log(worse / good) / math.log(FULL)))


def shaded(value: float, typical: float, better: str, show: str, tell: str) -> str:
    """One cell."""
    number = shade(value, typical, better)
    strong = " strong" if number > SHADES * 0.6 else ""
    return f'<td class="h{number}{strong}" title="{escaped(tell)}">{escaped(show)}</td>'


def maps(report: Report) -> str:
    """All maps of the mesh, empty without one."""
    parts = [connections(report), *(_measured(report, one) for one in MEASURES)]
    return "\n".join(f'<div class="wide">{part}</div>' for part in parts if part)


def connections(report: Report) -> str:
    """Who reaches whom."""
    hosts = grid.nodes(report)
    if not hosts:
        return ""
    title = "Connections (rows connect to columns)"
    found = {result for row in grid.results(report).values() for result in row.values()}
    legend = escaped(words.legend(found))
    if len(hosts) <= MOST_NODES:
        return f"<h3>{title}</h3>{_connection_table(grid.plain(report))}<p class=soft>{legend}</p>"
    if found <= {probe_ports.OK}:
        return f"<h3>{title}</h3><p>All {len(hosts) * (len(hosts) - 1)} links are open.</p>"
    shown = grid.folded(report)
    hidden = f" {shown.hidden} more rows and columns are in report.json." if shown.hidden else ""
    return (
        f"<h3>{title}</h3>{_connection_table(shown)}<p class=soft>{legend}. Nodes that are alike are one row or "
        f"column; all other links are open.{hidden}</p>"
    )


def _connection_table(shown: grid.Grid) -> str:
    columns = [folded(column) for column in shown.columns]
    rows = []
    for names, line in zip(shown.rows, shown.cells):
        row = folded(names)
        cells = "".join(_connection(row, column, result) for column, result in zip(columns, line))
        rows.append(f"<tr>{_head(row, 'row')}{cells}</tr>")
    return _table(columns, rows)


def _connection(source: str, target: str, result: str | None) -> str:
    if result is None:
        return '<td class="self"></td>'
    letter = words.symbol(result)
    kind = {".": "", "?": "unsure", "S": "unsure"}.get(letter, "no")
    tell = f"{source} to {target}: {result or words.MEANING[letter]}"
    return f'<td class="{kind}" title="{escaped(tell)}">{escaped(letter)}</td>'


def _measured(report: Report, measure: Measure) -> str:
    pairs = report[measure.key]
    values = words.numbers(pairs)
    if not any(one[0] for one in values):
        return ""
    typical = median([one[0] for one in values])
    hosts = [host for host in report["members"] if host in pairs or any(host in row for row in pairs.values())]
    body = _map(hosts, pairs, typical, measure) if len(hosts) <= MOST_NODES else _worst(values, typical, measure)
    return f"<h3>{escaped(measure.title)}</h3>{body}<p class=soft>median {escaped(measure.tell(typical))}</p>"


def _map(hosts: Sequence[str], pairs: Mapping[str, Mapping[str, float]], typical: float, measure: Measure) -> str:
    rows = []
    for source in hosts:
        cells = []
        for target in hosts:
            value = pairs.get(source, {}).get(target)
            if source == target:
                cells.append('<td class="self"></td>')
            elif value is None:
                cells.append('<td title="no value"></td>')
            else:
                tell = f"{source} to {target}: {measure.tell(value)}"
                show = measure.show(value) if len(hosts) <= ROOMY else ""
                cells.append(shaded(value, max(typical, measure.least), measure.better, show, tell))
        rows.append(f"<tr>{_head(source, 'row')}{''.join(cells)}</tr>")
    return _table(hosts, rows)


def _worst(values: Sequence[tuple[float, str, str]], typical: float, measure: Measure) -> str:
    worst = (heapq.nlargest if measure.better == "low" else heapq.nsmallest)(MOST_LINKS, values)
    rows = [
        f"<tr>{_head(f'{source} to {target}', 'row')}"
        f"{shaded(value, typical, measure.better, measure.show(value), measure.tell(value))}</tr>"
        for value, source, target in worst
    ]
    return f'<table class="map"><tbody>{"".join(rows)}</tbody></table><p class=soft>the worst {len(worst)} links</p>'


def ranks(report: Report) -> str:
    """How long each rank took at each size, compared with the other ranks."""
    numbers = sorted({int(rank) for one in report["sizes"] for rank in one["seconds_by_rank"]})
    if not numbers or len(numbers) > MOST_NODES:
        return ""

    def shown(seconds: float) -> str:
        return f"{seconds * 1e3:.3g}" if len(numbers) <= ROOMY else ""

    rows = []
    for one in report["sizes"]:
        times = {int(rank): seconds for rank, seconds in one["seconds_by_rank"].items()}
        typical = median(times.values())
        size = human_bytes(one["size_bytes"])
        cells = [
            shaded(times[number], typical, "low", shown(times[number]), f"rank {number}: {times[number]:.3g} s")
            if number in times
            else "<td></td>"
            for number in numbers
        ]
        rows.append(f"<tr>{_head(size, 'row')}{''.join(cells)}</tr>")
    return f"<h3>Median time of each rank in ms</h3>{_table([str(number) for number in numbers], rows)}"


def _table(columns: Sequence[str], rows: Sequence[str]) -> str:
    heads = "".join(_head(column, "col") for column in columns)
    head = f'<thead><tr><td class="self"></td>{heads}</tr></thead>'
    kind = "map" if len(columns) <= ROOMY else "map small"
    return f'<table class="{kind}">{head}<tbody>{"".join(rows)}</tbody></table>'


def _head(text: str, scope: str) -> str:
    return f'<th scope="{scope}">{escaped(text)}</th>'
