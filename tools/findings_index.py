# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the table of docs/findings/index.md from the pages beside it; with --check only say whether it is stale."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import project

FOLDER = project.ROOT / "docs" / "findings"
ID = r"GC-[A-Z]+-\d{3}"
SECTIONS = ("Symptom", "Fix", "Cause", "Details")
STAGES = ("static", "mesh", "collective", "openmpi", "facts", "all")
#: The table of the index, and the comments around it.
HEADING = "| id | severity | subject | stage | what is wrong |\n| --- | --- | --- | --- | --- |"
BEGIN, END = "<!-- begin findings -->", "<!-- end findings -->"
#: The file beside the pages whose table has the tests of each finding.
TESTS = "tests.md"
TESTS_HEADING = "| id | variable | test, or why there is none |"
NOT_SHOWN = "not shown: "

_TITLE = re.compile(rf"# ({ID}): (\S.*)")
_COLUMNS = "| severity | subject | stage |"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: How a row names a test: its file and its function.
TEST = re.compile(r"`([\w./-]+\.py)::(\w+)`")
_ROW = re.compile(rf"\| {ID} \| (`\w+` )?\| ({TEST.pattern}|{NOT_SHOWN}\S)[^|]* \|")


class PageError(Exception):
    """A page that has not the form of the others."""


@dataclass(frozen=True)
class Page:
    """The page of one finding, and its rows in TESTS.  sections: heading to text.

    shown_by: the variable of a row, empty for the finding itself, and the test or why there is none.
    """

    id: str
    title: str
    severity: str
    subject: str
    stage: str
    sections: dict[str, str]
    shown_by: list[tuple[str, str]]

    def blocks(self, section: str, language: str) -> list[str]:
        """The fenced blocks of a section that are in this language."""
        return [body for kind, body in _BLOCK.findall(self.sections[section]) if kind == language]

    @property
    def tests(self) -> list[tuple[str, str]]:
        """File and function of the tests that are named."""
        return [test for _variable, shown in self.shown_by for test in TEST.findall(shown)]

    @property
    def variables(self) -> list[tuple[str, str]]:
        """The variables that the finding can name, each with a test that applies it, or with why there is none."""
        return [(variable, shown) for variable, shown in self.shown_by if variable]

    @property
    def row(self) -> str:
        """Its row of the index."""
        return f"| [{self.id}]({self.id}.md) | {self.severity} | {self.subject} | {self.stage} | {self.title} |"


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
    shown_by = rows(path.parent).get(path.stem, [])
    page = Page(path.stem, title.group(2), severity, subject, stage, _sections(text), shown_by)
    if tuple(page.sections) != SECTIONS:
        raise PageError(f"{path.name}: expected the sections {', '.join(SECTIONS)}, found {', '.join(page.sections)}")
    if not all(page.sections.values()):
        raise PageError(f"{path.name}: a section is empty")
    if not page.blocks("Fix", "sh"):
        raise PageError(f"{path.name}: 'Fix' has no command in a block of ```sh")
    if not page.tests:
        raise PageError(f"{TESTS}: {page.id} has no test, named as `path.py::function`")
    return page


def rows(folder: Path = FOLDER) -> dict[str, list[tuple[str, str]]]:
    """The table of TESTS, which ends the file: id to its rows.  Raises PageError for a row of another form."""
    lines = (folder / TESTS).read_text(encoding="utf-8").splitlines()
    if lines.count(TESTS_HEADING) != 1:
        raise PageError(f"{TESTS}: expected one table '{TESTS_HEADING}'")
    found: dict[str, list[tuple[str, str]]] = {}
    for line in lines[lines.index(TESTS_HEADING) + 2 :]:
        if not _ROW.fullmatch(line):
            raise PageError(f"{TESTS}: a row needs a test, or '{NOT_SHOWN}' and why: {line}")
        finding, variable, shown = _cells(line)
        found.setdefault(finding, []).append((variable, shown))
    return found


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


def with_table(text: str, found: list[Page]) -> str:
    """The index with its table replaced."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise PageError(f"index.md must hold the lines {BEGIN} and {END} once each, in this order")
    table = "\n".join([HEADING, *(page.row for page in found)])
    return f"{text.split(BEGIN)[0]}{BEGIN}\n{table}\n{END}{text.split(END)[1]}"


def main(folder: Path = FOLDER) -> int:
    """Write or check the index."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail when the table is not current")
    checking = parser.parse_args().check
    index = folder / "index.md"
    try:
        found = pages(folder)
        wanted = with_table(index.read_text(encoding="utf-8"), found)
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
