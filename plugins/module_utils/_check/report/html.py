# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as one HTML file: no script, no address outside of it, readable on a screen and on paper.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import folded, human_bytes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    console,
    drift,
    grid,
    heat,
    rails,
    timeline,
    words,
    yaml_text,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.heat import escaped
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.style import CSS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

# Even where a text from a node were not escaped, a browser would run and load nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
# Of a long list of texts; the rest is in report.json.
MOST_TEXTS = 40


def page(report: Report, before: Report | None = None) -> str:
    """The whole file.  before: the report of an earlier run, to show what changed since."""
    sections = [
        ("Stages", _stages(report) + timeline.steps(report)),
        ("Findings", "".join(_finding(one, report["members"]) for one in words.by_severity(report))),
        ("Texts that no finding explains", _unexplained(report)),
        ("Notes", _bullets(report["notes"])),
        (f"Since run {before['run_id']}, {before['started']}" if before else "", _drift(before, report)),
        ("Mesh", _mesh(report)),
        *((f"Mesh of {name}", _mesh(view)) for name, view in rails.views(report)),
        ("All_reduce", _sizes(report)),
        ("Versions", _versions(report)),
        ("Members", _members(report)),
        ("Ranks", timeline.ranks(report) + _ranks(report)),
    ]
    body = "".join(f"<section><h2>{escaped(title)}</h2>{content}</section>\n" for title, content in sections if content)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{escaped(report['verdict'])}: check {escaped(report['run_id'])}</title>\n"
        f"<style>{CSS}</style>\n</head>\n<body>\n{_header(report)}\n<main>\n{body}</main>\n"
        "<footer>baremetal.gpu_cluster.check. The same data is in report.json beside this file; "
        "docs/findings of the collection has a page for each id.</footer>\n</body>\n</html>\n"
    )


def _header(report: Report) -> str:
    verdict = report["verdict"]
    rest = report["headline"]
    rest = rest[len(verdict) :].lstrip(":, ") if rest.startswith(verdict) else rest
    facts = {
        "Run": report["run_id"],
        "Started": report["started"] or "unknown",
        "Took": f"{report['seconds']:.1f} s",
        "Backend": report["backend"],
        "World size": report["world_size"],
        "Members": f"{len(report['participants'])} of {len(report['members'])} took part",
        "Strict": "yes" if report["strict"] else "no",
        "Limits": console.limits(report) or "none",
    }
    items = "".join(f"<div><dt>{name}</dt><dd>{escaped(value)}</dd></div>" for name, value in facts.items())
    tone = verdict.replace(" ", "").lower() if verdict in (words.PASSED, words.NOT_VALIDATED) else "failed"
    return (
        f'<header class="{tone}"><p class="word">{escaped(verdict)}</p><h1>{escaped(rest)}</h1>'
        f'<dl class="facts">{items}</dl></header>'
    )


def _stages(report: Report) -> str:
    items = []
    for stage in report["stages"]:
        tone = {"passed": "passed", "failed": "failed"}.get(stage["result"], "skipped")
        items.append(
            f'<li class="{tone}"><b>{escaped(stage["name"])}</b>{escaped(stage["result"])}'
            f'<div class="soft">{escaped(stage["why"])}</div></li>'
        )
    return f'<ol class="stages">{"".join(items)}</ol>' if items else ""


def _finding(finding: Mapping[str, Any], members: Sequence[str]) -> str:
    variables = "\n".join(
        "\n".join([f"# {sanitize.one_line(owner)}", *yaml_text.lines(values)])
        for owner, values in yaml_text.owned(finding["variables"], members)
    )
    rows = {
        "About": escaped(words.about(finding["subject"])),
        "Seen": _bullets(finding["evidence"]),
        "Not the cause": _bullets(finding["ruled_out"]),
        "Fix": escaped(finding["fix"]),
        "Set": _code(variables),
        "Run": _code(finding["command"]),
        "Look": _code(finding["look"]),
        "See it again": _code(finding["reproduce"]),
    }
    tone = "error" if finding["severity"] == "error" else "warning"
    body = "".join(f"<dt>{name}</dt><dd>{content}</dd>" for name, content in rows.items() if content)
    sure = "" if finding["confidence"] >= 1 else f"{finding['confidence']:.0%} sure"
    return (
        f'<article class="finding {tone}"><span class="badge">{escaped(finding["severity"])}</span> '
        f'<b>{escaped(finding["id"])}</b> <span class="soft">{sure}</span><h3>{escaped(finding["cause"])}</h3>'
        f"<dl>{body}</dl></article>"
    )


def _code(text: str) -> str:
    return f"<pre>{escaped(text)}</pre>" if text else ""


def _bullets(texts: Sequence[str]) -> str:
    if not texts:
        return ""
    items = "".join(f"<li>{escaped(text)}</li>" for text in texts[:MOST_TEXTS])
    more = f"<li>and {len(texts) - MOST_TEXTS} more in report.json</li>" if len(texts) > MOST_TEXTS else ""
    return f'<ul class="plain">{items}{more}</ul>'


