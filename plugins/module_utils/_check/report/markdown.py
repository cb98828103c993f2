# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of Markdown that the pages of findings use, as HTML.  Pure.

Headings, paragraphs, lists, tables, blocks of code, code in a line, and links.  Anything else is shown as it is
written: every text is escaped, so no page brings HTML of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.markup import escaped, scrolled

FENCE = "```"
_HEADING = re.compile(r"(#{1,6}) +(.*)")
_ITEM = re.compile(r"([-*]|\d+\.) +(.*)")
_RULE = re.compile(r"\|[ :|-]+\|?\s*$")
#: Code, or a link with its text and its address; a text may have code in it.
_INLINE = re.compile(r"`([^`]+)`|\[((?:`[^`]*`|[^\]`])+)\]\(([^)\s]+)\)")

#: The address of a link, and its text as HTML, to what the link becomes.
Link = Callable[[str, str], str]


def html(text: str, link: Link, level: int = 0) -> str:
    """The text as HTML.  level: how many levels its headings are below those of the text."""
    return "".join(_blocks(text.splitlines(), link, level))


def _blocks(lines: list[str], link: Link, level: int) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        end = _end(lines, at)
        heading, item = _HEADING.fullmatch(line), _ITEM.match(line)
        if line.startswith(FENCE):
            body = "\n".join(lines[at + 1 : end - 1] if lines[end - 1].startswith(FENCE) else lines[at + 1 : end])
            yield f"<pre>{escaped(body)}</pre>"
        elif heading:
            depth = min(6, len(heading.group(1)) + level)
            yield f"<h{depth}>{_inline(heading.group(2), link)}</h{depth}>"
        elif item:
            kind = "ul" if item.group(1) in "-*" else "ol"
            yield f'<{kind} class="plain">{"".join(_items(lines[at:end], link))}</{kind}>'
        elif line.startswith("|"):
            yield _table(lines[at:end], link)
        elif line.strip():
            yield f"<p>{_inline(' '.join(one.strip() for one in lines[at:end]), link)}</p>"
        at = end


def _end(lines: list[str], at: int) -> int:
    """Behind the last line of the block that begins here."""
    end = at + 1
    if lines[at].startswith(FENCE):
        while end < len(lines) and not lines[end].startswith(FENCE):
            end += 1
        return min(len(lines), end + 1)
    if _HEADING.fullmatch(lines[at]) or not lines[at].strip():
        return end
    is_list = bool(_ITEM.match(lines[at]))
    while end < len(lines) and lines[end].strip() and not lines[end].startswith((FENCE, "#")):
        if lines[end].startswith("|") != lines[at].startswith("|") or (_ITEM.match(lines[end]) and not is_list):
            break
        end += 1
    return end


def _items(lines: list[str], link: Link) -> Iterator[str]:
    """A line without a mark goes on with the item above it."""
    items: list[str] = []
    for line in lines:
        item = _ITEM.match(line)
        if item:
            items.append(item.group(2))
        else:
            items[-1] += f" {line.strip()}"
    return (f"<li>{_inline(item, link)}</li>" for item in items)


def _table(lines: list[str], link: Link) -> str:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if not _RULE.match(line)]
    has_head = len(lines) > 1 and bool(_RULE.match(lines[1]))
    heads = "".join(f'<th scope="col">{_inline(cell, link)}</th>' for cell in rows[0]) if has_head else ""
    body = "".join(
        f"<tr>{''.join(f'<td>{_inline(cell, link)}</td>' for cell in row)}</tr>" for row in rows[bool(has_head) :]
    )
    head = f"<thead><tr>{heads}</tr></thead>" if has_head else ""
    return scrolled(f'<table class="list">{head}<tbody>{body}</tbody></table>')


def _inline(text: str, link: Link) -> str:
    parts, at = [], 0
    for found in _INLINE.finditer(text):
        parts.append(escaped(text[at : found.start()]))
        if found.group(1):
            parts.append(f"<code>{escaped(found.group(1))}</code>")
        else:
            parts.append(link(found.group(3), _inline(found.group(2), link)))
        at = found.end()
    return "".join([*parts, escaped(text[at:])])
