#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run an all_reduce over Open MPI from one node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: collective_mpi
short_description: Run an all_reduce over Open MPI from one node
version_added: "0.1.0"
description:
  - Starts C(mpirun) on this node as a job would, with one rank on each of O(nodes), and waits for its end. Open MPI 4.1
    and 5 are known.
  - The ranks call the library that is there with ctypes. They need Python and nothing else, and no file on any node,
    because their program is an argument of C(mpirun). Every element of every sum is compared with its exact value.
  - Networks, ports and transport are those of Open MPI's own files on each node. No option of this module sets them.
  - At O(deadline_seconds) mpirun gets C(SIGTERM), upon which it ends its job on all nodes, and C(SIGKILL) after 3
    seconds. A rank ends itself after the same time. What can be left on other nodes is a daemon that lost its
    connection. It is ended by this module with O(clear=true) there, and by itself within about two minutes.
  - When no rank came up, ssh is asked about every node, which takes up to 10 seconds more.
  - A job that fails is an answer, not a failed task. The verdict is made by
    M(baremetal.gpu_cluster.collective_diagnose).
extends_documentation_fragment:
  - baremetal.gpu_cluster.collective
options:
  nodes:
    description: The nodes in rank order, this one first. Needed unless O(clear=true).
    type: list
    elements: dict
    default: []
    suboptions:
      host:
        description: Name of the node.
        type: str
        required: true
      address:
        description: Its address, as jobs of the launcher name it.
        type: str
        required: true
  prefix:
    description: The folder above C(bin/mpirun), the same on all nodes.
    type: path
    default: /usr/lib64/openmpi
  python:
    description: Python interpreter of the ranks, the same on all nodes; 3.9 or newer, no package is needed.
    type: path
    default: /usr/bin/python3
  user:
    description: User who runs the job, empty for the user of this module. It gets the variables of C(/etc/environment)
      and C(/etc/gpu-cluster/environment), and needs to log in to the other nodes over ssh without a password.
    type: str
    default: ""
  ssh_port:
    description: Port of sshd on the nodes, for the question why a node could not be reached. mpirun has its own files
      for that.
    type: int
    default: 22
  deadline_seconds:
    description: The job is ended after this time, 1 to 7200 seconds.
    type: int
    default: 20
  clear:
    description: Run nothing, and end what a job of this O(run_id) has left on this node.
    type: bool
    default: false
author:
  - baremetal.gpu_cluster contributors (@baremetal)
"""

EXAMPLES = r"""
- name: Run an all_reduce over Open MPI
  baremetal.gpu_cluster.collective_mpi:
    run_id: "{{ run_id }}"
    nodes:
      - host: gpu01
        address: 192.0.2.11
      - host: gpu02
        address: 192.0.2.12
    user: train
  register: mpi

- name: End what it has left on another node
  baremetal.gpu_cluster.collective_mpi:
    run_id: "{{ run_id }}"
    clear: true
  when: mpi.unclean
"""

RETURN = r"""
state:
  description: V(finished) when mpirun ended by itself, V(deadline) when it was ended, V(failed) when it could not be
    started.
  returned: unless O(clear=true)
  type: str
  sample: finished
error:
  description: Why it could not be started.
  returned: when RV(state) is V(failed)
  type: str
code:
  description: Exit code of mpirun, negative for a signal.
  returned: when RV(state) is not V(failed)
  type: int
  sample: 0
seconds:
  description: How long mpirun ran.
  returned: when RV(state) is not V(failed)
  type: float
  sample: 2.4
events:
  description:
    - What the ranks wrote, each with C(event), C(rank) and C(at), seconds since the rank began.
    - "C(start) (with C(host)), C(up) (MPI_Init is through, with C(version) of the library, C(pml), and C(number) and
      C(size), the rank's own idea of the world), C(stuck) (half of the time is over; C(calling) are addresses and
      ports for which its connections wait), C(wrong) (a wrong sum), C(done) (with C(sizes)), C(error)."
  returned: when RV(state) is not V(failed)
  type: list
  elements: dict
text:
  description: Everything else that mpirun and its ranks wrote.
  returned: when RV(state) is not V(failed)
  type: str
ssh:
  description: What ssh said about each of the other nodes, where no rank came up. C(host), C(code) of ssh (127
    without Open MPI's daemon, 126 with one that cannot run), C(text) of its standard error, and C(calling), addresses
    and ports for which connections of the user wait there.
  returned: when RV(state) is not V(failed)
  type: list
  elements: dict
  sample: []
ended:
  description: Names of the programs that were left over on this node and had to be ended.
  returned: unless RV(state) is V(failed)
  type: list
  elements: str
  sample: []
unclean:
  description: Whether something may be left on the other nodes.
  returned: unless O(clear=true)
  type: bool
  sample: false
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import mpi_step


def main() -> None:
    module = AnsibleModule(argument_spec=mpi_step.SPEC)
    result = mpi_step.run_step(module.run_command, module.params)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
