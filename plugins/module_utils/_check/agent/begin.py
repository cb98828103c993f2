# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The step launch on a node: start the worker of a check."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import Runner
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import job_variables, launch, run_state
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import limits, worker_state
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import files

SPEC: dict[str, Any] = {
    "run_id": {"type": "str", "required": True},
    "nonce": {"type": "str", "required": True, "no_log": False},
    "address": {"type": "str", "required": True},
    "interface": {"type": "str", "required": True},
    "torch_python": {"type": "path", "required": True},
    "user": {"type": "str", "default": ""},
    "ranks_per_node": {"type": "int", "default": 1},
    "rendezvous_first": {"type": "int", "default": 29500},
    "rendezvous_last": {"type": "int", "default": 29599},
    "samples": {"type": "int", "default": 4},
    "ranges": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "first": {"type": "int", "required": True},
            "last": {"type": "int", "required": True},
        },
    },
    "rails": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
        },
    },
    "openmpi_prefix": {"type": "path", "default": ""},
    "lifetime_seconds": {"type": "int", "default": 300},
    "wait_seconds": {"type": "int", "default": 15},
}
#: What the result may hold.
RESULTS = (
    *("changed", "failed", "msg", *worker_state.LISTENS, "error"),
    *("address", "ephemeral_range", "ranges", "kernel", "openmpi", "other_runs", "stopped_runs"),
)


def ephemeral_range() -> list[int]:
    """The ports that the kernel gives to a socket that asks for none."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as stream:
        return [int(port) for port in stream.read().split()]


def port_plan(params: dict[str, Any], ephemeral: list[int]) -> list[dict[str, Any]]:
    """All ranges, the rendezvous first.  params: as ``SPEC`` has it."""
    return [
        {"name": "rendezvous", "first": params["rendezvous_first"], "last": params["rendezvous_last"]},
        {"name": "ephemeral", "first": ephemeral[0], "last": ephemeral[1]},
        *({key: one[key] for key in ("name", "first", "last")} for one in params["ranges"]),
    ]


def openmpi(params: dict[str, Any]) -> dict[str, Any]:
    """What there is for a job of Open MPI.  params: as ``SPEC`` has it."""
    mpirun = f"{params['openmpi_prefix']}/bin/mpirun"
    return {
        "prefix": params["openmpi_prefix"],
        "python": params["torch_python"],
        "mpirun": bool(params["openmpi_prefix"]) and os.path.isfile(mpirun) and os.access(mpirun, os.X_OK),
        "key": bool(params["user"]) and os.path.exists(files.user_key(params["user"])),
    }


def wrong_ranges(ranges: list[dict[str, Any]]) -> list[str]:
    """One sentence for each range that is none."""
    return [
        f"range {one['name']} is {one['first']} to {one['last']}, expected ports from 1 to 65535, the lower one first"
        for one in ranges
        if not 1 <= one["first"] <= one["last"] <= 65535
    ]


def run_step(run: Runner, params: dict[str, Any]) -> dict[str, Any]:
    """Start the worker.  params: as ``SPEC`` has it."""
    ephemeral = ephemeral_range()
    ranges = port_plan(params, ephemeral)
    wrong = limits.out_of_range(params) + wrong_ranges(ranges)
    if wrong:
        return {"failed": True, "msg": "; ".join(wrong)}
    job = {
        "nonce": params["nonce"],
        "address": params["address"],
        "interface": params["interface"],
        "torch_python": params["torch_python"],
        "ranks_per_node": params["ranks_per_node"],
        "ranges": [dict(one, samples=params["samples"]) for one in ranges],
        "rails": params["rails"],
        "lifetime_seconds": params["lifetime_seconds"],
        "variables": job_variables.values(),
    }
    result = {
        "changed": False,
        "address": params["address"],
        "ephemeral_range": ephemeral,
        "ranges": ranges,
        "kernel": platform.release(),
        "openmpi": openmpi(params),
        "other_runs": [],
        "stopped_runs": [],
    }
    try:
        earlier = launch.clear_earlier_runs(run)
        result.update(other_runs=earlier.active, stopped_runs=earlier.stopped)
        launch.check_node(job)
        launch.check_trust(job, params["user"])
        state = launch.start(run, params["run_id"], job, sys.executable, params["user"], params["wait_seconds"])
    except run_state.UnitError as error:
        return {"state": "failed", "error": str(error), **result}
    if state["state"] == worker_state.FAILED:
        run_state.stop(run, params["run_id"])
        return {"state": "failed", "error": state["error"], **result}
    return {**{key: state[key] for key in worker_state.LISTENS}, **result}
