# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``--dry-run`` shows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.commands import node_commands
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.containers import (
    GPU_DEVICE,
    RDMA_DEVICES,
    container_command,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.logs import log_folder
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.meeting import usual_meeting
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import ENVIRONMENT_FILE
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.users import user_name


def describe(jobs: Sequence[Mapping[str, Any]]) -> str:
    """What ``--dry-run`` shows."""
    first, last, default = jobs[0]["ports"]
    etcd = jobs[0]["etcd"]
    where = f"on {jobs[0]['master']}, a free port of {first}-{last} (shown: {default})"
    nodes = len([job for job in jobs if not job["store"]]) - jobs[0]["spares"]
    lines = [
        f"mode {jobs[0]['mode']}, {nodes} nodes, {jobs[0]['world_size']} ranks, as {user_name()}",
        f"rendezvous {'in etcd at ' + ', '.join(etcd['endpoints']) if etcd else where}",
    ]
    for index, job in enumerate(jobs):
        role = ", a spare" if nodes <= index and not job["store"] else ", without ranks" if job["store"] else ""
        lines.append(f"{job['name']} ({job['address']}){role}:")
        for number, start in enumerate(node_commands(job, default)):
            setting = " ".join(f"{name}={value}" for name, value in start.variables.items())
            argv = start.argv
            if job["image"]:
                known = {"PYTHONUNBUFFERED", *job["variables"], *start.variables}
                argv = container_command(dict(job, logs=log_folder(job)), start, number, known, [], usual_meeting())
            lines.append("    " + " ".join(filter(None, [setting, shlex.join(argv)])))
    if jobs[0]["image"]:
        lines.append(
            f"each node adds --env for the names in {ENVIRONMENT_FILE}, --device={GPU_DEVICE}=all if it has GPUs, and "
            f"--device={RDMA_DEVICES} if it has RDMA devices"
        )
    return "\n".join([*lines, f"each rank: {shlex.join(jobs[0]['command'])}"])
