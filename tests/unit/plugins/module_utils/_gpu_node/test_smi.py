# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of nvidia-smi of several generations; values of real machines, see data/README.md."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import smi
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.smi import Gpu

UUID = "GPU-9a9a6c50-2a47-2f51-a902-b82c3b127e94"
A100 = "GPU-513536b6-7d19-9063-b049-1e69664bb298"
V100 = "GPU-3a6ec8f0-24eb-1905-1f17-7bdb4e850ffa"
RESET = "[GPU requires reset]"
SECOND = "GPU-00000000-0000-0000-0000-000000000001"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # 515.105.01
        (
            f"0, {UUID}, NVIDIA A10G, 23028, 00000000:00:1E.0, Enabled, [N/A]\n",
            Gpu(0, UUID, "NVIDIA A10G", 23028, "0000:00:1e.0", True, None),
        ),
        # 535.54.03, divided into MIG devices
        (
            f"0, {A100}, NVIDIA A100-SXM4-80GB, 81920, 00000000:01:00.0, Enabled, Enabled\n",
            Gpu(0, A100, "NVIDIA A100-SXM4-80GB", 81920, "0000:01:00.0", True, True),
        ),
        # 535.86.10
        (
            f"0, {V100}, Tesla V100-PCIE-16GB, 16384, 00000000:AF:00.0, Enabled, [N/A]\n",
            Gpu(0, V100, "Tesla V100-PCIE-16GB", 16384, "0000:af:00.0", True, None),
        ),
        # 590.44.01
        (
            f"0, {UUID}, NVIDIA RTX A5000, 24564, 00000000:81:00.0, Disabled, [N/A]\n",
            Gpu(0, UUID, "NVIDIA RTX A5000", 24564, "0000:81:00.0", False, None),
        ),
        # A GPU that failed in a job still has a name.
        (
            f"0, {UUID}, NVIDIA H100 80GB HBM3, {RESET}, 00000000:1B:00.0, {RESET}, Disabled\n",
            Gpu(0, UUID, "NVIDIA H100 80GB HBM3", None, "0000:1b:00.0", None, False),
        ),
    ],
)
def test_one_gpu(text: str, expected: Gpu) -> None:
    assert smi.parse_rows(text) == ([expected], [])


def test_two_gpus_of_580_119_02() -> None:
    text = (
        f"0, {UUID}, NVIDIA A800 80GB PCIe, 81920, 00000000:01:00.0, Enabled, Disabled\n"
        f"1, {SECOND}, NVIDIA A800 80GB PCIe, 81920, 00000000:81:00.0, Enabled, Disabled\n"
    )
    found, problems = smi.parse_rows(text)
    assert [(one.index, one.pci_address, one.mig) for one in found] == [
        (0, "0000:01:00.0", False),
        (1, "0000:81:00.0", False),
    ]
    assert problems == []


def test_a_line_that_is_something_else_is_told() -> None:
    lost = "Unable to determine the device handle for GPU 0000:BA:80.0: Unknown Error"
    found, problems = smi.parse_rows(f"0, {UUID}, NVIDIA A10G, 23028, 00000000:00:1E.0, Enabled, [N/A]\n{lost}\n")
    assert len(found) == 1 and problems == [smi.ERR_ROW % lost]


@pytest.mark.parametrize("text", ["", "\n", "No devices were found\n"])
def test_no_gpu_is_no_row(text: str) -> None:
    assert smi.parse_rows(text) == ([], [])


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        (
            "\n==============NVSMI LOG==============\n\n"
            "Timestamp                                 : Thu Jun  6 08:39:56 2024\n"
            "Driver Version                            : 535.86.10\n"
            "CUDA Version                              : 12.2\n\n"
            "Attached GPUs                             : 1\n",
            "12.2",
        ),
        ("Driver Version : 580.95.05\nCUDA Version : N/A\n", ""),
        ("", ""),
    ],
)
def test_the_cuda_that_the_driver_supports(text: str, cuda: str) -> None:
    assert smi.parse_cuda(text) == cuda
