# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of an inventory file as YAML nodes with their lines, or why it can't be read, with the line. Pure.

Ansible names the line of a syntax error only sometimes, and the file not always.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml

#: libyaml's loader where PyYAML was built with it: it is ten times as fast.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Of a line no more is repeated than its first word: the rest may be a password.
WORD = 40
ENCRYPTED = b"$ANSIBLE_VAULT;"

ERR_ENCODING = "is not UTF-8 text (byte 0x%02x)"
FIX_ENCODING = "save the file as UTF-8"
ERR_UTF16 = "is UTF-16 text, and Ansible reads UTF-8"
ERR_CONTROL = "has a control character (0x%02x), which YAML does not allow"
ERR_TAB = "is indented with a tab; YAML allows spaces only"
FIX_TAB = "replace the tab with spaces"
ERR_COLON = "expected name: value, found no colon followed by a space"
FIX_COLON = "write '%s: ...'"
ERR_QUOTE = "a quote that is opened here is never closed"
FIX_QUOTE = "close the quote, or double it if it is part of the text"
ERR_EXPRESSION = "a value that begins with {{ must be in quotes"
FIX_EXPRESSION = 'write name: "{{ ... }}"'
ERR_SPECIAL = "a value that begins with %s must be in quotes"
FIX_SPECIAL = "put the value in quotes"
ERR_MAPPING = "found a second 'name: value' inside a value"
FIX_MAPPING = "indent it as the lines beside it, or put a value that holds ': ' in quotes"
ERR_INDENT = "does not fit the indentation of the lines above it"
FIX_INDENT = "indent it as the other entries of the same list or group"
ERR_BRACKET = "a bracket that is opened here is never closed"
FIX_BRACKET = "close it, or put the value in quotes"
ERR_DOCUMENTS = "begins a second document; Ansible reads one in each file"
FIX_DOCUMENTS = "remove this '---', or move what follows into a file of its own"
ERR_OTHER = "is not YAML: %s"
FIX_OTHER = "correct this line or the one above it"
ERR_TWICE = "stands twice, first in line %d; Ansible takes the last one"
FIX_TWICE = "remove one of the two"

_EXPRESSION = re.compile(r"(?::|-)\s+\{\{")


class Fault(NamedTuple):
    """What is wrong in a file. ``line`` from 1 on, 0 for the whole file; ``value``: as it is shown."""

    line: int
    value: str
    rule: str
    fix: str


class Text(NamedTuple):
    """A file that was read; ``root`` is None when it is empty, encrypted, or cannot be parsed."""

    root: yaml.Node | None
    faults: list[Fault]
    encrypted: bool = False


def read(data: bytes) -> Text:
    """Parse the bytes of a file."""
    if data.startswith(ENCRYPTED):
        return Text(None, [], encrypted=True)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Text(None, [_encoding(data, error)])
    try:
        root = yaml.compose(text, LOADER)
    except yaml.YAMLError as error:
        return Text(None, _syntax(text, _told(text) or error))
    return Text(root, list(_twice(root)))


def _told(text: str) -> yaml.YAMLError | None:
    """The same error in the words of PyYAML's own parser; libyaml's leave out which character it is."""
    try:
        yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        return error
    return None


def line_of(node: yaml.Node) -> int:
    """The line in which a node begins."""
    return int(node.start_mark.line) + 1


