# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia-smi prints, of several generations. Pure."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import pci

#: `nvidia-smi --help-query-gpu` of every branch since 450, the first with MIG; without units, memory is in MiB.
FIELDS = ("index", "uuid", "name", "memory.total", "pci.bus_id", "ecc.mode.current", "mig.mode.current")
QUERY = (f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
#: The shortest section; above it stands the CUDA version, in every generation.
HEADER = ("-q", "-d", "COMPUTE")
NO_DEVICES = "No devices were found"

ERR_ROW = "nvidia-smi printed a row that is not understood: %s"

_CUDA = re.compile(r"^CUDA Version\s*:\s*(\d+\.\d+)\s*$", re.MULTILINE)
_SWITCH = {"enabled": True, "disabled": False}


@dataclass(frozen=True)
class Gpu:
    """One GPU. Memory in MiB; None where the GPU has no such thing, or does not say."""

    index: int
    uuid: str
    model: str
    memory_mib: int | None
    pci_address: str
    ecc: bool | None
    mig: bool | None


def parse_rows(text: str) -> tuple[list[Gpu], list[str]]:
    """The GPUs of a query with ``FIELDS``, and a sentence for every line that is something else."""
    found: list[Gpu] = []
    problems: list[str] = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if not row or row == [NO_DEVICES]:
            continue
        try:
            found.append(_gpu([cell.strip() for cell in row]))
        except ValueError:
            problems.append(ERR_ROW % ", ".join(row))
    return found, problems


def _gpu(row: list[str]) -> Gpu:
    index, uuid, model, memory, bus, ecc, mig = row
    return Gpu(
        index=int(index),
        uuid=uuid,
        model=model,
        memory_mib=int(memory) if memory.isdigit() else None,
        pci_address=pci.address(bus),
        ecc=_SWITCH.get(ecc.lower()),
        mig=_SWITCH.get(mig.lower()),
    )


def parse_cuda(text: str) -> str:
    """The newest CUDA that the driver supports, out of ``nvidia-smi -q``; empty when it does not say."""
    match = _CUDA.search(text)
    return match.group(1) if match else ""
