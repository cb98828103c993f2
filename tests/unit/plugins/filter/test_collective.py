# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the check takes from the inventory to compare it with the nodes."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.filter import collective


class Broken(dict[str, Any]):
    """Variables of which one cannot be templated."""

    def __getitem__(self, name: str) -> Any:
        if name == "nccl_version":
            raise ValueError("'site_nccl' is undefined")
        return super().__getitem__(name)


def test_wishes_of_each_host() -> None:
    hostvars = {
        "n1": {
            "gpu_cluster_gpus": 8,
            "nvidia_driver_version": "580",
            "nvidia_driver_state": "absent",
            "launcher_environment": {"NCCL_ALGO": "Ring"},
            "ansible_host": "192.0.2.11",
        },
        "n2": Broken(gpu_cluster_gpus=4, nccl_version="{{ site_nccl }}"),
        "n3": {},
    }
    assert collective.collective_pins(hostvars, ["n1", "n2", "n3"]) == {
        "n1": {
            "gpu_cluster_gpus": 8,
            "nvidia_driver_version": "580",
            "nvidia_driver_state": "absent",
            "launcher_environment": {"NCCL_ALGO": "Ring"},
        },
        "n2": {"gpu_cluster_gpus": 4},
        "n3": {},
    }
