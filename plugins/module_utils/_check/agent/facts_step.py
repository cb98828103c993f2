# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The step static on a node: what it says of itself."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import facts

MEMBER = {
    "name": {"type": "str", "required": True},
    "fabric_address": {"type": "str", "required": True},
    "fabric_prefix": {"type": "int", "required": True},
    "fabric_interface": {"type": "str", "required": True},
    "management_address": {"type": "str", "required": True},
    "addresses": {"type": "list", "elements": "str", "required": True},
    "rail_addresses": {"type": "list", "elements": "dict", "default": []},
}
SPEC: dict[str, Any] = {
    "host": {"type": "str", "required": True},
    "members": {"type": "list", "elements": "dict", "required": True, "options": MEMBER},
    "plan": {"type": "dict", "required": True},
    "user": {"type": "str", "default": ""},
    "torch_python": {"type": "str", "default": ""},
    "login_to": {"type": "str", "default": ""},
}
#: What the result may hold.
RESULTS = ("changed", "failed", "msg", "static")


def run_step(run: facts.Runner, params: dict[str, Any]) -> dict[str, Any]:
    """Look at the node.  given: as ``SPEC`` has it."""
    if [member["name"] for member in params["members"]].count(params["host"]) != 1:
        return {"failed": True, "msg": f"host is {params['host']!r}, expected the name of exactly one entry of members"}
    found = facts.look(
        run,
        host=params["host"],
        members=params["members"],
        user=params["user"],
        plan=params["plan"],
        torch_python=params["torch_python"],
        login_to=params["login_to"],
    )
    return {"changed": False, "static": found}
