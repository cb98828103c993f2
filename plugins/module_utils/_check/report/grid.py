# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mesh as a grid: who reaches whom.  Pure.

A large cluster does not fit a terminal, and a grid of which nearly everything is fine hides what is not.  So beyond
``WIDE`` nodes only rows and columns with trouble are kept, and those that are alike become one.  Nothing is lost by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import DIRECTION, LINK
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import linkdata, rails
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import (
    NO_RESULT,
    SLOW,
    SLOW_LINK_IDS,
    Report,
)

# Two columns of text per node and the name in front: what a terminal of 80 columns holds.
WIDE = 24
# Rows and columns of a folded grid.  Beyond it the trouble is scattered and a grid explains nothing any more.
MOST = 48

# A result, or anything else that a map tells of a link, or None where a node meets itself.
Line = list[Any]


@dataclass(frozen=True)
class Grid:
    """rows, columns: each a list of node names that are alike.  cells: rows of results, None for a node with itself.

    hidden: how many rows and columns with trouble did not fit.
    """

    rows: list[list[str]]
    columns: list[list[str]]
    cells: list[Line]
    hidden: int = 0


def nodes(report: Report) -> list[str]:
    """The nodes of the grid: all that the run was meant for, as soon as one of them reported about its peers."""
    return list(report["selected"]) if report["mesh"] else []


def results(report: Report) -> dict[str, dict[str, str]]:
    """Source to target to result.  A link without a result is there, and so is one that is open and slow."""
    hosts = nodes(report)
    return {
        source: {target: result for target, result in zip(hosts, line) if target != source}
        for source, line in zip(hosts, lines(report))
    }


def counts(report: Report) -> Counter[str]:
    """How many links have which result."""
    return Counter(one for line in lines(report) for one in line if one is not None)


def _slow(report: Report, hosts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The links that a finding calls slow or lossy: one link, or all of a node in one direction."""
    for finding in report["findings"]:
        about = finding["subject"]
        if finding["id"] not in SLOW_LINK_IDS or not rails.is_of_the_first(report, finding):
            continue
        if about["kind"] == LINK and len(about["nodes"]) == 2:
            yield about["nodes"][0], about["nodes"][1]
        elif about["kind"] == DIRECTION:
            for node in about["nodes"]:
                yield from ((one, node) if about["direction"] == "inbound" else (node, one) for one in hosts)


def lines(report: Report) -> list[Line]:
    """The same as lines of results, in the order of the nodes."""
    hosts = nodes(report)
    found: list[Line] = []
    for number, line in enumerate(linkdata.lines(report, "mesh", hosts)):
        found.append([NO_RESULT if one is None else one for one in line])
        found[number][number] = None
    place = {host: number for number, host in enumerate(hosts)}
    for source, target in _slow(report, hosts):
        row, column = place.get(source, -1), place.get(target, -1)
        if row >= 0 and column >= 0 and found[row][column] == probe_ports.OK:
            found[row][column] = SLOW
    return found


def plain(report: Report) -> Grid:
    """Every node, in its order."""
    each = [[host] for host in nodes(report)]
    return Grid(each, each, lines(report))


def folded(report: Report) -> Grid:
    """What is not fine, with nodes that are alike in one row or column."""
    return fold(nodes(report), lines(report), probe_ports.OK)


def fold(hosts: Sequence[str], cells: Sequence[Line], fine: Any) -> Grid:
    """Of a line of cells for each node the rows and columns in which not all are fine, and equal ones as one."""
    sources = [number for number, line in enumerate(cells) if any(one is not None and one != fine for one in line)]
    targets = sorted({at for number in sources for at, one in enumerate(cells[number]) if one not in (None, fine)})
    rows, shared, hidden_rows = _alike(
        [hosts[number] for number in sources], [[cells[number][at] for at in targets] for number in sources]
    )
    columns, turned, hidden_columns = _alike([hosts[at] for at in targets], [list(column) for column in zip(*shared)])
    return Grid(rows, columns, [list(line) for line in zip(*turned)], hidden_rows + hidden_columns)


def _alike(names: Sequence[str], lines: Sequence[Line]) -> tuple[list[list[str]], list[Line], int]:
    """Names with equal lines together, those lines, and how many names were left out.

    None fits everything: it is where the line crosses its own node.
    """
    groups: list[list[str]] = []
    shared: list[Line] = []
    hidden = 0
    for name, line in zip(names, lines):
        for number, other in enumerate(shared):
            if all(one is None or two is None or one == two for one, two in zip(other, line)):
                groups[number].append(name)
                shared[number] = [two if one is None else one for one, two in zip(other, line)]
                break
        else:
            if len(groups) < MOST:
                groups.append([name])
                shared.append(line)
            else:
                hidden += 1
    return groups, shared, hidden
