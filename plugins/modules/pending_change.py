#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module pending_change: look at, confirm or give up a change of network or firewall that waits on the node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pending_change
short_description: Show, confirm or abort a pending change of network or firewall
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Second half of M(baremetal.gpu_cluster.network_profiles) and M(baremetal.gpu_cluster.firewall_peers), which call it
    over new connections. Called by hand, it shows the state of a change, or reverts it before its timeout.
  - Every call and every answer contains 64 KiB of random data, so that a connection that passes only small packets
    fails.
options:
  kind:
    description:
      - V(network) for a change that M(baremetal.gpu_cluster.network_profiles) started, V(firewall) for one that
        M(baremetal.gpu_cluster.firewall_peers) started.
    type: str
    choices: [network, firewall]
    required: true
  run_id:
    description:
      - Name of the change, from RV(baremetal.gpu_cluster.network_profiles#module:run_id) or
        RV(baremetal.gpu_cluster.firewall_peers#module:run_id).
    type: str
    required: true
  step:
    description: V(look) only returns the state, V(confirm) makes the change permanent, V(abort) reverts it at once.
    type: str
    choices: [look, confirm, abort]
    default: look
  payload:
    description: Data to transfer over the connection; its digest is returned.
    type: str
    default: ""
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: none
  diff_mode:
    support: none
  platform:
    platforms: posix
seealso:
  - module: baremetal.gpu_cluster.firewall_peers
  - module: baremetal.gpu_cluster.network_profiles
"""

EXAMPLES = r"""
- name: Take back a change of the network at once instead of waiting for its time to be over
  baremetal.gpu_cluster.pending_change:
    kind: network
    run_id: 20261121t052204z-k3x9ab
    step: abort

- name: See where a change of the firewall stands
  baremetal.gpu_cluster.pending_change:
    kind: firewall
    run_id: 20261121t052204z-k3x9ab
"""

RETURN = r"""
state:
  description:
    - V(armed) and V(applying) before, V(applied) while the change is in force and waits, then V(confirmed), V(undone),
      or V(failed) when it never began. V(unknown) when the node knows of no such change.
  returned: always
  type: str
  sample: confirmed
reason:
  description: Why the change was reverted or never started.
  returned: when RV(state) is V(undone) or V(failed)
  type: str
restored:
  description:
    - Whether everything is as it was before the change.
    - For O(kind=network) these are addresses, default routes and profile files, for O(kind=firewall) the files of
      firewalld, its running rules and its unit.
  returned: when RV(state) is V(undone)
  type: bool
differences:
  description: Differences from the state before the change, one sentence each.
  returned: when RV(state) is V(undone)
  type: list
  elements: str
left:
  description: Seconds until the node reverts the change.
  returned: when RV(state) is not V(unknown)
  type: float
applied_for:
  description: Seconds for which the change has been in force.
  returned: when it ever was
  type: float
digest:
  description: The sha256 of O(payload).
  returned: always
  type: str
payload:
  description: 64 KiB of random data in base64.
  returned: always
  type: str
payload_digest:
  description: The sha256 of RV(payload).
  returned: always
  type: str
"""

import base64
import hashlib
import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.change import CONFIRM_SECONDS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import FINAL, ChangeError
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.change import FIREWALL
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.change import NETWORK

CHANGES = {change.what: change for change in (NETWORK, FIREWALL)}
PAYLOAD_BYTES = 65536


def main() -> None:
    """Do the step, answer with the state."""
    module = AnsibleModule(
        argument_spec={
            "kind": {"type": "str", "choices": list(CHANGES), "required": True},
            "run_id": {"type": "str", "required": True},
            "step": {"type": "str", "choices": ["look", "confirm", "abort"], "default": "look"},
            "payload": {"type": "str", "default": ""},
        }
    )
    change, run_id, step = CHANGES[module.params["kind"]], module.params["run_id"], module.params["step"]
    try:
        if step != "look":
            change.leave_word(run_id, step)
        state = change.wait_for_end(module.run_command, run_id, 0 if step == "look" else CONFIRM_SECONDS)
        if state["state"] in FINAL:
            change.mark_seen(run_id)
    except ChangeError as error:
        module.fail_json(msg=str(error))
    payload = base64.b64encode(os.urandom(PAYLOAD_BYTES)).decode("ascii")
    module.exit_json(
        **{
            **state,
            "changed": step != "look",
            "digest": hashlib.sha256(module.params["payload"].encode()).hexdigest(),
            "payload": payload,
            "payload_digest": hashlib.sha256(payload.encode()).hexdigest(),
        }
    )


if __name__ == "__main__":
    main()
