# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of dnf's repositories as text: what is in them, and single options changed in place. Pure.

Lines of others stay byte for byte, which an INI library would not do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_SECTION = re.compile(r"^\[([^\]]+)\]")
_OPTION = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*?)[ \t]*$")
#: As in libdnf's OptionBool.
_TRUE = ("1", "yes", "true", "on")
MAIN = "main"


@dataclass(frozen=True)
class Section:
    """A repository as a file of the node defines it."""

    id: str
    path: str
    options: Mapping[str, str]

    @property
    def is_enabled(self) -> bool:
        """What dnf takes it for; without the option a repository is enabled."""
        return self.options.get("enabled", "1").strip().lower() in _TRUE


def parse(path: str, text: str) -> tuple[Section, ...]:
    """The sections of a file. A line that begins with a blank continues the option above it."""
    sections: list[tuple[str, dict[str, str]]] = []
    last = ""
    for line in text.splitlines():
        section = _SECTION.match(line)
        option = _OPTION.match(line)
        if section:
            sections.append((section.group(1).strip(), {}))
            last = ""
        elif not sections or line.lstrip().startswith(("#", ";")):
            continue
        elif line[:1] in (" ", "\t") and last:
            sections[-1][1][last] = f"{sections[-1][1][last]}\n{line.strip()}".strip()
        elif option:
            last = option.group(1)
            sections[-1][1][last] = option.group(2)
    return tuple(Section(name, path, options) for name, options in sections)


def with_option(text: str, section: str, key: str, value: str | None) -> str:
    """The text with one option set, or without it when ``value`` is None; other lines keep even their line ends."""
    lines = text.splitlines(keepends=True)
    result: list[str] = []
    inside = done = False
    for line in lines:
        head = _SECTION.match(line)
        option = _OPTION.match(line.rstrip("\r\n"))
        if head:
            inside = head.group(1).strip() == section
        elif inside and option and option.group(1) == key:
            # dnf takes the last of several; one is left.
            if value is not None and not done:
                result.append(f"{key}={value}{_line_end(line)}")
                done = True
            continue
        result.append(line)
    if value is None or done:
        return "".join(result)
    return _inserted(result, section, f"{key}={value}")


def _inserted(lines: list[str], section: str, option: str) -> str:
    """Below the section's head, or with a head of its own at the end of a file without such a section."""
    for number, line in enumerate(lines):
        head = _SECTION.match(line)
        if head and head.group(1).strip() == section:
            end = _line_end(line) or "\n"
            lines[number] = line.rstrip("\r\n") + end
            lines.insert(number + 1, option + end)
            return "".join(lines)
    if lines and not _line_end(lines[-1]):
        lines[-1] += "\n"
    return "".join([*lines, f"[{section}]\n", f"{option}\n"])


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
