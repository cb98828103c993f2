# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The links of all Markdown pages: files, anchors, and the form of addresses."""

from __future__ import annotations

import doc_links
import docs_site
import project


def test_no_link_of_any_page_is_dead() -> None:
    pages = doc_links.read_pages()
    assert {"README.md", "docs/limits.md", "roles/cluster_check/README.md"} <= set(pages)
    assert doc_links.dead(pages, lambda path: (project.ROOT / path).exists()) == []


def test_the_index_leads_to_every_page() -> None:
    """A page that docs/index.md does not name would be on the site, and nobody would find it."""
    pages = doc_links.read_pages()
    taken = {docs_site.INDEX, *docs_site.OTHERS}
    for page in docs_site.CONTENTS:
        docs_site.navigation(page, pages, taken)
    assert {page for page in pages if docs_site.place(page)} - taken == set()
