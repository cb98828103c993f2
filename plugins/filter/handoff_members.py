# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter handoff_members: what a scheduler has to know of the members. The rules live in module_utils/_handoff."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import (
    FABRIC_ADDRESS,
    FABRIC_INTERFACE,
    FURTHER_ADDRESSES,
    INTERFACES,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff import members
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.gpus import GPUS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.reading import read_variables

DOCUMENTATION = r"""
name: handoff_members
short_description: List what a scheduler has to know of the members
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Reads names, addresses, network cards and numbers of GPUs of the members out of C(hostvars), and where asked also
    cores and memory out of the facts of the nodes.
  - The list does not depend on the hosts of the play, so it is the same with C(--limit).
positional: _input, hosts, only, variable, facts
options:
  _input:
    description: C(hostvars).
    type: dict
    required: true
  hosts:
    description: The names of all members, usually C(groups['gpu_cluster']).
    type: list
    elements: str
    required: true
  only:
    description:
      - The members that are wanted, as a list or as one text with commas. All members where it is C(none).
    type: raw
  variable:
    description: The name of the variable that holds O(only), for the messages.
    type: str
    default: hosts
  facts:
    description:
      - The name of the variable in which the result of M(ansible.builtin.setup) was registered on each member. Empty
        where nobody asked the nodes.
    type: str
    default: ""
seealso:
  - plugin: baremetal.gpu_cluster.cluster_members
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show what a scheduler has to know
  ansible.builtin.debug:
    msg: "{{ hostvars | baremetal.gpu_cluster.handoff_members(groups['gpu_cluster']) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - C(members) is a list with a dictionary for each member, with C(name), C(fabric_address) (without prefix),
      C(fabric_prefix) (its length), C(fabric_interface), C(management_address) and C(gpus). With O(facts) also with
      C(sockets), C(cores_per_socket), C(threads_per_core), C(cpus) and C(memory_mb).
    - C(problems), as P(baremetal.gpu_cluster.inventory_problems#filter) returns them. With problems, the list must
      not be used.
  type: dict
"""

_WANTED = (FABRIC_ADDRESS, FABRIC_INTERFACE, FURTHER_ADDRESSES, INTERFACES, GPUS, "ansible_host")


def handoff_members(
    hostvars: Mapping[str, Any], hosts: Sequence[str], only: Any = None, variable: str = "hosts", facts: str = ""
) -> dict[str, Any]:
    """Return the members and the problems."""
    names, problems = members.chosen(only, [str(host) for host in hosts], variable)
    variables = {name: read_variables(hostvars, name, _WANTED.__contains__) for name in names}
    answers = {name: hostvars[name].get(facts) for name in names} if facts else None
    found, wrong = members.handoff_members(variables, names, answers)
    return {"members": found, "problems": [problem.as_dict() for problem in problems + wrong]}


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"handoff_members": handoff_members}
