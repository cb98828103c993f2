#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetch what the ranks of a node reported, and end its worker."""

from __future__ import annotations

DOCUMENTATION = r"""
module: collective_collect
short_description: Fetch what the ranks of a node reported, and end its worker
version_added: "0.1.0"
description:
  - Last step of a coordinated all_reduce on the nodes. It waits until the ranks have ended, returns everything they
    reported, ends the worker with all
    its processes and removes its files.
  - After O(wait_seconds) it returns what there is, and says so in RV(state).
extends_documentation_fragment:
  - baremetal.gpu_cluster.collective
  - baremetal.gpu_cluster.collective.progress
options:
  look:
    description:
      - Whether O(progress) is read on this node until its ranks have ended, which has to be the one of rank 0. The time
        counts for O(wait_seconds).
      - Costs the node some 40 ms of a processor in each second, and the step half a second in the end.
    type: bool
    default: false
  wait_seconds:
    description: How long to wait for the ranks, 0 to 3600 seconds. With 0 the worker is ended at once.
    type: int
    default: 60
author:
  - baremetal.gpu_cluster contributors (@baremetal)
"""

EXAMPLES = r"""
- name: Fetch the results
  baremetal.gpu_cluster.collective_collect:
    run_id: "{{ run_id }}"
    wait_seconds: 60
  register: collect
"""

RETURN = r"""
run_id:
  description: As given; tells this result from that of an earlier run.
  returned: always
  type: str
  sample: 20260131t120000z-k3x9ab
state:
  description:
    - V(finished) when all ranks ended by themselves, V(deadline) when the worker killed them, V(running) when they
      were still at work after O(wait_seconds),
      V(waiting) when they never got a job, V(expired) when the worker's lifetime was over before they got one, V(died)
      when the worker ended in the middle of its work, V(lost) when it left nothing.
  returned: always
  type: str
  sample: finished
error:
  description: The end of the worker's log, or how long it has waited for a job.
  returned: when RV(state) is V(died) or V(expired)
  type: str
hostname:
  description: The node's own name.
  returned: when RV(state) is not V(lost)
  type: str
  sample: gpu01
ranks:
  description:
    - For each rank C(local_rank), C(exit_code), C(stderr_tail) and C(events) in order, as the rank wrote them.
    - C(process_state) is that of its process (a letter of proc_pid_stat(5)) when the worker killed it, V(T) of one that
      was stopped, and empty when it had ended.
    - "Events: C(ready) (torch imported), C(late) (that was so many C(seconds) after the ranks were told to begin),
      C(gpu) (has its GPU), C(store) (rendezvous reached), C(joined) (process group complete), C(inside) (the GPUs
      of this node summed alone), C(size) (C(size_bytes), C(seconds) of each timed iteration, C(checked) iterations,
      C(wrong)), C(plateau) and C(no_time) (larger sizes are left out), C(keys) (C(missing) ranks and C(addresses)
      at a rendezvous that fails), C(wrong) and C(wrong_inside) (a wrong sum, at once), C(done), C(error). Each has
      C(at), the time by the node's clock. Anything else that was written is C(output), with its C(text)."
  returned: when RV(state) is not V(lost)
  type: list
  elements: dict
progress_note:
  description:
    - How far the collective was when the ranks ended, on the node of rank 0; elsewhere V(null). C(size_bytes),
      C(number) and C(of) are those of the size, C(iterations) and C(at_most) of its iterations, C(seconds_ago) the
      time since rank 0 wrote it, C(deadline_seconds) and C(timeout_seconds) what the ranks were told.
  returned: when a rank did not end well
  type: dict
  sample:
    backend: gloo
    size_bytes: 1048576
    number: 4
    of: 6
    iterations: 12
    at_most: 65
    seconds_ago: 0.3
    deadline_seconds: 43
    timeout_seconds: 10
interface_bytes:
  description: Bytes that the interface received (C(rx_bytes)) and sent (C(tx_bytes)) while the ranks ran.
  returned: when the ranks have run
  type: dict
  sample:
    rx_bytes: 912345678
    tx_bytes: 912345678
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import steps


def main() -> None:
    module = AnsibleModule(argument_spec=steps.COLLECT)
    result = steps.run_step("collect", module.run_command, module.params)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
