# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders of small configuration files, as systemd reads them: of one name the earlier folder counts, then by name.

``read`` is the only function that touches the disk.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

#: The variable that says what to do about files of others that win.
OVERRIDDEN = "kernel_tuning_overridden"


@dataclass(frozen=True)
class ConfFile:
    """One file: where it stands, what is in it, and the file that it is a link to, if it is one."""

    path: str
    text: str
    target: str = ""

    @property
    def name(self) -> str:
        """What it is sorted by, and what masks a file of a later folder."""
        return os.path.basename(self.path)

    def shown(self) -> str:
        """For messages: a link also says where it leads."""
        return f"{self.path} (a link to {self.target})" if self.target else self.path


@dataclass(frozen=True)
class Override:
    """A setting of ours that another file changes: ``effect`` is what that file does, as a part of a sentence."""

    variable: str
    wanted: str
    path: str
    effect: str

    def problem(self, owner: str) -> Problem:
        """For those who don't want that. ``owner`` is the variable that could hold the value of that file."""
        fix = (
            f"take the line out of that file, or write the value that you want into {owner}; "
            f"{OVERRIDDEN}: report keeps both, with a warning"
        )
        return Problem(self.variable, shown(self.wanted), self.sentence(), fix)

    def as_dict(self) -> dict[str, str]:
        """The form in which modules return it."""
        return {"key": self.variable, "wanted": self.wanted, "path": self.path, "effect": self.effect}

    def sentence(self) -> str:
        """What happens, naming the file."""
        return f"{self.path} {self.effect}"


def read(folders: Sequence[str], suffix: str = ".conf") -> list[ConfFile]:
    """The files of these folders, in the order of the folders. What cannot be read is left out."""
    found = []
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), f"*{suffix}"))):
            target = os.path.realpath(path) if os.path.islink(path) else ""
            try:
                with open(path, encoding="utf-8", errors="surrogateescape") as stream:
                    found.append(ConfFile(path, stream.read(), target))
            except OSError:
                continue
    return found


def in_order(files: Iterable[ConfFile], own: ConfFile | None = None, folders: Sequence[str] = ()) -> list[ConfFile]:
    """The files that count, in the order in which they are read; ``own`` stands in for the file that we will write.

    ``files`` come in the order of their ``folders``, the most important one first.
    """
    everything = [file for file in files if own is None or file.path != own.path]
    if own is not None:
        rank = {folder: position for position, folder in enumerate(folders)}
        everything.append(own)
        everything.sort(key=lambda file: rank.get(os.path.dirname(file.path), len(rank)))
    chosen: dict[str, ConfFile] = {}
    for file in everything:
        chosen.setdefault(file.name, file)
    return [chosen[name] for name in sorted(chosen)]


def last_assignments(files: Iterable[ConfFile], section: str) -> dict[str, tuple[str, ConfFile]]:
    """The last value of each key of a section, with the file that sets it. An empty value takes the key back."""
    result: dict[str, tuple[str, ConfFile]] = {}
    for file in files:
        inside = ""
        for line in (line.strip() for line in file.text.splitlines()):
            if line.startswith("[") and line.endswith("]"):
                inside = line[1:-1]
            elif inside == section and "=" in line and line[0] not in "#;":
                key, _equals, value = line.partition("=")
                result[key.strip()] = (value.strip(), file)
    return result


def mapping_text(section: str, header: str, entries: Mapping[str, tuple[str, str]]) -> str:
    """A drop-in: key to (value, reason), in one section."""
    blocks = [f"{header}\n[{section}]"]
    blocks += [f"# {' '.join(reason.split())}\n{key}={value}" for key, (value, reason) in entries.items()]
    return "\n".join(blocks) + "\n"
