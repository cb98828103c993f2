# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors that GPUs reported to the kernel log: NVIDIA's Xid numbers. Pure."""

from __future__ import annotations

import re

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import pci

#: The GPU has fallen off the bus (docs.nvidia.com/deploy/xid-errors).
FALLEN_OFF = 79
#: What journalctl is asked for: Xids, and the sentence that newer drivers print in place of Xid 79 at boot.
PATTERN = "NVRM: (Xid|The NVIDIA GPU)"

#: The place is "PCI:0000:3b:00"; drivers of long ago leave "PCI:" out, and text may follow the address.
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:]+)[^)]*\): (\d+)")
#: Three lines of one message, each with its own "NVRM:".
_FALLEN = re.compile(r"NVRM: The NVIDIA GPU ([0-9a-fA-F:.]+)[^\n]*\n[^\n]*\n[^\n]*fallen off the bus")


def xids(text: str) -> dict[str, list[int]]:
    """PCI address to the Xids of that GPU, each once, in the order of their first time."""
    events = [(match.start(), f"{match.group(1)}.0", int(match.group(2))) for match in _XID.finditer(text)]
    events += [(match.start(), match.group(1), FALLEN_OFF) for match in _FALLEN.finditer(text)]
    found: dict[str, list[int]] = {}
    for _place, where, number in sorted(events):
        numbers = found.setdefault(pci.address(where), [])
        if number not in numbers:
            numbers.append(number)
    return found
