# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module streams: which are enabled, by dnf's own files. Pure; the format is libdnf's (ModulePackageContainer.cpp)."""

from __future__ import annotations

import configparser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FOLDER = "/etc/dnf/modules.d"


@dataclass(frozen=True)
class Switch:
    """A stream that is to be enabled, in place of another one or of none; or to be reset when ``to`` is empty."""

    module: str
    was: str
    to: str

    @property
    def sentence(self) -> str:
        """What is going to happen."""
        if not self.to:
            return f"reset module stream {self.module}:{self.was}"
        instead = f" instead of {self.module}:{self.was}" if self.was else ""
        return f"enable module stream {self.module}:{self.to}{instead}"


def enabled(files: Mapping[str, str]) -> dict[str, str]:
    """The enabled stream of each module, from the texts of the files in the folder above."""
    found = {}
    for text in files.values():
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(text)
        except configparser.Error:
            continue
        for module in parser.sections():
            if parser.get(module, "state", fallback="") == "enabled":
                found[module] = parser.get(module, "stream", fallback="")
    return found


def switches(wanted: Sequence[str], is_present: bool, files: Mapping[str, str]) -> tuple[Switch, ...]:
    """What to enable, or, when the packages go, what to reset."""
    now = enabled(files)
    found = []
    for name in wanted:
        module, _colon, stream = name.partition(":")
        was = now.get(module, "")
        if is_present and was != stream:
            found.append(Switch(module, was, stream))
        elif not is_present and was == stream:
            found.append(Switch(module, was, ""))
    return tuple(found)


def parse_list(text: str) -> dict[str, tuple[str, ...]]:
    """Streams by module, of what ``dnf module list`` prints."""
    found: dict[str, list[str]] = {}
    is_table = False
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["Name", "Stream"]:
            is_table = True
        elif not words or line.startswith("Hint:"):
            is_table = False
        elif is_table and len(words) > 1 and words[1] not in found.setdefault(words[0], []):
            found[words[0]].append(words[1])
    return {module: tuple(streams) for module, streams in found.items()}
