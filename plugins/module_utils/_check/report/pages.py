# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of findings (docs/findings), for those that a report has: their text, and how a report shows them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import own_files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import registry
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import markdown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.markup import escaped

FOLDER = "docs/findings"
#: Of the headings of a page: in a report they are below the heading of a finding.
LEVELS = 2
#: The title of a page and the table below it; a finding in a report has both already.
_HEAD = re.compile(r"# .*\n+(?:\|.*\n)*")
_PAGE = re.compile(r"([A-Z0-9-]+)\.md(?:#.*)?")


def texts(numbers: Iterable[str]) -> dict[str, str]:
    """Id to the text of its page.  An id that no finding has, or whose page is not here, is left out."""
    found = {one: own_files.text(f"{FOLDER}/{one}.md") for one in dict.fromkeys(numbers) if one in registry.FINDINGS}
    return {one: text for one, text in found.items() if text}


def anchor(number: str) -> str:
    """The name of a page in the report."""
    return f"page-{number}"


def shown(text: str, others: Collection[str]) -> str:
    """A page as HTML.  others: the ids whose pages are in the same report; a link to anything else is only a text."""

    def link(address: str, inner: str) -> str:
        page = _PAGE.fullmatch(address)
        return f'<a href="#{escaped(anchor(page.group(1)))}">{inner}</a>' if page and page.group(1) in others else inner

    return markdown.html(_HEAD.sub("", text, count=1), link, LEVELS)
