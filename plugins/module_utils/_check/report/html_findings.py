# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The findings of a report's page, each with the page that explains it.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import pages, words, yaml_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.markup import (
    bullets,
    code,
    escaped,
    folded_away,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: More findings than these have a list of their own in front.
LISTED = 6


def anchor(number: int) -> str:
    """The name of a finding; number: its place among those that words.by_severity gives."""
    return f"finding-{number + 1}"


def findings(report: Report, texts: Mapping[str, str]) -> str:
    """All of them, the errors first.  texts: id to the text of its page."""
    found = words.by_severity(report)
    if not found:
        return "<p>None.</p>"
    parts = [_index(found)] if len(found) > LISTED else []
    told: set[str] = set()
    for number, one in enumerate(found):
        parts.append(_finding(number, one, report["members"], _page(one["id"], texts, told)))
    return "".join(parts)


def _index(found: Sequence[Mapping[str, Any]]) -> str:
    items = "".join(
        f'<li><a href="#{anchor(number)}">{escaped(" ".join((one["severity"], one["id"], one["cause"])))}</a></li>'
        for number, one in enumerate(found)
    )
    return f'<ol class="index">{items}</ol>'


def _finding(number: int, finding: Mapping[str, Any], members: Sequence[str], page: str) -> str:
    variables = "\n".join(
        "\n".join([f"# {sanitize.one_line(owner)}", *yaml_text.lines(values)])
        for owner, values in yaml_text.owned(finding["variables"], members)
    )
    rows = {
        "About": escaped(words.about(finding["subject"])),
        "Seen": bullets(finding["evidence"]),
        "Not the cause": bullets(finding["ruled_out"]),
        "Fix": escaped(finding["fix"]),
        "Set": code(variables),
        "Run": code(finding["command"]),
        "Look": code(finding["look"]),
        "See it again": code(finding["reproduce"]),
    }
    tone = "error" if finding["severity"] == "error" else "warning"
    body = "".join(f"<dt>{name}</dt><dd>{content}</dd>" for name, content in rows.items() if content)
    sure = "" if finding["confidence"] >= 1 else f"{finding['confidence']:.0%} sure"
    return (
        f'<article class="finding {tone}" id="{anchor(number)}">'
        f'<span class="badge">{escaped(finding["severity"])}</span> <b>{escaped(finding["id"])}</b> '
        f'<span class="soft">{sure}</span><h3>{escaped(finding["cause"])}</h3>'
        f"<dl>{body}</dl>{page}</article>"
    )


def _page(number: str, texts: Mapping[str, str], told: set[str]) -> str:
    """The page of an id; where an earlier finding has it, a link to it.  told: those that were shown."""
    if number not in texts:
        return ""
    title = f"{number}: symptom, fix, cause, details"
    if number in told:
        return f'<p><a href="#{escaped(pages.anchor(number))}">{escaped(title)}</a></p>'
    told.add(number)
    return folded_away(title, pages.shown(texts[number], texts), "page", pages.anchor(number))
