# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole files that belong to one module: read, and replaced in one step so that no reader sees half of one."""

from __future__ import annotations

import os
from typing import Protocol

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import files


class Mover(Protocol):
    """The part of AnsibleModule that is needed: it keeps or sets the SELinux context while it renames."""

    def atomic_move(self, src: str, dest: str) -> None:
        """Rename ``src`` over ``dest``."""

    def set_mode_if_different(self, path: str, mode: int, changed: bool) -> bool:
        """Set the mode."""


def read_text(path: str) -> str:
    """The text of a file; empty when there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""


def make_folder(path: str) -> None:
    """A folder that everybody may enter, whatever the umask is, and those above it that are missing."""
    if os.path.isdir(path):
        return
    make_folder(os.path.dirname(path))
    os.mkdir(path)
    os.chmod(path, 0o755)


def replace_file(module: Mover, path: str, text: str, mode: int = 0o644) -> None:
    """Write ``text`` beside the file, sync it, and rename it over the old one."""
    make_folder(os.path.dirname(os.path.abspath(path)))
    with files.written_beside(path, text, mode) as temporary:
        module.atomic_move(temporary, path)
    module.set_mode_if_different(path, mode, False)


def restore_file(module: Mover, path: str, text: str, existed: bool, mode: int = 0o644) -> None:
    """Put back what ``read_text`` had found."""
    if existed:
        replace_file(module, path, text, mode)
    elif os.path.exists(path):
        os.unlink(path)
