# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network cards by ethtool and sysfs; a card of a real machine, see data/README.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import nics

DATA = Path(__file__).parent / "data"


def test_a_connectx_4() -> None:
    found = nics.parse_ethtool((DATA / "ethtool_connectx4.txt").read_text())
    assert found["driver"] == "mlx5_core" and found["firmware-version"] == "14.23.1020"
    assert found["bus-info"] == "0000:af:00.0" and "expansion-rom-version" not in found


def test_a_virtual_card_has_no_firmware() -> None:
    assert nics.parse_ethtool("driver: virtio_net\nversion: 1.0.0\nfirmware-version: N/A\n") == {
        "driver": "virtio_net",
        "version": "1.0.0",
    }


@pytest.mark.parametrize(("text", "number"), [("100000", 100000), ("-1", None), ("", None)])
def test_numbers_of_sysfs(text: str, number: int | None) -> None:
    assert nics.integer(text) == number


@pytest.mark.parametrize(("text", "kind"), [("DEVTYPE=bond\nINTERFACE=bond0", "bond"), ("INTERFACE=fab0", "")])
def test_kinds_of_interfaces(text: str, kind: str) -> None:
    assert nics.device_type(text) == kind
