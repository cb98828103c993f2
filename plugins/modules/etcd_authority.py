#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_authority
short_description: Make the certificates of etcd on the controller
version_added: 0.2.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Makes a certificate authority of its own for etcd, one certificate for each member of etcd, and one for all clients,
    with C(openssl) on the controller. Opens no connection.
  - A certificate is made anew if it is missing, expires soon, or is for another address or authority.
options:
  ca_dir:
    description: Absolute path of the authority's folder on the controller.
    type: str
    required: true
  etcd_members:
    description: Names of the 3 or 5 members that run etcd.
    type: list
    elements: str
    required: true
  members:
    description: All members of the cluster, each with C(name) and C(fabric_address). Other keys are ignored.
    type: list
    elements: dict
    required: true
  validity_days:
    description: Validity of a new certificate, 1 to 3000 days. The authority itself is valid for 10 years.
    type: int
    default: 365
  renew_days:
    description: A certificate that expires within this number of days is made anew. Less than O(validity_days).
    type: int
    default: 90
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: Keys and certificates are not shown.
  platform:
    platforms: posix
    details: OpenSSL 1.1.1 or newer on the controller.
"""

EXAMPLES = r"""
- name: Make the certificates of etcd
  baremetal.gpu_cluster.etcd_authority:
    ca_dir: /etc/gpu-cluster/etcd_ca
    etcd_members: [gpu01, gpu02, gpu03]
    members:
      - {name: gpu01, fabric_address: 192.0.2.11}
      - {name: gpu02, fabric_address: 192.0.2.12}
      - {name: gpu03, fabric_address: 192.0.2.13}
  run_once: true
"""

RETURN = r"""
made:
  description: The certificates that were made, and why.
  returned: success
  type: dict
  sample: {client: it expires in less than 90 days}
ca_dir:
  description: The folder with C(ca.crt), C(client.crt), C(client.key), and C(member-NAME.crt) and C(member-NAME.key).
  returned: success
  type: str
  sample: /etc/gpu-cluster/etcd_ca
is_there:
  description: Whether all certificates are there. False only in check mode before the first run.
  returned: success
  type: bool
"""
