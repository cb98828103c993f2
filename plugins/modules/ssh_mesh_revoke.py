#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ssh_mesh_revoke
short_description: Revoke certificates and keys of hosts of the ssh mesh
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Adds all certificates that the authority on the controller has signed for the hosts, and the keys of the users on
    these hosts, to the list of revoked keys. Runs on the controller, and opens no connection.
  - The list takes effect on a node when M(baremetal.gpu_cluster.ssh_mesh) installs it, as the playbook
    C(baremetal.gpu_cluster.revoke) does. A host that remains a member then gets new keys for its users and new
    certificates.
options:
  hosts:
    description: Names of the hosts, as in the inventory. They may already be removed from the inventory.
    type: list
    elements: str
    required: true
  members:
    description: Names of the current members. The host keys of all other O(hosts) are revoked too.
    type: list
    elements: str
    required: true
  host_keys:
    description:
      - Whether the host keys of current members among O(hosts) are revoked too. Such a host needs new host keys before
        it gets a certificate again. Otherwise the host keeps its key and gets a new certificate.
    type: bool
    default: false
  ca_dir:
    description: As in M(baremetal.gpu_cluster.ssh_mesh).
    type: str
    default: ""
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
seealso:
  - module: baremetal.gpu_cluster.ssh_mesh
"""

EXAMPLES = r"""
- name: Revoke what one host had
  baremetal.gpu_cluster.ssh_mesh_revoke:
    hosts: [gpu07]
    members: "{{ groups['gpu_cluster'] }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
hosts:
  description: The lines that were added to the list of host certificates.
  returned: success
  type: list
  elements: str
  sample: ["# gpu07, 2026-11-21 16:12 UTC", "serial: 1795277506632"]
users:
  description: The lines that were added to the list of user certificates.
  returned: success
  type: list
  elements: str
  sample: ["# gpu07, 2026-11-21 16:12 UTC", "serial: 1795277506633", "key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPHT"]
host_keys_of:
  description: The O(hosts) that are no longer members.
  returned: success
  type: list
  elements: str
  sample: []
ca_dir:
  description: The authority's folder on the controller.
  returned: success
  type: str
  sample: /etc/gpu-cluster/ssh_ca
"""
