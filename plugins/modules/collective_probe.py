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
  - Second step of a coordinated all_reduce. The worker that M(baremetal.gpu_cluster.collective_launch) has started on
    this node connects to every port on which the workers of the other nodes listen, and expects the answer that only a
    worker of this run can give.
  - One port of each peer gets payloads of 64, 1300, 1500, 9000 and 65536 bytes that may not be fragmented, which shows
    an MTU hole, and then 1 MiB, which shows the rate of the link and what had to be sent again.
  - Where ports are blocked it looks for the exact intervals, from port 1024 to 65535, on up to eight peers. It connects
    to closed ports for that; a port that nobody listens on and nobody filters answers at once.
  - Takes about a second where all is well and about ten seconds where ports are blocked. Whatever the peers do, it
    ends after nine times O(timeout_seconds) for each 4000 ports of all rails together, and 32 seconds.
  - The worker probes in the background. With more hosts than forks, begin on all hosts with O(wait=false) and fetch
    from all hosts in a second task, so that the time of a probe does not count once for each round of forks.
  - A collective can pass although half of the links are closed, because each pair connects in one direction only.
    This step sees both.
extends_documentation_fragment:
  - baremetal.gpu_cluster.collective
  - baremetal.gpu_cluster.collective.progress
options:
  host:
    description: Name of this node in O(book); it does not probe itself.
    type: str
    default: ""
  book:
    description:
      - The nodes whose workers listen, from the results of M(baremetal.gpu_cluster.collective_launch).
      - The list, or JSON of it as P(baremetal.gpu_cluster.collective_book#filter) has it.
      - With it the probe begins, unless it had begun. It can be left out where an earlier task has begun it.
    type: list
    elements: dict
    default: []
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
      ranges:
        description: The ranges of its port plan, each with C(first) and C(last). The search for blocked ports looks
          closer there.
        type: list
        elements: dict
        default: []
      rails:
        description: Its further addresses, each with the C(name) of the rail, C(address) and C(ports). Those of this
          node itself are the addresses from which to connect there.
        type: list
        elements: dict
        default: []
  wait:
    description: Whether to wait for the end of the probe and return what it found.
    type: bool
    default: true
  wait_seconds:
    description: How long to wait for the end of the probe, 0 to 14400 seconds. After that it is RV(error).
    type: int
    default: 120
  timeout_seconds:
    description: Time to connect, and again for the answer, 0.1 to 3600 seconds.
    type: float
    default: 3.0
  ready_seconds:
    description:
      - How long, from the begin of the probe on, the module waits after its end until every rank of this node has
        imported torch or has ended, 0 to 3600 seconds.
      - A node whose worker has no ranks, or is gone, is not waited for.
    type: float
    default: 0.0
  all_links:
    description: Number of links between all nodes, for O(progress). Known from O(book) where that is given.
    type: int
    default: 0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
"""

EXAMPLES = r"""
- name: Begin to probe all peers
  baremetal.gpu_cluster.collective_probe:
    run_id: "{{ run_id }}"
    host: "{{ inventory_hostname }}"
    book:
      - host: gpu02
        address: 192.0.2.12
        ports:
          - range: rendezvous
            port: 29500
        ranges:
          - name: rendezvous
            first: 29500
            last: 29599
    wait: false

- name: Fetch what the probes have found
  baremetal.gpu_cluster.collective_probe:
    run_id: "{{ run_id }}"
  register: probe
"""

RETURN = r"""
started:
  description: Whether the probe was begun and, with O(wait), came to its end.
  returned: always
  type: bool
error:
  description: Why not - no worker of this run, no space for its files, or a worker or a probe that ended before.
  returned: when RV(started) is false
  type: str
  sample: the worker of run 20260131t120000z-k3x9ab ended before it had probed its peers
links:
  description: One entry for each peer, in the order of O(book).
  returned: when RV(started) is true and O(wait) is true
  type: list
  elements: dict
  contains:
    host:
      description: Name of the peer.
      returned: always
      type: str
    probes:
      description: Number of its ports that were probed.
      returned: always
      type: int
    milliseconds:
      description: Time of a handshake, median over the ports that answered; none when no port did.
      returned: always
      type: float
    bytes_per_second:
      description: Payload of 1 MiB by the time up to its answer, best of up to four; none when it was not measured.
      returned: always
      type: int
    retransmits:
      description: Segments that were sent again for 1 MiB, fewest of the same measurements.
      returned: always
      type: int
    failures:
      description:
        - The ports that did not answer as they should, each with C(port), C(range), C(result) and C(milliseconds).
        - C(result) is V(timeout) (nothing came back), V(unreachable) (rejected on the way or by a firewall),
          V(refused) (reset, or nothing listens), V(stalled) (connected, but a payload was not answered), V(foreign)
          (something else answered), or the name of another error.
        - With V(stalled), C(passed_bytes) is the largest payload that was answered and C(stalled_bytes) the one that
          was not. With V(foreign), C(said) is what it said first.
      returned: always
      type: list
      elements: dict
    blocked:
      description: Blocked intervals of ports, both ends exact, each with C(first), C(last) and C(result), which is
        V(timeout) (dropped) or V(unreachable) (rejected).
      returned: always
      type: list
      elements: dict
    searched:
      description: Intervals, first and last port, that were searched for blocked ports; empty without a search.
      returned: always
      type: list
      elements: list
    unheard:
      description: Own ports of this node to which nothing came back, where the same port of the peer answered another
        own port. What drops answers by their port keeps no state.
      returned: always
      type: list
      elements: int
  sample:
    - host: gpu02
      probes: 12
      milliseconds: 0.049
      bytes_per_second: 1166016000
      retransmits: 0
      failures:
        - port: 41570
          range: ephemeral
          result: timeout
          milliseconds: 1601.2
      blocked:
        - first: 40000
          last: 50000
          result: timeout
      searched:
        - [1024, 65535]
      unheard: []
rails:
  description: The same for each further rail that this node and a peer have, all called at the same time. Each entry
    has the C(name) of the rail, and C(links) as RV(links).
  returned: when RV(started) is true and O(wait) is true
  type: list
  elements: dict
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import steps


def main() -> None:
    module = AnsibleModule(argument_spec=steps.PROBE)
    result = steps.run_step("probe", module.run_command, module.params)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
