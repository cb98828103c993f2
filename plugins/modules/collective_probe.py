#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probe the ports of all peers from a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: collective_probe
short_description: Probe the ports of all peers from a node
version_added: "0.1.0"
description:
  - Second step of a coordinated all_reduce. It connects from this node to every port on which the workers of
    M(baremetal.gpu_cluster.collective_launch) listen, sends a payload and expects the answer that only a worker of
      this run can give.
  - Takes milliseconds where all is well and at most a few times O(timeout_seconds) where it is not, whatever the
    peers do.
  - A collective can pass although half of the links are closed, because each pair connects in one direction only.
    This step sees both.
extends_documentation_fragment:
  - baremetal.gpu_cluster.collective
options:
  nonce:
    description: Secret of this run, as given to M(baremetal.gpu_cluster.collective_launch).
    type: str
    required: true
  host:
    description: Name of this node in O(book); it does not probe itself.
    type: str
    required: true
  address:
    description: Address of this node from which to connect.
    type: str
    required: true
  book:
    description: The nodes whose workers listen, from the results of M(baremetal.gpu_cluster.collective_launch).
    type: list
    elements: dict
    required: true
    suboptions:
      host:
        description: Name of the node.
        type: str
        required: true
      address:
        description: Its address.
        type: str
        required: true
      ports:
        description: Its ports, each with C(port) and C(range).
        type: list
        elements: dict
        required: true
  payload_bytes:
    description: Payload for the first port of each peer and range, 0 to 99999999 bytes. A path that passes only
      small packets stalls it.
    type: int
    default: 65536
  timeout_seconds:
    description: Time to connect, and again for the answer, 0.1 to 3600 seconds.
    type: float
    default: 3.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
"""

EXAMPLES = r"""
- name: Probe all peers
  baremetal.gpu_cluster.collective_probe:
    run_id: "{{ run_id }}"
    nonce: "{{ nonce }}"
    host: "{{ inventory_hostname }}"
    address: 192.0.2.11
    book:
      - host: gpu02
        address: 192.0.2.12
        ports:
          - range: rendezvous
            port: 29500
  register: probe
"""

RETURN = r"""
rows:
  description:
    - One row for each probe, with C(host), C(port), C(range_name), C(result) and C(milliseconds).
    - C(result) is V(ok), V(timeout) (nothing came back), V(unreachable) (rejected on the way or by a firewall),
      V(refused) (reset, or nothing listens),
      V(stalled) (connected, but the payload was not answered), V(foreign) (something else answered), or the name of
        another error.
  returned: success
  type: list
  elements: dict
  sample:
    - host: gpu02
      port: 29500
      range_name: rendezvous
      result: ok
      milliseconds: 0.31
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective import limits, mesh


def targets(book: list[dict], own_name: str, payload_bytes: int) -> list[mesh.Target]:
    """Every port of every other node; the payload goes to the first port of each range."""
    found = []
    for peer in book:
        if peer["host"] == own_name:
            continue
        seen = set()
        for one in peer["ports"]:
            size = 64 if one["range"] in seen else payload_bytes
            seen.add(one["range"])
            found.append(mesh.Target(peer["host"], peer["address"], int(one["port"]), one["range"], size))
    return found


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "run_id": {"type": "str", "required": True},
            "nonce": {"type": "str", "required": True, "no_log": False},
            "host": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
            "book": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "host": {"type": "str", "required": True},
                    "address": {"type": "str", "required": True},
                    "ports": {"type": "list", "elements": "dict", "required": True},
                },
            },
            "payload_bytes": {"type": "int", "default": 65536},
            "timeout_seconds": {"type": "float", "default": 3.0},
        },
    )
    given = module.params
    wrong = limits.out_of_range(given)
    if wrong:
        module.fail_json(msg="; ".join(wrong))
    outcomes = mesh.probe(
        targets(given["book"], given["host"], given["payload_bytes"]),
        given["nonce"],
        given["address"],
        given["timeout_seconds"],
    )
    module.exit_json(changed=False, rows=[outcome.as_dict() for outcome in outcomes])


if __name__ == "__main__":
    main()
