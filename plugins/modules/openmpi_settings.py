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
  - Asks the installation for its parameter files, and writes a block of parameters at the end of each. Version 4.1 has
    one file. Version 5 has a second file for its launcher, PRRTE, which does not read the first.
  - Networks are written in CIDR form, so the names of the cards may differ between members.
  - The daemon that mpirun starts on other members gets an absolute path, so it is found without modules and profiles.
  - Then reads the values in force from the installation. If a value differs, all files are restored, and the message
    names the value and its source.
  - Other lines in these files stay. Lines that the block overrides are listed. Lines that would break all jobs, or
    would use ports outside of the port plan, are refused before anything changes.
  - Environment variables for libraries are a block in C(/etc/environment), which PAM reads for every session.
options:
  prefix:
    description: The folder above C(bin/mpirun).
    type: path
    required: true
  networks:
    description:
      - Networks in CIDR form for the data of MPI, and for its launcher. Host bits are ignored. The node must have an
        address in each. With an empty list Open MPI chooses.
      - Open MPI does not support IPv6 networks here. The node's interface in the network is written instead.
      - If all networks are of one family, the other family is disabled for data.
    type: list
    elements: str
    default: []
  ports:
    description:
      - C(btl_tcp_port_min_v4) and C(btl_tcp_port_min_v6) are the first of the data ports, 1024 to 65535.
        C(btl_tcp_port_range_v4) and C(btl_tcp_port_range_v6) are the numbers of ports.
      - The IPv6 parameters are omitted if the build has no IPv6.
    type: dict
    required: true
  ephemeral:
    description:
      - C(first) and C(last) of the port plan's range for the daemons. The daemons use the kernel's ephemeral ports, so
        C(net.ipv4.ip_local_port_range) must be inside this range. Empty checks nothing.
    type: dict
    default: {}
  ssh_port:
    description: The port of sshd on the members, 1 to 65535. With 22, ssh is called without a port.
    type: int
    default: 22
  transport:
    description:
      - With V(tcp), data goes over TCP (C(pml ob1) with C(btl self,vader,tcp) or C(self,sm,tcp)).
      - With V(ucx), data goes over UCX (C(pml ucx)), which uses RDMA if it is available.
    type: str
    choices: [tcp, ucx]
    default: tcp
  ucx_devices:
    description:
      - Devices that UCX may use, as C(mlx5_0:1) or the name of an interface. Empty selects the interfaces in
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
      - Values in force cannot be verified before the change. A missing requirement of the node, also a missing Open
        MPI, is a warning.
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
  description: The version of Open MPI; empty in check mode if it is not installed yet.
  returned: success
  type: str
  sample: 4.1.4
files:
  description: The files with the values of this module, each with its names and values.
  returned: success
  type: dict
  sample:
    /etc/openmpi-x86_64/openmpi-mca-params.conf:
      pml: ob1
      btl: self,vader,tcp
      btl_tcp_if_include: 192.0.2.0/24
overridden:
  description: Other lines in these files that no longer have an effect, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
problems:
  description: Reasons why nothing was changed, each with C(variable), C(value), C(rule) and C(fix).
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
