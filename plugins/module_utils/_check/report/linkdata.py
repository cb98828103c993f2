# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The numbers of all links as the page needs them: lines of values in the order of the nodes.  Pure."""

from __future__ import annotations

from itertools import chain
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.link_table import Table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: Values from one node to all, in the order of the nodes; None where there is none, as of a node to itself.
Line = list[Any]


def nodes(report: Report, key: str) -> list[str]:
    """The members that have a value of this kind, as source or as target."""
    found = lines(report, key, report["members"])
    return [
        host
        for host, row, column in zip(report["members"], found, zip(*found))
        if any(one is not None for one in chain(row, column))
    ]


def lines(report: Report, key: str, hosts: list[str]) -> list[Line]:
    """A line for each node."""
    table = Table.of(report[key])
    rows = table.aligned(hosts)
    values = {letter: table.values_of.get(letter) for letter in set().union(*rows)}
    found = [list(map(values.__getitem__, row)) for row in rows]
    for number, line in enumerate(found):
        line[number] = None
    return found
