#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_key_accept
short_description: Accept verified ssh host keys
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Evaluates the results of M(baremetal.gpu_cluster.host_key_probe) of all hosts, and decides for each host.
  - A key that ssh already trusts needs no decision. A new or changed key is accepted if its fingerprint is in the
    inventory, if it is the key that was prepared for the host, or with O(consent).
  - A key that differs from the fingerprint or the prepared key, a key that O(known_hosts) marks as C(@revoked), and a
    key that two hosts share are refused even with O(consent).
  - If one host is refused, nothing is written. The message lists all refused hosts with their fingerprints and the ways
    to accept them.
  - The file is replaced atomically. Only the old keys of the accepted hosts are removed, also with hashed names.
    Comments, lines with a marker and all other hosts do not change.
options:
  known_hosts:
    description: The known_hosts file of the controller. A missing file is created.
    type: path
    required: true
  probes:
    description: Results of M(baremetal.gpu_cluster.host_key_probe) by host.
    type: dict
    required: true
  consent:
    description: Whether an unverified key is accepted. Its fingerprint is shown.
    type: bool
    default: false
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
- name: Learn the host keys
  baremetal.gpu_cluster.host_key_probe:
    known_hosts: "{{ inventory_dir }}/.known_hosts"
  register: host_key

- name: Accept all of them, on a network that is trusted
  baremetal.gpu_cluster.host_key_accept:
    known_hosts: "{{ inventory_dir }}/.known_hosts"
    probes: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'host_key'))) }}"
    consent: true
  run_once: true
"""

RETURN = r"""
known:
  description: Hosts whose key ssh already trusted.
  returned: always
  type: list
  elements: str
accepted:
  description: The accepted keys, with C(host), C(fingerprint) and C(why).
  returned: always
  type: list
  elements: dict
  sample:
    - host: gpu07
      fingerprint: SHA256:ZBXDAunxiavxt9hfs2No7nccMQ0DIKYm6AiZeuS92Y8
      why: its fingerprint is gpu_cluster_host_key_fingerprint
"""
