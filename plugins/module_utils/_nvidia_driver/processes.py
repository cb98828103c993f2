# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes hold a GPU: whoever has a file below ``/dev/nvidia*`` open."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Sequence
from typing import NamedTuple

DEVICE = "/dev/nvidia"
#: Services that hold every GPU all the time and end with the host. Units of NVIDIA's driver, DCGM and IMEX packages.
SERVICES = (
    "nvidia-persistenced.service",
    "nvidia-fabricmanager.service",
    "nvidia-imex.service",
    "nvidia-dcgm.service",
    "dcgm.service",
    "dcgm-exporter.service",
)
COMMAND_WIDTH = 120
_UNIT = re.compile(r"/([^/\s]+\.service)(?:/|$)", re.MULTILINE)


class GpuUser(NamedTuple):
    """A process that has a device of the driver open. ``unit`` is its systemd service, empty for another process."""

    pid: int
    command: str
    user: str
    device: str
    unit: str

    @property
    def is_service(self) -> bool:
        """Whether it is one of the driver's own services, which a reboot may end."""
        return self.unit in SERVICES

    def words(self) -> str:
        """As it is named in a message."""
        return f"pid {self.pid} ({self.command}) of {self.user} holds {self.device}"


def gpu_users(proc: str = "/proc") -> list[GpuUser]:
    """All processes that hold a GPU, by pid. Those that end meanwhile are left out."""
    found = []
    for name in sorted((name for name in os.listdir(proc) if name.isdigit()), key=int):
        device = _device(f"{proc}/{name}/fd")
        if device:
            folder = f"{proc}/{name}"
            found.append(GpuUser(int(name), _command(folder), _user(folder), device, _unit(f"{folder}/cgroup")))
    return found


def busy(users: Sequence[GpuUser]) -> str:
    """Who would lose work in a reboot, in one sentence; empty when nobody."""
    jobs = [user for user in users if not user.is_service]
    services = sorted({user.unit for user in users if user.is_service})
    if not jobs:
        return ""
    also = f" ({', '.join(services)} also hold it and do not count)" if services else ""
    return "; ".join(user.words() for user in jobs) + also


def _device(folder: str) -> str:
    """The first device of the driver among the open files."""
    try:
        names = sorted(os.listdir(folder), key=lambda name: int(name) if name.isdigit() else 0)
    except OSError:
        return ""
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        if target.startswith(DEVICE):
            return target.split(" ")[0]
    return ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def _command(folder: str) -> str:
    words = " ".join(_read(f"{folder}/cmdline").replace("\0", " ").split())
    return (words or _read(f"{folder}/comm").strip())[:COMMAND_WIDTH]


def _user(folder: str) -> str:
    try:
        uid = os.stat(folder).st_uid
    except OSError:
        return "unknown"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _unit(path: str) -> str:
    found = _UNIT.findall(_read(path))
    return found[-1] if found else ""
