#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module firewall_peers: open ports to the members of the cluster and to nobody else, with firewalld."""

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall_peers
short_description: Open ports to the members of the cluster only, with a rollback if the controller is locked out
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Maintains the ipsets C(gpu-peers) and C(gpu-peers6) and the policy C(gpu-cluster-peers) of firewalld, which accepts
    the listed ports from those addresses in every zone. All other traffic is left to the zones. A port that an earlier
    call opened and this call does not list is closed; ports that others opened are not changed.
  - First compares. Then tests the new files on a copy of the configuration with C(--check-config).
  - Warns, with the rule, if a host that is not a member can reach the TCP ports. For this the rules in force are
    evaluated with a foreign address, for each interface. Examples are an interface in the zone C(trusted), a zone with
    wide port ranges, and a port that a container publishes.
  - Changes of members and ports need no reload. firewalld is reloaded only if one of these objects does not exist at
    run time yet, because firewalld creates them only when it loads its files.
  - A program on the node makes every change and waits for the controller. The controller opens a new ssh connection,
    transfers 64 KiB in both directions, and confirms. If the confirmation does not arrive within O(confirm_seconds), if
    a step fails, or if that program is killed, the node reverts the change. Then files, running rules, and whether
    firewalld is started, enabled or masked are as before.
  - Rules that accept connections are removed from the files only after the confirmation, so a node that loses power
    before the confirmation boots with these rules.
  - Hosts do not wait for each other, so C(forks) and C(serial) may have any value.
options:
  peers:
    description: Addresses of the members, IPv4 and IPv6, without prefix length.
    type: list
    elements: str
    required: true
  ports:
    description:
      - Exactly the ports that are open to the peers through this policy, such as C(29500/tcp) and C(29400-29599/tcp).
      - Must not be empty with O(mode=ports), and is ignored with O(mode=trust).
    type: list
    elements: str
    default: []
  mode:
    description:
      - V(ports) opens O(ports) to the peers.
      - V(trust) opens all ports to the peers, for programs with random ports, such as Horovod and UCX.
    type: str
    choices: [ports, trust]
    default: ports
  ssh_ports:
    description:
      - The ports of sshd. A node is refused before anything is changed if its sshd listens on another port, or if the
        controller is connected through another port.
    type: list
    elements: int
    default: [22]
  open_ssh:
    description:
      - Whether the policy C(gpu-cluster-ssh) opens O(ssh_ports) to everybody, whatever the zone of the interface.
      - V(auto) writes the policy if firewalld does not run and is to be started, and then keeps it. A running firewalld
        was configured by the site, which may have restricted ssh.
    type: str
    choices: [auto, always, never]
    default: auto
  start_ok:
    description:
      - Consent to start firewalld, also if it is disabled or masked. The start closes every port that no zone opens,
        for all services of the node.
      - firewalld is enabled for the next boot only after the controller has confirmed the start.
    type: bool
    default: false
  discard_runtime_ok:
    description:
      - Consent to a reload that discards runtime-only changes of others and loads unloaded configuration of others.
        Without it, a reload is refused while there is such a difference; each difference is listed.
    type: bool
    default: false
  ipv6_rpfilter:
    description:
      - firewalld's reverse-path filter for IPv6. V(keep) does not change it, and warns if it drops packets of members.
      - V(loose) accepts a packet if any route leads back to its source. It needs firewalld 2.2; with an older version
        the filter is switched off instead. V(strict) is firewalld's own default.
    type: str
    choices: [keep, strict, loose]
    default: keep
  confirm_seconds:
    description: Seconds without confirmation after which the node reverts the change, 15 to 600.
    type: int
    default: 60
  run_id:
    description: Name of the change on the node. Set by the action plugin of this name.
    type: str
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Compares and tests the new files on a copy. Starts no change.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Needs firewalld 1.0 or newer, as in EL9 and EL10, and systemd.
seealso:
  - module: baremetal.gpu_cluster.pending_change
"""

EXAMPLES = r"""
- name: Open the rendezvous port to the peers
  baremetal.gpu_cluster.firewall_peers:
    peers: [192.0.2.11, 192.0.2.12]
    ports: [29400-29599/tcp]

- name: Start a firewalld that is off, with sshd on another port
  baremetal.gpu_cluster.firewall_peers:
    peers: [192.0.2.11, 192.0.2.12, "2001:db8::11", "2001:db8::12"]
    mode: trust
    ssh_ports: [2222]
    start_ok: true
"""

RETURN = r"""
way:
  description:
    - How the change is applied, or in check mode would be.
    - V(none), V(rules) for a change at run time without a reload, V(reload), or V(start).
  returned: success
  type: str
  sample: rules
reloaded:
  description: Whether firewalld was reloaded, or in check mode would be.
  returned: success
  type: bool
  sample: false
started:
  description: Whether firewalld was started, or in check mode would be.
  returned: success
  type: bool
  sample: false
differences:
  description: Differences between the running and the wanted firewall before the run, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
discarded:
  description:
    - What of others is in force otherwise than the files say, and is lost or comes in force with the reload, one
      sentence each.
  returned: success
  type: list
  elements: str
  sample: []
host:
  description: The address at which the node answers.
  returned: always
  type: str
  sample: 192.0.2.11
run_id:
  description: Name of the change.
  returned: when something differs, and not in check mode
  type: str
  sample: 20261121t052204z-k3x9ab
outcome:
  description: Result of the change, as returned by M(baremetal.gpu_cluster.pending_change).
  returned: when something differs, and not in check mode
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import (
    BusyError,
    ChangeError,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import rules
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.carry_out import carry_out
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.node import NOT_CHANGED, Node


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "peers": {"type": "list", "elements": "str", "required": True},
            "ports": {"type": "list", "elements": "str", "default": []},
            "mode": {"type": "str", "choices": list(rules.MODES), "default": "ports"},
            "ssh_ports": {"type": "list", "elements": "int", "default": [22]},
            "open_ssh": {"type": "str", "choices": list(rules.OPEN_SSH), "default": "auto"},
            "start_ok": {"type": "bool", "default": False},
            "discard_runtime_ok": {"type": "bool", "default": False},
            "ipv6_rpfilter": {"type": "str", "choices": list(rules.RPFILTER), "default": "keep"},
            "confirm_seconds": {"type": "int", "default": 60},
            "run_id": {"type": "str"},
        },
        supports_check_mode=True,
    )
    try:
        result = carry_out(module, Node(module))
    except rules.InputError as error:
        module.fail_json(msg=NOT_CHANGED % error)
    except BusyError as error:
        module.fail_json(msg=str(error), busy_seconds=error.seconds)
    except ChangeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
