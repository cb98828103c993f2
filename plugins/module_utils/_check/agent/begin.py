# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module collective_launch does, for the module and for the program that is sent in its place."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import launch, run_state
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.service import Run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import (
    job_variables,
    limits,
    worker_state,
)
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


def port_plan(given: dict[str, Any], ephemeral: list[int]) -> list[dict[str, Any]]:
    """All ranges, the rendezvous first.  given: the module's options."""
    return [
        {"name": "rendezvous", "first": given["rendezvous_first"], "last": given["rendezvous_last"]},
        {"name": "ephemeral", "first": ephemeral[0], "last": ephemeral[1]},
        *({key: one[key] for key in ("name", "first", "last")} for one in given["ranges"]),
    ]


def openmpi(given: dict[str, Any]) -> dict[str, Any]:
    """What there is for a job of Open MPI.  given: the module's options."""
    mpirun = f"{given['openmpi_prefix']}/bin/mpirun"
    return {
        "prefix": given["openmpi_prefix"],
        "python": given["torch_python"],
        "mpirun": bool(given["openmpi_prefix"]) and os.path.isfile(mpirun) and os.access(mpirun, os.X_OK),
        "key": bool(given["user"]) and os.path.exists(files.user_key(given["user"])),
    }


def wrong_ranges(ranges: list[dict[str, Any]]) -> list[str]:
    """One sentence for each range that is none."""
    return [
        f"range {one['name']} is {one['first']} to {one['last']}, expected ports from 1 to 65535, the lower one first"
        for one in ranges
        if not 1 <= one["first"] <= one["last"] <= 65535
    ]


def taken(run: Run, given: dict[str, Any]) -> dict[str, Any]:
    """Start the worker.  given: as ``SPEC`` has it.  Returns the result of the module."""
    ephemeral = ephemeral_range()
    ranges = port_plan(given, ephemeral)
    wrong = limits.out_of_range(given) + wrong_ranges(ranges)
    if wrong:
        return {"failed": True, "msg": "; ".join(wrong)}
    job = {
        "nonce": given["nonce"],
        "address": given["address"],
        "interface": given["interface"],
        "torch_python": given["torch_python"],
        "ranks_per_node": given["ranks_per_node"],
        "ranges": [dict(one, samples=given["samples"]) for one in ranges],
        "rails": given["rails"],
        "lifetime_seconds": given["lifetime_seconds"],
        "variables": job_variables.values(),
    }
    result = {
        "changed": False,
        "address": given["address"],
        "ephemeral_range": ephemeral,
        "ranges": ranges,
        "kernel": platform.release(),
        "openmpi": openmpi(given),
        "other_runs": [],
        "stopped_runs": [],
    }
    try:
        earlier = launch.clear_earlier_runs(run)
        result.update(other_runs=earlier.active, stopped_runs=earlier.stopped)
        launch.check_node(job)
        launch.check_trust(job, given["user"])
        state = launch.start(run, given["run_id"], job, sys.executable, given["user"], given["wait_seconds"])
    except run_state.UnitError as error:
        return {"state": "failed", "error": str(error), **result}
    if state["state"] == worker_state.FAILED:
        run_state.stop(run, given["run_id"])
        return {"state": "failed", "error": state["error"], **result}
    return {**{key: state[key] for key in worker_state.LISTENS}, **result}
