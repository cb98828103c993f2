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
  - Labels the ports of sshd, sets booleans, labels files, and sets the mode now and for the next boot. All
    customisations of the policy are one transaction of C(semanage import).
  - Works with any policy.
  - Records its customisations and the former values in C(/var/lib/gpu-cluster/selinux.json). Customisations that are no
    longer wanted are reverted. Customisations of others are not changed, unless they contradict the options.
  - A host without SELinux is reported with the steps to enable it, and not changed. See O(enable_ok).
  - Before a permissive host is switched to enforcing, the labels of files for logins are checked. With
    O(confirm_seconds) a timer on the host makes it permissive again, unless the controller reconnects with O(confirm).
options:
  state:
    description: V(enforcing) or V(permissive). SELinux is never disabled.
    type: str
    default: enforcing
  ssh_ports:
    description: TCP ports of sshd, now or in the future, 1 to 65535. Every policy has a label for port 22.
    type: list
    elements: int
    default: [22]
  booleans:
    description: Booleans of the policy by name, each V(true) or V(false).
    type: dict
    default: {}
  fcontexts:
    description: Labels of files and of folders with their content.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Path of the file or folder, not a regular expression.
        type: path
        required: true
      type:
        description: The SELinux type of the path and its content. Set either this or O(fcontexts[].like).
        type: str
      like:
        description: A folder that the policy knows. The content is labelled as if it were in that folder.
        type: path
  users:
    description:
      - Users who log in by key. Every run corrects wrong labels of the C(.ssh) folders in their homes.
      - A home that the policy does not know is labelled as one below C(/home), with the folders above it.
    type: list
    elements: str
    default: []
  torch_prefix:
    description:
      - Path of the Python environment of jobs. The policy labels programs and libraries below C(/opt) and C(/usr); with
        another path this module gives them the same labels. Empty for none.
    type: str
    default: ""
  disabled_host:
    description: Whether a host without SELinux is a warning (V(report)) or a failure (V(fail)).
    type: str
    choices: [report, fail]
    default: report
  enable_ok:
    description:
      - Prepares a host without SELinux for its next boot. It sets permissive mode in C(/etc/selinux/config), requests a
        relabelling of all files, and removes C(selinux=0) from the kernel's arguments. Never reboots.
    type: bool
    default: false
  confirm_seconds:
    description:
      - Seconds for the controller to reconnect after a permissive host is switched to enforcing, 15 to 600. After that
        the host is permissive again. V(0) does not wait for a confirmation.
    type: int
    default: 0
  confirm:
    description: Confirms the switch to enforcing. Call it over a new connection, with the same other options as the
      previous call.
    type: bool
    default: false
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Files that a new rule would relabel are listed by their rule only.
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
  description: The mode after the next boot, from the configuration file.
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
  description: The steps to enable SELinux, in this order.
  returned: when it is disabled
  type: list
  elements: str
reboot_required:
  description: Whether the host is prepared and needs a reboot.
  returned: success
  type: bool
  sample: false
confirm_needed:
  description: Whether the host becomes permissive again without O(confirm) within O(confirm_seconds).
  returned: success
  type: bool
  sample: false
customised:
  description: Customisations that were made or reverted, one phrase each.
  returned: success
  type: list
  elements: str
  sample: [port tcp 2222 ssh_port_t]
relabelled:
  description: Relabelled paths; in check mode with new rules only the known ones.
  returned: success
  type: list
  elements: str
  sample: [/home/train/.ssh/authorized_keys]
notes:
  description: Remarks, one sentence each. They are also warnings.
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
