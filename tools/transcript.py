# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A page that is a transcript: its commands run again, its edits are made again, its outputs are compared.

In a ``console`` block a line that begins with ``$ `` is a command, and the lines below it are its output. A ``diff``
block is an edit of a file. Outputs are equal if they differ in numbers, fingerprints and ids alone; a line ``...``
stands for any lines.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ANY = "..."
_BLOCK = re.compile(r"^```(console|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: What another run has otherwise: folders, fingerprints, ids of runs, numbers. A time may have a fraction or not.
_OTHERWISE = re.compile(r"/\S*(?=/mycluster)|SHA256:[\w+/=]+|\b\d{8}t\d{6}z-\w+|\b[0-9a-f]{64}\b|\d+(?:[.,:]\d+)*")
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Command(NamedTuple):
    """A command, and the lines that it printed."""

    text: str
    output: tuple[str, ...]


class Edit(NamedTuple):
    """A change of one file, as `diff -u` writes it."""

    text: str


def read(page: str) -> Iterator[Command | Edit]:
    """The steps of a page, in their order."""
    for kind, body in _BLOCK.findall(page):
        if kind == "diff":
            yield Edit(body)
            continue
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            first, *rest = part.splitlines()
            yield Command(first, tuple(rest))


def masked(line: str) -> str:
    return " ".join(_OTHERWISE.sub("#", _COLOURS.sub("", line)).split())


def missing(expected: Sequence[str], printed: Sequence[str]) -> list[str]:
    """The first line of the page that the output does not have at this place, and what is there instead."""
    found = [masked(line) for line in printed]
    at, anywhere = 0, False
    for line in expected:
        if line == ANY:
            anywhere = True
            continue
        wanted = masked(line)
        places = found[at:] if anywhere else found[at : at + 1]
        if wanted not in places:
            return [f"the page has:   {line}", "the output has: " + (printed[at] if at < len(printed) else "its end")]
        at += places.index(wanted) + 1
        anywhere = False
    return [] if anywhere or at == len(found) else ["the page has:   its end", f"the output has: {printed[at]}"]


class Shell:
    """One shell for all steps, as the reader of the page has."""

    _END = "end-of-this-command"

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_unused: object) -> None:
        self._bash.kill()
        self._bash.wait()

    def run(self, command: str) -> tuple[int, list[str]]:
        """Run one command; its exit status and the lines that it printed."""
        assert self._bash.stdin and self._bash.stdout
        self._bash.stdin.write(f"{{ {command}\n}} < /dev/null; printf '\\n{self._END} %s\\n' $?\n")
        self._bash.stdin.flush()
        lines = []
        for line in self._bash.stdout:
            if line.startswith(self._END):
                break
            lines.append(line.rstrip("\n"))
        else:
            raise RuntimeError(f"the shell ended in: {command}")
        return int(line.split()[1]), lines[:-1] if lines and not lines[-1] else lines  # printf began a line of its own

    def patch(self, edit: Edit) -> tuple[int, list[str]]:
        """Make an edit in the folder in which the shell is."""
        return self.run(f"patch -p0 --no-backup-if-mismatch <<'END-OF-EDIT'\n{edit.text}END-OF-EDIT")


def as_a_login(**more: str) -> dict[str, str]:
    """The environment of somebody who has set nothing for Ansible."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "VIRTUAL_ENV"))}
    return {**kept, "TERM": "dumb", "LANG": "C.UTF-8", **more}
