# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of the site: their links, their navigation, and what the built site refers to."""

from __future__ import annotations

import zlib
from pathlib import Path

import docs_site
import pytest

HOME = "https://example.com/project"
PAGES = {
    "docs/index.md": "# Index\n\n## First\n\n[A](a.md) [again](a.md#x)\n\n## Then\n\n[R](../roles/one/README.md)\n",
    "docs/a.md": "# A\n\n## X\n",
    "docs/findings/index.md": "# Findings\n\n[one](GC-A-001.md) [a](../a.md)\n",
    "docs/findings/GC-A-001.md": "# One\n",
    "roles/one/README.md": "# one\n",
    "SECURITY.md": "# Security\n",
    "tools/notes.md": "# No page of the site\n",
}


def test_places() -> None:
    assert [docs_site.place(page) for page in PAGES] == [
        "index.md",
        "a.md",
        "findings/index.md",
        "findings/GC-A-001.md",
        "roles/one.md",
        "security.md",
        "",
    ]


@pytest.mark.parametrize(
    ("page", "target", "wanted"),
    [
        ("docs/findings/GC-A-001.md", "../a.md#x", "../a.md#x"),
        ("docs/a.md", "../roles/one/README.md", "roles/one.md"),
        ("roles/one/README.md", "../../docs/a.md", "../a.md"),
        ("roles/one/README.md", "../../SECURITY.md", "../security.md"),
        ("docs/a.md", "images/x.png", "images/x.png"),
        ("roles/one/README.md", "../../docs/images/x.png", "../images/x.png"),
        ("docs/a.md", "../galaxy.yml", f"{HOME}/blob/main/galaxy.yml"),
        ("docs/a.md", "examples/network", f"{HOME}/tree/main/docs/examples/network"),
        ("docs/a.md", "../tools/notes.md", f"{HOME}/blob/main/tools/notes.md"),
        ("docs/a.md", "https://example.com/a.md", "https://example.com/a.md"),
        ("docs/a.md", "#x", "#x"),
    ],
)
def test_links_lead_to_pages_or_to_the_repository(page: str, target: str, wanted: str) -> None:
    text = f"# T\n\n`[x]({target})` [x]({target}) y\n"
    assert docs_site.page_for_site(page, {**PAGES, page: text}, HOME) == f"# T\n\n`[x]({target})` [x]({wanted}) y\n"


def test_a_diagram_is_shown_as_its_source() -> None:
    text = "# T\n\n```mermaid\nflowchart LR\n```\n"
    assert docs_site.page_for_site("docs/a.md", {"docs/a.md": text}, HOME) == text.replace("mermaid", "text")


def test_badges_of_other_sites_are_left_out() -> None:
    badges = "[![a](https://badges.example/a)](b.md)\n![c](https://badges.example/c)\n"
    text = f"# T\n\n{badges}\n![d](images/d.png)\n"
    assert docs_site.page_for_site("docs/a.md", {"docs/a.md": text, "docs/b.md": ""}, HOME) == text.replace(badges, "")


def test_the_lists_of_the_index_are_the_navigation() -> None:
    taken = {"docs/index.md"}
    first = "\n```{toctree}\n:hidden:\n:caption: First\n\n/a\n```\n"
    then = "\n```{toctree}\n:hidden:\n:caption: Then\n\n/roles/one\n```\n"
    assert docs_site.navigation("docs/index.md", PAGES, taken) == first + then
    below = docs_site.navigation("docs/findings/index.md", PAGES, taken)
    assert below == "\n```{toctree}\n:hidden:\n\n/findings/GC-A-001\n```\n"


def test_lists_of_headings_go() -> None:
    text = "Title\n=====\n\n.. contents:: Topics\n\n.. contents::\n   :local:\n   :depth: 1\n\nText\n"
    assert docs_site.without_contents(text) == "Title\n=====\n\n\n\nText\n"


def test_labels_of_ansibles_own_pages() -> None:
    head, _, body = docs_site.inventory({"some_label": "x.html#y"}).partition(b"zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2\n")
    assert zlib.decompress(body) == b"some_label std:label -1 x.html#y some label\n"


def test_flaws_of_a_built_site_are_told(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="sub/b.html#here">b</a> <a href="#top" id="top">t</a> <a href="https://example.com">w</a>'
        '<a href="sub/b.html#gone">x</a> <a href="gone.html">x</a> <a href="#gone">x</a>'
        '<nav class="contents local"></nav><script src="https://example.com/x.js"></script>'
        '<link href="style.css?v=1"><img src="no.png">'
    )
    (tmp_path / "sub" / "b.html").write_text('<p id="here"></p> <a href="../index.html">up</a>')
    (tmp_path / "style.css").write_text("")
    assert list(docs_site.flaws(tmp_path)) == [
        "index.html: holds the error <nav class='contents local'>",
        "index.html: loads https://example.com/x.js",
        "index.html: sub/b.html#gone: sub/b.html has no such anchor",
        "index.html: gone.html: there is no such file",
        "index.html: #gone: index.html has no such anchor",
        "index.html: no.png: there is no such file",
    ]
