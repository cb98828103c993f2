# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What starts the ranks of a node: torchrun, mpirun, horovodrun, or this program itself."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.cluster import endpoint
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.elastic import (
    ELASTIC_VARIABLES,
    STORE,
    rendezvous_options,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.etcd import PLUGIN, TORCHRUN_WITH_PLUGIN
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.meeting import socket_name, usual_meeting
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import own_path
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.ssh import ssh_options
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.variables import MARK, meeting_point


def rank_command(job: Mapping[str, Any]) -> list[str]:
    """How this program is started as the parent of one rank."""
    python = job["python"] if job["image"] else sys.executable
    return [python, "-I", own_path(), "--rank"]


def torchrun_command(job: Mapping[str, Any], port: int, turn: int = 0) -> list[str]:
    """torchrun as a module, so that the script's interpreter is torch's own.

    ``--local-addr`` is what torchrun tells the others; without it that is the host's name.  Whether a node hosts the
    rendezvous is said outright, because torchrun would guess it from names.
    """
    command = [job["python"], "-m", "torch.distributed.run"]
    if job["image"] and job["etcd"]:
        command = [job["python"], "-c", TORCHRUN_WITH_PLUGIN, PLUGIN]
    command += ["--no-python", "--nproc-per-node", str(job["ranks"])]
    if job["mode"] == "elastic":
        command += ["--nnodes", f"{job['min_nodes']}:{job['max_nodes']}", "--max-restarts", str(job["max_restarts"])]
        command += rendezvous_options(job, port, turn)
    else:
        command += ["--nnodes", str(len(job["hosts"])), "--node-rank", str(job["node"])]
        command += ["--master-addr", job["master"], "--master-port", str(port)]
    return [*command, "--local-addr", job["address"], *rank_command(job)]


def mpirun_command(job: Mapping[str, Any]) -> list[str]:
    """mpirun for programs of any kind; interfaces, ports and transport are in Open MPI's own files."""
    # It runs on the first node, and PRRTE 3 counts no slots for an address of its own node (openpmix/prrte, 2258).
    (_own, count), *others = job["hosts"]
    hosts = ",".join([f"localhost:{count}", *(endpoint(address, count) for address, count in others)])
    command = [job["mpirun"], "--host", hosts, "-np", str(job["world_size"]), "--map-by", "slot", "--bind-to", "none"]
    return [*command, "-x", MARK, *rank_command(job)]


#: horovodrun of the script's interpreter.  By itself it gives ssh ``StrictHostKeyChecking=no`` (Horovod 0.28.1,
#: horovod/runner/util/remote.py); here ssh is what the launcher uses.
HOROVODRUN = """\
import os, sys
from horovod.runner import launch
from horovod.runner.util import remote
remote.SSH_COMMAND_PREFIX = sys.argv[1]
sys.argv[1:2] = ["--gloo", "--disable-cache", "--network-interfaces", os.environ["GLOO_SOCKET_IFNAME"]]
launch.run_commandline()
"""


def horovodrun_command(job: Mapping[str, Any]) -> list[str]:
    """horovodrun with gloo: it starts the ranks of other nodes over ssh."""
    hosts = ",".join(f"{address}:{count}" for address, count in job["hosts"])
    ssh = shlex.join(["ssh", "-T", *ssh_options(job)])
    options = ["-np", str(job["world_size"]), "-H", hosts, "--ssh-port", str(job["ssh_port"])]
    return [job["python"], "-I", "-c", HOROVODRUN, ssh, *options, *rank_command(job)]


class Start(NamedTuple):
    """A process that an agent starts, and what its environment has beside that of the node."""

    argv: list[str]
    variables: dict[str, str]
    #: Without what ranks alone need.
    bare: bool = False


def node_commands(job: Mapping[str, Any], port: int, turn: int = 0) -> list[Start]:
    """What runs on a node: torchrun, mpirun on the first node only, the ranks themselves, or a store alone."""
    if job["store"]:
        agent = [os.path.join(usual_meeting(), socket_name(job["id"]))] if job["image"] else []
        return [Start([job["python"], "-c", STORE, job["address"], str(port), *agent], {})]
    if job["mode"] in ("torchrun", "elastic"):
        # From SIGTERM to SIGKILL, in seconds; 30 if nothing is said (torch.distributed.run, --shutdown-timeout).
        variables = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(max(job["grace"], 1))}
        if job["mode"] == "elastic":
            variables.update(ELASTIC_VARIABLES)
        return [Start(torchrun_command(job, port, turn), variables)]
    if with_gloo(job):
        # horovodrun writes all of its variables into the command lines of ssh, where everybody on the node reads them.
        return [Start(horovodrun_command(job), {}, bare=True)] if job["node"] == 0 else []
    if job["mode"] in ("mpirun", "horovod"):
        return [Start(mpirun_command(job), {})] if job["node"] == 0 else []
    return [
        Start(
            rank_command(job),
            {
                "RANK": str(job["first"] + local),
                "LOCAL_RANK": str(local),
                "WORLD_SIZE": str(job["world_size"]),
                "LOCAL_WORLD_SIZE": str(job["ranks"]),
                "GROUP_RANK": str(job["node"]),
                **meeting_point(job, port),
            },
        )
        for local in range(job["ranks"])
    ]


def with_gloo(job: Mapping[str, Any]) -> bool:
    """Whether horovodrun starts the ranks."""
    return bool(job["mode"] == "horovod" and job["controller"] == "gloo")
