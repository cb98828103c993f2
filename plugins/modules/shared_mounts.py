#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module shared_mounts: storage for data sets and checkpoints, mounted and looked at."""

from __future__ import annotations

DOCUMENTATION = r"""
module: shared_mounts
short_description: Mount shared storage, and look at it as the user of the jobs
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Keeps one mount unit of systemd for each entry, enabled and started, so that it is there after a boot. A node boots
    without the storage when the server does not answer.
  - Looks at every mount as O(user), in a process of its own with a deadline. A server that does not answer, a stale
    handle and a folder that the user cannot read are named.
  - Refuses what is in the way, before anything is changed and all at once. That is a line of C(/etc/fstab) or a unit of
    somebody else for the same path, something else that is mounted there, and a folder that is not empty, because its
    files would be hidden.
  - A mount that fails is taken back, its unit too. The others stay, and all that failed are named.
  - Nothing is unmounted without O(unmount_ok). Nothing is written into the storage.
options:
  mounts:
    description: The mounts, each path once.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Where. The folder is made when it is missing.
        type: str
        required: true
      source:
        description: What, as mount wants it, such as C(nas.example.com:/export/data).
        type: str
      type:
        description:
          - The type of the file system. V(nfs4), V(nfs) and V(lustre) wait for the network, and others with the option
            C(_netdev). All that mount knows are mounted, V(none) with the option C(bind) too.
        type: str
      options:
        description: Options of mount, as a list or separated by commas.
        type: raw
      writable:
        description: Whether O(user) must be able to write into its top folder.
        type: bool
        default: false
      state:
        description: With V(absent), it is unmounted and its unit goes, if that is ours.
        type: str
        choices: [mounted, absent]
        default: mounted
  user:
    description: The user who looks. Empty looks as root, whom NFS servers usually let see less.
    type: str
    default: ""
  unmount_ok:
    description:
      - Consent to unmounting what O(mounts[].state=absent) names, and what has got another source or other options.
      - Without it the first two are refused. Other options are written for the next boot, and every run until then
        warns.
    type: bool
    default: false
  timeout_seconds:
    description: How long a mount may take, and how long the storage may take to answer, 5 to 600 s.
    type: int
    default: 30
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: What is not mounted yet is not looked at.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux with systemd.
"""

EXAMPLES = r"""
- name: Mount data sets and checkpoints
  baremetal.gpu_cluster.shared_mounts:
    mounts:
      - path: /data
        source: nas.example.com:/export/data
        type: nfs4
        options: [ro, nconnect=8]
      - path: /checkpoints
        source: 192.0.2.5@tcp:/scratch
        type: lustre
        writable: true
    user: train
"""

RETURN = r"""
storages:
  description:
    - What was seen at each path, for the filter P(baremetal.gpu_cluster.shared_storage_differences#filter), with
      C(path), C(source), C(root) (inode number and time of change in ns), C(entries) (name, inode number and time of
      change in ns of up to 64) and C(writable).
  returned: success
  type: list
  elements: dict
problems:
  description: What was refused or failed, each with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._shared_storage.settle import carry_out


def main() -> None:
    """Check, mount, look."""
    module = AnsibleModule(
        argument_spec={
            "mounts": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "path": {"type": "str", "required": True},
                    "source": {"type": "str"},
                    "type": {"type": "str"},
                    "options": {"type": "raw"},
                    "writable": {"type": "bool", "default": False},
                    "state": {"type": "str", "choices": ["mounted", "absent"], "default": "mounted"},
                },
            },
            "user": {"type": "str", "default": ""},
            "unmount_ok": {"type": "bool", "default": False},
            "timeout_seconds": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    module.exit_json(**carry_out(module))


if __name__ == "__main__":
    main()
