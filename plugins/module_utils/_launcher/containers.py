# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks in containers of an image (``--image``): what podman is told, and whether a node can do it."""

from __future__ import annotations

import argparse
import collections
import contextlib
import glob
import os
import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.commands import Start
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.etcd import PLUGIN
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.meeting import usual_meeting
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import own_path
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import BEAT
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.variables import MARK

#: Those whose ranks can run in a container: mpirun starts its daemons over ssh, outside of it.
IMAGE_MODES = ("torchrun", "elastic", "env")
#: Containers of a job are named after it.  Seconds: for podman to show an image, and to remove containers.
CONTAINER = "gpu-cluster-run-"
IMAGE_LOOK, CONTAINER_REMOVAL = 60.0, 30.0
#: The interpreter of an image, where --python names none.
IMAGE_PYTHON = "python3"
#: Where podman looks for CDI files, and the device of all NVIDIA GPUs (cncf-tags/container-device-interface, SPEC.md).
CDI_FOLDERS, GPU_DEVICE = ("/etc/cdi", "/run/cdi"), "nvidia.com/gpu"
RDMA_DEVICES = "/dev/infiniband"


def read_volumes(settings: Iterable[str]) -> tuple[list[list[str]], list[str]]:
    """Source, target and options of each ``--volume``, and what is wrong with them.  A folder alone keeps its path."""
    volumes, wrong = [], []
    for setting in settings:
        source, _colon, rest = setting.partition(":")
        target, _colon, options = (rest or source).partition(":")
        if not re.fullmatch(r"/[^:\0\n]+", source) or not re.fullmatch(r"/[^:\0\n]+", target):
            wrong.append(
                f"--volume {setting!r}: give /FOLDER, or /FOLDER:/FOLDER-IN-THE-CONTAINER, and :ro for read-only"
            )
        elif not re.fullmatch(r"[a-zA-Z,=0-9]*", options):
            wrong.append(f"--volume {setting!r}: {options!r} is no option of a volume, such as ro")
        else:
            volumes.append([os.path.normpath(source), os.path.normpath(target), options])
    return volumes, wrong


def check_image(options: argparse.Namespace, cwd: str) -> list[str]:
    """What is wrong with running in an image, or with options that need one."""
    if options.image is None:
        return ["--volume needs --image"] if options.volume else []
    wrong = []
    # The first character keeps it from being an option of podman.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*", options.image):
        wrong.append(f"--image {options.image!r}: this is no name of an image, give one such as localhost/train:1")
    if options.mode not in IMAGE_MODES:
        wrong.append(
            f"--image with --mode {options.mode}: mpirun starts its daemons over ssh, outside of the containers; give "
            f"--mode {', '.join(IMAGE_MODES)}, or see docs/containers.md for an sshd in the container"
        )
    if cwd == "/":
        wrong.append("--image: the folder you are in is mounted into the containers, and / can't be: cd elsewhere")
    return wrong


def container_name(job: Mapping[str, Any], number: int) -> str:
    """The same name for the same part of a job, so that it can be removed by whoever is left."""
    return f"{CONTAINER}{job['id']}-{job['node']}-{number}"


def container_names(job: Mapping[str, Any]) -> list[str]:
    """The containers of a job on its node: one with torchrun inside, or one for each rank."""
    return [container_name(job, number) for number in range(job["ranks"] if job["mode"] == "env" else 1)]


def container_mounts(job: Mapping[str, Any], meeting: str) -> list[str]:
    """What the ranks need inside: their folders at the same paths, this program, and the way to their agent.

    meeting: the folder with the agent's socket.  It has its usual name inside, where no other user can take that.
    """
    volumes = [":".join(filter(None, volume)) for volume in job["volumes"]]
    taken = {target for _source, target, _options in job["volumes"]}
    folders = [job["cwd"], *([os.path.dirname(job["script"])] if job["script"] else []), job["logs"], meeting]
    if job["store"]:
        folders = [meeting]
    own: list[str] = []
    for folder in sorted(filter(None, folders), key=len):
        inside = any(folder == one or folder.startswith(f"{one}/") for one in own)
        if not inside and folder not in taken:
            own.append(folder)
    pairs = [(folder, folder) for folder in own]
    if meeting != usual_meeting():
        pairs.append((meeting, usual_meeting()))
    read = [own_path()]
    if job["etcd"]:
        read += [PLUGIN, *dict.fromkeys(os.path.dirname(job["etcd"][part]) for part in ("ca", "cert", "key"))]
    return [*volumes, *(f"{source}:{target}" for source, target in pairs), *(f"{path}:{path}:ro" for path in read)]


