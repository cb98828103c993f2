# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The top of a report's page: the verdict, which run it is of, and what was counted.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import console, grid, words
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.markup import escaped
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: Title of a rail, the anchor of its maps, and the report with its links.
View = tuple[str, str, Report]
#: Of ISO 8601: a date and a time to seconds.
SECONDS = len("2026-01-02T03:04:05")
GOOD, BAD, UNSURE = "passed", "failed", "skipped"


def header(report: Report) -> str:
    """Verdict, headline and facts."""
    verdict = report["verdict"]
    rest = report["headline"]
    rest = rest[len(verdict) :].lstrip(":, ") if rest.startswith(verdict) else rest
    tone = verdict.replace(" ", "").lower() if verdict in (words.PASSED, words.NOT_VALIDATED) else "failed"
    facts = "".join(f"<div><dt>{name}</dt><dd>{escaped(value)}</dd></div>" for name, value in _facts(report))
    return (
        f'<header class="{tone}"><p class="word">{escaped(verdict)}</p><h1>{escaped(rest)}</h1>'
        f'<dl class="facts">{facts}</dl></header>'
    )


def _facts(report: Report) -> Iterator[tuple[str, object]]:
    origin = report.get("origin", {})
    if origin.get("inventory"):
        yield "Inventory", ", ".join(origin["inventory"])
    yield "Started", started(report)
    yield "Took", f"{report['seconds']:.1f} s"
    if origin.get("controller"):
        yield "Controller", origin["controller"]
    if origin.get("product_version"):
        yield "Version", origin["product_version"]
    yield "Run", report["run_id"]
    yield "Backend", f"{report['backend']}, world size {report['world_size']}"
    if report["strict"]:
        yield "Strict", "yes"
    limits = console.limits(report)
    if limits:
        yield "Limits", limits


def started(report: Report) -> str:
    """By the clock of the controller, and in UTC where that is another time."""
    utc = _readable(report["started"])
    origin = report.get("origin", {})
    local = _readable(origin.get("started_local", ""))
    if not local or not utc or local == utc:
        return f"{utc} UTC" if utc else "unknown"
    zone = origin.get("zone") or origin["started_local"][SECONDS:]
    same_day = local.split()[0] == utc.split()[0]
    return f"{local} {zone} ({utc.split()[1] if same_day else utc} UTC)"


def _readable(time: str) -> str:
    return time[:SECONDS].replace("T", " ") if len(time) >= SECONDS and time[len("2026-01-02")] == "T" else ""


def counts(report: Report, views: Sequence[View]) -> str:
    """What was counted, each with a link to where it is told, and the stages."""
    items = "".join(
        f'<li class="{tone}"><a href="#{escaped(anchor)}"><b>{escaped(number)}</b> {escaped(what)}</a></li>'
        for tone, number, what, anchor in _counted(report, views)
    )
    stages = "".join(
        f'<li class="{stage_tone(one["result"])}"><b>{escaped(one["name"])}</b> {escaped(one["result"])}</li>'
        for one in report["stages"]
    )
    row = f'<ol class="chips" aria-label="Stages">{stages}</ol>' if stages else ""
    return f'<ul class="counts" aria-label="Counts">{items}</ul>{row}'


def stage_tone(result: str) -> str:
    """What was not looked at never looks passed."""
    return {"passed": GOOD, "failed": BAD}.get(result, UNSURE)


def _counted(report: Report, views: Sequence[View]) -> Iterator[tuple[str, str, str, str]]:
    """Tone, number, what, and where it is told."""
    errors = sum(one["severity"] == ERROR for one in report["findings"])
    warnings = len(report["findings"]) - errors
    yield BAD if errors else GOOD, str(errors), _plural("error", errors), "findings"
    yield UNSURE if warnings else GOOD, str(warnings), _plural("warning", warnings), "findings"
    took, members = len(report["participants"]), len(report["members"])
    yield GOOD if took == members else UNSURE, f"{took} of {members}", "members took part", "members"
    for title, anchor, view in views:
        lines = grid.lines(view)
        links = len(lines) * (len(lines) - 1)
        fine = sum(line.count(probe_ports.OK) for line in lines)
        if links:
            yield GOOD if fine == links else BAD, f"{fine} of {links}", f"links fine{title and f', {title}'}", anchor
    texts = len(report["unexplained"])
    if texts:
        yield BAD if report["strict"] else UNSURE, str(texts), _plural("unexplained text", texts), "unexplained"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
