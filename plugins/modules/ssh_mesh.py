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
  - Creates a host certificate for a node, and a key pair with a user certificate for its user. Both are signed on the
    controller by an authority that the first run creates there. The authority's private keys never reach a node, and
    the user's private key never leaves its node.
  - sshd trusts the authority for this user only, and only from the addresses of the member that holds the certificate.
    The user's ssh trusts, by one line, every host that the authority has signed, and no other host among the members.
  - After a node was reinstalled, or got other keys, its peers need no change.
  - Renews certificates that are missing, wrong, revoked, or expire within O(renew_days). A run without a difference
    calls the node once and changes nothing.
  - Checks the settings of sshd and ssh in force before and after a change. Files are tested with C(sshd -t), written
    together, and restored if sshd refuses them, if another file overrides them, or if sshd does not listen afterwards.
options:
  members:
    description: The members, in the form of P(baremetal.gpu_cluster.cluster_members#filter).
    type: list
    elements: dict
    default: []
  extra_names:
    description: Lists of further names, by member name. The names are added to the host certificate of the member.
    type: dict
    default: {}
  user:
    description: The unprivileged user of the cluster. The user must exist on the node.
    type: str
    default: train
  root_ok:
    description:
      - Whether root of one member may also log in to all others, with its own key and certificate. Root of one member
        is then root of all members.
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
      - Absolute path of the authority's folder on the controller. Empty selects C(.ssh_ca) beside the inventory.
      - Its private keys C(host_ca) and C(user_ca) may be encrypted with C(ansible-vault encrypt).
    type: str
    default: ""
  key_type:
    description: Type of the authority's keys, of the user's key, and of the signed host key. Use V(ecdsa) in FIPS mode.
    type: str
    choices: [ed25519, ecdsa]
    default: ed25519
  validity_days:
    description: Validity of a new certificate, 1 to 3650 days. It starts one day before the signing, because clocks may
      differ.
    type: int
    default: 365
  renew_days:
    description: A certificate that expires within this number of days is renewed, 0 to 3650 and below O(validity_days).
    type: int
    default: 90
  max_startups:
    description:
      - Number of unauthenticated connections to sshd (C(MaxStartups)), 10 to 10000. sshd refuses some connections above
        this number, and all above twice this number.
    type: int
    default: 256
  max_sessions:
    description: Number of sessions in one connection (C(MaxSessions)), 1 to 10000.
    type: int
    default: 128
  plan:
    description: Plan of the controller for this node. Set by the action plugin of this name.
    type: dict
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Nothing is created, signed or written. A certificate that would be signed is listed with the reason.
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
  description: Certificates that were signed, or in check mode would be, as C(host) or a user, with the reason.
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
