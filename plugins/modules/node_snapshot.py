#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module node_snapshot: what a node is made of, for a comparison with others. Reads only."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_snapshot
short_description: Read the state in which the nodes of a cluster should agree
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Reads in one call the GPU stack, all RPM packages, the Python packages of the training environment, the running
    values of the parameters of role kernel_tuning, and the units that start at boot. Changes nothing.
  - M(baremetal.gpu_cluster.node_differences) compares the results of several nodes.
  - Calls C(rpm), C(systemctl) and the commands of M(baremetal.gpu_cluster.gpu_node_facts), each with a timeout.
options:
  torch_prefix:
    description: Path of the Python environment with PyTorch.
    type: path
    default: /opt/gpu-cluster/torch
  openmpi_prefix:
    description: The folder above C(bin/ompi_info) of Open MPI. If there is none, C(ompi_info) of the system is used.
    type: path
    default: /usr/lib64/openmpi
  interface:
    description: The network card of the data network. Its driver, firmware, MTU and speed are read. Empty reads none.
    type: str
    default: ""
  members:
    description:
      - The members, as P(baremetal.gpu_cluster.cluster_members#filter) returns them. The hosts file and the firewall of
        this node must have their addresses. C(name), C(fabric_address) and C(addresses) are read.
    type: list
    elements: dict
    default: []
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Same behaviour as without check mode.
  diff_mode:
    support: none
    details: There is nothing to compare.
  platform:
    platforms: posix
"""

EXAMPLES = r"""
- name: Read what the nodes should agree in
  baremetal.gpu_cluster.node_snapshot:
  register: snapshot
"""

RETURN = r"""
snapshot:
  description:
    - One dictionary of texts for each of C(stack), C(package), C(Python package), C(sysctl) and C(service at boot).
    - C(unknown_addresses) lists addresses of O(members) that this node does not know, C(problems) lists failed reads.
  returned: always
  type: dict
  sample:
    stack:
      kernel: 5.14.0-503.el9.x86_64
      PyTorch: 2.13.0+cu130
    package:
      openmpi.x86_64: 2:4.1.1-7.el9
    Python package:
      torch: 2.13.0+cu130
    sysctl:
      net.core.somaxconn: "16384"
    service at boot:
      sshd.service: enabled
    unknown_addresses: []
    problems: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.gather import (
    OPENMPI_PREFIX,
    TORCH_PREFIX,
    Node,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._rebuild.snapshot import take

MEMBER_KEYS = ("name", "fabric_address", "addresses")


def main() -> None:
    """Read and answer."""
    module = AnsibleModule(
        argument_spec={
            "torch_prefix": {"type": "path", "default": TORCH_PREFIX},
            "openmpi_prefix": {"type": "path", "default": OPENMPI_PREFIX},
            "interface": {"type": "str", "default": ""},
            "members": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    given = module.params
    for number, member in enumerate(given["members"]):
        missing = [key for key in MEMBER_KEYS if key not in member]
        if missing:
            module.fail_json(msg=f"members[{number}]: expected the keys {', '.join(MEMBER_KEYS)}, {missing} missing")
    snapshot = take(Node(), given["torch_prefix"], given["interface"], given["members"], given["openmpi_prefix"])
    module.exit_json(changed=False, snapshot=snapshot)


if __name__ == "__main__":
    main()
