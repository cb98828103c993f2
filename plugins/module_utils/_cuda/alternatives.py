# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The link /usr/local/cuda as alternatives keeps it: what it shows, and the commands that change it. Pure.

NVIDIA's packages register each toolkit under the name ``cuda`` when a transaction ends, and take it out when a package
goes. An upgrade does both, which drops a choice made by hand: the toolkit with the highest priority takes the link.
Source: the scriptlets of cuda-toolkit-11-1, quoted in github.com/NVIDIA/libnvidia-container/issues/117.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._cuda.versions import LINK

#: On EL a link to alternatives, which has these options too.
COMMAND = "update-alternatives"
NAME = "cuda"
AUTO = "auto"
MANUAL = "manual"

#: EL (chkconfig, alternatives.c) writes "cuda - status is manual.", Debian's program writes "cuda - manual mode".
MODE = re.compile(r"^\S+ - (?:status is )?(auto|manual)\b")
POINTS_TO = re.compile(r"^\s*link currently points to (\S+)")
CHOICE = re.compile(r"^(/\S+) - (?:family \S+ )?priority (-?\d+)")


class Alternatives(NamedTuple):
    """What is registered, and what is chosen. ``mode`` is empty when there is nothing."""

    mode: str = ""
    target: str = ""
    priorities: tuple[tuple[str, int], ...] = ()

    @property
    def choices(self) -> list[str]:
        """The registered folders."""
        return [path for path, _priority in self.priorities]

    def sentence(self) -> str:
        """As one line of a difference."""
        return f"alternatives {NAME}: {self.mode} {self.target}\n" if self.mode else f"alternatives {NAME}: none\n"


def parse(text: str) -> Alternatives:
    """Read the output of ``--display cuda`` in the locale C; nothing of it is nothing registered."""
    mode, target, priorities = "", "", []
    for line in text.splitlines():
        found = MODE.match(line)
        mode = found.group(1) if found and not mode else mode
        points = POINTS_TO.match(line)
        target = points.group(1) if points else target
        choice = CHOICE.match(line)
        if choice:
            priorities.append((choice.group(1), int(choice.group(2))))
    return Alternatives(mode, target, tuple(priorities))


def display() -> list[str]:
    """Show what is registered."""
    return [COMMAND, "--display", NAME]


def register(path: str) -> list[str]:
    """Register a toolkit as its package does, where a killed transaction has not come to that.

    Listings of users show the priorities 118, 129 and 130 for 11.8, 12.9 and 13.0.
    """
    major, minor = path.rpartition("-")[2].split(".")
    return [COMMAND, "--install", LINK, NAME, path, str(int(major) * 10 + int(minor))]


def choose(path: str) -> list[str]:
    """Choose by hand, which later packages do not change."""
    return [COMMAND, "--set", NAME, path]


def automatic() -> list[str]:
    """Let the highest priority win again."""
    return [COMMAND, "--auto", NAME]


def commands(found: Alternatives, path: str) -> list[list[str]]:
    """What makes ``path`` the choice; with an empty path, what undoes a choice made by hand."""
    if not path:
        return [automatic()] if found.mode == MANUAL else []
    if found.mode == MANUAL and found.target == path and path in found.choices:
        return []
    return [*([] if path in found.choices else [register(path)]), choose(path)]


def back(before: Alternatives, now: Alternatives) -> list[list[str]]:
    """What restores an earlier choice, as far as it is still registered."""
    if before.mode == MANUAL and before.target in now.choices:
        return [choose(before.target)]
    return [automatic()] if before.mode == AUTO and now.mode == MANUAL else []
