#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module network_profiles: compare a node's network with what is wanted, and start the change to be confirmed."""

from __future__ import annotations

DOCUMENTATION = r"""
module: network_profiles
short_description: Set static addresses of a node, with a rollback if the controller cannot reach it
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Maintains NetworkManager profiles (keyfiles) for network cards, bonds and VLANs, with addresses, gateways, routes,
    DNS, MTU and firewall zone. Interfaces that are not listed are not changed.
  - First compares. If nothing differs, nothing is activated.
  - If something differs, a program on the node creates a checkpoint of NetworkManager, writes the new profiles to
    C(/run), activates them, asks by ARP whether another machine has one of the new addresses, and probes the MTU. Then
    the controller opens a new ssh connection to O(confirm_host), transfers 64 KiB in both directions, and confirms.
    Only then the profiles are written below C(/etc).
  - If the confirmation does not arrive within O(confirm_seconds), or if a step fails, the node reverts the change. Then
    the running configuration and the files are as before. The same happens if the controller or the program on the node
    is killed, or if the node loses power.
  - Hosts do not wait for each other, so C(forks) and C(serial) may have any value.
options:
  interfaces:
    description: The interfaces.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the interface, as C(ip -br link) prints it. Needed unless O(interfaces[].mac) is given.
        type: str
      mac:
        description:
          - Hardware address of a network card. The profile then follows the card if its name changes.
          - If O(interfaces[].name) is also given, both must belong to the same card.
        type: str
      addresses:
        description: Its addresses with prefix length, IPv4 and IPv6. Optional for the parent of a VLAN.
        type: list
        elements: str
      gateway:
        description:
          - The default gateway, at most one for each address family.
          - If it is not given, an interface with the current default route or ssh connection is refused, so that a
            missing line cannot remove them. An empty list means no gateway.
        type: list
        elements: str
      routes:
        description: Static routes.
        type: list
        elements: dict
        suboptions:
          to:
            description: The network, with prefix length.
            type: str
            required: true
          via:
            description: The gateway. Without it the network is on the link.
            type: str
          metric:
            description: Metric of the route; the lower metric has priority.
            type: int
          table:
            description: Number of the routing table; by default the main table.
            type: int
      dns:
        description: Addresses of name servers.
        type: list
        elements: str
      dns_search:
        description: Search domains.
        type: list
        elements: str
      mtu:
        description: MTU in bytes, 576 to 65536 and within the limits of the driver. By default it is not changed.
        type: int
      zone:
        description: Zone of firewalld, which must exist. Otherwise the default zone.
        type: str
      vlan:
        description: Makes the interface a VLAN.
        type: dict
        suboptions:
          parent:
            description: Name of the interface that carries it.
            type: str
            required: true
          id:
            description: VLAN id, 1 to 4094.
            type: int
            required: true
      bond:
        description: Makes the interface a bond.
        type: dict
        suboptions:
          mode:
            description: The mode. V(802.3ad) needs a switch that speaks LACP on these ports.
            type: str
            choices: [active-backup, 802.3ad]
            required: true
          ports:
            description: Names or hardware addresses of its cards.
            type: list
            elements: str
            required: true
          miimon_ms:
            description: Interval of link monitoring in milliseconds, 10 to 10000.
            type: int
            default: 100
          lacp_rate:
            description: Rate of LACP packets. Only with V(802.3ad).
            type: str
            choices: [slow, fast]
          xmit_hash_policy:
            description: Hash policy that selects the port of a packet. Only with V(802.3ad).
            type: str
            choices: [layer2, layer2+3, layer3+4, encap2+3, encap3+4]
          min_links:
            description: Minimum number of ports with a link. With fewer ports the bond has no carrier. Only with
              V(802.3ad).
            type: int
          primary:
            description: Name of the port that is used whenever it is up. Only with V(active-backup).
            type: str
  confirm_host:
    description:
      - The address at which the node must answer after the change, for this and all later tasks.
      - By default the current address.
    type: str
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
    details: Compares and shows the keyfiles. Starts no change.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Needs NetworkManager with keyfiles and systemd, as in EL9 and EL10.
seealso:
  - module: baremetal.gpu_cluster.pending_change
"""

