#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module rootless_containers: what podman needs to run as a user who is not root."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rootless_containers
short_description: Prepare a user for rootless podman
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Adds a line for the user to C(/etc/subuid) and to C(/etc/subgid), if he has none and the ranges do not come from a
    directory (C(subid) in C(/etc/nsswitch.conf)). The range overlaps no other range, and has no number of a known user.
  - Sets C(rootless_storage_path) in C(/etc/containers/storage.conf), and creates the folder. If that file does not
    exist, it is created as a copy of C(/usr/share/containers/storage.conf), because podman 5 and older read only one of
    the two.
  - Refuses a folder on a file system of the network, before anything is changed.
  - Lets the user linger, so that C(/run/user/UID) exists without a login.
options:
  user:
    description: The user who runs containers.
    type: str
    required: true
  storage_path:
    description: Folder on a local disk for images and containers. Each user has a folder in it, named after his number.
      Empty leaves them in the home.
    type: str
    default: ""
  subid_first:
    description: First number for new ranges.
    type: int
    default: 100000
  subid_count:
    description: Count of numbers in a new range.
    type: int
    default: 65536
  linger:
    description: Whether the user must linger. V(false) changes nothing.
    type: bool
    default: true
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux with systemd.
"""

EXAMPLES = r"""
- name: Prepare the user of the jobs for containers
  baremetal.gpu_cluster.rootless_containers:
    user: train
    storage_path: /var/lib/gpu-cluster-containers
"""

RETURN = r"""
storage:
  description: The folder in which podman keeps the images of the user. Empty in check mode if there is no such user.
  returned: success
  type: str
problems:
  description: Refused options, each with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._container_runtime.settle import carry_out


def main() -> None:
    """Refuse, compare, write."""
    module = AnsibleModule(
        argument_spec={
            "user": {"type": "str", "required": True},
            "storage_path": {"type": "str", "default": ""},
            "subid_first": {"type": "int", "default": 100000},
            "subid_count": {"type": "int", "default": 65536},
            "linger": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    module.exit_json(**carry_out(module))


if __name__ == "__main__":
    main()
