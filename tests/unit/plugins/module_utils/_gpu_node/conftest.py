# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration space of a PCIe port, made here."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest


def configuration(control: int) -> bytes:
    """4096 bytes with Advanced Error Reporting and then ACS, whose control register has this value."""
    space = bytearray(4096)
    struct.pack_into("<I", space, 0x100, 0x0001 | 2 << 16 | 0x148 << 20)
    struct.pack_into("<IHH", space, 0x148, 0x000D | 1 << 16, 0x001F, control)
    return bytes(space)


@pytest.fixture(name="configuration")
def fixture_configuration() -> Callable[[int], bytes]:
    return configuration
