# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dnf reads on a node, and how a command of it has ended."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass

#: dnf.conf(5), reposdir.
REPO_FOLDERS = ("/etc/yum.repos.d", "/etc/yum/repos.d", "/etc/distro.repos.d")


def read_text(path: str) -> str | None:
    """The text with its own line ends; None when there is no file."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def read_repo_files() -> dict[str, str]:
    """Every file that dnf reads, by its real path; of a link that path is what must be changed."""
    found = {}
    for folder in REPO_FOLDERS:
        for path in sorted(glob.glob(f"{folder}/*.repo")):
            found[os.path.realpath(path)] = read_text(path) or ""
    return found


@dataclass(frozen=True)
class Ended:
    """A finished command."""

    code: int
    out: str
    err: str
