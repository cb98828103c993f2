#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hand the ranks of a node their job."""

from __future__ import annotations

DOCUMENTATION = r"""
module: collective_go
short_description: Hand the ranks of a node their job
version_added: "0.1.0"
description:
  - Third step of a coordinated all_reduce. It tells the waiting worker which ranks it has, how large the world is
    and where the rendezvous is,
    and returns at once.
  - The world holds the nodes that really started and reach each other, so a lost node can't make the others wait.
extends_documentation_fragment:
  - baremetal.gpu_cluster.collective
options:
  ranks:
    description: The ranks of this node, as many as M(baremetal.gpu_cluster.collective_launch) was told to start.
    type: list
    elements: int
    required: true
  world_size:
    description: Number of ranks on all nodes, 2 to 4096.
    type: int
    required: true
  master_address:
    description: Address of the node that has rank 0.
    type: str
    required: true
  master_port:
    description: Rendezvous port that the worker of rank 0 reported.
    type: int
    required: true
  backend:
    description: Backend of C(torch.distributed).
    type: str
    choices: [gloo, nccl]
    default: gloo
  sizes_bytes:
    description: Buffer sizes, each at least 4 bytes, of which a rank holds one buffer. Elements are float32.
    type: list
    elements: int
    default: [4096, 1048576, 16777216]
  warmup:
    description: Iterations of each size that are checked but not timed, 0 to 1000.
    type: int
    default: 5
  iterations:
    description: Timed and checked iterations of each size, 1 to 10000.
    type: int
    default: 20
  max_iterations:
    description: More iterations than O(iterations) are timed until the 95 % confidence interval of the median is
      narrower than 2 %, at most this number of them, 0 to 10000. With less than O(iterations) there are no more.
    type: int
    default: 0
  size_seconds:
    description: No more iterations are added to a size after this time, 0 to 3600 seconds. When its first iteration
      of the warm-up shows that O(iterations) take longer, fewer are timed, at least 6.
    type: float
    default: 2.0
  plateau:
    description: Leave out larger sizes once a size of at least 1 MiB gains less than 5 % bandwidth over the one before.
    type: bool
    default: false
  fit_deadline:
    description: Leave out a size, and those after it, that is foretold to take longer than half of the time until
      O(deadline_seconds), once one of at least 1 MiB was measured.
    type: bool
    default: false
  join_seconds:
    description: How long the ranks wait for each other at the rendezvous. Must cover the time between the first and
      the last node's go.
    type: int
    default: 30
  timeout_seconds:
    description: Timeout of one collective operation. Gloo waits five times as long while it connects.
    type: int
    default: 10
  deadline_seconds:
    description: The worker kills its ranks after this time, whatever they do.
    type: int
    default: 60
author:
  - baremetal.gpu_cluster contributors (@baremetal)
"""

EXAMPLES = r"""
- name: Start rank 0 of 2
  baremetal.gpu_cluster.collective_go:
    run_id: "{{ run_id }}"
    ranks: [0]
    world_size: 2
    master_address: 192.0.2.11
    master_port: 29500
"""

RETURN = r"""
started:
  description: Whether the job was handed over.
  returned: always
  type: bool
  sample: true
error:
  description: Why it was not.
  returned: when RV(started) is V(false)
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import steps


def main() -> None:
    module = AnsibleModule(argument_spec=steps.GO)
    result = steps.run_step("go", module.run_command, module.params)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
