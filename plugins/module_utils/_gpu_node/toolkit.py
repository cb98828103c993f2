# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CUDA toolkits and the NCCL of the system, out of names of folders and files. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

FOLDER = "usr/local"
DEFAULT = "usr/local/cuda"
#: One of these makes a folder a toolkit: what is left after a removal is none. version.txt is what CUDA 10 and older
#: have in place of version.json; nvcc is in every toolkit that can compile.
MARKS = ("version.json", "version.txt", "bin/nvcc")
NCCL = "libnccl.so"

_FOLDER = re.compile(r"^cuda-(\d+\.\d+)$")
_VERSION = re.compile(r"(\d+\.\d+)")


def folder_version(name: str) -> str:
    """``13.0`` of ``cuda-13.0``, empty for any other name."""
    match = _FOLDER.match(name)
    return match.group(1) if match else ""


def ordered(versions: Iterable[str]) -> list[str]:
    """Versions by their numbers, oldest first."""
    return sorted(versions, key=lambda version: tuple(int(part) for part in version.split(".")))


def parse_version_json(text: str) -> str:
    """``12.8`` out of the ``version.json`` of a toolkit, empty when it says nothing."""
    try:
        version = json.loads(text)["cuda"]["version"]
    except (ValueError, KeyError, TypeError):
        return ""
    match = _VERSION.match(str(version))
    return match.group(1) if match else ""
