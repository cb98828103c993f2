# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the agent of a node is started over ssh."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.messages import printable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import own_path

#: Of the command of a job so much is shown in the queue view.
SHOWN_CHARACTERS = 200


def ssh_options(job: Mapping[str, Any]) -> list[str]:
    """Everything about names, keys and certificates is in the system's configuration of ssh."""
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "ConnectTimeout": "10",
        # ssh must not give up before --lost-after has passed.
        "ServerAliveInterval": "5",
        "ServerAliveCountMax": str(job["lost_after"] // 5 + 1),
        "ControlMaster": "no",
        "ControlPath": "none",
        "ClearAllForwardings": "yes",
        "ForwardAgent": "no",
        "LogLevel": "ERROR",
    }
    return [part for name, value in options.items() for part in ("-o", f"{name}={value}")]


def ssh_command(job: Mapping[str, Any], port: int) -> list[str]:
    """How the agent of a node is started."""
    # The command line of the agent tells everybody on the node which job this is.
    agent = shlex.join([sys.executable, "-I", own_path(), "--agent", job["id"], about(job)])
    return ["ssh", "-T", *ssh_options(job), "-p", str(port), job["address"], f"exec {agent}"]


def about(job: Mapping[str, Any]) -> str:
    """What the queue view shows of a job; the command line of its ranks is no more secret."""
    said = {
        "by": job["by"],
        "command": printable(job["shown"])[:SHOWN_CHARACTERS],
        "mode": job["mode"],
        "nodes": job["agents"],
        "ranks": job["world_size"],
        "grace": job["grace"],
    }
    if job["store"]:
        said["part"] = "rendezvous"
    return json.dumps(said)
