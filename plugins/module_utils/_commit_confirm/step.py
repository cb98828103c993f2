# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The body of a module that looks at, confirms or gives up a change, over a connection that has to carry 64 KiB."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.change import (
    CONFIRM_SECONDS,
    Change,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import FINAL, ChangeError

PAYLOAD_BYTES = 65536
STEPS: dict[str, Any] = {
    "run_id": {"type": "str", "required": True},
    "step": {"type": "str", "choices": ["look", "confirm", "abort"], "default": "look"},
    "payload": {"type": "str", "default": ""},
}


def answer(module: AnsibleModule, change: Change) -> None:
    """Do the step, answer with the state."""
    run_id, step = module.params["run_id"], module.params["step"]
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
