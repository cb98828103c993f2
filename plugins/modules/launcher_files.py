#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module launcher_files: what jobs and gpu-cluster-run need on a node, as files."""

from __future__ import annotations

DOCUMENTATION = r"""
module: launcher_files
short_description: Write the environment, the host file and the start program of jobs
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Writes C(/etc/gpu-cluster/environment), C(/etc/gpu-cluster/hostfile), C(/etc/gpu-cluster/cluster.json),
    C(/etc/profile.d/gpu-cluster.sh), C(/usr/local/bin/gpu-cluster-run), C(/usr/local/bin/gpu-cluster-explain) and
    C(/usr/local/bin/gpu-cluster-jobs), and the files of O(torchrun), each atomically.
  - The interface is the one with the node's address on the data network, so the names of the cards may differ between
    nodes. A node is refused if no interface has the address, or if the interface is down or has no carrier.
  - C(hostfile) and C(cluster.json) depend only on the options and are the same on all members.
  - All problems are listed at once, before anything is changed. If a file cannot be written, the files written before
    it are restored.
  - A file that was not written by this module is kept beside the new one, with a warning.
options:
  node:
    description: The name of this node in O(members).
    type: str
    required: true
  members:
    description:
      - All members in the order of the ranks, each with C(name), C(fabric_address) and C(fabric_prefix), as the filter
        P(baremetal.gpu_cluster.cluster_members#filter) lists them. Other keys are ignored.
    type: list
    elements: dict
    required: true
  fabric_address:
    description: The node's own address on the data network; a prefix length is ignored. Empty uses the address in
      O(members).
    type: str
    default: ""
  user:
    description: The unprivileged user who runs jobs.
    type: str
    required: true
  python:
    description: Absolute path of the Python interpreter with torch.
    type: str
    required: true
  mpirun:
    description: Absolute path of Open MPI's C(mpirun).
    type: str
    required: true
  ssh_port:
    description: The port of sshd on all members.
    type: int
    default: 22
  rendezvous:
    description:
      - Ports for the rendezvous of a job, with C(first) and C(last).
      - The default of jobs is 29500 if the range contains it, otherwise the first port.
    type: dict
    required: true
  slots:
    description:
      - Number of ranks on a node, one number for all or a dictionary by member name.
      - V(0) (no GPUs) means one rank.
      - V(-1) (not counted in this run) keeps the number in the node's own C(cluster.json). If there is none, the number
        of most other members is used, with a warning.
    type: raw
    default: 1
  ib_disabled:
    description: Whether NCCL uses TCP instead of RDMA (C(NCCL_IB_DISABLE)).
    type: bool
    default: false
  environment:
    description: Environment variables of jobs on all members. They must be the same on all members.
    type: dict
    default: {}
  host_environment:
    description: Environment variables of jobs on this node. They override O(environment).
    type: dict
    default: {}
  profile_enabled:
    description:
      - Whether login shells also get the environment. Otherwise the file in C(/etc/profile.d) is removed, if this
        module wrote it.
    type: bool
    default: true
  program:
    description: The text of C(gpu-cluster-run). The action of this module fills it in, and replaces what is given.
    type: str
    default: ""
  explainer:
    description:
      - The same of C(gpu-cluster-explain). Empty removes that file, if it is ours.
    type: str
    default: ""
  queue:
    description: The same of C(gpu-cluster-jobs).
    type: str
    default: ""
  torchrun:
    description:
      - The files of torchrun's plugin for a rendezvous in etcd, by their names in
        C(/usr/local/lib/gpu-cluster/torchrun).
    type: dict
    default: {}
  etcd_members:
    description:
      - Names of the members that run etcd. Their addresses and the files of the role etcd become the key C(etcd) in
        C(cluster.json). Empty leaves the key out.
    type: list
    elements: str
    default: []
  etcd_port:
    description: The port at which they listen for clients.
    type: int
    default: 2379
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details:
      - If no interface has the node's address yet, check mode uses the interface of the inventory, with a warning,
        because the same run may configure the network first.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux with iproute.
"""

EXAMPLES = r"""
- name: Tell jobs where they run
  baremetal.gpu_cluster.launcher_files:
    node: "{{ inventory_hostname }}"
    members:
      - {name: gpu01, fabric_address: 192.0.2.11, fabric_prefix: 24}
      - {name: gpu02, fabric_address: 192.0.2.12, fabric_prefix: 24}
    user: train
    python: /opt/gpu-cluster/torch/bin/python
    mpirun: /usr/lib64/openmpi/bin/mpirun
    rendezvous: {first: 29400, last: 29599}
    slots: 8
    environment:
      NCCL_DEBUG: WARN
"""

RETURN = r"""
interface:
  description: The interface with the node's address on the data network.
  returned: success
  type: str
  sample: ens1f0
environment:
  description: The environment of jobs on this node.
  returned: success
  type: dict
  sample: {MASTER_ADDR: 192.0.2.11, GLOO_SOCKET_IFNAME: ens1f0, NCCL_SOCKET_IFNAME: =ens1f0}
kept:
  description: Paths of the kept files that this module did not write.
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

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.plan import plan, refuse
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.replacement import (
    KEPT_SUFFIX,
    compare,
    shown_change,
    write,
)

SPEC: dict[str, dict[str, Any]] = {
    "node": {"type": "str", "required": True},
    "members": {"type": "list", "elements": "dict", "required": True},
    "fabric_address": {"type": "str", "default": ""},
    "user": {"type": "str", "required": True},
    "python": {"type": "str", "required": True},
    "mpirun": {"type": "str", "required": True},
    "ssh_port": {"type": "int", "default": 22},
    "rendezvous": {"type": "dict", "required": True},
    "slots": {"type": "raw", "default": 1},
    "ib_disabled": {"type": "bool", "default": False},
    "environment": {"type": "dict", "default": {}},
    "host_environment": {"type": "dict", "default": {}},
    "profile_enabled": {"type": "bool", "default": True},
    "program": {"type": "str", "default": ""},
    "explainer": {"type": "str", "default": ""},
    "queue": {"type": "str", "default": ""},
    "torchrun": {"type": "dict", "default": {}},
    "etcd_members": {"type": "list", "elements": "str", "default": []},
    "etcd_port": {"type": "int", "default": 2379},
}

WARN_KEPT = "%s was not ours; it is now %s, and nothing of it is in force"


def main() -> None:
    """Check, compare, write."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    interface, node, files = plan(module)
    changes, problems = compare(files)
    if problems:
        refuse(module, problems)
    if not module.check_mode:
        write(module, changes)
    kept = [change.file.path + KEPT_SUFFIX for change in changes if change.foreign]
    for path in kept:
        module.warn(WARN_KEPT % (path[: -len(KEPT_SUFFIX)], path))
    diff = [shown_change(change) for change in changes]
    module.exit_json(changed=bool(changes), interface=interface, environment=node, kept=kept, diff=diff)


if __name__ == "__main__":
    main()
