#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module firewall_peers: open ports to the members of the cluster and to nobody else, with firewalld."""

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall_peers
short_description: Open ports to the members of the cluster only, and take it back unless the controller still gets in
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Keeps the ipsets C(gpu-peers) and C(gpu-peers6) and the policy C(gpu-cluster-peers) of firewalld, which accepts the
    listed ports from those addresses in whichever zone they arrive. What the policy does not accept stays with the
    zones. What an earlier call opened and this one does not list is closed; what others opened is not touched.
  - Compares first. Then the new files are tested on a copy of the configuration with C(--check-config).
  - Warns, with the rule, where somebody who is no member gets to the TCP ports all the same. The rules in force are
    asked with an address that no site lets in on purpose, for each interface. Such a rule is that of an interface in
    the zone C(trusted), of a zone with wide ports, or of a port that a container publishes.
  - A member more or less, and other ports, are put in force without a reload. firewalld is reloaded only when one of
    these objects does not run yet, because it makes none at run time.
  - Every change is made by a program on the node that waits for the controller. The controller opens a fresh ssh
    connection, moves 64 KiB over it in both directions, and confirms. When it does not come back within
    O(confirm_seconds), when a step fails, or when that program is killed, the node takes the change back. Files,
    running rules, and whether firewalld is started, enabled or masked are as before then.
  - What lets somebody in is taken out of the files only after the confirmation, so a node that loses power before it
    boots with all of that.
  - Hosts do not wait for each other, so C(forks) and C(serial) may be as small as you like.
options:
  peers:
    description: Addresses of the members, IPv4 and IPv6, without prefix length.
    type: list
    elements: str
    required: true
  ports:
    description:
      - Exactly the ports that are open to the peers through this policy, such as C(29500/tcp) and C(29400-29599/tcp).
      - Must not be empty with O(mode=ports), and does not count with O(mode=trust).
    type: list
    elements: str
    default: []
  mode:
    description:
      - V(ports) opens O(ports) to the peers.
      - V(trust) opens all ports to them, for programs that choose theirs at random, such as Horovod and UCX.
    type: str
    choices: [ports, trust]
    default: ports
  ssh_ports:
    description:
      - The ports of sshd. A node whose sshd listens on another one, or that is reached through another one right now,
        is refused before anything is changed.
    type: list
    elements: int
    default: [22]
  open_ssh:
    description:
      - Whether the policy C(gpu-cluster-ssh) opens O(ssh_ports) to everybody, whatever the zone of the interface.
      - V(auto) writes it where firewalld does not run and is to be started, and keeps it from then on. A firewalld that
        runs already was set up by the site, which may have restricted ssh.
    type: str
    choices: [auto, always, never]
    default: auto
  start_ok:
    description:
      - Whether a firewalld that does not run, also a disabled or masked one, may be started. Starting it closes every
        port that no zone opens, to whatever else runs on the node.
      - It is enabled for the next boot only when the controller has confirmed the start.
    type: bool
    default: false
  discard_runtime_ok:
    description:
      - Whether a reload may discard what others changed at run time only, and put in force what others wrote to the
        files and did not load. Without it, a reload is refused as long as there is any such difference; each is named.
    type: bool
    default: false
  ipv6_rpfilter:
    description:
      - firewalld's reverse-path filter for IPv6. V(keep) leaves it alone and warns where it drops what members send.
      - V(loose) accepts a packet when any way leads back to its source. firewalld knows that since 2.2; in an older one
        the filter is switched off instead. V(strict) is firewalld's own default.
    type: str
    choices: [keep, strict, loose]
    default: keep
  confirm_seconds:
    description: After how many seconds without confirmation the node takes the change back, 15 to 600.
    type: int
    default: 60
  run_id:
    description: Names the change on the node. Set by the action plugin of this name.
    type: str
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Compares, tests the new files on a copy, and arms nothing.
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
    - How the change is put in force, or in check mode would be.
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
  description: Where the running firewalld differed from what was wanted before the run, one sentence each.
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
  description: The name of the change.
  returned: when something differs, and not in check mode
  type: str
  sample: 20261121t052204z-k3x9ab
outcome:
  description: What the node said about the end of the change, as in M(baremetal.gpu_cluster.pending_change).
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
