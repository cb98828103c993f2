#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: discover_inventory
short_description: Write the inventory of machines that were asked
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Compares the results of M(baremetal.gpu_cluster.discover_node) on the controller, and writes C(hosts.yml). It finds
    the network card of the data network, the addresses on it, the number of GPUs and the names of the machines.
  - Where only a person knows the answer, the file has a numbered question beside the value. A value without a safe
    answer is commented out, so that preflight refuses it. The questions are printed too.
  - The first inventory of the command line is replaced atomically, and only if its mark shows that nobody has edited
    it. Otherwise the result goes into a new file beside it that is not read as an inventory, and the difference is
    printed.
  - Nothing is written as long as a member of the group did not answer, or was left out with C(--limit).
options:
  group:
    description: The group of the members.
    type: str
    required: true
  asked:
    description: Results of M(baremetal.gpu_cluster.discover_node) by host.
    type: dict
    required: true
  host_keys:
    description: Results of M(baremetal.gpu_cluster.host_key_probe) by host, which say why ssh did not reach a host.
    type: dict
    default: {}
  leave_out:
    description: Members that become none. They are written into the group C(not_members).
    type: list
    elements: str
    default: []
attributes:
  action:
    description: Indicates this has a corresponding action plugin so some parts of the options can be executed on
      the controller.
    support: full
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
  diff_mode:
    description: Will return details on what has changed, or possibly needs changing in C(check_mode), when in diff
      mode.
    support: full
  platform:
    description: Target OS that the action works on.
    support: full
    platforms: posix
"""

EXAMPLES = r"""
- name: Ask the machines
  baremetal.gpu_cluster.discover_node:
  register: asked

- name: Write the inventory
  baremetal.gpu_cluster.discover_inventory:
    group: gpu_cluster
    asked: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'asked'))) }}"
  run_once: true
"""

RETURN = r"""
path:
  description: The file that holds the result; empty if there is none.
  returned: always
  type: str
  sample: /home/ops/mycluster/prod/hosts.yml
questions:
  description: Number of questions in the file.
  returned: always
  type: int
  sample: 2
"""
