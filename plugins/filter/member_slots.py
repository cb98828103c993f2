# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter member_slots: how many ranks each member takes. The rules live in module_utils/_inventory/gpus.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import gpus

DOCUMENTATION = r"""
name: member_slots
short_description: Count the ranks that each member takes
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - C(gpu_cluster_gpus) of each member, or else the GPUs that M(baremetal.gpu_cluster.host_preflight) has counted on it
    in this run, or else V(-1).
positional: _input, hosts, variable
options:
  _input:
    description: C(hostvars).
    type: dict
    required: true
  hosts:
    description: The names of the members.
    type: list
    elements: str
    required: true
  variable:
    description: The name under which the results of M(baremetal.gpu_cluster.host_preflight) were registered.
    type: str
    required: true
seealso:
  - module: baremetal.gpu_cluster.launcher_files
"""

EXAMPLES = r"""
- name: Show how many ranks each member takes
  ansible.builtin.debug:
    msg: "{{ hostvars | baremetal.gpu_cluster.member_slots(groups['gpu_cluster'], 'looked') }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: The number of each member by its name, as O(baremetal.gpu_cluster.launcher_files#module:slots) takes it.
  type: dict
"""


def member_slots(hostvars: Mapping[str, Any], hosts: Sequence[str], variable: str) -> dict[str, Any]:
    """Return the numbers by name."""
    found: dict[str, Any] = {}
    for host in hosts:
        own = hostvars[host]
        found[str(host)] = gpus.ranks(own.get(gpus.GPUS), gpus.counted(own.get(variable)))
    return found


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"member_slots": member_slots}
