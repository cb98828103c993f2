# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time lines of a report's page: the steps of the run, and the ranks.  Pure.

Steps have the time of the controller's clock.  Every event of a rank has the time of its node's clock, so ranks whose
clocks differ are shifted by as much against each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import human_bytes, human_seconds
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.heat import MOST_NODES, escaped
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: What a rank did until it reported an event, and how that looks.
BEFORE = {
    "store": ("reaching the rendezvous", "wait"),
    "keys": ("waiting for other ranks", "wait"),
    "joined": ("connecting to the other ranks", "wait"),
    "size": ("all_reduce", "work"),
    "wrong": ("all_reduce with a wrong sum", "broken"),
    "error": ("until it failed", "broken"),
    "done": ("ending", "wait"),
}


def steps(report: Report) -> str:
    """A line for each step of the run; empty where nobody noted them."""
    times = report.get("times", [])
    end = max((one["begin_seconds"] + one["seconds"] for one in times), default=0.0)
    if end <= 0:
        return ""
    rows = []
    for one in times:
        took = human_seconds(one["seconds"])
        tell = escaped(f"{one['name']}: {took}, from {one['begin_seconds']:.1f} s on")
        place = f"left:{one['begin_seconds'] / end:.2%};width:{one['seconds'] / end:.2%}"
        rows.append(
            f'<tr><th scope="row">{escaped(one["name"])}</th><td>{took}</td>'
            f'<td class="track"><span class="work" style="{place}" title="{tell}"></span></td></tr>'
        )
    return (
        f'<h3>How long each step took</h3><table class="list lines"><tbody>{"".join(rows)}</tbody></table>'
        f'<p class="soft">{human_seconds(end)} from left to right, by the clock of the controller.</p>'
    )


def ranks(report: Report) -> str:
    """A line for each rank; empty where no rank told when it did something."""
    times = [event["at"] for rank in report["ranks"] for event in rank["events"] if "at" in event]
    if not times or max(times) <= min(times):
        return ""
    start, end = min(times), max(times)
    shown = [rank for rank in report["ranks"] if any("at" in event for event in rank["events"])][:MOST_NODES]
    rows = "".join(
        f'<tr><th scope="row">{escaped(rank["rank"])}</th><td>{escaped(rank["host"])}</td>'
        f'<td class="track">{"".join(_bars(rank, start, end))}</td></tr>'
        for rank in shown
    )
    more = f" {len(report['ranks']) - len(shown)} ranks are not shown." if len(shown) < len(report["ranks"]) else ""
    return (
        f'<h3>Time line</h3><table class="list lines"><tbody>{rows}</tbody></table>'
        f'<p class="soft">{human_seconds(end - start)} from left to right, by the clocks of the nodes: light is '
        f"waiting, dark is all_reduce, red ended in an error, and an empty line is silence.{more}</p>"
    )


def _bars(rank: Mapping[str, Any], start: float, end: float) -> Iterator[str]:
    """One bar for each event but the first, from the event before it."""
    events = [event for event in rank["events"] if "at" in event]
    for before, event in zip(events, events[1:]):
        what, kind = BEFORE.get(event["event"], (event["event"], "wait"))
        if event["event"] == "size":
            what += f" of {human_bytes(event['size_bytes'])}"
        took = max(0.0, event["at"] - before["at"])
        left, width = (before["at"] - start) / (end - start), took / (end - start)
        tell = escaped(f"{what}: {human_seconds(took)}")
        yield f'<span class="{kind}" style="left:{left:.2%};width:{width:.2%}" title="{tell}"></span>'
