# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a cause lists every text that leads to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import Cause

PAGES = Path(__file__).parents[7] / "docs" / "findings"


@pytest.mark.parametrize("number", list(causes.CAUSES))
def test_a_page_lists_its_texts(number: str) -> None:
    page = (PAGES / f"{number}.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")]
    says = [one.says for table in lookup.TABLES.values() for one in table if one.cause == number]
    assert [one for one in says if one not in rows] == []


@pytest.mark.parametrize("cause", list(causes.CAUSES.values()), ids=list(causes.CAUSES))
def test_a_page_says_which_findings_explain_its_texts(cause: Cause) -> None:
    page = (PAGES / f"{cause.id}.md").read_text(encoding="utf-8")
    named = re.search(r"If another finding explains the text \(([^)]+)\)", page)
    told = re.findall(r"`(GC-[A-Z0-9-]+)\*?`", named[1]) if named else []
    assert sorted(told) == sorted(cause.explained_by)
    assert bool(named) != ("No other finding explains these texts, so this finding is always reported." in page)