def container_devices(job: Mapping[str, Any], dev: str = "/dev") -> list[str]:
    """The devices that this node has for ranks: GPUs by CDI, and those of RDMA."""
    if job["store"]:
        return []
    gpus = any(re.fullmatch(r"nvidia\d+", name) for name in os.listdir(dev))
    rdma = os.path.isdir(os.path.join(dev, os.path.basename(RDMA_DEVICES)))
    return ([f"{GPU_DEVICE}=all"] if gpus else []) + ([RDMA_DEVICES] if rdma else [])


def container_command(
    job: Mapping[str, Any], start: Start, number: int, names: Iterable[str], devices: Iterable[str], meeting: str
) -> list[str]:
    """``podman run`` around a process of a job; docs/containers.md explains its options.

    names: the variables that are passed on; their values are in the environment of podman.  The parent of each rank
    runs inside, and ends everything there when the agent is gone: podman's monitor is no child of ours.
    """
    command = ["podman", "run", "--rm", "--replace", "--name", container_name(job, number), "--pull=never", "--init"]
    command += ["--network=host", "--ipc=host", "--userns=keep-id", "--ulimit=host", "--security-opt=label=disable"]
    # In the cgroup of the ssh session: no service manager of the user is needed, and podman's limit of 2048 processes
    # and threads does not apply.  The agent writes the logs.
    command += ["--cgroups=disabled", "--log-driver=none"]
    command += [f"--device={device}" for device in devices]
    command += [f"--volume={mount}" for mount in container_mounts(job, meeting)]
    command += [f"--env={name}" for name in sorted({*names, MARK})]
    return [*command, f"--workdir={job['cwd']}", job["image"], *start.argv]


def remove_containers(job: Mapping[str, Any], meanwhile: Any = None) -> bool:
    """What podman has not removed by itself, such as the record of a container whose monitor was killed."""
    argv = ["podman", "rm", "--force", "--ignore", "--time=0", *container_names(job)]
    try:
        return output_of(argv, CONTAINER_REMOVAL, meanwhile)[0] == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def output_of(argv: Sequence[str], seconds: float, meanwhile: Any = None) -> tuple[int, str, str]:
    """Exit code and output of a program that may take its time: the heartbeat goes on."""
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + seconds
    while True:
        try:
            out, err = process.communicate(timeout=BEAT / 4)
            return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise
            if meanwhile is not None:
                meanwhile()


def container_problems(job: Mapping[str, Any], devices: Sequence[str] | None = None) -> list[str]:
    """Why podman could not start the containers of a job on this node."""
    problems = [
        f"there is no {source}, which --volume mounts"
        for source, *_rest in job["volumes"]
        if not os.path.exists(source)
    ]
    devices = container_devices(job) if devices is None else devices
    if f"{GPU_DEVICE}=all" in devices and not any(map(has_gpus, cdi_files())):
        problems.append(
            f"no CDI file in {' or '.join(CDI_FOLDERS)} has the GPUs ({GPU_DEVICE}): run site.yml with --tags "
            "container_runtime, or nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml as root"
        )
    return problems


def cdi_files() -> list[str]:
    return [
        path for folder in CDI_FOLDERS for path in sorted(glob.glob(f"{folder}/*.yaml") + glob.glob(f"{folder}/*.json"))
    ]


def has_gpus(path: str) -> bool:
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as stream:
        return GPU_DEVICE in stream.read(1 << 20)
    return False


def different_images(name: str, images: Mapping[str, str]) -> list[str]:
    """One line for each node whose image is another one than that of most nodes, of the first node in a tie."""
    count = collections.Counter(images.values())
    if len(count) < 2:
        return []
    usual = max(count, key=lambda one: count[one])  # The first of equals: dictionaries keep their order.
    have = next(node for node, image in images.items() if image == usual)
    more = f" and {count[usual] - 1} more" if count[usual] > 1 else ""
    return [
        f"{node}: the image {name} has the ID {image[:12]} here, and {usual[:12]} on {have}{more}: load the same "
        "archive on all nodes (podman load --input FILE), or run site.yml with --tags container_runtime"
        for node, image in images.items()
        if image != usual
    ]
