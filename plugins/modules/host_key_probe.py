#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_key_probe
short_description: Read the ssh host key of a host without a login
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Runs C(ssh) on the controller with the options of the host's own connection (C(ansible_host), C(ansible_port),
    C(ansible_ssh_common_args) such as a C(ProxyJump), the site's F(~/.ssh/config)), stops before the login, and reports
    the host key.
  - Changes no known_hosts file. Needs neither key nor password for the host, and uses no shared connection.
  - Opens one connection to a host whose key ssh already trusts, otherwise two. If O(fingerprint) or O(prepared_file) do
    not match the first key of the host, the keys of other types are read too.
  - A host that does not answer is reported in RV(problem) and is not a failure.
    M(baremetal.gpu_cluster.host_key_accept) decides for all hosts together.
options:
  known_hosts:
    description: The known_hosts file of the controller. RV(read) is true if ssh reads this file for this host.
    type: path
    required: true
  fingerprint:
    description: The fingerprint that the host key must have, as V(SHA256:...). Empty when none is known.
    type: str
    default: ""
  prepared_file:
    description: File with the public key that the host was installed with. The file may be missing.
    type: path
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
    details:
      - Needs OpenSSH 7.6 or newer on the controller, and the connection plugin C(ansible.builtin.ssh).
"""

EXAMPLES = r"""
- name: Learn the host keys
  baremetal.gpu_cluster.host_key_probe:
    known_hosts: "{{ inventory_dir }}/.known_hosts"
    fingerprint: "{{ gpu_cluster_host_key_fingerprint | default('') }}"
    prepared_file: "{{ inventory_dir }}/.host_keys/{{ inventory_hostname }}.pub"
  register: host_key

- name: Accept those that somebody vouched for
  baremetal.gpu_cluster.host_key_accept:
    known_hosts: "{{ inventory_dir }}/.known_hosts"
    probes: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'host_key'))) }}"
  run_once: true
"""

RETURN = r"""
where:
  description: The address to which ssh connects.
  returned: always
  type: str
  sample: 192.0.2.17
name:
  description: The name under which ssh looks for the host in known_hosts.
  returned: always
  type: str
  sample: "[192.0.2.17]:2222"
known:
  description: Whether ssh already trusts the host key.
  returned: always
  type: bool
changed_key:
  description: Whether known_hosts has another key of the host.
  returned: always
  type: bool
keys:
  description: The keys that the host offers, with C(kind), C(blob) and C(fingerprint). Empty when RV(known).
  returned: always
  type: list
  elements: dict
problem:
  description: The error of ssh if no key could be read.
  returned: always
  type: str
read:
  description: Whether ssh reads O(known_hosts) for this host.
  returned: always
  type: bool
files:
  description: The known_hosts files of the user that ssh reads.
  returned: always
  type: str
fingerprint:
  description: As given.
  returned: always
  type: str
prepared:
  description: The key of O(prepared_file), with C(kind) and C(blob). Empty without such a file.
  returned: always
  type: dict
prepared_file:
  description: As given.
  returned: always
  type: str
"""
