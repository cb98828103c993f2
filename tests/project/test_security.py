# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SECURITY.md: every promise names a test, and the test is there."""

from __future__ import annotations

import re

import project
import pytest

TEXT = (project.ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`((?:tests|molecule)/[^`]+?\.py)(?:::(\w+))?`", TEXT)


def promises() -> list[str]:
    """The rows of the table, without its head."""
    section = TEXT.split("## What is promised")[1].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| ")][2:]


def test_there_are_promises() -> None:
    """An empty list would make the tests below pass."""
    assert len(promises()) > 8 and len(NAMED) > 8


@pytest.mark.parametrize("row", promises(), ids=lambda row: row[2:40])
def test_every_promise_names_its_test(row: str) -> None:
    """By file, and by function where the file holds more than this."""
    assert re.search(r"\| `(tests|molecule)/[^|]*\.py[^|]*\|$", row), row


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_what_is_named_is_there(path: str, name: str) -> None:
    """A test that was renamed would leave a promise with nothing behind it."""
    file = project.ROOT / path
    assert file.is_file(), path
    assert not name or f"def {name}(" in file.read_text(encoding="utf-8"), f"{path} has no {name}"
