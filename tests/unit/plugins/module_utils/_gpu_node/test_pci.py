# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's devices among those of a PCI tree; listings of real machines, see data/README.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_gpus import pci_files, write

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import pci, tree


def devices(root: Path, listing: str) -> list[pci.Device]:
    write(root / pci.DEVICES, pci_files(listing))
    return tree.nvidia_devices(str(root))


@pytest.mark.parametrize(
    ("listing", "gpus", "nvswitches"),
    [("h100_8.lspci", 8, 4), ("h100_7.lspci", 7, 4), ("rtx_3060.lspci", 1, 0)],
)
def test_listings(tmp_path: Path, listing: str, gpus: int, nvswitches: int) -> None:
    found = devices(tmp_path, listing)
    assert len(pci.gpus(found)) == gpus and len(pci.nvswitches(found)) == nvswitches


def test_gpus_are_in_the_order_of_their_addresses(tmp_path: Path) -> None:
    found = pci.gpus(reversed(devices(tmp_path, "h100_8.lspci")))
    assert [one.address for one in found][:2] == ["0000:1b:00.0", "0000:43:00.0"]


@pytest.mark.parametrize(
    ("text", "address"),
    [("00000000:1B:00.0", "0000:1b:00.0"), ("00000035:03:00.0", "0035:03:00.0"), ("0000:00:1e.0", "0000:00:1e.0")],
)
def test_addresses_are_spelled_as_in_sysfs(text: str, address: str) -> None:
    assert pci.address(text) == address


def test_names_of_devices() -> None:
    text = (
        "# comment\n\n"
        "10de  NVIDIA Corporation\n\t2330  GH100 [H100 SXM5 80GB]\n\t\t10de 16c1  a subsystem\n\t2504  other\n"
        "15b3  Mellanox Technologies\n\t101d  MT2892 Family [ConnectX-6 Dx]\n\t2330  not a GPU\n"
        "C 03  Display controller\n\t00  VGA compatible controller\n"
    )
    wanted = [("10de", "2330"), ("15b3", "101d"), ("10de", "ffff")]
    assert pci.device_names(text, wanted) == {
        ("10de", "2330"): "GH100 [H100 SXM5 80GB]",
        ("15b3", "101d"): "MT2892 Family [ConnectX-6 Dx]",
    }
