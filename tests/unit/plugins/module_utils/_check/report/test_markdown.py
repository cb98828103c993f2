# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Markdown of the pages of findings, as HTML."""

from __future__ import annotations

import html
import re

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import registry
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import markdown, pages

PAGES = pages.texts(registry.FINDINGS)


def link(address: str, inner: str) -> str:
    return f"[{address}|{inner}]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One\n## Two", "<h3>One</h3><h4>Two</h4>"),
        ("###### Six", "<h6>Six</h6>"),
        ("a\nb\n\nc", "<p>a b</p><p>c</p>"),
        ("- a\n  b\n- c\n\n1. d", '<ul class="plain"><li>a b</li><li>c</li></ul><ol class="plain"><li>d</li></ol>'),
        ("text:\n- a", '<p>text:</p><ul class="plain"><li>a</li></ul>'),
        ("text\n```sh\n# no heading\n\n<b>\n```\nmore", "<p>text</p><pre># no heading\n\n&lt;b&gt;</pre><p>more</p>"),
        ("```\nnever closed", "<pre>never closed</pre>"),
        ("`a<b` and [`c`](D.md#e)", "<p><code>a&lt;b</code> and [D.md#e|<code>c</code>]</p>"),
        ("no [link] (here)", "<p>no [link] (here)</p>"),
        ('<script>x</script> & "y"', "<p>&lt;script&gt;x&lt;/script&gt; &amp; &quot;y&quot;</p>"),
        (
            "| a | b |\n| --- | --- |\n| `c` | d |",
            '<div class="wide"><table class="list"><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>'
            "<tbody><tr><td><code>c</code></td><td>d</td></tr></tbody></table></div>",
        ),
    ],
)
def test_what_the_pages_use(text: str, expected: str) -> None:
    assert markdown.html(text, link, 2) == expected


def test_a_text_that_is_hostile_is_only_a_text() -> None:
    evil = "\"'><script>alert(1)</script>\x1b[31m"
    for text in (
        evil,
        f"# {evil}",
        f"- {evil}",
        f"`{evil}`",
        f"| {evil} |\n| --- |",
        f"```\n{evil}\n```",
        f"[{evil}](X.md)",
    ):
        found = markdown.html(text, lambda _address, inner: inner)
        assert "<script" not in found and "\x1b" not in found and "&lt;script&gt;" in found


def test_every_page_is_rendered_and_nothing_is_left_of_its_marks() -> None:
    """A mark that the subset does not know would be shown as it is written."""
    assert set(PAGES) == set(registry.FINDINGS)
    for number, text in PAGES.items():
        shown = pages.shown(text, ())
        assert shown.startswith(("<p>", "<h4>")) and "<h4>Symptom</h4>" in shown, number
        prose = re.sub(r"<(pre|code)>.*?</\1>", "", shown, flags=re.DOTALL)
        assert not re.search(r"`|\*\*|\]\(|^#|<p>[|>#]|\| ---", prose), number
        # Every word of the page is there, in its order, but for addresses of links and numbers of lists.
        source = re.sub(r"^```\w*|\]\([^)]*\)|^\d+\. ", " ", text.split("## Symptom")[1], flags=re.MULTILINE)
        there = html.unescape(re.sub(r"<[^>]*>", " ", shown.split("Symptom</h4>")[1]))
        assert re.findall(r"\w+", there) == re.findall(r"\w+", source), number
