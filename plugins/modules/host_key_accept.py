#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_key_accept
short_description: Accept host keys that somebody vouched for
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Takes what M(baremetal.gpu_cluster.host_key_probe) learned about all hosts, and decides about each one.
  - A key that ssh trusts already needs nothing. A new or changed key is accepted when its fingerprint is the one of
    the inventory, when it is the key that was prepared for the host, or with O(consent).
  - A fingerprint or a prepared key that does not fit is refused whatever O(consent) says, and so are a key that
    O(known_hosts) marks as C(@revoked) and one that two hosts share.
  - Where one host is refused nothing is written, and the message lists all of them with the fingerprints they offer
    and the ways to accept these.
  - The file is replaced in one step. Only the names of the accepted hosts are taken out of it, hashed ones included;
    comments, lines with a marker and all other hosts stay as they are.
options:
  known_hosts:
    description: The known_hosts file of the controller. It is made where it is missing.
    type: path
    required: true
  probes:
    description: Host to the result of M(baremetal.gpu_cluster.host_key_probe).
    type: dict
    required: true
  consent:
    description: Whether a key is accepted for which nobody vouched. Its fingerprint is shown.
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
  description: The hosts whose key ssh trusted before.
  returned: always
  type: list
  elements: str
accepted:
  description: The keys that were accepted, with C(host), C(fingerprint) and C(why).
  returned: always
  type: list
  elements: dict
  sample:
    - host: gpu07
      fingerprint: SHA256:ZBXDAunxiavxt9hfs2No7nccMQ0DIKYm6AiZeuS92Y8
      why: its fingerprint is gpu_cluster_host_key_fingerprint
"""
