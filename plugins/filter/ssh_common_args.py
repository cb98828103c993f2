# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter ssh_common_args: how ssh verifies the host key of a member, where the inventory does not say it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from ansible import constants
from ansible.plugins.loader import connection_loader

from ansible_collections.baremetal.gpu_cluster.plugins.filter.beside_inventory import beside_inventory

DOCUMENTATION = r"""
name: ssh_common_args
short_description: Let ssh verify host keys with the known_hosts file beside the inventory
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Returns C(ansible_ssh_common_args) of a host, or what the command line or C(ansible.cfg) sets in its place.
  - Where no option of ssh among these is about known hosts, ssh is told to read C(gpu_cluster_known_hosts), by default
    C(.known_hosts) beside the inventory, and the user's own file, and to refuse a host that is in neither of them.
positional: _input, host
options:
  _input:
    description: The variable C(hostvars).
    type: dict
    required: true
  host:
    description: The name of the host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Log in to the members
  hosts: gpu_cluster
  gather_facts: false
  vars:
    ansible_ssh_common_args: "{{ hostvars | baremetal.gpu_cluster.ssh_common_args(inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: Options of ssh, as C(ansible_ssh_common_args) takes them.
  type: str
"""

OURS = "ansible_ssh_common_args"
#: What else Ansible gives to ssh: variable, and the option of the connection.
OTHERS = {"ansible_ssh_args": "ssh_args", "ansible_ssh_extra_args": "ssh_extra_args"}
ABOUT_HOST_KEYS = ("userknownhostsfile", "stricthostkeychecking", "globalknownhostsfile", "knownhostscommand")


def ssh_common_args(hostvars: Mapping[str, Any], host: str) -> str:
    """Return the options."""
    own = hostvars[host]
    given = _given(own, OURS, "ssh_common_args")
    everything = " ".join([given, *(_given(own, *names) for names in OTHERS.items())]).lower()
    path = own.get("gpu_cluster_known_hosts") or beside_inventory(
        own.get("ansible_inventory_sources") or [], ".known_hosts"
    )
    if not path or not isinstance(path, str) or any(word in everything for word in ABOUT_HOST_KEYS):
        return given
    files = f'UserKnownHostsFile="{path}" ~/.ssh/known_hosts'
    return f"{given} -o {shlex.quote(files)} -o StrictHostKeyChecking=yes".strip()


def _given(own: Mapping[str, Any], variable: str, option: str) -> str:
    """The variable of the host, else what the command line, the environment or ansible.cfg says."""
    if own.get(variable) is not None:
        return str(own[variable])
    # Ansible knows the options of a plugin once it is loaded.
    connection_loader.get("ssh", class_only=True)
    found = constants.config.get_config_value(option, plugin_type="connection", plugin_name="ssh", variables={})
    return str(found or "")


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"ssh_common_args": ssh_common_args}
