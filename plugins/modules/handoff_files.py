#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: handoff_files
short_description: Write the files for a scheduler beside the inventory
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Writes files on the controller, into the folder C(NAME/INVENTORY) beside the inventory, where C(NAME) is O(name). It
    is never within a folder that is an inventory, because Ansible would read the files as inventory.
  - Writes all files or none. The first line of each file is a mark, by which a later run sees whether somebody has
    edited the file. If one of them was edited, nothing is written.
  - A file that an earlier run has written, and that is not in O(files) any more, is removed. Other files in the folder
    stay.
options:
  name:
    description: For what the files are. It is the name of the playbook, too.
    type: str
    choices: [host_lists, kubernetes, slurm]
    required: true
  files:
    description: Names of files, and their texts. Every file must be of a kind in which a line with C(#) is a comment.
    type: dict
    required: true
  dest:
    description: Another folder. It is created, with those above it.
    type: str
    default: ""
attributes:
  action:
    description: Indicates this has a corresponding action plugin so some parts of the options can be executed on
      the controller.
    support: full
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
  diff_mode:
    description: Will return details on what has changed, or possibly needs changing in C(check_mode), when in diff
      mode.
    support: full
  platform:
    description: Target OS that the action works on.
    support: full
    platforms: posix
"""

EXAMPLES = r"""
- name: Write a list of hosts
  baremetal.gpu_cluster.handoff_files:
    name: slurm
    files:
      hosts.txt: "{{ groups['gpu_cluster'] | join('\n') }}\n"
  run_once: true
"""

RETURN = r"""
path:
  description: The folder.
  returned: always
  type: str
  sample: /home/ops/mycluster/kubernetes/prod
written:
  description: The names of the files that were written; in check mode those that would be.
  returned: always
  type: list
  elements: str
  sample: [labels.sh, mpijob.yml]
removed:
  description: The names of the files that were removed; in check mode those that would be.
  returned: always
  type: list
  elements: str
  sample: []
"""
