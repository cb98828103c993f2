#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module discover_node: what a machine is, as far as the inventory depends on it. Reads only."""

from __future__ import annotations

DOCUMENTATION = r"""
module: discover_node
short_description: Read what the inventory of a cluster says about a machine
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Reads the network cards (driver, speed, carrier, MTU, addresses, RDMA devices, the switch if C(lldpctl) is there),
    the card of the default route and the address of the ssh connection, the GPUs by the PCI bus and by C(nvidia-smi),
    the system, the host name, the login, and the sizes of memory and disk. Changes nothing, and brings nothing up.
  - As root, it sends ARP probes (RFC 5227) for the addresses in O(probe) on each card that is up, has a carrier and has
    no IPv4 address, and lists which hardware addresses answered within a second. These are the packets of
    C(arping -D). They have no sender address, so no neighbour table changes, and no card needs an address for them.
  - An action plugin of the same name adds O(probe), and returns a failed become as a result.
options:
  probe:
    description:
      - IPv4 addresses of other machines. By default those at which ssh reaches the next 8 members of the inventory.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Same behaviour as without check mode.
  diff_mode:
    support: none
    details: There is nothing to compare.
  platform:
    platforms: posix
    details: Linux.
seealso:
  - module: baremetal.gpu_cluster.discover_inventory
  - module: baremetal.gpu_cluster.gpu_node_facts
"""

EXAMPLES = r"""
- name: Ask the machine
  baremetal.gpu_cluster.discover_node:
  register: asked
"""

RETURN = r"""
machine:
  description:
    - What was read. Sizes are in bytes, speeds in Mbit/s; a value that cannot be read is empty, false or 0.
    - C(cards) has the cards and what is made of them; C(heard) of a card has the hardware addresses that answered
      there.
    - C(sudo) is V(root) for a login as root, else V(yes), V(password) (sudo asks for it) or V(no).
  returned: success
  type: dict
  sample:
    hostname: gpu01
    system: CentOS Stream 9
    sudo: root
    default_card: eno1
    cards:
      - name: ens1f0np0
        driver: mlx5_core
        speed_mbit: 400000
        carrier: true
        addresses: [198.51.100.11/24]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover import read


def main() -> None:
    """Read, and answer."""
    module = AnsibleModule(argument_spec=read.SPEC, supports_check_mode=True)
    module.exit_json(**read.run_step(module.run_command, module.params))


if __name__ == "__main__":
    main()
