# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of docs/mistakes.md, for the tests that make each mistake and look for what the table says is printed."""

from __future__ import annotations

import re

import project

PAGE = project.ROOT / "docs" / "mistakes.md"
_ROW = re.compile(r"^\| (.+?) \| `{1,2} ?(.+?) ?`{1,2} \|$")
#: What Ansible before 2.19 and after it put around a message of ours.
_REPEATED = re.compile(r"^\[ERROR\]: Task failed.*?(?=^fatal: )", re.DOTALL | re.MULTILINE)


def rows(section: str) -> dict[str, str]:
    """What is printed, by the mistake. section: a word in the title of its table."""
    found: dict[str, str] = {}
    inside = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            inside = section in line.lower()
        row = _ROW.match(line)
        if inside and row:
            found[row.group(1)] = row.group(2)
    return found


def count(printed: str, said: str) -> int:
    """How often a row was printed, with any number for N and any words for "...".

    Since 2.19 Ansible's own callback repeats the message of a failed task, which counts once.
    """
    marks = {"N": r"[0-9.]+", "N.": r"[0-9]+\.", "...": r".*?"}
    words = [marks.get(word) or re.escape(word) for word in printed.split()]
    return len(re.findall(r"\s+".join(words), _REPEATED.sub("", said)))
