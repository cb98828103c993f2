# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as a text file for the textfile collector of node_exporter.  Pure.

Names and units follow Prometheus' naming practices (base units, a unit at the end of the name).  No line has a
timestamp: node_exporter refuses a file that has one.  A rule takes the age from ``..._start_timestamp_seconds``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import link_table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.link_table import Table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR, WARNING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import grid, rails, words
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

PREFIX = "gpu_cluster_check_"

#: Every metric with what it means; the documentation shows this table.
METRICS = {
    "passed": "1 when the verdict is PASSED, 0 otherwise",
    "verdict": "1 for the verdict of this run, 0 for the others",
    "start_timestamp_seconds": "when the run started, in seconds since 1970",
    "duration_seconds": "how long the run took",
    "step_duration_seconds": "how long each step of the run took",
    "members": "nodes of the cluster",
    "participants": "nodes that took part in the collective",
    "ranks": "ranks that took part in the collective (the world size)",
    "findings": "number of findings by severity",
    "finding": "1 for each id and host that a finding names; host is empty when it names none",
    "culprit": "1 for a member that an error names, 0 for the others",
    "unexplained_texts": "texts of the run that no finding explains",
    "stage": "1 for the result of a stage, 0 for its other results",
    "links": "directed links of the mesh by result",
    "connect_median_seconds": "median over all links of the time to connect",
    "connect_slowest_seconds": "time to connect of the slowest link",
    "link_median_bytes_per_second": "median over all links of the rate of one connection",
    "link_slowest_bytes_per_second": "rate of one connection on the slowest link",
    "link_retransmits": "segments that were sent again, over all links",
    "all_reduce_seconds": "median time of an all_reduce by buffer size",
    "all_reduce_busbw_bytes_per_second": "bus bandwidth of an all_reduce by buffer size",
    "fit_alpha_seconds": "time of an empty message, from the fit of all sizes",
    "fit_beta_bytes_per_second": "bandwidth of a large message, from the fit of all sizes",
}
VERDICTS = (words.PASSED, "FAILED", words.NOT_VALIDATED)
RESULTS = ("passed", "failed", "skipped")

# The labels of a sample, then its value.
Sample = tuple[dict[str, str], float]


def text(report: Report) -> str:
    """The whole file, with the line feed at its end that the format asks for."""
    lines = []
    for name, samples in _samples(report).items():
        if samples:
            lines += [f"# HELP {PREFIX}{name} {METRICS[name]}", f"# TYPE {PREFIX}{name} gauge"]
            lines += [f"{PREFIX}{name}{_labels(labels)} {_number(value)}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _samples(report: Report) -> dict[str, list[Sample]]:
    severities = Counter(finding["severity"] for finding in report["findings"])
    return {
        "passed": [({}, float(report["verdict"] == words.PASSED))],
        "verdict": [({"verdict": one}, float(report["verdict"] == one)) for one in VERDICTS],
        "start_timestamp_seconds": [({}, moment(report["started"]))] if report["started"] else [],
        "duration_seconds": [({}, report["seconds"])],
        "step_duration_seconds": [({"step": one["name"]}, one["seconds"]) for one in report.get("times", [])],
        "members": [({}, len(report["members"]))],
        "participants": [({}, len(report["participants"]))],
        "ranks": [({}, report["world_size"])],
        "findings": [({"severity": one}, severities[one]) for one in (ERROR, WARNING)],
        "finding": list(_findings(report)),
        "culprit": [({"host": host}, float(host in report["culprits"])) for host in report["members"]],
        "unexplained_texts": [({}, len(report["unexplained"]))],
        "stage": [
            ({"stage": stage["name"], "result": one}, float(stage["result"] == one))
            for stage in report["stages"]
            for one in RESULTS
        ],
        **_all_links(report),
        "all_reduce_seconds": [(_size(one), one["seconds"]) for one in report["sizes"]],
        "all_reduce_busbw_bytes_per_second": [(_size(one), one["busbw_gb_per_s"] * 1e9) for one in report["sizes"]],
        "fit_alpha_seconds": [({}, report["fit"]["alpha_seconds"])] if report["fit"] else [],
        "fit_beta_bytes_per_second": [({}, report["fit"]["beta_bytes_per_second"])] if report["fit"] else [],
    }


def _findings(report: Report) -> Iterator[Sample]:
    """Each series once: two findings may name the same host with the same id."""
    seen = {
        (finding["id"], finding["severity"], host): None
        for finding in report["findings"]
        for host in finding["hosts"] or [""]
    }
    for number, severity, host in seen:
        yield {"id": number, "severity": severity, "host": host}, 1


def _all_links(report: Report) -> dict[str, list[Sample]]:
    """Of the first rail, whose series have no label for it, and of the others with their names."""
    found = _links(report)
    for name, view in rails.views(report):
        for metric, samples in _links(view).items():
            found[metric] += [({"rail": name, **labels}, value) for labels, value in samples]
    return found


def _links(report: Report) -> dict[str, list[Sample]]:
    results = grid.counts(report)
    connect, rate, again = (
        Table.of(report[name]).counts() for name in ("latency_ms", "bytes_per_second", "retransmits")
    )
    return {
        "links": [
            ({"result": result or "none"}, results[result]) for result in sorted(results, key=lambda one: one or "none")
        ],
        "connect_median_seconds": _of(lambda counts: link_table.median(counts) / 1e3, connect),
        "connect_slowest_seconds": _of(lambda counts: max(counts) / 1e3, connect),
        "link_median_bytes_per_second": _of(link_table.median, rate),
        "link_slowest_bytes_per_second": _of(min, rate),
        "link_retransmits": _of(lambda counts: sum(value * times for value, times in counts.items()), again),
    }


def _of(summary: Callable[[Mapping[float, int]], float], counts: Mapping[float, int]) -> list[Sample]:
    """counts: of the links with each value."""
    return [({}, summary(counts))] if counts else []


def _size(one: Mapping[str, Any]) -> dict[str, str]:
    return {"size_bytes": str(one["size_bytes"])}


def moment(started: str) -> float:
    """Seconds since 1970 of an ISO 8601 text in UTC, such as ``2026-01-02T03:04:05Z``."""
    return datetime.fromisoformat(started.replace("Z", "+00:00")).timestamp()


def _labels(labels: Mapping[str, str]) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in labels.items()]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escaped(value: str) -> str:
    """As the text format wants the value of a label: backslash, quote and line feed are escaped."""
    return sanitize.one_line(value).replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))
