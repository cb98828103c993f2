# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter driver_problems: what is wrong with the driver of a host. The rules live in module_utils/_nvidia_driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver.verdict import (
    NOT_COMPARED,
    gpu_count_problems,
    running_problems,
)

DOCUMENTATION = r"""
name: driver_problems
short_description: Say what is wrong with NVIDIA's driver on a host
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Compares what M(baremetal.gpu_cluster.gpu_node_facts) has found with what the inventory says. Module, libraries and
    pin must be of one version, nouveau absent, all GPUs there, their ECC mode the same, the daemons running, Fabric
    Manager of the driver's version where the host has an NVSwitch, and no Xid in the log that means broken hardware.
positional: _input, version, kind, gpus, is_running
options:
  _input:
    description: The facts C(gpu_node).
    type: dict
    required: true
  version:
    description: Version of the driver, as a branch or with more of its parts.
    type: str
    required: true
  kind:
    description: V(open) or V(proprietary).
    type: str
    default: open
  gpus:
    description: How many GPUs the host has to have. V(-1) compares nothing.
    type: int
    default: -1
  is_running:
    description: Whether the driver should be running. If not, only the GPUs on the PCI bus are counted.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Read what the node has of the GPU stack
  baremetal.gpu_cluster.gpu_node_facts:

- name: Refuse a driver that does not do
  ansible.builtin.assert:
    that: __problems | length == 0
    fail_msg: "{{ __problems | join('; ') }}"
  vars:
    __problems: "{{ ansible_facts.gpu_node | baremetal.gpu_cluster.driver_problems('580', gpus=8) }}"
"""

RETURN = r"""
_value:
  description: A sentence for each problem; empty when there is none.
  type: list
  elements: str
"""


def driver_problems(
    facts: Mapping[str, Any], version: str, kind: str = "open", gpus: int = NOT_COMPARED, is_running: bool = True
) -> list[str]:
    """Return the sentences."""
    counted = gpu_count_problems(facts, gpus)
    found = [*counted, *running_problems(facts, version, kind)] if is_running else counted
    return [sanitize.sentence(one) for one in found]


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"driver_problems": driver_problems}
