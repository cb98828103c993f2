# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine must have for these tests; where it lacks that they are skipped, each with its reason."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

DRIVER = Path("/proc/driver/nvidia/version")


def no_driver() -> str:
    """Why this machine cannot be asked about its GPUs; empty when it can."""
    return "" if DRIVER.is_file() else f"no NVIDIA driver is loaded here: there is no {DRIVER}"


def no_cuda() -> str:
    """Why no rank can run on a GPU here; empty when one can."""
    if reason := no_driver():
        return reason
    if importlib.util.find_spec("torch") is None:
        return f"{sys.executable} has no torch"
    import torch

    if not torch.cuda.is_available():
        return f"torch {torch.__version__} of {sys.executable} finds no GPU that it can use"
    return ""


@pytest.fixture(name="driver")
def need_driver() -> str:
    """The kernel's own words about the loaded driver."""
    if reason := no_driver():
        pytest.skip(reason)
    return DRIVER.read_text(encoding="utf-8")


@pytest.fixture(name="cuda")
def need_cuda() -> None:
    """Skip where no rank can run on a GPU."""
    if reason := no_cuda():
        pytest.skip(reason)
