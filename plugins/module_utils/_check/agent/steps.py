# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a run that follow its launch, on the node: probe the peers, hand the ranks their job, fetch the results.

    steps.py probe|go|collect ARGUMENTS

The module check_step calls them.  So does this program, which lies in the payload, with the arguments as JSON, or ``-``
for standard input: to pack, send and unpack a module costs a node ten times as much of a processor, and three more
round trips.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import Runner, run_command
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import run_state
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import limits, worker_state
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import BACKENDS

#: The arguments of go that every rank is told.
COLLECTIVE: dict[str, Any] = {
    "world_size": {"type": "int", "required": True},
    "master_address": {"type": "str", "required": True},
    "master_port": {"type": "int", "required": True},
    "backend": {"type": "str", "choices": list(BACKENDS), "default": "gloo"},
    "sizes_bytes": {"type": "list", "elements": "int", "default": [4096, 1048576, 16777216]},
    "warmup": {"type": "int", "default": 5},
    "iterations": {"type": "int", "default": 20},
    "max_iterations": {"type": "int", "default": 0},
    "size_seconds": {"type": "float", "default": 2.0},
    "plateau": {"type": "bool", "default": False},
    "fit_deadline": {"type": "bool", "default": False},
    "join_seconds": {"type": "int", "default": 30},
    "timeout_seconds": {"type": "int", "default": 10},
}
GO: dict[str, Any] = {
    **COLLECTIVE,
    "run_id": {"type": "str", "required": True},
    "ranks": {"type": "list", "elements": "int", "required": True},
    "deadline_seconds": {"type": "int", "default": 60},
}
PROBE: dict[str, Any] = {
    "run_id": {"type": "str", "required": True},
    "host": {"type": "str", "default": ""},
    "book": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "host": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
            "ports": {"type": "list", "elements": "dict", "required": True},
            "ranges": {"type": "list", "elements": "dict", "default": []},
            "rails": {"type": "list", "elements": "dict", "default": []},
        },
    },
    "timeout_seconds": {"type": "float", "default": 3.0},
    "wait": {"type": "bool", "default": True},
    "wait_seconds": {"type": "int", "default": 120},
    "ready_seconds": {"type": "float", "default": 0.0},
}
COLLECT: dict[str, Any] = {
    "run_id": {"type": "str", "required": True},
    "wait_seconds": {"type": "int", "default": 60},
}


def probe(run: Runner, params: dict[str, Any]) -> dict[str, Any]:
    """Begin the probe of all peers, and fetch what it found.  params: as ``PROBE`` has it."""
    run_id = params["run_id"]
    try:
        if params["book"]:
            asked = {name: params[name] for name in ("host", "book", "timeout_seconds")}
            run_state.probe(run_id, dict(asked, asked_monotonic=time.monotonic()))
        if not params["wait"]:
            return {"changed": False, "started": True}
        found = run_state.wait_for_probe(run, run_id, params["wait_seconds"])
        # What imports slowly would miss the rendezvous.
        run_state.wait_for_ranks(
            run, run_id, run_state.probe_begun(run_id) + params["ready_seconds"] - time.monotonic()
        )
    except run_state.UnitError as error:
        return {"changed": False, "started": False, "error": str(error)}
    return {"changed": False, "started": True, **found}


def go(_run: Runner, params: dict[str, Any]) -> dict[str, Any]:
    """Hand the worker its ranks.  params: as ``GO`` has it."""
    data = {
        "ranks": params["ranks"],
        "deadline_seconds": params["deadline_seconds"],
        "collective": {name: params[name] for name in COLLECTIVE},
    }
    try:
        run_state.go(params["run_id"], data)
    except run_state.UnitError as error:
        return {"changed": False, "started": False, "error": str(error)}
    return {"changed": False, "started": True}


def collect(run: Runner, params: dict[str, Any]) -> dict[str, Any]:
    """Wait for the ranks, end the worker.  params: as ``COLLECT`` has it."""
    run_id = params["run_id"]
    try:
        try:
            state = run_state.wait(run, run_id, params["wait_seconds"])
        finally:
            run_state.stop(run, run_id)
    except run_state.UnitError as error:
        return {"failed": True, "msg": str(error)}
    return {"changed": False, "run_id": run_id, **(state or {"state": "lost"})}


STEPS = {"probe": probe, "go": go, "collect": collect}
SPECS = {"probe": PROBE, "go": GO, "collect": COLLECT}
#: What the results may hold.
RESULTS = {
    "probe": ("changed", "failed", "msg", "started", "error", "links", "rails"),
    "go": ("changed", "failed", "msg", "started", "error"),
    "collect": ("changed", "failed", "msg", "run_id", *worker_state.STATE),
}


def run_step(step: str, run: Runner, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a step.  run: starts commands, as ``AnsibleModule.run_command`` does."""
    wrong = limits.out_of_range(params)
    if wrong:
        return {"failed": True, "msg": "; ".join(wrong)}
    return STEPS[step](run, params)


if __name__ == "__main__":
    arguments = sys.stdin.read() if sys.argv[2] == "-" else sys.argv[2]
    sys.stdout.write(json.dumps(run_step(sys.argv[1], run_command, json.loads(arguments))) + "\n")
    sys.stdout.flush()
    # Or Python would take everything apart first, which is a tenth of the whole.
    os._exit(0)
