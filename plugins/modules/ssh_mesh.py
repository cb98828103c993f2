#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module ssh_mesh: members reach each other over ssh without prompts, with certificates."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ssh_mesh
short_description: Let the members of a cluster reach each other over ssh with certificates
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Gives a node a host certificate, and its user a key pair with a user certificate, both signed on the controller by
    an authority that is made there by the first run. The authority's private keys never reach a node, and the user's
    private key never leaves its node.
  - sshd trusts the authority for this user only, and only from the addresses of the member that holds the certificate.
    ssh of this user trusts every host that the authority has signed, by one line, and no other host among the members.
  - A node that was installed anew, or got other keys, needs nothing on its peers.
  - Signs anew what is missing, wrong, revoked, or lapses within O(renew_days). A run with nothing to do asks the node
    once and changes nothing.
  - Checks what sshd and ssh have in force before and after. Files are tested with C(sshd -t), written together, and
    put back when sshd refuses them, when another file overrides them, or when sshd does not listen afterwards.
options:
  members:
    description: The members, in the form of P(baremetal.gpu_cluster.cluster_members#filter).
    type: list
    elements: dict
    default: []
  extra_names:
    description: Further names of members, by the member's name, each a list. They get into its host certificate.
    type: dict
    default: {}
  user:
    description: The unprivileged user of the cluster. Must exist on the node.
    type: str
    default: train
  root_ok:
    description:
      - Whether root of one member may log in to all others too, with a key and a certificate of its own. Whoever is
        root on one member is root on all of them then.
    type: bool
    default: false
  ports:
    description:
      - The ports on which sshd listens. A list without the port of the controller's own connection is refused.
    type: list
    elements: int
    default: [22]
  ca_dir:
    description:
      - Absolute path of the authority's folder on the controller. Empty stands for C(.ssh_ca) beside the inventory.
      - Its private keys C(host_ca) and C(user_ca) may be encrypted with C(ansible-vault encrypt).
    type: str
    default: ""
  key_type:
    description: Type of the authority's keys, of the user's key, and of the host key that is signed. V(ecdsa) for FIPS.
    type: str
    choices: [ed25519, ecdsa]
    default: ed25519
  validity_days:
    description: How long a new certificate is valid, 1 to 3650 days. It begins a day early, for clocks that are behind.
    type: int
    default: 365
  renew_days:
    description: A certificate that lapses within so many days is signed anew, 0 to 3650 and below O(validity_days).
    type: int
    default: 90
  max_startups:
    description:
      - How many connections to sshd may be about to log in at the same time, 10 to 10000. From there on some are
        refused, from twice that number on all.
    type: int
    default: 256
  max_sessions:
    description: How many sessions one connection may carry, 1 to 10000.
    type: int
    default: 128
  plan:
    description: What the controller has worked out for this node. Set by the action plugin of this name.
    type: dict
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Nothing is made, signed or written. A certificate that would be signed is one line with the reason.
  diff_mode:
    support: full
    details: Private keys are never shown.
  platform:
    platforms: posix
    details: Needs OpenSSH 8.7 or newer, as in EL9 and EL10, and systemd.
seealso:
  - module: baremetal.gpu_cluster.ssh_mesh_revoke
"""

EXAMPLES = r"""
- name: Let the members reach each other
  baremetal.gpu_cluster.ssh_mesh:
    members: "{{ hostvars | baremetal.gpu_cluster.cluster_members(groups['gpu_cluster']) }}"
    user: train
"""

RETURN = r"""
signed:
  description: What was signed, or in check mode would be, C(host) or a user, with the reason.
  returned: success
  type: dict
  sample: {"host": "it lapses on 2027-01-20 10:00 UTC"}
reloaded:
  description: Whether sshd was reloaded, or in check mode would be.
  returned: success
  type: bool
  sample: false
ca_dir:
  description: The authority's folder on the controller.
  returned: success
  type: str
  sample: /etc/gpu-cluster/ssh_ca
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import ssh_connection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.carry_out import carry_out
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.node import MeshError, Node


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "members": {"type": "list", "elements": "dict", "default": []},
            "extra_names": {"type": "dict", "default": {}},
            "user": {"type": "str", "default": "train"},
            "root_ok": {"type": "bool", "default": False},
            "ports": {"type": "list", "elements": "int", "default": [22]},
            "ca_dir": {"type": "str", "default": ""},
            "key_type": {"type": "str", "choices": ["ed25519", "ecdsa"], "default": "ed25519", "no_log": False},
            "validity_days": {"type": "int", "default": 365},
            "renew_days": {"type": "int", "default": 90},
            "max_startups": {"type": "int", "default": 256},
            "max_sessions": {"type": "int", "default": 128},
            "plan": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    if not module.params["plan"]:
        module.fail_json(msg="plan: set by the action plugin of this name, without which this module does nothing")
    node = Node(module, module.params["plan"], ssh_connection.current())
    try:
        result = carry_out(module, node)
    except MeshError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
