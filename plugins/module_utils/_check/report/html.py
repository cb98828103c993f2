# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as one HTML file: no address outside of it, readable on a screen, on a telephone and on paper.  Pure.

First what a person has to know, then what it was derived from: the verdict, counts, findings, maps, rails, versions,
and the times of the steps last.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    drift,
    heat,
    html_findings,
    html_head,
    html_tables,
    rails,
    script,
    timeline,
    usual,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.markup import bullets, escaped
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.style import CSS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

# Even where a text from a node were not escaped, a browser would load nothing, and run nothing but our script.
POLICY = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script.HASH}'"

#: Titles of sections that are shorter in the contents.
SHORT = {"unexplained": "Unexplained texts", "since": "Changes"}


def page(report: Report, before: Report | None = None, pages: Mapping[str, str] | None = None) -> str:
    """The whole file.

    before: the report of an earlier run, to show what changed since.  pages: id of a finding to the text of its page.
    """
    views = [
        ("", "mesh", report),
        *((name, f"rail-{number}", view) for number, (name, view) in enumerate(rails.views(report), 2)),
    ]
    since = f"Since run {before['run_id']}, {before['started']}" if before else ""
    sections = [
        ("findings", "Findings", html_findings.findings(report, pages or {})),
        ("unexplained", "Texts that no finding explains", _unexplained(report)),
        ("notes", "Notes", bullets(report["notes"])),
        ("since", since, _drift(before, report)),
        ("mesh", "Mesh", _mesh(report, _order(report))),
        *((anchor, f"Mesh of {name}", _mesh(view)) for name, anchor, view in views[1:]),
        ("all-reduce", "All_reduce", html_tables.sizes(report)),
        ("versions", "Versions", html_tables.versions(report)),
        ("members", "Members", html_tables.members(report)),
        ("ranks", "Ranks", timeline.ranks(report) + html_tables.ranks(report)),
        ("stages", "Stages", html_tables.stages(report)),
        ("times", "Step times", timeline.steps(report)),
    ]
    there = [(anchor, title, content) for anchor, title, content in sections if content]
    links = "".join(
        f'<li><a href="#{anchor}">{escaped(SHORT.get(anchor, title))}</a></li>' for anchor, title, _content in there
    )
    body = "".join(
        f'<section id="{anchor}"><h2>{escaped(title)}</h2>{content}</section>\n' for anchor, title, content in there
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{escaped(report['verdict'])}: check {escaped(report['run_id'])}</title>\n"
        f"<style>{CSS}</style>\n</head>\n<body>\n{html_head.header(report)}\n{html_head.counts(report, views)}\n"
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n<main>\n{body}</main>\n'
        "<footer>Made by baremetal.gpu_cluster.check. The same data is in report.json beside this file; "
        "docs/findings of the collection has a page for each id.</footer>\n"
        f"<script>{script.TEXT}</script>\n</body>\n</html>\n"
    )


def _unexplained(report: Report) -> str:
    texts = []
    for one in report["unexplained"]:
        rank = "" if one["rank"] is None else f", rank {one['rank']}"
        texts.append(f"{one['host']}{rank}: {one['text']}")
    counts = "<p>The run is strict, so they fail it.</p>" if texts and report["strict"] else ""
    return counts + bullets(texts)


def _drift(before: Report | None, now: Report) -> str:
    if before is None:
        return ""
    return bullets(drift.compare(before, now)) or "<p>Nothing changed.</p>"


def _mesh(report: Report, order: str = "") -> str:
    maps = heat.maps(report)
    note = (
        f"The stronger its colour, the worse a number is than the median of all links, from {usual.FACTOR:g} to "
        f"{usual.FULL:g} times; differences that are usual have none."
        if len(report["selected"]) >= usual.FEWEST_NODES
        else f"With fewer than {usual.FEWEST_NODES} nodes no number has a colour: they do not show what is usual."
    )
    return f'{order}<div class="maps">{maps}</div><p class="soft">{note}</p>' if maps else ""


def _order(report: Report) -> str:
    """The choice of an order for the nodes of all maps.  Without the script nobody sees it."""
    orders = heat.orders(report)
    options = "".join(f'<option value="{places}">{escaped(name)}</option>' for name, places in orders.items())
    return f'<p id="order" hidden><label>Order of the nodes <select>{options}</select></label></p>' if orders else ""
