# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the tables of docs/findings/index.md from the pages beside it; with --check only say whether they are stale."""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import project

FOLDER = project.ROOT / "docs" / "findings"
ID = r"GC-[A-Z]+-\d{3}"
SECTIONS = ("Symptom", "Cause", "What the check looks at", "Fix", "How it is tested")
STAGES = ("static", "mesh", "collective", "openmpi", "facts", "all")
FINDINGS, VARIABLES = "findings", "variables"
#: The tables of the index, by the name in the comments around them.
HEADINGS = {
    FINDINGS: "| id | severity | subject | stage | what is wrong |\n| --- | --- | --- | --- | --- |",
    VARIABLES: "| id | variable | applied in |\n| --- | --- | --- |",
}
#: The table of a page that lists the variables that its finding can name, and how the repair was shown.
APPLIED = "| variable | applied in |"
NOT_SHOWN = "not shown: "

_TITLE = re.compile(rf"# ({ID}): (\S.*)")
_COLUMNS = "| severity | subject | stage |"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VARIABLE = re.compile(r"`\w+`")
#: How a page names a test: its file and its function.
TEST = re.compile(r"`([\w./-]+\.py)::(\w+)`")


class PageError(Exception):
    """A page that has not the form of the others."""


@dataclass(frozen=True)
class Page:
    """The page of one finding.  sections: heading to text.  Ids, severity and stage as they stand there."""

    id: str
    title: str
    severity: str
    subject: str
    stage: str
    sections: dict[str, str]

    def blocks(self, section: str, language: str) -> list[str]:
        """The fenced blocks of a section that are in this language."""
        return [body for kind, body in _BLOCK.findall(self.sections[section]) if kind == language]

    @property
    def tests(self) -> list[tuple[str, str]]:
        """File and function of the tests that are named."""
        return TEST.findall(self.sections[SECTIONS[-1]])

    @property
    def variables(self) -> list[tuple[str, str]]:
        """The variables that the finding can name, each with the tests that apply it, or with why there is none."""
        lines = self.sections[SECTIONS[-1]].splitlines()
        if APPLIED not in lines:
            return []
        rows = itertools.takewhile(lambda line: line.startswith("|"), lines[lines.index(APPLIED) + 2 :])
        return [(cells[0], cells[1]) for cells in map(_cells, rows)]

    def rows(self, table: str) -> list[str]:
        """Its rows of a table of the index."""
        link = f"[{self.id}]({self.id}.md)"
        if table == VARIABLES:
            return [f"| {link} | {variable} | {applied} |" for variable, applied in self.variables]
        return [f"| {link} | {self.severity} | {self.subject} | {self.stage} | {self.title} |"]


def read(path: Path) -> Page:
    """One page.  Raises PageError with what its form lacks."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    title = _TITLE.fullmatch(lines[0]) if lines else None
    if title is None or title.group(1) != path.stem:
        raise PageError(f"{path.name}: the first line must be '# {path.stem}: what is wrong'")
    if _COLUMNS not in lines[:5]:
        raise PageError(f"{path.name}: no table '{_COLUMNS}' below the title")
    cells = _cells(lines[lines.index(_COLUMNS) + 2])
    if len(cells) != 3 or not re.match(r"(error|warning)\b", cells[0]) or cells[2].split(";")[0] not in STAGES:
        raise PageError(f"{path.name}: severity, subject and stage are not understood: {cells}")
    severity, subject, stage = cells
    page = Page(path.stem, title.group(2), severity, subject, stage, _sections(text))
    if tuple(page.sections) != SECTIONS:
        raise PageError(f"{path.name}: expected the sections {', '.join(SECTIONS)}, found {', '.join(page.sections)}")
    if not all(page.sections.values()):
        raise PageError(f"{path.name}: a section is empty")
    if not page.blocks("Fix", "sh"):
        raise PageError(f"{path.name}: 'Fix' has no command in a block of ```sh")
    if not page.tests:
        raise PageError(f"{path.name}: no test is named as `path.py::function`")
    for variable, applied in page.variables:
        if not _VARIABLE.fullmatch(variable) or not (TEST.search(applied) or applied.startswith(NOT_SHOWN)):
            raise PageError(f"{path.name}: {variable} needs a test that applies it, or '{NOT_SHOWN}' and why")
    return page


def _cells(row: str) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in row.strip("|").split("|")]


def _sections(text: str) -> dict[str, str]:
    """Heading of the second level to the text below it; a line of a fenced block is no heading."""
    found: dict[str, str] = {}
    heading, fenced = "", False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        if line.startswith("## ") and not fenced:
            heading = line[3:].strip()
            found[heading] = ""
        elif heading:
            found[heading] += line + "\n"
    return {name: body.strip() + "\n" if body.strip() else "" for name, body in found.items()}


def pages(folder: Path = FOLDER) -> list[Page]:
    """All pages, by id."""
    return [read(path) for path in sorted(folder.glob("GC-*.md"))]


def with_tables(text: str, found: list[Page]) -> str:
    """The index with its tables replaced."""
    for table, heading in HEADINGS.items():
        begin, end = f"<!-- begin {table} -->", f"<!-- end {table} -->"
        if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
            raise PageError(f"index.md must hold the lines {begin} and {end} once each, in this order")
        before, rest = text.split(begin)
        rows = "\n".join([heading, *(row for page in found for row in page.rows(table))])
        text = f"{before}{begin}\n{rows}\n{end}{rest.split(end)[1]}"
    return text


def main(folder: Path = FOLDER) -> int:
    """Write or check the index."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail when the tables are not current")
    checking = parser.parse_args().check
    index = folder / "index.md"
    try:
        found = pages(folder)
        wanted = with_tables(index.read_text(encoding="utf-8"), found)
    except PageError as error:
        print(error)
        return 1
    if index.read_text(encoding="utf-8") == wanted:
        print(f"{len(found)} findings, the index is current")
        return 0
    if checking:
        print("docs/findings/index.md is not current, run tools/findings_index.py")
        return 1
    index.write_text(wanted, encoding="utf-8")
    print(f"wrote {len(found)} findings into {index.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
