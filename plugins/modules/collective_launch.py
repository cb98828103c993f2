#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the worker of a collective check on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: collective_launch
short_description: Start the worker of a collective check on a node
version_added: "0.1.0"
description:
  - First step of a coordinated all_reduce over many nodes. It starts a detached worker as a transient systemd unit
    and returns
    at once, so C(forks) may be smaller than the number of nodes.
  - The worker listens on sample ports for M(baremetal.gpu_cluster.collective_probe), starts the rank processes,
    which wait for
    M(baremetal.gpu_cluster.collective_go), and ends by itself after O(lifetime_seconds), whatever happens to the
      controller.
  - A node on which the worker can't start is an answer, not a failed task; RV(state) is V(failed) and RV(error)
    says why. The verdict is
    made by M(baremetal.gpu_cluster.collective_diagnose).
  - Run directories that an earlier run left behind are removed when their unit has ended.
extends_documentation_fragment:
  - baremetal.gpu_cluster.collective
options:
  nonce:
    description: Secret of this run, 32 hexadecimal digits. A port that answers without knowing it belongs to
      something else.
    type: str
    required: true
  address:
    description: Address of this node on the network under test, without prefix length.
    type: str
    required: true
  interface:
    description: Interface that holds O(address). Exported to the ranks as C(GLOO_SOCKET_IFNAME).
    type: str
    required: true
  torch_python:
    description: Python interpreter of the training environment.
    type: path
    required: true
  user:
    description:
      - User who runs the ranks, empty for root. The ranks get this user's rights and the limits that PAM gives to a
        session of this user, as a job has them; where it opens none, and those of root, the limits of a service.
      - Root runs only what nobody else can change. Where O(torch_python), a part of its path or its folder of packages
        belongs to another user or can be written by others, RV(state) is V(failed) and RV(error) names it.
      - In their environment is what C(/etc/environment) and C(/etc/gpu-cluster/environment) of the node give to jobs.
    type: str
    default: ""
  ranks_per_node:
    description: Number of ranks on this node, 1 to 64. The same on all nodes.
    type: int
    default: 1
  rendezvous_first:
    description: First port of the range from which the rendezvous port is taken.
    type: int
    default: 29500
  rendezvous_last:
    description: Last port of that range.
    type: int
    default: 29599
  samples:
    description: Number of ports, 1 to 32, spread over each range of the port plan, on which the worker listens for
      probes. The ranges are that of the rendezvous, the kernel's ephemeral range, and O(ranges).
    type: int
    default: 4
  ranges:
    description: Further ranges of the port plan, such as that of Open MPI. The kernel's ephemeral range and the range
      of the rendezvous are not listed here.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: What the range is called in the results.
        type: str
        required: true
      first:
        description: Its first port, 1 to 65535.
        type: int
        required: true
      last:
        description: Its last port, from O(ranges[].first) to 65535.
        type: int
        required: true
  rails:
    description: Further addresses of this node, on which the worker listens as well. An address that the node does not
      have is told in RV(rails), and is no reason not to start.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the rail, the same on all nodes.
        type: str
        required: true
      address:
        description: Address of this node on it, without prefix length.
        type: str
        required: true
  openmpi_prefix:
    description: The folder above C(bin/mpirun) of the Open MPI that M(baremetal.gpu_cluster.collective_mpi) may run
      later. It is only looked whether it is there. Empty for none.
    type: path
    default: ""
  lifetime_seconds:
    description: The worker ends after this time, 10 to 7200 seconds, if nobody has ended it before.
    type: int
    default: 300
  wait_seconds:
    description: How long to wait for the worker's listeners, 1 to 60 seconds.
    type: int
    default: 15
seealso:
  - module: baremetal.gpu_cluster.collective_probe
  - module: baremetal.gpu_cluster.collective_go
  - module: baremetal.gpu_cluster.collective_collect
  - module: baremetal.gpu_cluster.collective_diagnose
author:
  - baremetal.gpu_cluster contributors (@baremetal)
"""

EXAMPLES = r"""
- name: Start the worker
  baremetal.gpu_cluster.collective_launch:
    run_id: "{{ run_id }}"
    nonce: "{{ nonce }}"
    address: 192.0.2.11
    interface: ens1f0
    torch_python: /opt/gpu-cluster/torch/bin/python
    user: train
    ranges:
      - name: mpi
        first: 61000
        last: 64999
  register: launch
"""

RETURN = r"""
state:
  description: V(waiting) when the worker listens, V(failed) when it could not start.
  returned: always
  type: str
  sample: waiting
error:
  description: Why the worker could not start.
  returned: when RV(state) is V(failed)
  type: str
hostname:
  description: The node's own name.
  returned: when RV(state) is V(waiting)
  type: str
  sample: gpu01
address:
  description: As given.
  returned: always
  type: str
  sample: 192.0.2.11
ports:
  description: Ports on which the worker listens, each with the name of its range.
  returned: when RV(state) is V(waiting)
  type: list
  elements: dict
  sample:
    - range: rendezvous
      port: 29500
    - range: ephemeral
      port: 32768
rails:
  description: The further addresses, each with C(name), C(address), C(ports) as RV(ports), and C(error), which says why
    it has none, or is empty.
  returned: when RV(state) is V(waiting)
  type: list
  elements: dict
  sample: []
taken:
  description:
    - Ports of the plan on which the worker meant to listen, but something else on this node holds them; it listens on
      one close by.
    - A job that begins its rendezvous there would meet that instead of its own ranks.
  returned: when RV(state) is V(waiting)
  type: list
  elements: dict
  sample: []
ranges:
  description: All ranges of this node's port plan, each with C(name), C(first) and C(last).
  returned: always
  type: list
  elements: dict
  sample:
    - name: rendezvous
      first: 29500
      last: 29599
    - name: ephemeral
      first: 32768
      last: 60999
    - name: mpi
      first: 61000
      last: 64999
kernel:
  description: Release of the running kernel.
  returned: always
  type: str
  sample: 5.14.0-620.el9.x86_64
ephemeral_range:
  description: First and last port of C(net.ipv4.ip_local_port_range), from which Gloo and NCCL take their ports.
  returned: always
  type: list
  elements: int
  sample: [32768, 60999]
openmpi:
  description:
    - What this node has for a job of Open MPI. C(prefix) and C(python) are O(openmpi_prefix) and O(torch_python),
      C(mpirun) says whether C(bin/mpirun) is an executable file there, and C(key) whether O(user) has a key of the role
      ssh_mesh.
  returned: always
  type: dict
  sample:
    prefix: /usr/lib64/openmpi
    python: /opt/gpu-cluster/torch/bin/python
    mpirun: true
    key: true
other_runs:
  description: Runs whose worker is still active on this node.
  returned: always
  type: list
  elements: str
  sample: []
stopped_runs:
  description: Runs that should have ended, and that were ended now.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import begin


def main() -> None:
    module = AnsibleModule(argument_spec=begin.SPEC)
    result = begin.run_step(module.run_command, module.params)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
