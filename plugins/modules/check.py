#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module check: the documentation of the action of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: check
short_description: Coordinate a check of the cluster
version_added: "0.1.0"
description:
  - Proves a cluster with a distributed all_reduce, and names the culprits when it fails. Runs once, on the controller,
    and connects to nothing. M(baremetal.gpu_cluster.check_step) asks the nodes.
  - The first task begins the check and gives the first step. Each later one, with O(folder), takes the answers of the
    hosts and gives the next step, until RV(done). Then it gives the verdict, and writes the reports.
  - The task fails where a setting, or the way in which the play runs, is refused; RV(ignore:msg) has all problems. It
    does not fail on a bad verdict, so that the playbook decides which hosts fail.
  - A host that fails a step takes no further part in the measurement, and is named. The others go on without it.
  - In check mode the nodes are only looked at. The verdict is V(NOT VALIDATED) then, whatever is found.
  - The role C(cluster_check) does all of this. A playbook that does it by itself has to keep the hosts together, so
    without C(serial) and with the strategy V(linear).
options:
  folder:
    description: RV(folder) of the task before. Without it a new check begins.
    type: path
    default: ""
  settings:
    description:
      - The settings of the check by the names of the variables of role C(cluster_check), without C(cluster_check_).
        What is left out is taken from that variable where the play has it, and else is the default of the role.
      - Needed are C(members), the inventory names of all members of the cluster in rank order. Only the task that
        begins a check reads them.
    type: dict
    default: {}
  hosts:
    description: Host to the settings that it has of its own, C(address) and C(interface) on the network under test, and
      where they differ C(torch_python), C(openmpi_prefix) and C(user).
    type: dict
    default: {}
attributes:
  action:
    description: Indicates this has a corresponding action plugin so some parts of the options can be executed on
      the controller.
    support: full
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
    details:
      - It changes nothing on any node; the report files are its output and are written in check mode too.
  diff_mode:
    description: Will return details on what has changed, or possibly needs changing in C(check_mode), when in diff
      mode.
    support: none
  platform:
    description: Target OS that the action works on.
    support: full
    platforms: posix
seealso:
  - module: baremetal.gpu_cluster.check_step
author:
  - baremetal.gpu_cluster contributors (@baremetal)
"""

EXAMPLES = r"""
- name: Begin the check
  baremetal.gpu_cluster.check:
    settings:
      members: "{{ groups['gpu_cluster'] }}"
    hosts:
      gpu01: {address: 192.0.2.11, interface: ens1f0}
      gpu02: {address: 192.0.2.12, interface: ens1f0}
  run_once: true
  register: check

# These two are in a file of their own that includes itself until check.done: docs/examples/check
- name: Take the step
  baremetal.gpu_cluster.check_step:
    folder: "{{ check.folder }}"
  timeout: "{{ check.timeouts[inventory_hostname] | default(check.timeout_seconds) }}"

- name: Go on
  baremetal.gpu_cluster.check:
    folder: "{{ check.folder }}"
  run_once: true
  register: check
"""

RETURN = r"""
done:
  description: Whether nothing is left to ask.
  returned: always
  type: bool
  sample: false
folder:
  description: Where the controller keeps this check until it is done, for nobody else.
  returned: when not RV(done)
  type: str
  sample: /home/ops/.ansible/tmp/ansible-local-4711/check-k3x9ab
step:
  description: The name of the step that is due.
  returned: when not RV(done)
  type: str
  sample: launch
title:
  description: The same for people.
  returned: when not RV(done)
  type: str
  sample: Start the workers
timeout_seconds:
  description: The limit for the task of that step.
  returned: when not RV(done)
  type: int
  sample: 40
timeouts:
  description: Host to another limit.
  returned: when not RV(done)
  type: dict
  sample: {gpu02: 30}
verdict:
  description: V(PASSED), V(FAILED) or V(NOT VALIDATED).
  returned: when RV(done)
  type: str
  sample: PASSED
headline:
  description: The verdict as one sentence with its reason or its numbers.
  returned: when RV(done)
  type: str
  sample: "PASSED: world 3, 3 nodes, all_reduce over gloo exact in every iteration: 4 KiB 0.61 ms busbw 0.00896 GB/s"
culprits:
  description: Host to the causes of its errors.
  returned: when RV(done)
  type: dict
  sample:
    gpu02: "GC-NET-001 inbound connections of gpu02 fail on the data network: 8 of 8 probes of the ephemeral ports
      dropped (no answer)"
missing_files:
  description: The files that could not be written into the folder of the reports; an older one may be there.
  returned: when RV(done)
  type: list
  elements: str
  sample: []
report:
  description: Everything, as in C(report.json), whose shape is C(docs/report.schema.json).
  returned: when RV(done)
  type: dict
"""
