#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module selinux_settings: mode, port labels, booleans and file contexts of SELinux, in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: selinux_settings
short_description: Keep SELinux on, with the labels and booleans that a cluster needs
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Labels the ports of sshd, sets booleans, gives files their labels, and lets SELinux enforce, now and at the next
    boot. All customisations of the policy are one transaction of C(semanage import); nothing loops.
  - Works with any policy, whatever it is called.
  - Remembers in C(/var/lib/gpu-cluster/selinux.json) what it customised and what was there before. What is no longer
    wanted is taken back. Customisations of others are left alone, unless they contradict what is wanted.
  - A host without SELinux is reported with the steps that turn it on, and left alone. See O(enable_ok).
  - Before a permissive host enforces, the labels of what a login needs are checked. With O(confirm_seconds) a timer on
    the host makes it permissive again, unless the controller comes back over a new connection with O(confirm).
options:
  state:
    description: V(enforcing) or V(permissive). SELinux is never turned off.
    type: str
    default: enforcing
  ssh_ports:
    description: TCP ports on which sshd listens or is going to, 1 to 65535. 22 has its label in every policy.
    type: list
    elements: int
    default: [22]
  booleans:
    description: Booleans of the policy by name, each V(true) or V(false).
    type: dict
    default: {}
  fcontexts:
    description: Labels of files and folders with all that is in them.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The file or folder itself, no expression.
        type: path
        required: true
      type:
        description: The type of all that is in it. Either this or O(fcontexts[].like).
        type: str
      like:
        description: A folder that the policy knows. All is labelled as if it were there.
        type: path
  users:
    description:
      - Users who log in by key. Wrong labels of the C(.ssh) in their homes are put right on every run.
      - A home that the policy does not know is labelled as one below C(/home), with the folders above it.
    type: list
    elements: str
    default: []
  torch_prefix:
    description:
      - Path of the Python environment of jobs. Below C(/opt) and C(/usr) the policy itself labels programs and
        libraries; elsewhere they are labelled like that. Empty for none.
    type: str
    default: ""
  disabled_host:
    description: What a host without SELinux is, a warning (V(report)) or a failure (V(fail)).
    type: str
    choices: [report, fail]
    default: report
  enable_ok:
    description:
      - Prepares a host without SELinux for its next boot. It sets permissive mode in C(/etc/selinux/config), asks for a
        relabelling of all files, and takes C(selinux=0) off the kernel's arguments. Never reboots.
    type: bool
    default: false
  confirm_seconds:
    description:
      - How many seconds the controller has to come back when a permissive host begins to enforce, 15 to 600. After that
        the host is permissive again. V(0) waits for nobody.
    type: int
    default: 0
  confirm:
    description: Ends the waiting. To be called over a new connection, with everything else as in the call before.
    type: bool
    default: false
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: What would get another label through a new rule is known by its rule only.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux. Needs C(semanage) when something is to be customised.
seealso:
  - module: baremetal.gpu_cluster.selinux_denials
"""

EXAMPLES = r"""
- name: Let sshd listen on another port, and enforce
  baremetal.gpu_cluster.selinux_settings:
    ssh_ports: [22, 2222]

- name: Let sshd read keys in homes on NFS
  baremetal.gpu_cluster.selinux_settings:
    booleans:
      use_nfs_home_dirs: true

- name: Label homes and programs of the site
  baremetal.gpu_cluster.selinux_settings:
    fcontexts:
      - path: /export/home
        like: /home
      - path: /data/tools
        type: bin_t
"""

RETURN = r"""
mode:
  description:
    - The mode of the running kernel after the run, V(enforcing), V(permissive) or V(disabled). In check mode that
      before it.
  returned: success, and on failure because of a disabled host
  type: str
  sample: enforcing
configured:
  description: The mode after the next boot, as the file says.
  returned: success, and on failure because of a disabled host
  type: str
  sample: enforcing
causes:
  description: Why SELinux is disabled.
  returned: when it is
  type: list
  elements: str
  sample: [/etc/selinux/config says SELINUX=disabled]
steps:
  description: What turns it on, in this order.
  returned: when it is disabled
  type: list
  elements: str
reboot_required:
  description: Whether the host is prepared and waits for a reboot.
  returned: success
  type: bool
  sample: false
confirm_needed:
  description: Whether the host becomes permissive again unless O(confirm) comes within O(confirm_seconds).
  returned: success
  type: bool
  sample: false
customised:
  description: What was customised or taken back, one phrase each.
  returned: success
  type: list
  elements: str
  sample: [port tcp 2222 ssh_port_t]
relabelled:
  description: Paths that got other labels; with new rules in check mode those that it knows of.
  returned: success
  type: list
  elements: str
  sample: [/home/train/.ssh/authorized_keys]
notes:
  description: What a person should know, one sentence each. They are warnings too.
  returned: success
  type: list
  elements: str
  sample: []
missing_packages:
  description: The packages to install first.
  returned: on failure because of them
  type: list
  elements: str
  sample: [policycoreutils-python-utils]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import mode, prepare, spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.host import Host
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.settle import settle
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux.switch import wait_for_another


def main() -> None:
    """Compare, refuse or settle."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "default": spec.ENFORCING},
            "ssh_ports": {"type": "list", "elements": "int", "default": [22]},
            "booleans": {"type": "dict", "default": {}},
            "fcontexts": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "path", "required": True},
                    "type": {"type": "str"},
                    "like": {"type": "path"},
                },
            },
            "users": {"type": "list", "elements": "str", "default": []},
            "torch_prefix": {"type": "str", "default": ""},
            "disabled_host": {"type": "str", "choices": ["report", "fail"], "default": "report"},
            "enable_ok": {"type": "bool", "default": False},
            "confirm_seconds": {"type": "int", "default": 0},
            "confirm": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    host = Host(module)
    wrong = spec.problems(module.params)
    if wrong:
        host.refuse(wrong)
    waited = wait_for_another(host)
    facts = host.facts()
    result = prepare.disabled(host, facts) if facts.running == mode.DISABLED else settle(host, facts)
    for note in [*filter(None, [waited]), *result["notes"]]:
        module.warn(note)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
