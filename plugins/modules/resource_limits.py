#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module resource_limits: what logins and services may use, written, put in force, and read back where it counts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: resource_limits
short_description: Set resource limits of logins and services, and read them back in an ssh session
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Writes C(90-gpu-cluster.conf) in C(/etc/security/limits.d) for logins, in C(/etc/systemd/system.conf.d) and
    C(/etc/systemd/user.conf.d) for services, and in C(/etc/systemd/logind.conf.d). Soft and hard limits are the same.
  - Reloads the configuration of systemd and logind; no service and no login is restarted. Running processes keep their
    limits.
  - Reads them back from systemd, from a service, and from a non-interactive ssh session of O(login_user), which goes
    through sshd, PAM and the user's shell. This needs no port and no key of the user.
  - Lists all invalid values at once, before anything is changed. Messages use the variables of the role kernel_tuning,
    which are the options below with that prefix.
  - If a step fails, or if a limit reads back with another value, all files are restored and loaded again.
options:
  limits:
    description: The wanted limits. An empty list removes the files.
    type: list
    elements: dict
    required: true
    suboptions:
      item:
        description:
          - Name of the limit as in limits.conf(5). One of V(core), V(memlock), V(msgqueue), V(nofile), V(nproc),
            V(sigpending), V(stack).
          - V(core), V(memlock) and V(stack) are in KiB, V(msgqueue) is in bytes.
        type: str
        required: true
      value:
        description: V(unlimited), or a whole number in the item's unit.
        type: str
        required: true
      reason:
        description: The reason, on one line. The module writes it as a comment above the entry.
        type: str
        default: ""
  keep_ipc:
    description: Whether shared memory and semaphores of a user remain after the user's last session has ended
      (C(RemoveIPC=no)).
    type: bool
    default: true
  login_user:
    description:
      - User for the ssh session that reads the limits back.
      - Empty skips the session, with a warning.
    type: str
    default: ""
  unsettable:
    description:
      - What to do about limits that this node cannot reach, because it is a container or because of C(fs.nr_open).
      - V(fail) changes nothing and lists the limits.
      - V(report) omits them from the files and lists them in warnings. In the files they could make PAM refuse logins.
    type: str
    choices: [fail, report]
    default: fail
  overridden:
    description:
      - What to do about limits that another file overrides.
      - V(fail) changes nothing and lists each with the overriding file.
      - V(report) still writes the files and lists the limits in warnings.
    type: str
    choices: [fail, report]
    default: fail
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Limits are also read back in check mode, unless something would change.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux with systemd and Linux-PAM. The session needs sshd and the ssh client.
"""

EXAMPLES = r"""
- name: Let every login and service lock memory and open many files
  baremetal.gpu_cluster.resource_limits:
    limits:
      - item: memlock
        value: unlimited
        reason: RDMA and GPUDirect register memory
      - item: nofile
        value: 524288
        reason: One connection for each peer, rank and channel
    login_user: train
"""

RETURN = r"""
session:
  description: Limits of the ssh session, by item, as soft and hard limit in the kernel's unit.
  returned: success; empty when it was not read
  type: dict
  sample:
    memlock: [unlimited, unlimited]
    nofile: ["524288", "524288"]
service:
  description: The same for a service that runs as this user, or as root if no user is set.
  returned: success; empty when it was not read
  type: dict
  sample:
    nofile: ["524288", "524288"]
unsettable:
  description: The limits that this node cannot reach, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
reported:
  description: Limits that read back differently because of other files, one sentence each, with O(overridden=report).
  returned: success
  type: list
  elements: str
  sample: []
overridden:
  description: Limits that other files override, with C(key), C(wanted), C(path) and C(effect).
  returned: success, and on failure because of them
  type: list
  elements: dict
  sample: []
problems:
  description: All refused values, with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning.limits_settle import settle


def main() -> None:
    """Compare, refuse what is wrong, write, put in force, read back."""
    module = AnsibleModule(
        argument_spec={
            "limits": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "item": {"type": "str", "required": True},
                    "value": {"type": "str", "required": True},
                    "reason": {"type": "str", "default": ""},
                },
            },
            "keep_ipc": {"type": "bool", "default": True},
            "login_user": {"type": "str", "default": ""},
            "unsettable": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
            "overridden": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
        },
        supports_check_mode=True,
    )
    module.exit_json(**settle(module))


if __name__ == "__main__":
    main()
