# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter host_lists: the members as SkyPilot and dstack list them. What the files hold is in _handoff/host_lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff import host_lists as lists
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.reading import read_variables

DOCUMENTATION = r"""
name: host_lists
short_description: Write the members into the host lists of SkyPilot and dstack
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Returns the texts of C(ssh_node_pools.yaml) of SkyPilot and of C(fleet.dstack.yml) of dstack, or everything that is
    wrong with the input.
  - Reads Ansible's variables for ssh of every member, and the variables of the playbook C(host_lists), which begin with
    C(host_lists_), out of C(hostvars). The first member's values of the latter count for all.
positional: _input, members
options:
  _input:
    description: C(hostvars).
    type: dict
    required: true
  members:
    description: The members, as P(baremetal.gpu_cluster.cluster_members#filter) returns them.
    type: list
    elements: dict
    required: true
seealso:
  - plugin: baremetal.gpu_cluster.cluster_members
    plugin_type: filter
  - module: baremetal.gpu_cluster.handoff_files
"""

EXAMPLES = r"""
- name: Show the host list of SkyPilot
  ansible.builtin.debug:
    msg: "{{ (hostvars | baremetal.gpu_cluster.host_lists(members)).files['ssh_node_pools.yaml'] }}"
  vars:
    members: "{{ hostvars | baremetal.gpu_cluster.cluster_members(groups['gpu_cluster']) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - C(files), the texts by the names of the files; empty where there is a problem.
    - C(problems), as P(baremetal.gpu_cluster.inventory_problems#filter) returns them.
  type: dict
"""

COMMAND_LINE = "command line"
_SSH = (
    *("ansible_user", "ansible_ssh_user", "ansible_port", "ansible_ssh_port"),
    *("ansible_ssh_private_key_file", "ansible_private_key_file"),
)


def host_lists(hostvars: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the texts, or the problems."""
    names = [str(one["name"]) for one in members]
    logins = {name: read_variables(hostvars, name, _SSH.__contains__) for name in names}
    own = read_variables(hostvars, names[0], lists.SETTINGS.__contains__) if names else {}
    problems = [value.problem(name) for name, value in own.items() if isinstance(value, Unreadable)]
    for host, values in logins.items():
        unread = [(name, value) for name, value in values.items() if isinstance(value, Unreadable)]
        problems += [value.problem(name).on(host) for name, value in unread]
    texts: dict[str, str] = {}
    if not problems:
        texts, problems = lists.files(members, logins, own)
    placed = [problem if problem.host else problem.on(COMMAND_LINE) for problem in problems]
    return {"files": texts, "problems": [problem.as_dict() for problem in placed]}


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"host_lists": host_lists}