EXAMPLES = r"""
- name: Give the data network its address and jumbo frames
  baremetal.gpu_cluster.network_profiles:
    interfaces:
      - name: ens1f0
        addresses: [192.0.2.11/24]
        mtu: 9000

- name: Move the address through which the node is managed
  baremetal.gpu_cluster.network_profiles:
    interfaces:
      - name: eno1
        addresses: [198.51.100.11/24]
        gateway: [198.51.100.1]
        dns: [198.51.100.2]
    confirm_host: 198.51.100.11
"""

RETURN = r"""
activated:
  description: Interfaces whose profile was activated, or in check mode would be, in this order.
  returned: success
  type: list
  elements: str
  sample: [ens1f0]
left_alone:
  description: Interfaces whose existing static profile already has all wanted settings, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
host:
  description: The current address of the node.
  returned: always
  type: str
  sample: 198.51.100.11
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

import glob
import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import ssh_connection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import (
    BusyError,
    ChangeError,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import (
    change,
    controller,
    keyfile,
    plan,
    spec,
    state,
)

NOT_CHANGED = "Refused, nothing was changed: %s"


def read_files(patterns: tuple[str, ...]) -> dict[str, str]:
    """The texts of all files that match."""
    texts = {}
    for path in (path for pattern in patterns for path in glob.glob(pattern)):
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as stream:
                # NetworkManager ignores a profile that others may read.
                open_to_others = path.startswith(keyfile.FOLDER) and os.fstat(stream.fileno()).st_mode & 0o077
                texts[path] = "" if open_to_others else stream.read()
        except OSError:
            continue
    return texts


class Node:
    """Runs the commands that read this node's network."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def read(self, argv: tuple[str, ...]) -> str:
        """The output of one command."""
        path = self.module.get_bin_path(argv[0], required=True)
        rc, out, err = self.module.run_command([path, *argv[1:]], environ_update={"LC_ALL": "C"})
        if rc:
            said = " ".join(f"{out} {err}".split())
            self.module.fail_json(msg=NOT_CHANGED % f"'{' '.join(argv)}' failed: {said}")
        return str(out)

    def state(self, ssh_address: str) -> state.NodeState:
        """Everything that a plan needs, but for the details of profiles of others."""
        return state.make_state(
            {name: self.read(argv) for name, argv in state.COMMANDS.items()},
            read_files(state.PATTERNS),
            [path for pattern in state.LISTED for path in glob.glob(pattern)],
            ssh_address,
        )


def main() -> None:
    """Compare; start the change when there is one to make."""
    module = AnsibleModule(
        argument_spec={
            "interfaces": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": spec.INTERFACE_OPTIONS,
            },
            "confirm_host": {"type": "str"},
            "confirm_seconds": {"type": "int", "default": 60},
            "run_id": {"type": "str"},
        },
        supports_check_mode=True,
    )
    given = module.params
    wrong = spec.confirm_seconds_problems(given["confirm_seconds"])
    wrong += spec.interface_problems(given["interfaces"])
    if wrong:
        module.fail_json(msg=NOT_CHANGED % " ".join(problem.sentence() for problem in wrong))
    interfaces = spec.parse_interfaces(given["interfaces"])
    connection = ssh_connection.current()
    node = Node(module)
    try:
        for note in change.clear_way(module.run_command, check_mode=module.check_mode):
            module.warn(note)
        current = node.state(connection.address)
        needed = plan.details_needed(interfaces, current)
        if needed:
            current = state.with_details(current, node.read(state.details_command(needed)))
        found = plan.make_plan(interfaces, current)
        if found.problems:
            module.fail_json(msg=NOT_CHANGED % " ".join(problem.sentence() for problem in found.problems))
        for sentence in found.lost:
            module.warn(sentence)
        result = {
            "changed": found.changed,
            "activated": found.activated,
            "left_alone": found.left_alone,
            "diff": found.diffs(),
        }
        if not found.changed or module.check_mode:
            module.exit_json(**result)
        job = {
            **found.job(),
            "run_id": given["run_id"] or f"by-hand-{os.getpid()}",
            "confirm_seconds": given["confirm_seconds"],
            "client": connection.client,
            "starter": os.getpid(),
            "tried": "; ".join(controller.described(target.name, target.interface) for target in found.targets),
        }
        began = change.start(module.run_command, job)
    except BusyError as error:
        module.fail_json(msg=str(error), busy_seconds=error.seconds)
    except ChangeError as error:
        module.fail_json(msg=str(error))
    if began["state"] == "failed":
        module.fail_json(msg=NOT_CHANGED % began["reason"])
    module.exit_json(run_id=job["run_id"], change=job, **result)


if __name__ == "__main__":
    main()
