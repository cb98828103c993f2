# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pieces of HTML that all parts of a report's page share.  Pure."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize

#: Of a long list of texts; the rest is in report.json.
MOST_TEXTS = 40


def escaped(text: object) -> str:
    """Text that is safe in HTML, also in an attribute.  Everything from a report goes through here."""
    return html.escape(sanitize.clean(text), quote=True)


def code(text: str) -> str:
    """A block of code; empty without any."""
    return f"<pre>{escaped(text)}</pre>" if text else ""


def bullets(texts: Sequence[str]) -> str:
    """A list; empty without any."""
    if not texts:
        return ""
    items = "".join(f"<li>{escaped(text)}</li>" for text in texts[:MOST_TEXTS])
    more = f"<li>and {len(texts) - MOST_TEXTS} more in report.json</li>" if len(texts) > MOST_TEXTS else ""
    return f'<ul class="plain">{items}{more}</ul>'


def head(text: object, scope: str) -> str:
    """The head of a row or of a column.  scope: ``row`` or ``col``."""
    return f'<th scope="{scope}">{escaped(text)}</th>'


def row(title: object, cells: Iterable[object]) -> str:
    """A row of texts."""
    return f"<tr>{head(title, 'row')}{''.join(f'<td>{escaped(cell)}</td>' for cell in cells)}</tr>"


def table(heads: Iterable[str], rows: Sequence[str]) -> str:
    """A list with a head, that scrolls by itself where it is too wide.  rows: HTML."""
    cells = "".join(head(one, "col") for one in heads)
    return scrolled(f'<table class="list"><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table>')


def scrolled(content: str) -> str:
    """HTML that scrolls by itself where it is too wide."""
    return f'<div class="wide">{content}</div>'


def folded_away(summary: str, content: str, kind: str, name: str = "") -> str:
    """HTML that a click shows.  kind: a class; name: for links to it."""
    own = f' id="{escaped(name)}"' if name else ""
    return f'<details class="{kind}"{own}><summary>{escaped(summary)}</summary>{content}</details>'
