# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words and numbers as a person reads them, the same in every report.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import folded
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import (
    CLUSTER,
    DIRECTION,
    LINK,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

#: A report as ``Report.as_dict()`` returns it, or as it was read back from ``report.json``.
Report = Mapping[str, Any]

PASSED = "PASSED"
NOT_VALIDATED = "NOT VALIDATED"
#: The findings about a slow or lossy link; the mesh shows such a link although it is open.
SLOW_LINK_IDS = ("GC-NET-007", "GC-PERF-002")
SLOW = "slow"

NO_RESULT = ""
SYMBOLS = {
    probe_ports.OK: ".",
    probe_ports.TIMEOUT: "D",
    probe_ports.UNREACHABLE: "R",
    probe_ports.REFUSED: "C",
    probe_ports.STALLED: "M",
    probe_ports.FOREIGN: "F",
    SLOW: "S",
    NO_RESULT: "?",
}
#: For a result that is the name of an error of the kernel.
OTHER_SYMBOL = "E"
MEANING = {
    ".": "ok",
    "D": "dropped",
    "R": "rejected",
    "C": "refused",
    "M": "stalls with payload",
    "F": "foreign answer",
    "S": "slow or lossy",
    "E": "another error",
    "?": "no result",
}


def symbol(result: str) -> str:
    """One letter for the result of a link."""
    return SYMBOLS.get(result, OTHER_SYMBOL)


def legend(results: Iterable[str]) -> str:
    """What the letters of these results mean."""
    used = {symbol(result) for result in results}
    return ", ".join(f"{letter} {word}" for letter, word in MEANING.items() if letter in used)


def about(subject: Mapping[str, Any]) -> str:
    """What a finding is about: ``n1 -> n2, ports 40000-50000``."""
    nodes = list(subject["nodes"])
    if subject["kind"] == LINK and len(nodes) == 2:
        text = f"{nodes[0]} -> {nodes[1]}"
    elif subject["kind"] == CLUSTER or not nodes:
        text = subject["label"] or "the cluster"
    else:
        text = folded(nodes) + (f" ({subject['label']})" if subject["label"] else "")
    if subject["kind"] == DIRECTION:
        text += f" {subject['direction']}"
    if subject["ports"]:
        text += ", ports " + ", ".join(intervals(subject["ports"]))
    if subject.get("rails"):
        text += f", on {' and '.join(subject['rails'])}"
    return text


def intervals(ports: Iterable[Sequence[int]]) -> list[str]:
    """Port intervals: 40000 and 40000 as ``40000``, 40000 and 50000 as ``40000-50000``."""
    return [str(first) if first == last else f"{first}-{last}" for first, last in ports]


def by_severity(report: Report) -> list[dict[str, Any]]:
    """The findings, errors first, otherwise in their order."""
    return sorted(report["findings"], key=lambda finding: finding["severity"] != ERROR)
