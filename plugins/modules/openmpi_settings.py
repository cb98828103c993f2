#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module openmpi_settings: the parameter files that an installed Open MPI really reads, verified by asking it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openmpi_settings
short_description: Set network, ports, transport and launcher of an installed Open MPI 4.1 or 5, and verify them
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Asks the installation which files it reads, and writes a block of parameters at the end of each. Version 4.1 has one
    file. Version 5 has a second one for its launcher, PRRTE, which knows nothing of the first.
  - Networks are written in CIDR form, so that members may name their cards differently.
  - The program that mpirun starts on other members gets an absolute path, so it is found without modules and profiles.
  - Afterwards the installation is asked for the values in force. When one differs, all files are put back, and the
    message says which value it is and what sets it.
  - Lines of others in these files stay. Those that the block outvotes are named. Those with which Open MPI could run
    no job, or would leave the port plan, are refused before anything changes.
  - What libraries read from the environment of jobs is a block in C(/etc/environment), which PAM gives to every
    session.
options:
  prefix:
    description: The folder above C(bin/mpirun).
    type: path
    required: true
  networks:
    description:
      - Networks in CIDR form for the data of MPI, and for its launcher. Host bits are ignored. The node must have an
        address in each. Empty leaves the choice to Open MPI.
      - Open MPI understands no IPv6 network. The node's interface in it is written instead.
      - When all are of one family, the other one is turned off for data.
    type: list
    elements: str
    default: []
  ports:
    description:
      - C(btl_tcp_port_min_v4) and C(btl_tcp_port_min_v6) are the first of the data ports, 1024 to 65535.
        C(btl_tcp_port_range_v4) and C(btl_tcp_port_range_v6) say how many there are.
      - What is for IPv6 is left out where the build has no IPv6.
    type: dict
    required: true
  ephemeral:
    description:
      - C(first) and C(last) of the ports that the plan has for the daemons. They come from the kernel, whose
        C(net.ipv4.ip_local_port_range) must lie inside. Empty checks nothing.
    type: dict
    default: {}
  ssh_port:
    description: The port of sshd on the members, 1 to 65535. With 22, ssh is called without one.
    type: int
    default: 22
  transport:
    description:
      - With V(tcp), data goes over TCP (C(pml ob1) with C(btl self,vader,tcp) or C(self,sm,tcp)).
      - With V(ucx), data goes over UCX (C(pml ucx)), which takes RDMA where there is any.
    type: str
    choices: [tcp, ucx]
    default: tcp
  ucx_devices:
    description:
      - Devices that UCX may use, as C(mlx5_0:1) or the name of an interface. Empty takes the interfaces in
        O(networks), and the RDMA devices of their cards.
    type: list
    elements: str
    default: []
  omp_num_threads:
    description: C(OMP_NUM_THREADS) of every session; 0 sets nothing.
    type: int
    default: 0
  openblas_num_threads:
    description: C(OPENBLAS_NUM_THREADS) of every session; 0 sets nothing.
    type: int
    default: 0
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details:
      - Before a change that check mode only announces, nothing can be verified. What the node lacks then is a warning,
        and so is an Open MPI that is not there yet.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux with iproute2.
"""

EXAMPLES = r"""
- name: Keep Open MPI on the data network and inside the port plan
  baremetal.gpu_cluster.openmpi_settings:
    prefix: /usr/lib64/openmpi
    networks: [192.0.2.0/24]
    ports:
      btl_tcp_port_min_v4: 61000
      btl_tcp_port_range_v4: 4000
      btl_tcp_port_min_v6: 61000
      btl_tcp_port_range_v6: 4000
    ssh_port: 2222
"""

RETURN = r"""
version:
  description: The version of Open MPI; empty in check mode when it is not installed yet.
  returned: success
  type: str
  sample: 4.1.4
files:
  description: The files with our values, each with its names and values.
  returned: success
  type: dict
  sample:
    /etc/openmpi-x86_64/openmpi-mca-params.conf:
      pml: ob1
      btl: self,vader,tcp
      btl_tcp_if_include: 192.0.2.0/24
overridden:
  description: Lines of others in these files that have no effect any more, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
problems:
  description: Why nothing was changed, each with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi.settle import settle

ARGUMENTS = {
    "prefix": {"type": "path", "required": True},
    "networks": {"type": "list", "elements": "str", "default": []},
    "ports": {"type": "dict", "required": True},
    "ephemeral": {"type": "dict", "default": {}},
    "ssh_port": {"type": "int", "default": 22},
    "transport": {"type": "str", "choices": ["tcp", "ucx"], "default": "tcp"},
    "ucx_devices": {"type": "list", "elements": "str", "default": []},
    "omp_num_threads": {"type": "int", "default": 0},
    "openblas_num_threads": {"type": "int", "default": 0},
}


def main() -> None:
    """Check, ask, apply."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    module.exit_json(**settle(module))


if __name__ == "__main__":
    main()
