# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node as the version matrix sees it: its facts, and what the inventory says of it.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: What stands in a sentence for a version that is not there.
NONE = "none"
#: Digits of the ID of an image, as podman images shows it.
SHOWN_ID = 12

DRIVER = "nvidia_driver_version"
STATE = "nvidia_driver_state"
NCCL = "nccl_version"
TORCH = "torch_runtime_version"
TOOLKIT = "cuda_toolkit_default"
TOOLKITS = "cuda_toolkit_versions"
COUNT = "gpu_cluster_gpus"
INTERFACE = "gpu_cluster_fabric_interface"
OPENMPI = "openmpi_version"
#: What role launcher gives to jobs, on all members and on one.
OF_JOBS = "launcher_environment"
OF_HOST = "launcher_host_environment"


def job_variables(inventory: Mapping[str, Any]) -> dict[str, str]:
    """What the inventory gives to the jobs of a host.  inventory: its variables."""
    both = [inventory.get(name) for name in (OF_JOBS, OF_HOST)]
    return {str(name): str(value) for one in both if isinstance(one, Mapping) for name, value in one.items()}


@dataclass(frozen=True)
class Node:
    """One host.  facts: of gpu_node_facts, empty when unknown.  torch: a version, ``none``, or empty when unknown.

    code: what the torch of its ranks has code for, as ``sm_90``; empty when unknown.
    """

    name: str
    facts: Mapping[str, Any]
    inventory: Mapping[str, Any]
    torch: str = ""
    code: tuple[str, ...] = ()

    @property
    def has_gpu(self) -> bool:
        """Whether there is an NVIDIA GPU, with or without a driver."""
        return bool(self.facts and (self.facts["pci"]["gpus"] or self.facts["gpus"]))

    @property
    def wants_driver(self) -> bool:
        """Whether the inventory leaves the driver on this host."""
        return str(self.inventory.get(STATE)) != "absent"

    @property
    def wanted_gpus(self) -> int:
        """The number of GPUs in the inventory, -1 when it is not compared."""
        value = str(self.inventory.get(COUNT, -1))
        return int(value) if value.isdigit() else -1

    @property
    def on_the_bus(self) -> int:
        """The number of GPUs on the PCI bus."""
        return len(self.facts["pci"]["gpus"])

    @property
    def models(self) -> str:
        """The models of its GPUs as nvidia-smi calls them, empty when it shows none."""
        return " and ".join(sorted({str(one["model"]) for one in self.facts.get("gpus", [])}))

    @property
    def firmware(self) -> str:
        """Firmware and model of the data network's card: a version says something for cards of one model only."""
        version = self.card("firmware")
        return f"{version} ({self.card('model')})" if version else ""

    @property
    def images(self) -> str:
        """The images of containers that the inventory wants, with their IDs as podman shows them."""
        listed = [one for one in self.facts.get("images", []) if isinstance(one, Mapping)]
        return ", ".join(f"{one.get('name')} {str(one.get('id') or '')[:SHOWN_ID] or NONE}" for one in listed)

    def text(self, *keys: str) -> str:
        """A fact as text, empty when it is unknown."""
        value: Any = self.facts
        for key in keys:
            value = value.get(key, "") if isinstance(value, Mapping) else ""
        return str(value or "")

    def card(self, key: str) -> str:
        """A value of the data network's card, empty when that card or its value is not known."""
        for card in self.facts.get("nics", []):
            if card["name"] == self.inventory.get(INTERFACE):
                return "" if card[key] is None else str(card[key])
        return ""