def _unexplained(report: Report) -> str:
    texts = []
    for one in report["unexplained"]:
        rank = "" if one["rank"] is None else f", rank {one['rank']}"
        texts.append(f"{one['host']}{rank}: {one['text']}")
    counts = "<p>The run is strict, so they fail it.</p>" if texts and report["strict"] else ""
    return counts + _bullets(texts)


def _drift(before: Report | None, now: Report) -> str:
    if before is None:
        return ""
    return _bullets(drift.compare(before, now)) or "<p>Nothing changed.</p>"


def _mesh(report: Report) -> str:
    maps = heat.maps(report)
    note = (
        f'<p class="soft">The stronger its colour, the worse a number is than the median; the strongest are '
        f"{heat.FULL:.0f} times worse or more.</p>"
    )
    return f'<div class="maps">{maps}</div>{note}' if maps else ""


def _sizes(report: Report) -> str:
    sizes = report["sizes"]
    if not sizes:
        return ""
    most = max(one["busbw_gb_per_s"] for one in sizes) or 1.0
    rows = []
    for one in sizes:
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
        rows.append(f'<tr><th scope="row">{human_bytes(one["size_bytes"])}</th>{cells}{column}</tr>')
    heads = ("Size", "Time (ms)", "algbw GB/s", "busbw GB/s", "Iterations", "Slowest rank", "busbw")
    line = f'<p class="soft">{escaped(console.fit(report["fit"]))}</p>' if report["fit"] else ""
    return f'{_list(heads, rows)}{line}<div class="wide">{heat.ranks(report)}</div>'


def _versions(report: Report) -> str:
    """Each thing with its values, the most common one first."""
    by_what: dict[str, dict[str, list[str]]] = {}
    for host, stack in report["stack"].items():
        for what, value in stack.items():
            by_what.setdefault(what, {}).setdefault(value, []).append(host)
    rows = []
    for what, values in by_what.items():
        ordered = sorted(values.items(), key=lambda item: -len(item[1]))
        for number, (value, hosts) in enumerate(ordered):
            title = escaped(what) if number == 0 else '<span class="soft">other</span>'
            rows.append(
                f'<tr><th scope="row">{title}</th><td>{escaped(value)}</td><td>{escaped(folded(hosts))}</td></tr>'
            )
    return _list(("What", "Version", "Nodes"), rows) if rows else ""


def _members(report: Report) -> str:
    """Every member of a small cluster, of a large one those that are not fine."""
    state = {host: _state(report, host) for host in report["members"]}
    shown = [host for host in state if len(state) <= heat.MOST_NODES or state[host] != "took part"]
    rows = []
    for host in shown:
        labels = ", ".join(f"{name}={value}" for name, value in report["labels"].get(host, {}).items())
        cells = (report["hostnames"].get(host, ""), labels, state[host])
        rows.append(
            f'<tr><th scope="row">{escaped(host)}</th>{"".join(f"<td>{escaped(one)}</td>" for one in cells)}</tr>'
        )
    count = Counter(state.values())
    rest = f'<p class="soft">{count["took part"]} of {len(state)} members took part and are not accused.</p>'
    return _list(("Member", "Host name", "Labels", "In this run"), rows) + rest


def _state(report: Report, host: str) -> str:
    if host in report["culprits"]:
        return str(report["culprits"][host])
    if host not in report["selected"]:
        return "not selected"
    return "took part" if host in report["participants"] else "took no part in the collective"


def _ranks(report: Report) -> str:
    """Every rank of a small run, of a large one those that did not get to their end, with what they said last."""
    ranks = report["ranks"]
    shown = [one for one in ranks if len(ranks) <= grid.WIDE or console.last_event(one) != "done"]
    rows = []
    for one in shown[: heat.MOST_NODES]:
        said = _said(one) if console.last_event(one) != "done" else ""
        cells = (one["host"], report["versions"].get(one["host"], ""), one["state"], console.last_event(one))
        texts = "".join(f"<td>{escaped(cell)}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{escaped(one["rank"])}</th>{texts}<td>{_code(said)}</td></tr>')
    if not rows:
        return f"<p>All {len(ranks)} ranks got to their end.</p>" if ranks else ""
    return _list(("Rank", "Node", "torch", "Worker", "Last event", "What it said"), rows)


def _said(rank: Mapping[str, Any]) -> str:
    """The text of a rank that did not get to its end, what it means, and the end of its standard error."""
    says, by = rank.get("says", ""), rank.get("explained_by", "")
    meaning = ", ".join(one for one in (says, f"explained by {by}" if by else "") if one)
    return "\n".join(one for one in (rank.get("text", ""), meaning, rank["stderr_tail"].strip()[-1000:]) if one)


def _list(heads: Iterable[str], rows: Sequence[str]) -> str:
    cells = "".join(f'<th scope="col">{head}</th>' for head in heads)
    table = f'<table class="list"><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'<div class="wide">{table}</div>'
