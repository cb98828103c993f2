# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of machines as discover_node gives them: two ports for management, cards for data, and what else is there."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover import hosts_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.inventory import Inventory
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.machine import machine
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.plan import plan

CARD: dict[str, Any] = {
    "name": "",
    "type": "ether",
    "kind": "",
    "driver": "",
    "device": True,
    "mac": "",
    "mtu": 1500,
    "up": True,
    "carrier": True,
    "speed_mbit": 0,
    "master": "",
    "parent": "",
    "addresses": [],
    "rdma": "",
    "rdma_layer": "",
    "switch": "",
    "port": "",
    "heard": [],
}


def card(name: str, **more: Any) -> dict[str, Any]:
    """One card of an answer."""
    return {**copy.deepcopy(CARD), "name": name, **more}


def mac(number: int, place: int) -> str:
    """The hardware address of a card of a machine."""
    return f"02:00:00:{place:02x}:{number >> 8:02x}:{number & 255:02x}"


def answer(number: int, fast: int = 2, addressed: bool = True, heard: Sequence[int] = ()) -> dict[str, Any]:
    """What machine ``number`` answers: 8 GPUs, eno1 with ssh, and so many ports of 400 Gbit/s.

    addressed: each of these has an address in a subnet of its own.  heard: machines whose same port answered a probe.
    """
    return {
        "hostname": f"gpu{number:02d}.cluster.example.com",
        "system": "CentOS Stream 9",
        "kernel": "5.14.0-620.el9.x86_64",
        "architecture": "x86_64",
        "python": "3.9.23",
        "system_python": True,
        "user_id": 0,
        "became": False,
        "sudo": "root",
        "address": f"10.1.1.{10 + number}",
        "ssh_ports": [22],
        "memory_bytes": 2164205600768,
        "disk_bytes": 1888000000000,
        "default_card": "eno1",
        "routes": ["10.1.1.0/24", "172.17.0.0/16", "192.168.122.0/24", "169.254.3.0/24"],
        "cards": [
            card("eno1", driver="ixgbe", mac=mac(number, 1), speed_mbit=10000, addresses=[f"10.1.1.{10 + number}/24"]),
            card("eno2", driver="ixgbe", mac=mac(number, 2), carrier=False),
            card("docker0", kind="bridge", driver="bridge", device=False, addresses=["172.17.0.1/16"], carrier=False),
            card("virbr0", kind="bridge", driver="bridge", device=False, addresses=["192.168.122.1/24"]),
            card("usb0", driver="cdc_ether", mac=mac(number, 3), addresses=["169.254.3.1/24"], speed_mbit=425),
            *(
                card(
                    f"ens{port}np0",
                    driver="mlx5_core",
                    mac=mac(number, 16 + port),
                    mtu=9000,
                    speed_mbit=400000,
                    addresses=[f"10.9.{port}.{number}/24"] if addressed else [],
                    rdma=f"mlx5_{port}",
                    rdma_layer="Ethernet",
                    heard=[mac(other, 16 + port) for other in heard if other != number],
                )
                for port in range(1, fast + 1)
            ),
        ],
        "gpus": {
            "devices": ["GH100 [H100 SXM5 80GB]"] * 8,
            "driver": "580.95.05",
            "models": ["NVIDIA H100 80GB HBM3"] * 8,
            "problem": "",
        },
    }


@pytest.fixture(name="twelve")
def twelve_machines() -> Callable[..., list[dict[str, Any]]]:
    """Twelve answers; arguments as of ``answer``."""
    return lambda **more: [answer(number, **more) for number in range(1, 13)]


class Written:
    """An inventory that was written, as Ansible reads it."""

    def __init__(self, folder: Path, found: Inventory) -> None:
        self.text = hosts_file.text(found)
        self.questions = found.questions
        path = folder / "hosts.yml"
        path.write_text(self.text, encoding="utf-8")
        loader = DataLoader()
        self._manager = InventoryManager(loader=loader, sources=[str(path)])
        self.groups = self._manager.get_groups_dict()
        self._variables = HostVars(self._manager, VariableManager(loader=loader, inventory=self._manager), loader)

    def values(self, variable: str) -> dict[str, Any]:
        """Member to value, as a playbook sees it."""
        own = {name: self._variables[name] for name in self.groups["gpu_cluster"]}
        return {name: found[variable] for name, found in own.items() if variable in found}


def planned(answers: Sequence[dict[str, Any]], **more: Any) -> Inventory:
    """The inventory of answers; arguments as of ``plan``."""
    machines = [machine(f"gpu{index:02d}", f"10.1.1.{10 + index}", one) for index, one in enumerate(answers, 1)]
    given = {"kept": {one.host: {} for one in machines}, "given": {}, "group": "gpu_cluster", **more}
    return plan(machines, **given)[0]


@pytest.fixture(name="write")
def written_inventory(tmp_path: Path) -> Callable[..., Written]:
    """Write the inventory of answers, and read it with Ansible; arguments as of ``plan``."""
    return lambda answers, **more: Written(tmp_path, planned(answers, **more))


@pytest.fixture(name="text")
def text_of_inventory() -> Callable[..., str]:
    """Only its text."""
    return lambda answers, **more: hosts_file.text(planned(answers, **more))
