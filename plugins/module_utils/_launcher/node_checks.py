# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a node can't take part in a job."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.commands import with_gloo
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.containers import container_problems
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.etcd import etcd_problems, plugin_problems
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import ENVIRONMENT_FILE, QUEUE
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import HOROVOD_IMPORT
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.users import user_name
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.variables import read_environment

#: Seconds for the question who uses the GPUs of a node; nvidia-smi takes up to 20.
BUSY = 25.0


def port_is_free(port: int) -> bool:
    """As the servers of torch listen: on all addresses, of both kinds where there is IPv6."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            probe.bind(("", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def node_problems(job: Mapping[str, Any]) -> list[str]:
    """Why this node can't take part."""
    problems = []
    if not os.access(job["cwd"], os.X_OK):
        problems.append(f"there is no folder {job['cwd']} that {user_name()} can enter")
    programs = {} if job["image"] else {job["python"]: os.X_OK}
    if job["image"]:
        problems += container_problems(job)
    if job["script"]:
        programs[job["script"]] = os.R_OK if job["script"].endswith(".py") else os.X_OK
    if job["mode"] in ("mpirun", "horovod"):
        programs[job["mpirun"]] = os.X_OK
    for path, way in programs.items():
        if not os.path.isfile(path):
            problems.append(f"there is no file {path}")
        elif not os.access(path, way):
            problems.append(f"{path} can't be {'read' if way == os.R_OK else 'run'}")
    if job["etcd"] and not problems:
        problems = plugin_problems() or etcd_problems(job["etcd"], job["lost_after"])
    return problems + network_problems(job)


def network_problems(job: Mapping[str, Any], path: str = ENVIRONMENT_FILE) -> list[str]:
    """Whether the address and the interface of this node are what its files say."""
    fix = "run site.yml with --tags launcher"
    problems = []
    family = socket.AF_INET6 if ipaddress.ip_address(job["address"]).version == 6 else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((job["address"], 0))
        except OSError:
            problems.append(f"the address {job['address']} is not on this node: {fix} if the inventory has changed")
    try:
        with open(path, encoding="utf-8") as stream:
            interface = read_environment(stream.read()).get("GLOO_SOCKET_IFNAME", "")
    except OSError as error:
        return [*problems, f"{path} can't be read ({error.strerror}): {fix}"]
    if not interface or not os.path.exists(f"/sys/class/net/{interface}"):
        problems.append(f"{path} has GLOO_SOCKET_IFNAME={interface}, and there is no such interface: {fix}")
    return problems


def others_on_gpus(job: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Who uses the GPUs of this node, where the job may not share them; and what is not known of that."""
    if job["share"] or not shutil.which("nvidia-smi"):
        return [], []
    try:
        ended = subprocess.run(
            [QUEUE, "here", "busy", job["id"]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUSY,
            check=True,
        )
        said = json.loads(ended.stdout)
        return said["problems"], said["notes"]
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as error:
        return [], [f"whether its GPUs are in use is not known: {error}"]


#: Horovod is built for the frameworks that its environment has; each has functions of its own.
HOROVOD_TEST = """\
import importlib, sys
import horovod
said = ""
for framework in ("torch", "tensorflow"):
    try:
        importlib.import_module(framework)
    except ModuleNotFoundError:
        continue
    try:
        found = importlib.import_module("horovod." + framework)
        break
    except Exception as error:
        said = said or "%s: %s" % (type(error).__name__, error)
else:
    sys.exit(said or "it has neither torch nor tensorflow")
built, name = sys.argv[1:]
sys.exit(0 if getattr(found, built)() else "it was built without " + name)
"""


def horovod_problem(job: Mapping[str, Any]) -> str:
    """Why Horovod can't be used; empty when the script's interpreter has it, built with the controller."""
    built = ("gloo_built", "gloo") if with_gloo(job) else ("mpi_built", "MPI")
    try:
        ended = subprocess.run(
            [job["python"], "-c", HOROVOD_TEST, *built],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HOROVOD_IMPORT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"importing it took longer than {HOROVOD_IMPORT:.0f} seconds"
    return "" if ended.returncode == 0 else (ended.stderr.strip().splitlines() or ["no reason given"])[-1]
