# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page that shows which versions go together says what the data says, and the roles' defaults go together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import project
import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _stack_versions as truth
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import versions
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.gpus import GPUS

PAGE = project.ROOT / "docs" / "versions.md"
TABLES: tuple[Sequence[Any], ...] = (truth.CUDA_MAJORS, truth.BRANCHES, truth.CHANGES, truth.TORCH, truth.NCCL)
#: Every source once, in the order in which the tables name them: the numbers that rows end with.
SOURCES = list(dict.fromkeys(source for table in TABLES for row in table for source in row.sources))


def line(*cells: object, sources: Iterable[str]) -> str:
    """One row of a table, with the numbers of its sources."""
    numbers = ", ".join(str(SOURCES.index(source) + 1) for source in sources)
    return f"| {' | '.join(str(cell) for cell in cells)} | {numbers} |"


def lines() -> list[str]:
    """All rows of all tables and the list of sources, in the order of the page."""
    rows = [line(f"{row.major}.x", f"{row.branch} or newer", sources=row.sources) for row in truth.CUDA_MAJORS]
    rows += [line(row.branch, row.cuda, sources=row.sources) for row in truth.BRANCHES]
    rows += [line(row.branch, row.what, sources=row.sources) for row in truth.CHANGES]
    for row in truth.TORCH:
        python = f"{row.oldest_python} to {row.newest_python}"
        builds = row.builds.replace(" ", ", ") or "not listed"
        rows.append(line(row.release, python, row.tag, row.cuda, row.nccl, builds, sources=row.sources))
    for nccl in truth.NCCL:
        seen = "no others" if nccl.whole else "perhaps others"
        rows.append(line(nccl.version, nccl.builds.replace(" ", ", "), seen, sources=nccl.sources))
    return rows + [f"{number}. {source}" for number, source in enumerate(SOURCES, 1)]


def is_data(text: str) -> bool:
    """Whether a line of the page is a row with a version, or a source."""
    first = text.removeprefix("| ")[:1]
    return first.isdigit()


def test_the_page_shows_the_data() -> None:
    """Row by row; a row too many is wrong too."""
    assert [text for text in PAGE.read_text(encoding="utf-8").splitlines() if is_data(text)] == lines()


def test_the_defaults_of_the_roles_go_together() -> None:
    """A cluster that pins nothing is not refused."""
    defaults: dict[str, Any] = {}
    for file in (project.ROOT / "roles").glob("*/defaults/main.yml"):
        defaults.update(yaml.safe_load(file.read_text(encoding="utf-8")) or {})
    assert versions.pin_problems(versions.with_defaults({}, defaults)) == []


@pytest.mark.parametrize("name", [name for name in versions.VARIABLES if name != GPUS])
def test_every_variable_that_is_compared_exists(name: str) -> None:
    """A renamed variable would never be compared again."""
    files = (project.ROOT / "roles").glob("*/defaults/main.yml")
    assert any(name in (yaml.safe_load(file.read_text(encoding="utf-8")) or {}) for file in files)
