# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter port_plan: the port plan of the cluster, merged and checked. The rules live in module_utils/_port_plan.py."""

from __future__ import annotations

from typing import Any, Callable

from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import PortPlanError, make_port_plan

DOCUMENTATION = r"""
name: port_plan
short_description: Merge and check the port plan of the cluster
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Merges the overrides into the default port plan and refuses a plan that contradicts itself, with all reasons.
  - Refused are wrong types, ports outside of 1 to 65535, ranges whose first port is above the last one, ranges that
    overlap, fixed ports inside the ephemeral range that are not reserved, and ranges too small for the ranks.
positional: _input
options:
  _input:
    description:
      - The overrides, usually C(gpu_cluster_ports). An empty dictionary gives the default plan.
      - C(ssh) is the port of sshd (22), or a list of ports.
      - C(rendezvous) (C(29400-29599)), C(ephemeral) (C(32768-60999), the kernel's C(ip_local_port_range)) and C(mpi)
        (C(61000-64999), Open MPI's data ports) are ranges written as C(FIRST-LAST), all of them tcp.
      - C(extra_ports) is a list of further ports and ranges such as C(23456), C(12345-12355) or C(4791/udp), or the
        same as one string with commas.
      - C(reserved) is a list of ports and ranges inside C(ephemeral) that the kernel gives to nobody
        (C(ip_local_reserved_ports)). A fixed port inside C(ephemeral) must be reserved.
      - C(ranks_per_node) (8) and C(process_groups) (32, of one rank) say how large C(ephemeral) must be. It needs
        2 x 4 x C(ranks_per_node) x C(process_groups) ports beside the reserved ones, and never fewer than 1024. Each
        rank holds up to 4 listening sockets in each group (NCCL's bootstrap), and the kernel keeps the other half of
        the range for outgoing connections.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the port plan of a cluster whose scripts use ports of their own
  ansible.builtin.debug:
    msg: "{{ {'extra_ports': ['12345-12355', 23456, 10086]} | baremetal.gpu_cluster.port_plan }}"
"""

RETURN = r"""
_value:
  description:
    - The plan. C(ssh) is a list of ports; C(rendezvous), C(ephemeral) and C(mpi) are dictionaries with C(first) and
      C(last); C(extra_ports) is a list of dictionaries with C(first), C(last) and C(protocol).
    - C(reserved) is a list of ranges such as C(50000-50010), merged and in order.
    - C(firewall_ports) lists what the peers must reach, in the form C(29400-29599/tcp).
    - C(openmpi) holds Open MPI's parameters for its data ports, for IPv4 and IPv6; the ranges there are counts.
  type: dict
"""


def port_plan(overrides: Any) -> dict[str, Any]:
    """Return the checked plan as a dictionary."""
    try:
        return make_port_plan(overrides).as_dict()
    except PortPlanError as error:
        raise AnsibleFilterError(f"The port plan contradicts itself:\n{error}") from error


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filter."""
        return {"port_plan": port_plan}