def entries(node: yaml.Node | None) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """Name, key and value of a mapping; none of anything else, and of keys that are no text."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if isinstance(key, yaml.ScalarNode):
            yield str(key.value), key, value


def is_empty(node: yaml.Node | None) -> bool:
    """Whether there is nothing: ``hosts:`` without a value, or null."""
    return node is None or (isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null")


def first_word(line: str) -> str:
    """What a line begins with, without what may be a secret."""
    word = re.split(r"[\s=]|:(?=\s|$)", line.strip(), maxsplit=1)[0]
    return word[:WORD]


def _encoding(data: bytes, error: UnicodeDecodeError) -> Fault:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return Fault(0, "", ERR_UTF16, FIX_ENCODING)
    return Fault(data[: error.start].count(b"\n") + 1, "", ERR_ENCODING % data[error.start], FIX_ENCODING)


def _syntax(text: str, error: yaml.YAMLError) -> list[Fault]:
    """The first error in the syntax; where it is a tab, all lines that are indented so."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, text.find(chr(error.character))) + 1
        return [Fault(line, "", ERR_CONTROL % error.character, "delete the character")]
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return [Fault(0, "", ERR_OTHER % " ".join(str(error).split()), FIX_OTHER)]
    lines = text.splitlines() or [""]
    problem = error.problem or ""
    at = min(error.problem_mark.line, len(lines) - 1)
    since = min(error.context_mark.line, len(lines) - 1) if error.context_mark else at
    tabs = [number for number, line in enumerate(lines) if re.match(r" *\t", line)]
    if at in tabs or since in tabs or "'\\t'" in problem:
        return [Fault(number + 1, first_word(lines[number]), ERR_TAB, FIX_TAB) for number in tabs or [at]]
    return [_fault(problem, lines, at, since)]


def _fault(problem: str, lines: list[str], at: int, since: int) -> Fault:
    """The error that the parser names so. at: where it noticed it; since: where what it was reading began."""
    here = first_word(lines[at])
    for number in dict.fromkeys((at, since, at - 1)):
        if _EXPRESSION.search(lines[number]):
            return Fault(number + 1, first_word(lines[number]), ERR_EXPRESSION, FIX_EXPRESSION)
    if "could not find expected ':'" in problem:
        word = first_word(lines[since])
        return Fault(since + 1, word, ERR_COLON, FIX_COLON % word)
    special = re.search(r"found character '([@`%])'", problem)
    if special or "alias" in problem:
        mark = special.group(1) if special else "*"
        return Fault(at + 1, here, ERR_SPECIAL % mark, FIX_SPECIAL)
    if "unexpected end of stream" in problem or "document separator" in problem:
        return Fault(since + 1, first_word(lines[since]), ERR_QUOTE, FIX_QUOTE)
    above = next((number for number in range(at - 1, -1, -1) if lines[number].strip()), at)
    if "mapping values are not allowed" in problem and above != at and ":" not in lines[above]:
        # The line above has no colon, so this one belongs to its value.
        word = first_word(lines[above])
        return Fault(above + 1, word, ERR_COLON, FIX_COLON % word)
    if "mapping values are not allowed" in problem:
        return Fault(at + 1, here, ERR_MAPPING, FIX_MAPPING)
    if "expected ',' or" in problem:
        return Fault(since + 1, first_word(lines[since]), ERR_BRACKET, FIX_BRACKET)
    if "but found another document" in problem:
        return Fault(at + 1, here, ERR_DOCUMENTS, FIX_DOCUMENTS)
    if "expected <block end>" in problem or "did not find expected key" in problem or "expected '-'" in problem:
        return Fault(at + 1, here, ERR_INDENT, FIX_INDENT)
    return Fault(at + 1, here, ERR_OTHER % problem, FIX_OTHER)


def _twice(node: yaml.Node | None) -> Iterator[Fault]:
    """Keys that a mapping has twice, and expressions that YAML takes for a mapping, at any depth."""
    todo = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, yaml.SequenceNode):
            todo += reversed(one.value)
        if not isinstance(one, yaml.MappingNode):
            continue
        seen: dict[str, int] = {}
        for key, value in one.value:
            todo.append(value)
            if not isinstance(key, yaml.ScalarNode):
                yield Fault(line_of(key), "", ERR_EXPRESSION, FIX_EXPRESSION)
                continue
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                yield Fault(line_of(key), first_word(key.value), ERR_TWICE % seen[key.value], FIX_TWICE)
            seen.setdefault(key.value, line_of(key))
