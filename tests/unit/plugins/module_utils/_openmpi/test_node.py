# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interfaces, RDMA devices and the kernel's ports of a node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import node


def link(name: str, *addresses: str, flags: tuple[str, ...] = ("UP",), **more: Any) -> dict[str, Any]:
    """One interface as ``ip -json address`` of iproute2 6.1 prints it, without what nobody reads."""
    info = [{"local": one, "scope": "link" if one.startswith("fe80") else "global"} for one in addresses]
    return {"ifname": name, "flags": list(flags), "operstate": "UP", "addr_info": info, **more}


SHOWN = json.dumps(
    [
        link("lo", "127.0.0.1", flags=("LOOPBACK", "UP"), operstate="UNKNOWN"),
        link("eth0", "198.51.100.7", "fe80::1"),
        link("fab0", "192.0.2.17", "2001:db8::17"),
        link("fab1", "203.0.113.5", operstate="DOWN"),
    ]
)
FOUND = node.addresses(SHOWN)


def test_addresses() -> None:
    assert [one.address for one in FOUND] == ["198.51.100.7", "192.0.2.17", "2001:db8::17", "203.0.113.5"]
    for network, interface in (("192.0.2.0/24", "fab0"), ("2001:db8::/64", "fab0"), ("198.51.0.0/16", "eth0")):
        one = node.interface_of(network, FOUND)
        assert one and one.interface == interface
    spare = [node.Address("fab1", "192.0.2.18", False), *FOUND]
    assert node.interface_of("192.0.2.0/24", spare) == node.Address("fab0", "192.0.2.17", True)


def test_networks_that_cannot_be_reached() -> None:
    problems = node.unreached(["192.0.2.0/24", "10.0.0.0/8", "203.0.113.0/24"], FOUND)
    have = "198.51.100.7, 192.0.2.17, 2001:db8::17, 203.0.113.5"
    assert [problem.rule for problem in problems] == [node.ERR_NO_ADDRESS % have, node.ERR_DOWN % "fab1"]
    assert node.unreached(["10.0.0.0/8"], [])[0].rule == node.ERR_NO_ADDRESS % "none"


def test_rdma_devices_of_a_card_and_of_a_bond(tmp_path: Path) -> None:
    for card, device, port in (("ens1", "mlx5_0", "0"), ("ens2", "mlx5_1", "1")):
        (tmp_path / card / "device" / "infiniband" / device).mkdir(parents=True)
        (tmp_path / card / "dev_port").write_text(f"{port}\n")
    (tmp_path / "bond0").mkdir()
    for card in ("ens2", "ens1"):
        (tmp_path / "bond0" / f"lower_{card}").symlink_to(tmp_path / card)
    assert node.rdma_devices("ens1", str(tmp_path)) == ["mlx5_0:1"]
    assert node.rdma_devices("ens2", str(tmp_path)) == ["mlx5_1:2"]
    assert node.rdma_devices("bond0", str(tmp_path)) == ["mlx5_0:1", "mlx5_1:2"]
    assert node.rdma_devices("eth0", str(tmp_path)) == []


def test_the_kernels_ports() -> None:
    assert node.outside((32768, 60999), "32768\t60999\n") == node.outside((32768, 60999), "40000\t50000\n") == []
    (problem,) = node.outside((32768, 60999), "1024\t65535\n")
    assert problem.rule == node.ERR_RANGE % ("1024", "65535")
    assert node.outside((32768, 60999), "32768\t61000\n") and node.outside((32768, 60999), "32767\t60999\n")
    assert node.outside(None, "1024\t65535\n") == []
