#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module locked_packages: which packages a group of module pinned_packages has locked."""

from __future__ import annotations

DOCUMENTATION = r"""
module: locked_packages
short_description: List the packages that a group of pinned_packages has locked
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Reads the list of dnf's versionlock plugin. It distinguishes packages that M(baremetal.gpu_cluster.pinned_packages)
    has installed from other packages.
options:
  group:
    description: The group, as in M(baremetal.gpu_cluster.pinned_packages).
    type: str
    required: true
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Changes nothing in either mode.
  diff_mode:
    support: none
  platform:
    platforms: posix
    details: EL 9 and 10 with dnf.
"""

EXAMPLES = r"""
- name: See which toolkits are ours
  baremetal.gpu_cluster.locked_packages:
    group: cuda_toolkit
"""

RETURN = r"""
packages:
  description: Their names, in the order of the list.
  returned: success
  type: list
  elements: str
  sample: [cuda-toolkit-12-8, cuda-toolkit-13-0]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._pinned_packages import locks


def names(text: str, group: str) -> list[str]:
    """The packages in the group's block, whose lines are NAME-EPOCH:VERSION-RELEASE.*"""
    return [line.rsplit("-", 2)[0] for line in locks.read(text, group).ours if not line.startswith("#")]


def main() -> None:
    """Read and answer."""
    module = AnsibleModule(argument_spec={"group": {"type": "str", "required": True}}, supports_check_mode=True)
    place, _is_on = locks.place_and_switch(read_text(locks.CONFIGURATION))
    module.exit_json(changed=False, packages=names(read_text(place), str(module.params["group"])))


if __name__ == "__main__":
    main()
