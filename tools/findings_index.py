# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the table of docs/findings/index.md from the registry of findings; with --check only say whether it is stale.

The head of each page is compared with the registry too, and edited by hand.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import project

if __name__ == "__main__":
    sys.path.insert(0, str(project.ROOT / ".ansible" / "collections"))

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import FINDINGS, Entry

FOLDER = project.ROOT / "docs" / "findings"
ID = r"GC-[A-Z]+-\d{3}"
SECTIONS = ("Symptom", "Fix", "Cause", "Details")
#: The table of the index, and the comments around it.
HEADING = "| id | severity | subject | stage | what is wrong |\n| --- | --- | --- | --- | --- |"
BEGIN, END = "<!-- begin findings -->", "<!-- end findings -->"
#: The file beside the pages whose table has the tests of each finding.
TESTS = "tests.md"
TESTS_HEADING = "| id | variable | test, or why there is none |"
NOT_SHOWN = "not shown: "

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


def row(entry: Entry) -> str:
    """A row of the index."""
    return f"| [{entry.id}]({entry.id}.md) | {entry.when} | {entry.subject} | {entry.stage} | {entry.title} |"


def head(entry: Entry) -> str:
    """How the page of a finding begins."""
    columns = "| severity | subject | stage |\n| --- | --- | --- |"
    return f"# {entry.id}: {entry.title}\n\n{columns}\n| {entry.when} | {entry.subject} | {entry.stage} |\n"


def read(path: Path) -> Page:
    """One page.  Raises PageError with what its form lacks."""
    if path.stem not in FINDINGS:
        raise PageError(f"{path.name}: the registry declares no finding {path.stem}")
    if not path.is_file():
        raise PageError(f"{path.name}: the finding has no page")
    text = path.read_text(encoding="utf-8")
    wanted = head(FINDINGS[path.stem])
    if not text.startswith(wanted):
        raise PageError(f"{path.name}: expected this head, from the registry:\n{wanted}")
    page = Page(path.stem, _sections(text), rows(path.parent).get(path.stem, []))
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
    """All pages, by id: those that are there, and those that the registry wants."""
    return [read(path) for path in sorted({*folder.glob("GC-*.md"), *(folder / f"{one}.md" for one in FINDINGS)})]


def with_table(text: str) -> str:
    """The index with its table replaced."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise PageError(f"index.md must hold the lines {BEGIN} and {END} once each, in this order")
    table = "\n".join([HEADING, *map(row, FINDINGS.values())])
    return f"{text.split(BEGIN)[0]}{BEGIN}\n{table}\n{END}{text.split(END)[1]}"


def main(folder: Path = FOLDER) -> int:
    """Write or check the index."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail when the table is not current")
    checking = parser.parse_args().check
    index = folder / "index.md"
    try:
        found = pages(folder)
        wanted = with_table(index.read_text(encoding="utf-8"))
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
