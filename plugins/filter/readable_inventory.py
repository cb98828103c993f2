# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter readable_inventory: refuses files of the inventory that Ansible cannot read as meant, before it needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.filter.guard import nothing_changed
from ansible_collections.baremetal.gpu_cluster.plugins.filter.play_targets import GROUP
from ansible_collections.baremetal.gpu_cluster.plugins.filter.problem_table import problem_table
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _command_line, _inventory_files
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _inventory_faults as sources

DOCUMENTATION = r"""
name: readable_inventory
short_description: Refuse files of the inventory that Ansible can't read as they were meant
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Reads the files of the inventory, and those of C(group_vars) and C(host_vars) beside it and beside the playbook,
    and fails with all their problems, each with file and line. Returns its input when there are none.
  - Ansible reads C(group_vars) only when a play needs them, and then prints an error of its own, without the name of
    the file or without the line. So this stands in the C(hosts) of the first play.
  - "Problems are errors in the syntax of YAML, tabs, texts that are not UTF-8, files that cannot be read or decrypted,
    keys that stand twice, lists in the place of mappings, keys that Ansible skips, ranges of hosts that are none, hosts
    that two files list, two inventories that both hold members, and a group of the members that is missing or empty."
positional: _input, groups, group, playbook_dir
options:
  _input:
    description: What is returned.
    type: str
    required: true
  groups:
    description: C(groups) of Ansible.
    type: dict
    required: true
  group:
    description: The members' group, where C(-e) names it.
    type: str
    default: ""
  playbook_dir:
    description: The folder of the playbook.
    type: str
    default: ""
seealso:
  - plugin: baremetal.gpu_cluster.inventory_problems
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Refuse an inventory that cannot be read
  hosts: "{{ 'localhost' | baremetal.gpu_cluster.readable_inventory(groups, gpu_cluster_group | default('')) }}"
  gather_facts: false
  tasks: []
"""

RETURN = r"""
_value:
  description: The input.
  type: str
"""


def readable_inventory(hosts: str, groups: Mapping[str, Sequence[str]], group: str = "", playbook_dir: str = "") -> str:
    """Return the hosts, or fail with every problem of the files."""
    if _command_line.read().only_lists:
        return hosts
    files = _inventory_files.read(_inventory_files.given(), playbook_dir)
    everybody = {str(name): [str(host) for host in named] for name, named in groups.items()}
    broken = any(one.faults for one in files if one.kind == sources.HOSTS)
    known = {*everybody, *(host for named in everybody.values() for host in named)}
    read = [one for one in files if one.kind == sources.HOSTS or broken or one.owner in known]
    problems = sources.file_problems(read)
    # The group may have another name in a file of variables, which only the next play can read.
    named_later = not group and any(sources.GROUP_VARIABLE in one.lines for one in read)
    if not broken and not named_later:
        problems += sources.group_problems(read, everybody, group or GROUP, bool(group))
    problems += sources.double_problems(read, everybody.get(group or GROUP, []), group or GROUP)
    if problems:
        table = problem_table([one.as_dict() for one in problems])
        head = nothing_changed(f"{len(table.splitlines())} problem(s) in the inventory")
        raise AnsibleFilterError(f"{head}.\n{table}")
    return hosts


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """Name the filter."""
        return {"readable_inventory": readable_inventory}
