# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The numbers of all links as the page needs them: lines of values in the order of the nodes.  Pure."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: Values from one node to all, in the order of the nodes; None where there is none, as of a node to itself.
Line = list[Any]


def nodes(report: Report, key: str) -> list[str]:
    """The members that have a value of this kind, as source or as target."""
    pairs = report[key]
    return [host for host in report["members"] if host in pairs or any(host in row for row in pairs.values())]


def lines(report: Report, key: str, hosts: list[str]) -> list[Line]:
    """A line for each node."""
    pairs = report[key]
    return [list(map(pairs.get(source, {}).get, hosts)) for source in hosts]
