# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is between GPUs and RDMA devices: the kernel module that joins them, and PCIe switches. Pure.

A switch sends data from one of its devices to another one directly, unless Access Control Services (ACS) of the ports
above them redirect it through the processor.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import pci
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.driver import OPEN, PROPRIETARY

DEVICES = "sys/class/infiniband"
#: Where NCCL looks for GPUDirect RDMA by a kernel module (src/transport/net_ib.cc).
PEER_MEMORY = (
    "sys/module/nvidia_peermem/version",
    "sys/kernel/mm/memory_peers/nv_mem/version",
    "sys/kernel/mm/memory_peers/nv_mem_nc/version",
)
#: PCI Express base specification 5.0, 7.6 and 7.7.8: extended capabilities begin here, each with its number, its
#: version and where the next one is; ACS is number 13, its control register is 6 bytes behind its beginning.
EXTENDED, ACS, CONTROL = 0x100, 0x000D, 6
#: P2P Request Redirect and P2P Completion Redirect.
REDIRECTS = 0x04 | 0x08
#: More capabilities than fit into the space.
MOST_CAPABILITIES = 960

_KERNEL = re.compile(r"(\d+)\.(\d+)")
#: dma-buf of RDMA devices came with this kernel, and only the open modules of the driver export to it.
DMA_BUF_KERNEL = (5, 12)


def redirects(configuration: bytes) -> bool:
    """Whether a port redirects, out of its configuration space; False where that is not whole, as without root."""
    at = EXTENDED
    for _number in range(MOST_CAPABILITIES):
        if at < EXTENDED or at + CONTROL + 2 > len(configuration):
            return False
        (header,) = struct.unpack_from("<I", configuration, at)
        if header & 0xFFFF == ACS:
            (control,) = struct.unpack_from("<H", configuration, at + CONTROL)
            return bool(control & REDIRECTS)
        at = header >> 20
    return False


def chain(path: str) -> list[str]:
    """The PCI devices on the way to one, itself last: ``/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0``."""
    return [part for part in path.split("/") if pci.is_address(part)]


def ports_between(chains: Iterable[Sequence[str]], others: Iterable[Sequence[str]]) -> list[str]:
    """The ports of switches that data crosses from one of the devices to one of the others, each once.

    Devices that no switch has in common meet in the processor anyway.
    """
    found: set[str] = set()
    far = list(others)
    for one in chains:
        for other in far:
            shared = sum(1 for _same in _prefix(one, other))
            if shared:
                found.update(one[shared:-1], other[shared:-1])
    return sorted(found)


def _prefix(one: Sequence[str], other: Sequence[str]) -> Iterable[str]:
    for left, right in zip(one, other):
        if left != right:
            return
        yield left


def joins(peer_memory: bool, kind: str, kernel: str) -> bool | None:
    """Whether RDMA devices can reach the memory of GPUs, None where nobody can tell.

    kind: that of the loaded modules of the driver.  kernel: its release.
    """
    if peer_memory:
        return True
    release = _KERNEL.match(kernel)
    if kind not in (OPEN, PROPRIETARY) or release is None:
        return None
    return kind == OPEN and tuple(int(part) for part in release.groups()) >= DMA_BUF_KERNEL
