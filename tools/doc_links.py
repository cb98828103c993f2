# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find dead links in the Markdown pages: files, anchors of headings, the form of addresses. Needs no network."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import project

#: Blocks of code and comments, and with them code in a line, which ends with its paragraph or its row of a table.
_BLOCK = r"^(```+|~~~+).*?^\1[^\S\n]*$|<!--.*?-->"
_CODE = re.compile(_BLOCK + r"|(`+)(?!`)(?:(?!\n\n|\n\|).)+?(?<!`)\2(?!`)", re.DOTALL | re.MULTILINE)
#: ](target "title"), ](<target>), src="target", and [name]: target on a line of its own.
_LINK = re.compile(
    r"\]\(<(?P<angle>[^>\n]*)>\)"
    r"|\]\((?P<round>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+\"[^\"\n]*\")?\)"
    r"|\b(?:src|href)=\"(?P<html>[^\"\n]*)\""
    r"|^ {0,3}\[[^]\n]+\]:[^\S\n]+(?P<named>\S+)",
    re.MULTILINE,
)
_HEADING = re.compile(r"^#{1,6}[^\S\n]+(.+?)[^\S\n]*#*$", re.MULTILINE)
_HTML_ANCHOR = re.compile(r"<[^>]+\b(?:id|name)=\"([^\"]+)\"")
#: Schemes of addresses that a page may have.
_SCHEMES = ("https", "http", "mailto")


class Link(NamedTuple):
    """A link: where its target stands in the text, and the target."""

    begin: int
    end: int
    target: str


def without_code(text: str) -> str:
    """The text with spaces in the place of code and comments, so that all positions stay."""
    return _CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def links(text: str) -> Iterator[Link]:
    """The links of a page, in their order."""
    for found in _LINK.finditer(without_code(text)):
        name = found.lastgroup or ""
        yield Link(found.start(name), found.end(name), text[found.start(name) : found.end(name)])


def anchors(text: str) -> set[str]:
    """What a link can name after its #, as GitHub derives it from the headings."""
    plain = re.sub(_BLOCK, "", text, flags=re.DOTALL | re.MULTILINE)
    found: set[str] = set(_HTML_ANCHOR.findall(without_code(text)))
    seen: dict[str, int] = {}
    for heading in _HEADING.findall(plain):
        name = slug(heading)
        number = seen.get(name, 0)
        seen[name] = number + 1
        found.add(f"{name}-{number}" if number else name)
    return found


def slug(heading: str) -> str:
    """The anchor of one heading: its text without markup and punctuation, in lower case, with hyphens for spaces."""
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[^\w\- ]", "", text.lower(), flags=re.UNICODE)
    return text.replace(" ", "-")


def dead(pages: Mapping[str, str], exists: Callable[[str], bool]) -> list[str]:
    """The dead links of pages, each with its page and line.

    pages: path from the root of the project to text. exists: whether there is a file or folder of that path.
    """
    known: dict[str, set[str]] = {}
    problems = []
    for page, text in pages.items():
        for link in links(text):
            if problem := _problem(page, link.target, pages, exists, known):
                line = text.count("\n", 0, link.begin) + 1
                problems.append(f"{page}:{line}: {link.target}: {problem}")
    return problems


def _problem(
    page: str,
    target: str,
    pages: Mapping[str, str],
    exists: Callable[[str], bool],
    known: dict[str, set[str]],
) -> str:
    """Why one link is dead, empty if it is not."""
    if "://" in target or target.startswith("mailto:"):
        return _problem_of_address(target)
    path, _, anchor = target.partition("#")
    file = resolved(page, path) if path else page
    if file.startswith(("/", "../")):
        return "leads out of the project"
    if not exists(file):
        return "there is no such file or folder"
    if not anchor:
        return "" if path else "the target is empty"
    if file not in pages:
        return "an anchor of something that is no Markdown page"
    if file not in known:
        known[file] = anchors(pages[file])
    return "" if unquote(anchor) in known[file] else f"{file} has no heading with this anchor"


def _problem_of_address(target: str) -> str:
    """What is wrong with the form of an address outside the project."""
    try:
        parts = urlsplit(target)
        host = parts.hostname or ""
    except ValueError as error:
        return f"not an address: {error}"
    if parts.scheme not in _SCHEMES:
        return f"expected {', '.join(_SCHEMES)}"
    if parts.scheme != "mailto" and not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", host):
        return "an address without a host name"
    return ""


def resolved(page: str, path: str) -> str:
    """The path from the root of the project of what a page names."""
    return os.path.normpath(os.path.join(os.path.dirname(page), unquote(path)))


def read_pages(root: Path = project.ROOT) -> dict[str, str]:
    """All Markdown of the project by its path, with that which git does not know yet and without what it ignores."""
    files = [file for file in project.source_files() if file.suffix == ".md"]
    return {str(file): (root / file).read_text(encoding="utf-8") for file in files if (root / file).is_file()}


def main() -> int:
    """Check all pages."""
    pages = read_pages()
    problems = dead(pages, lambda path: (project.ROOT / path).exists())
    number = sum(len(list(links(text))) for text in pages.values())
    print("\n".join(problems) or f"{number} links of {len(pages)} pages, none is dead")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
