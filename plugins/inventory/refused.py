# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the files that the first play refuses, so that Ansible does not warn of them once for each of its plugins."""

from __future__ import annotations

DOCUMENTATION = r"""
name: refused
short_description: Leave a broken inventory file to the playbooks of the collection
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Ansible gives a file of hosts to one inventory plugin after the other. When none can read it, there are three
    warnings of ten lines, one of which names the cause, and the run goes on without hosts.
  - This plugin, before the others in the setting C(enable_plugins) below C([inventory]) of C(ansible.cfg), takes such a
    file and reads no hosts from it, when a playbook of this collection runs. Its first play then refuses the inventory
    and names file, line, rule and fix (P(baremetal.gpu_cluster.readable_inventory#filter)).
  - For all other commands, such as C(ansible-inventory), it takes no file.
seealso:
  - plugin: baremetal.gpu_cluster.readable_inventory
    plugin_type: filter
options: {}
"""

EXAMPLES = r"""
# ansible.cfg
# [inventory]
# enable_plugins = baremetal.gpu_cluster.refused, host_list, script, auto, yaml, ini, toml
"""

from typing import Any

from ansible.plugins.inventory import BaseInventoryPlugin

from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils import _command_line, _inventory_files


class InventoryModule(BaseInventoryPlugin):
    """What Ansible loads."""

    NAME = "baremetal.gpu_cluster.refused"

    def verify_file(self, path: str) -> bool:
        """Whether the first play of this run refuses the file."""
        command = _command_line.read()
        return command.is_ours and not command.only_lists and _inventory_files.is_refused(path)

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Read nothing."""
        super().parse(inventory, loader, path, cache)
