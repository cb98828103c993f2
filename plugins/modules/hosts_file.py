#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module hosts_file: keep the members' block in /etc/hosts, and members' names off the loopback addresses."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hosts_file
short_description: Keep the members' block in the hosts file
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Keeps one block of lines in the hosts file. It stands before any other line that names a member, because the first
    match wins.
  - Takes members' names off lines with a loopback address, where installers put the machine's own name. Gloo would
    listen there and wait for peers for ever.
  - Leaves all other lines as they are, and warns about those that give a member another address.
options:
  block:
    description: The block, as P(baremetal.gpu_cluster.hosts_block#filter) renders it.
    type: str
    required: true
  path:
    description: The hosts file.
    type: path
    default: /etc/hosts
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  platform:
    platforms: posix
seealso:
  - plugin: baremetal.gpu_cluster.hosts_block
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Name the members
  baremetal.gpu_cluster.hosts_file:
    block: "{{ hosts_block_text }}"
"""

RETURN = r"""
conflicts:
  description: Lines of others that give a member another address, and other oddities, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._hosts_file import wanted_hosts_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text, replace_file


def main() -> None:
    """Compare and write."""
    module = AnsibleModule(
        argument_spec={
            "block": {"type": "str", "required": True},
            "path": {"type": "path", "default": "/etc/hosts"},
        },
        supports_check_mode=True,
    )
    path = module.params["path"]
    before = read_text(path)
    wanted = wanted_hosts_file(before, module.params["block"])
    for sentence in wanted.warnings:
        module.warn(sentence)
    changed = wanted.text != before
    if changed and not module.check_mode:
        replace_file(module, path, wanted.text)
    module.exit_json(
        changed=changed,
        conflicts=list(wanted.warnings),
        diff={"before_header": path, "after_header": path, "before": before, "after": wanted.text},
    )


if __name__ == "__main__":
    main()
