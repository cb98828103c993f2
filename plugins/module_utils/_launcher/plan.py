# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command line and the cluster become a job for each node, or all reasons against it."""

from __future__ import annotations

import argparse
import os
import re
import secrets
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.arguments import CONTROLLERS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.cluster import (
    Cluster,
    Member,
    choose_members,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.containers import (
    IMAGE_PYTHON,
    check_image,
    read_volumes,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.elastic import (
    check_elastic,
    read_rendezvous,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.refusal import EXIT_INPUT, Refused
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.users import typed_by
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.variables import read_variables


def check_horovod(options: argparse.Namespace, members: Sequence[Member]) -> list[str]:
    """What is wrong with the controller of Horovod."""
    if options.controller is None:
        return []
    if options.mode != "horovod":
        return ["--controller needs --mode horovod"]
    if options.controller == "gloo":
        return [
            f"--controller gloo: {member.name} has the address {member.address}, and horovodrun knows IPv4 only; "
            "give --controller mpi"
            for member in members
            if ":" in member.address
        ]
    return []


def script_command(python: str, script: str, arguments: Sequence[str], module: str = "") -> list[str]:
    """A Python script or module under the interpreter of the job; another program as it is."""
    if module:
        return [python, "-u", "-m", module, *arguments]
    return [python, "-u", script, *arguments] if script.endswith(".py") else [script, *arguments]


def plan(cluster: Cluster, options: argparse.Namespace, environ: Mapping[str, str], cwd: str) -> list[dict[str, Any]]:
    """What each agent gets to know; refuses bad input with every reason at once."""
    members, wrong = choose_members(cluster, options.nodes, options.num_nodes, options.exclude)
    variables, more = read_variables(options.env, environ)
    host, etcd, about_rendezvous = read_rendezvous(cluster, options, members)
    volumes, bad = read_volumes(options.volume)
    wrong += more + check_elastic(options, len(members)) + about_rendezvous + bad + check_image(options, cwd)
    wrong += check_horovod(options, members)
    if options.nproc_per_node is not None and not 1 <= options.nproc_per_node <= 1024:
        wrong.append(f"--nproc-per-node {options.nproc_per_node}: give 1 to 1024")
    if not 5 <= options.lost_after <= 600:
        wrong.append(f"--lost-after {options.lost_after}: give 5 to 600 seconds")
    if not 0 <= options.grace <= 600:
        wrong.append(f"--grace {options.grace}: give 0 to 600 seconds")
    if options.silence < 0:
        wrong.append(f"--silence {options.silence}: give seconds, or 0 to look for no hang")
    ranks = [options.nproc_per_node or member.slots for member in members]
    spares = (options.spares or 0) if options.mode == "elastic" else 0
    world_size = sum(ranks[: max(1, len(ranks) - spares)])
    if options.only_rank is not None and not 0 <= options.only_rank < world_size:
        wrong.append(f"--only-rank {options.only_rank}: give 0 to {world_size - 1}, the ranks of this job")
    if options.module and not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", options.script):
        wrong.append(f"-m {options.script!r}: this is no name of a module")
    if wrong:
        raise Refused(EXIT_INPUT, wrong)
    script = "" if options.module else os.path.join(cwd, options.script)
    python = os.path.join(cwd, options.python or cluster.python)
    if options.image is not None:
        script = os.path.normpath(script) if script else ""
        python = options.python or IMAGE_PYTHON  # Of the image, not of this node.
    shared = {
        "id": f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}",
        "mode": options.mode,
        "cwd": cwd,
        "script": script,
        "python": python,
        "mpirun": cluster.mpirun,
        "image": options.image or "",
        "volumes": volumes,
        "controller": options.controller or CONTROLLERS[0],
        "ssh_port": cluster.ssh_port,
        "command": script_command(python, script, options.arguments, options.script if options.module else ""),
        "variables": variables,
        "logs": os.path.join(cwd, options.log_dir) if options.log_dir else "",
        "ports": cluster.ports,
        "master": (host or members[0]).address,
        "etcd": etcd._asdict() if etcd else {},
        "spares": spares,
        "agents": len(members) + bool(host),
        "hosts": [[member.address, count] for member, count in zip(members, ranks)],
        "world_size": world_size,
        "min_nodes": options.min_nodes or 1,
        "max_nodes": options.max_nodes or len(members) - spares,
        "max_restarts": 3 if options.max_restarts is None else options.max_restarts,
        "lost_after": options.lost_after,
        "grace": options.grace,
        "only_rank": options.only_rank,
        "share": options.share,
        "by": typed_by(environ),
        "shown": shlex.join([*(["-m"] if options.module else []), options.script, *options.arguments]),
        "silence": options.silence,
        "hang_help": not options.no_hang_help,
    }
    jobs = [
        dict(
            shared,
            name=member.name,
            address=member.address,
            node=node,
            ranks=ranks[node],
            first=sum(ranks[:node]),
            holds=node == 0 and not host and not etcd,
            store=False,
        )
        for node, member in enumerate(members)
    ]
    if host:
        # It needs neither the folders nor the script of the job.
        own = {"cwd": "/", "script": "", "hang_help": False, "ranks": 0, "first": 0, "holds": True, "store": True}
        where = {"name": host.name, "address": host.address, "node": len(jobs), "volumes": []}
        jobs.append({**shared, **where, **own})
    return jobs
