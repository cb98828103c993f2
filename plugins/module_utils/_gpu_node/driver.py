# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver that is loaded, the one that would be, and its user space, out of files and ``modinfo``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

PROC_VERSION = "proc/driver/nvidia/version"
LIBRARY = "libnvidia-ml.so"
#: Where 64-bit libraries are: EL, then Debian's places, which containers of NVIDIA use.
LIBRARY_FOLDERS = ("usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu")
OPEN, PROPRIETARY = "open", "proprietary"

#: "NVIDIA UNIX x86_64 Kernel Module  535.54.03", or "NVIDIA UNIX Open Kernel Module for x86_64  580.95.05".
_LOADED = re.compile(r"NVRM version:\s+NVIDIA UNIX (Open )?.*?Kernel Module\b.*?\s(\d+\.\d+(?:\.\d+)?)(?=\s|$)")
_FIELD = re.compile(r"^(\w+):\s*(.*)$")
_FULL = re.compile(r"\.(\d+\.\d+(?:\.\d+)?)$")


def parse_proc_version(text: str) -> tuple[str, str]:
    """Version and kind of the loaded module; empty strings where the text is something else."""
    match = _LOADED.search(text)
    if match is None:
        return "", ""
    return match.group(2), OPEN if match.group(1) else PROPRIETARY


def parse_modinfo(text: str) -> tuple[str, str]:
    """Version and kind of a module file, by its license: ``NVIDIA`` is the proprietary one."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        match = _FIELD.match(line)
        if match:
            fields.setdefault(match.group(1), match.group(2).strip())
    if not fields.get("version"):
        return "", ""
    return fields["version"], PROPRIETARY if fields.get("license", "") == "NVIDIA" else OPEN


def library_version(names: Iterable[str], linked: str, library: str = LIBRARY) -> str:
    """The version in the file name of a library, of the one that its link names, else of the highest."""
    found = [
        match.group(1) for name in names if name.startswith(f"{library}.") for match in [_FULL.search(name)] if match
    ]
    chosen = _FULL.search(linked)
    if chosen and chosen.group(1) in found:
        return chosen.group(1)
    return max(found, key=_numbers, default="")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
