#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module nvidia_kernel_modules: the driver's module for the kernel that boots, and nouveau kept out."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_kernel_modules
short_description: Prepare the next boot for NVIDIA's kernel modules instead of nouveau
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Checks that NVIDIA's module exists for the kernel of the next boot, in the version of the installed libraries and of
    the wanted kind. The scriptlet of its package succeeds even if the DKMS build has failed, so an installed package is
    no proof. If the module is missing, C(dkms install) runs once; if that fails, the message has the path of the build
    log and the lines with the error.
  - Disables nouveau with C(/etc/modprobe.d/gpu-cluster-nouveau.conf), C(/etc/dracut.conf.d/gpu-cluster-nouveau.conf),
    kernel arguments of all boot entries, and a new initramfs if the initramfs of that kernel contains nouveau. Boot
    settings are changed only if the module exists.
  - Returns the reasons for a reboot, the manual steps with Secure Boot, and the processes that use a GPU. The module
    does not reboot and stops no process.
  - Installs no packages; see M(baremetal.gpu_cluster.pinned_packages).
options:
  state:
    description:
      - V(present) runs the steps above.
      - V(absent) reverts the settings of this module, and removes leftovers of removed packages from DKMS. Remove the
        packages first.
    type: str
    choices: [present, absent]
    default: present
  version:
    description:
      - The version that the installed driver must have, as a branch such as V(580), or with more parts.
      - Required with O(state=present).
    type: str
    default: ""
  kind:
    description: Kind of the kernel modules. The open modules have the licence C(Dual MIT/GPL) and need Turing or newer.
    type: str
    choices: [open, proprietary]
    default: open
  build_timeout_seconds:
    description: Timeout for C(dkms install), 60 to 14400 s.
    type: int
    default: 1800
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: If the driver is not installed yet, a missing module is not a failure.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: EL 9 and 10. Without C(grubby), as in a container, no kernel arguments are set.
seealso:
  - module: baremetal.gpu_cluster.gpu_node_facts
"""

EXAMPLES = r"""
- name: Have the driver ready for the next boot
  baremetal.gpu_cluster.nvidia_kernel_modules:
    version: "580"
  register: driver

- name: Look at a host without changing it, and see who holds a GPU
  baremetal.gpu_cluster.nvidia_kernel_modules:
    version: "580.95.05"
  check_mode: true
"""

RETURN = r"""
actions:
  description: Actions that were done, or would be in check mode, as sentences.
  returned: success
  type: list
  elements: str
  sample: [Build and install the module nvidia 580.95.05 for the kernel 5.14.0-503.el9.x86_64]
kernel:
  description: The kernel of the next boot; the running kernel if no kernel is installed.
  returned: success
  type: str
  sample: 5.14.0-503.el9.x86_64
version:
  description: Version of the installed libraries. Empty if there are none.
  returned: success
  type: str
  sample: 580.95.05
module:
  description: C(version) and C(kind) of the module for the kernel of the next boot. Empty if there is none.
  returned: success
  type: dict
  sample:
    version: 580.95.05
    kind: open
reboot_reasons:
  description: Reason for a reboot. Empty if no reboot is needed.
  returned: success
  type: list
  elements: str
  sample: [nouveau is loaded, the driver 580.95.05 is installed and not loaded]
by_hand:
  description: Manual steps at the console. Empty without Secure Boot, or if the key is enrolled.
  returned: success
  type: list
  elements: str
  sample: []
gpu_processes:
  description: Processes that have a file below C(/dev/nvidia*) open.
  returned: success
  type: list
  elements: dict
  contains:
    pid:
      description: Its number.
      returned: always
      type: int
    command:
      description: Its command, cut at 120 characters.
      returned: always
      type: str
    user:
      description: Its user.
      returned: always
      type: str
    device:
      description: The first device that it holds.
      returned: always
      type: str
    unit:
      description: The systemd service of the process; empty if it belongs to no service.
      returned: always
      type: str
    is_service:
      description: Whether it is a service of the driver or of DCGM, which a reboot may stop.
      returned: always
      type: bool
  sample: []
busy:
  description: The users who would lose work in a reboot, in one sentence. Empty if there are none.
  returned: success
  type: str
  sample: pid 4711 (python train.py) of train holds /dev/nvidia0
"""

import re

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.driver import OPEN, PROPRIETARY
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.gather import Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nvidia_driver.run import (
    ABSENT,
    PRESENT,
    DriverError,
    Spec,
    outcome,
)


def main() -> None:
    """Look, and change what is missing."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": [PRESENT, ABSENT], "default": PRESENT},
            "version": {"type": "str", "default": ""},
            "kind": {"type": "str", "choices": [OPEN, PROPRIETARY], "default": OPEN},
            "build_timeout_seconds": {"type": "int", "default": 1800},
        },
        supports_check_mode=True,
    )
    params = module.params
    if params["state"] == PRESENT and not re.fullmatch(r"\d+(\.\d+)*", params["version"]):
        module.fail_json(msg=f"version = {params['version']!r}: it is no version. Fix: say a branch such as '580'.")
    if not 60 <= params["build_timeout_seconds"] <= 14400:
        seconds = params["build_timeout_seconds"]
        module.fail_json(msg=f"build_timeout_seconds = {seconds}: it is not within 60 to 14400. Fix: say 1800.")
    spec = Spec(params["state"], params["version"], params["kind"], params["build_timeout_seconds"])
    try:
        result = outcome(module, spec, module.check_mode, Node())
    except (DriverError, OSError) as error:
        module.fail_json(msg=f"{error}.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
