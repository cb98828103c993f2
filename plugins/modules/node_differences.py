#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_differences
short_description: List differences between rebuilt nodes and their peers
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Compares the results of M(baremetal.gpu_cluster.node_snapshot) on the controller, and prints the differences. A
    difference is a value that more than half of the peers have and the rebuilt node does not have, or a value that no
    peer has.
  - Lists peers that do not know the addresses of the rebuilt nodes, and nodes that gave no answer.
  - A difference is not a failure; M(baremetal.gpu_cluster.check) tests whether the cluster works.
options:
  rebuilt:
    description: The nodes that were rebuilt.
    type: list
    elements: str
    required: true
  results:
    description: Results of M(baremetal.gpu_cluster.node_snapshot) by host, of the rebuilt nodes and their peers.
    type: dict
    required: true
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
    support: none
  platform:
    description: Target OS that the action works on.
    support: full
    platforms: posix
"""

EXAMPLES = r"""
- name: Read what the nodes should agree in
  baremetal.gpu_cluster.node_snapshot:
  register: snapshot

- name: Say how the rebuilt node differs
  baremetal.gpu_cluster.node_differences:
    rebuilt: [gpu07]
    results: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'snapshot'))) }}"
  run_once: true
"""

RETURN = r"""
differences:
  description:
    - One entry for each difference, with C(host), C(section), C(name), C(value), C(usual) (what most peers have),
      C(peers) (how many have it) and C(of) (how many were compared).
  returned: always
  type: list
  elements: dict
  sample:
    - host: gpu07
      section: package
      name: libnccl.x86_64
      value: 2.28.9-1+cuda12.9
      usual: 2.28.9-1+cuda13.0
      peers: 7
      of: 7
peers:
  description: The peers in the comparison.
  returned: always
  type: list
  elements: str
unaware:
  description: Unknown addresses of the rebuilt nodes, by peer.
  returned: always
  type: dict
unread:
  description: Reasons why a host could not be read, or not completely, by host.
  returned: always
  type: dict
rebuilt:
  description: As given.
  returned: always
  type: list
  elements: str
lines:
  description: The printed text.
  returned: always
  type: list
  elements: str
"""
