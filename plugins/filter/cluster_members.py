# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cluster_members: the members of the cluster out of hostvars. The rules live in module_utils/_inventory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import (
    FABRIC_ADDRESS,
    FABRIC_INTERFACE,
    FURTHER_ADDRESSES,
    INTERFACES,
    MembersError,
    make_members,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.reading import read_variables

DOCUMENTATION = r"""
name: cluster_members
short_description: List the members of the cluster from the inventory
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Reads C(gpu_cluster_fabric_address), C(gpu_cluster_fabric_interface), C(gpu_cluster_further_addresses),
    C(static_network_interfaces) and C(ansible_host) of every host of a group out of C(hostvars).
  - Uses no facts and not the hosts of the play, so the list is the same with and without C(--limit).
  - Fails with every missing or malformed entry at once.
positional: _input, hosts
options:
  _input:
    description: C(hostvars).
    type: dict
    required: true
  hosts:
    description: The names of the members in inventory order, usually C(groups['gpu_cluster']).
    type: list
    elements: str
    required: true
seealso:
  - plugin: baremetal.gpu_cluster.inventory_problems
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the members
  ansible.builtin.debug:
    msg: "{{ hostvars | baremetal.gpu_cluster.cluster_members(groups['gpu_cluster']) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - One dictionary for each member with C(name), C(fabric_address) (without prefix), C(fabric_prefix) (its length),
      C(fabric_interface), C(management_address) (C(ansible_host), or the name in the inventory) and C(addresses), all
      addresses of the member without prefix, the fabric address first, then those of C(static_network_interfaces)
      and of C(gpu_cluster_further_addresses).
    - C(rail_addresses) are these without the first, each with C(address), C(prefix) (its length, 0 where the inventory
      does not say), C(interface) (empty where it does not say) and C(listed), whether it is one of
      C(gpu_cluster_further_addresses).
  type: list
  elements: dict
"""

_WANTED = (FABRIC_ADDRESS, FABRIC_INTERFACE, FURTHER_ADDRESSES, INTERFACES, "ansible_host")


def cluster_members(hostvars: Mapping[str, Any], hosts: Sequence[str]) -> list[dict[str, Any]]:
    """Return the members as dictionaries in the order of ``hosts``."""
    names = [str(host) for host in hosts]
    variables = {name: read_variables(hostvars, name, _WANTED.__contains__) for name in names}
    try:
        return [member.as_dict() for member in make_members(variables, names)]
    except MembersError as error:
        raise AnsibleFilterError(f"The inventory does not describe every member:\n{error}") from error


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"cluster_members": cluster_members}
