# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of a report's page: sizes, versions, members, ranks, stages.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import folded, human_bytes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    console,
    grid,
    heat,
    html_findings,
    html_head,
    words,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.markup import (
    code,
    escaped,
    folded_away,
    head,
    row,
    table,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

FINE = "took part"
#: A space at which no line ends.
NO_BREAK = "\u00a0"


def sizes(report: Report) -> str:
    """The all_reduce of each size, and how long each rank took."""
    found = report["sizes"]
    if not found:
        return ""
    most = max(one["busbw_gb_per_s"] for one in found) or 1.0
    rows = []
    for one in found:
        slowest = max(one["seconds_by_rank"], key=lambda rank: one["seconds_by_rank"][rank])
        numbers = (
            f"{one['seconds'] * 1e3:.3f}",
            f"{one['algbw_gb_per_s']:.3f}",
            f"{one['busbw_gb_per_s']:.3f}",
            one["iterations"],
            slowest,
        )
        cells = "".join(f'<td class="number">{escaped(number)}</td>' for number in numbers)
        column = f'<td class="bar"><span style="width:{one["busbw_gb_per_s"] / most:.1%}"></span></td>'
        title = human_bytes(one["size_bytes"]).replace(" ", NO_BREAK)
        rows.append(f"<tr>{head(title, 'row')}{cells}{column}</tr>")
    heads = ("Size", "Time (ms)", "algbw GB/s", "busbw GB/s", "Iterations", "Slowest rank", "busbw")
    line = f'<p class="soft">{escaped(console.fit(report["fit"]))}</p>' if report["fit"] else ""
    return table(heads, rows) + line + heat.ranks(report)


def versions(report: Report) -> str:
    """Each thing with its values, the most common one first."""
    by_what: dict[str, dict[str, list[str]]] = {}
    for host, stack in report["stack"].items():
        for what, value in stack.items():
            by_what.setdefault(what, {}).setdefault(value, []).append(host)
    rows = []
    for what, values in by_what.items():
        ordered = sorted(values.items(), key=lambda item: -len(item[1]))
        for number, (value, hosts) in enumerate(ordered):
            rows.append(row(what if number == 0 else "other", (value, folded(hosts))))
    return table(("What", "Version", "Nodes"), rows) if rows else ""


def members(report: Report) -> str:
    """Every member; those of a larger cluster that are fine are folded away, and left out of a large one."""
    accused = _accused(report)
    state = {host: _state(report, host) for host in report["members"]}
    fine = [host for host in state if state[host] == FINE]
    apart = fine if len(state) > heat.ROOMY else []
    shown = [host for host in state if host not in set(apart)]
    parts = [_member_table(report, shown, state, accused)] if shown else []
    if apart and len(state) <= heat.MOST_NODES:
        rest = _member_table(report, apart, state, accused)
        parts.append(folded_away(f"{len(apart)} members that took part and are not accused", rest, "every"))
    else:
        parts.append(f'<p class="soft">{len(fine)} of {len(state)} members took part and are not accused.</p>')
    return "".join(parts)


def _member_table(report: Report, hosts: Sequence[str], state: Mapping[str, str], accused: Mapping[str, str]) -> str:
    rows = []
    for host in hosts:
        labels = ", ".join(f"{name}={value}" for name, value in report["labels"].get(host, {}).items())
        texts = "".join(f"<td>{escaped(one)}</td>" for one in (report["hostnames"].get(host, ""), labels))
        rows.append(f"<tr>{head(host, 'row')}{texts}<td>{accused.get(host) or escaped(state[host])}</td></tr>")
    return table(("Member", "Host name", "Labels", "In this run"), rows)


def _accused(report: Report) -> dict[str, str]:
    """Host to links to its errors."""
    links: dict[str, list[str]] = {}
    for number, one in enumerate(words.by_severity(report)):
        text = f'<a href="#{html_findings.anchor(number)}">{escaped(one["id"])}</a> {escaped(one["cause"])}'
        for host in one["hosts"] if one["severity"] == words.ERROR else ():
            links.setdefault(host, []).append(text)
    return {host: "; ".join(texts) for host, texts in links.items()}


def _state(report: Report, host: str) -> str:
    if host in report["culprits"]:
        return str(report["culprits"][host])
    if host not in report["selected"]:
        return "not selected"
    return FINE if host in report["participants"] else "took no part in the collective"


def ranks(report: Report) -> str:
    """Every rank of a small run, of a large one those that did not get to their end, with what they said last."""
    found = report["ranks"]
    shown = [one for one in found if len(found) <= grid.WIDE or console.last_event(one) != "done"]
    rows = []
    for one in shown[: heat.MOST_NODES]:
        said = _said(one) if console.last_event(one) != "done" else ""
        cells = (one["host"], report["versions"].get(one["host"], ""), one["state"], console.last_event(one))
        texts = "".join(f"<td>{escaped(cell)}</td>" for cell in cells)
        rows.append(f"<tr>{head(one['rank'], 'row')}{texts}<td>{code(said)}</td></tr>")
    if not rows:
        return f"<p>All {len(found)} ranks got to their end.</p>" if found else ""
    return table(("Rank", "Node", "torch", "Worker", "Last event", "What it said"), rows)


def _said(rank: Mapping[str, Any]) -> str:
    """The text of a rank that did not get to its end, what it means, and the end of its standard error."""
    says, by = rank.get("says", ""), rank.get("explained_by", "")
    meaning = ", ".join(one for one in (says, f"explained by {by}" if by else "") if one)
    return "\n".join(one for one in (rank.get("text", ""), meaning, rank["stderr_tail"].strip()[-1000:]) if one)


def stages(report: Report) -> str:
    """Each stage with the reason for its result, or with what it ran."""
    items = "".join(
        f'<li class="{html_head.stage_tone(one["result"])}"><b>{escaped(one["name"])}</b>{escaped(one["result"])}'
        f'<div class="soft">{escaped(one["why"])}</div></li>'
        for one in report["stages"]
    )
    return f'<ol class="stages">{items}</ol>' if items else ""
