# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps openmpi and openmpi_clear on a node: run mpirun, or end what it has left."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import mpi_job
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import limits

SPEC: dict[str, Any] = {
    "run_id": {"type": "str", "required": True},
    "nodes": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {"host": {"type": "str", "required": True}, "address": {"type": "str", "required": True}},
    },
    "prefix": {"type": "path", "default": "/usr/lib64/openmpi"},
    "python": {"type": "path", "default": "/usr/bin/python3"},
    "user": {"type": "str", "default": ""},
    "ssh_port": {"type": "int", "default": 22},
    "deadline_seconds": {"type": "int", "default": 20},
    "clear": {"type": "bool", "default": False},
}
#: What the result may hold.
RESULTS = (
    *("changed", "failed", "msg"),
    *("state", "error", "code", "seconds", "events", "text", "ssh", "ended", "unclean"),
)


def run_step(_run: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Run mpirun, or end what it has left.  params: as ``SPEC`` has it."""
    wrong = limits.out_of_range(params)
    if not params["clear"] and len(params["nodes"]) < 2:
        wrong.append(f"nodes has {len(params['nodes'])} nodes, an all_reduce needs at least 2")
    if wrong:
        return {"failed": True, "msg": "; ".join(wrong)}
    if params["clear"]:
        return {"changed": False, "ended": mpi_job.clear(params["run_id"])}
    try:
        return {"changed": False, **mpi_job.run(params)}
    except mpi_job.StartError as error:
        return {"changed": False, "state": "failed", "error": str(error), "unclean": False}
