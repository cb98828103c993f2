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
  - Maintains one block of lines in the hosts file.
  - Removes members' names from lines with a loopback address, where installers put the machine's own name. Otherwise
    gloo would listen on the loopback, where no peer reaches it.
  - Removes members' names from lines with an address that differs from the block, with a warning for each. With C(multi
    on) in C(/etc/host.conf), as on EL, programs get the addresses of all lines with a name.
  - Only the names are removed. A line with no name left is removed too. All other lines stay byte for byte, and so do
    owner, mode and SELinux context of the file.
  - The file is replaced atomically. If the file is a mount point, as in some containers, it is overwritten.
options:
  block:
    description: The block, as P(baremetal.gpu_cluster.hosts_block#filter) renders it.
    type: str
    required: true
  conflicting_names:
    description:
      - What to do with a member's name on another line with another address, loopback addresses excluded.
      - V(remove) removes the name. V(keep) keeps the line, puts the block before it and warns; a program may then get
        either address.
    type: str
    choices: [remove, keep]
    default: remove
  path:
    description: The hosts file. If the path is a link, its target is replaced.
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
  description: Other lines that gave a member another address, and other warnings, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._hosts_file import KEEP, REMOVE, wanted_hosts_file


def read(path: str) -> bytes:
    """The bytes of a file; none when there is no file."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return b""


def write(module: AnsibleModule, path: str, content: bytes) -> None:
    """Replace the file in one step; owner, mode and context are those of the old one, a new one is 0644."""
    is_new = not os.path.exists(path)
    with files.written_beside(path, content, 0o600) as temporary:
        # A mount point cannot be renamed over: unsafe_writes overwrites the file then, and only then.
        module.atomic_move(temporary, path, unsafe_writes=True)
    if is_new:
        module.set_mode_if_different(path, 0o644, False)


def main() -> None:
    """Compare and write."""
    module = AnsibleModule(
        argument_spec={
            "block": {"type": "str", "required": True},
            "conflicting_names": {"type": "str", "choices": [REMOVE, KEEP], "default": REMOVE},
            "path": {"type": "path", "default": "/etc/hosts"},
        },
        supports_check_mode=True,
    )
    shown_path = module.params["path"]
    path = os.path.realpath(shown_path)
    try:
        before = read(path)
        wanted = wanted_hosts_file(before, module.params["block"], module.params["conflicting_names"])
        changed = wanted.content != before
        if changed and not module.check_mode:
            write(module, path, wanted.content)
    except OSError as error:
        module.fail_json(msg=f"Cannot keep the members in {shown_path}: {error}. The file is as it was.")
    for sentence in wanted.warnings:
        module.warn(sentence)
    module.exit_json(
        changed=changed,
        conflicts=list(wanted.warnings),
        diff={
            "before_header": shown_path,
            "after_header": shown_path,
            "before": before.decode("utf-8", "backslashreplace"),
            "after": wanted.content.decode("utf-8", "backslashreplace"),
        },
    )


if __name__ == "__main__":
    main()
