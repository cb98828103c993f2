# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time lines of a report's page: the steps of the run, and the ranks.  Pure.

Steps have the time of the controller's clock.  Every event of a rank has the time of its node's clock, so ranks whose
clocks differ are shifted by as much against each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import human_bytes, human_seconds
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.heat import MOST_NODES, ROOMY, named
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.markup import escaped, head
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: Of more ranks than heat.ROOMY, those are one line whose events differ by less than this part of the whole time: what
#: nobody sees in a bar.
ALIKE = 0.02
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
        f'<table class="list lines"><tbody>{"".join(rows)}</tbody></table>'
        f'<p class="soft">{human_seconds(end)} from left to right, by the clock of the controller.</p>'
    )


def ranks(report: Report) -> str:
    """A line for each rank; empty where no rank told when it did something."""
    times = [event["at"] for rank in report["ranks"] for event in rank["events"] if "at" in event]
    if not times or max(times) <= min(times):
        return ""
    start, end = min(times), max(times)
    noted = [rank for rank in report["ranks"] if any("at" in event for event in rank["events"])]
    groups = _alike(noted, (end - start) * ALIKE) if len(noted) > ROOMY else [[rank] for rank in noted]
    rows = "".join(
        f"<tr>{head(_numbers(group), 'row')}<td>{escaped(named([str(rank['host']) for rank in group]))}</td>"
        f'<td class="track">{"".join(_bars(group[0], start, end))}</td></tr>'
        for group in groups[:MOST_NODES]
    )
    more = f" {sum(map(len, groups[MOST_NODES:]))} ranks are not shown." if len(groups) > MOST_NODES else ""
    same = f" Ranks whose bars differ by less than {ALIKE:.0%} of that are one line." if len(noted) > ROOMY else ""
    return (
        f'<h3>Time line</h3><table class="list lines"><tbody>{rows}</tbody></table>'
        f'<p class="soft">{human_seconds(end - start)} from left to right, by the clocks of the nodes: light is '
        f"waiting, dark is all_reduce, red ended in an error, and an empty line is silence.{same}{more}</p>"
    )


def _alike(ranks: Sequence[Mapping[str, Any]], most: float) -> list[list[Mapping[str, Any]]]:
    """Ranks that reported the same events at about the same time, together.  most: seconds that they may differ by."""
    groups: dict[tuple[str, ...], list[tuple[list[float], list[Mapping[str, Any]]]]] = {}
    for rank in ranks:
        events = [event for event in rank["events"] if "at" in event]
        at = [event["at"] for event in events]
        same = groups.setdefault(tuple(event["event"] for event in events), [])
        for first, group in same:
            if all(abs(one - two) <= most for one, two in zip(first, at)):
                group.append(rank)
                break
        else:
            same.append((at, [rank]))
    return sorted((group for same in groups.values() for _at, group in same), key=lambda group: group[0]["rank"])


def _numbers(group: Sequence[Mapping[str, Any]]) -> str:
    """The ranks of a line."""
    first, last, count = group[0]["rank"], group[-1]["rank"], len(group)
    if count == 1:
        return str(first)
    return f"{first}-{last}" if last - first == count - 1 else f"{count} ranks from {first}"


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
