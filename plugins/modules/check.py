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
  - Tests a cluster with a distributed all_reduce, and names the nodes at fault if the test fails. The module runs once,
    on the controller, and opens no connection. M(baremetal.gpu_cluster.check_step) runs the steps on the nodes.
  - The first task starts the check and returns the first step. Each later task, with O(folder), reads the answers of
    the hosts and returns the next step, until RV(done). The last task returns the verdict and writes the reports.
  - The task fails if a setting is invalid, or if the play runs with C(serial) or with the strategy V(free) or
    V(host_pinned); RV(ignore:msg) lists all problems. The task does not fail on a bad verdict, so that the playbook
    decides which hosts fail.
  - A host that fails a step is named and takes no further part in the measurement. The others continue.
  - In check mode the nodes are only read. The verdict is then always V(NOT VALIDATED).
  - The role C(cluster_check) runs all these tasks. A playbook with its own tasks must keep the hosts together, so
    without C(serial) and with the strategy V(linear).
options:
  folder:
    description: RV(folder) of the previous task. Without it a new check starts.
    type: path
    default: ""
  settings:
    description:
      - The settings of the check, with the names of the variables of role C(cluster_check) without C(cluster_check_).
        The value of a missing setting is that variable of the play, or the default of the role.
      - C(members) is required, the inventory names of all members of the cluster in rank order. Only the first task of
        a check reads the settings.
    type: dict
    default: {}
  hosts:
    description: Settings by host, C(address) and C(interface) on the network under test, and C(torch_python),
      C(openmpi_prefix) and C(user) if they differ.
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
      - The module changes no node. The report files are its output and are also written in check mode.
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
  description: Whether the check is complete.
  returned: always
  type: bool
  sample: false
folder:
  description: Private folder of this check on the controller, until the check is complete.
  returned: when not RV(done)
  type: str
  sample: /home/ops/.ansible/tmp/ansible-local-4711/check-k3x9ab
step:
  description: Name of the next step.
  returned: when not RV(done)
  type: str
  sample: launch
title:
  description: Title of the next step.
  returned: when not RV(done)
  type: str
  sample: Start the workers
timeout_seconds:
  description: Time limit for the task of that step.
  returned: when not RV(done)
  type: int
  sample: 40
timeouts:
  description: Other time limits by host.
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
  sample: "PASSED: world 3, 3 nodes, all_reduce over gloo exact in every iteration"
culprits:
  description: Causes of errors by host.
  returned: when RV(done)
  type: dict
  sample:
    gpu02: "GC-NET-001 inbound connections of gpu02 fail on the data network: 8 of 8 probes of the ephemeral ports
      dropped (no answer)"
missing_files:
  description: Report files that could not be written. An older file may still be in the folder.
  returned: when RV(done)
  type: list
  elements: str
  sample: []
report_file:
  description: Path of C(report.html) on the controller. Empty when it was not written.
  returned: when RV(done)
  type: str
  sample: /srv/mycluster/reports/prod/report.html
report:
  description: The whole report, as in C(report.json). Its schema is C(docs/report.schema.json).
  returned: when RV(done)
  type: dict
"""
