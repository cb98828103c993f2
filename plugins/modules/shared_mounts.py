#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module shared_mounts: storage for data sets and checkpoints, mounted and looked at."""

from __future__ import annotations

DOCUMENTATION = r"""
module: shared_mounts
short_description: Mount shared storage, and read it as the user of the jobs
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Maintains one systemd mount unit for each entry, enabled and started, so that it is mounted at boot. If the server
    does not answer, the node boots without the storage.
  - Reads every mount as O(user), in a separate process with a timeout. Reports a server that does not answer, a stale
    handle and a folder that the user cannot read.
  - Lists all conflicts at once, before anything is changed. Conflicts are a line of C(/etc/fstab) or another unit for
    the same path, another mount there, and a folder that is not empty, because its files would be hidden.
  - A mount that fails is removed with its unit. The others stay, and all failed mounts are listed.
  - Nothing is unmounted without O(unmount_ok). Nothing is written into the storage.
options:
  mounts:
    description: The mounts, each path once.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Mount point. A missing folder is created.
        type: str
        required: true
      source:
        description: Source, in the form of mount(8), such as C(nas.example.com:/export/data).
        type: str
      type:
        description:
          - Type of the file system, any type of mount(8), also V(none) with the option C(bind). V(nfs4), V(nfs) and
            V(lustre) wait for the network, and others with the option C(_netdev).
        type: str
      options:
        description: Mount options, as a list or separated by commas.
        type: raw
      writable:
        description: Whether O(user) must be able to write into the top folder of the mount.
        type: bool
        default: false
      state:
        description: V(absent) unmounts it and removes its unit, if this module wrote the unit.
        type: str
        choices: [mounted, absent]
        default: mounted
  user:
    description: The user who reads the mounts. Empty reads as root, who usually has fewer rights on NFS servers.
    type: str
    default: ""
  unmount_ok:
    description:
      - Consent to unmount entries with O(mounts[].state=absent), and mounts whose source or options have changed.
      - Without it a removal and another source are refused. Other options are written for the next boot, with a warning
        in every run until then.
    type: bool
    default: false
  timeout_seconds:
    description: Timeout for a mount, and for an answer of the storage, 5 to 600 s.
    type: int
    default: 30
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Storage that is not mounted yet is not read.
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
    - The content of each path, for the filter P(baremetal.gpu_cluster.shared_storage_differences#filter), with C(path),
      C(source), C(root) (inode number and time of change in ns), C(entries) (name, inode number and time of change in
      ns of up to 64) and C(writable).
  returned: success
  type: list
  elements: dict
problems:
  description: Refused and failed entries, each with C(variable), C(value), C(rule) and C(fix).
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
