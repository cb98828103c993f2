# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training that fails as it is told to: in one rank, with what PyTorch, Python or the kernel says by itself."""

from __future__ import annotations

import datetime
import os
import resource
import socket
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

SECONDS = 10
RANK = int(os.environ["RANK"])
LISTENERS = []


def module() -> None:
    import no_such_package  # noqa: F401


def interface() -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "fab9"


def memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    torch.ones(4 << 30)


def disk() -> None:
    with open("/dev/full", "wb", buffering=0) as stream:
        stream.write(b"x")


def release() -> None:
    torch.added_in_a_later_release()


def shared() -> None:
    torch.ones(64 << 20).share_memory_()


def world() -> None:
    os.environ["WORLD_SIZE"] = str(int(os.environ["WORLD_SIZE"]) + 1)


def port() -> None:
    LISTENERS.append(socket.create_server(("", int(os.environ["MASTER_PORT"]))))


def own() -> None:
    raise ValueError("the frobnicator is out of cheese")


def hang() -> None:
    time.sleep(600)


def shapes() -> None:
    dist.all_reduce(torch.ones(7))


#: What goes wrong, in which rank, and whether that is after the rendezvous.
FAULTS: dict[str, tuple[Callable[[], None], int, bool]] = {
    "module": (module, 1, False),
    "interface": (interface, 1, False),
    "port": (port, 0, False),
    "world": (world, 2, False),
    "memory": (memory, 1, True),
    "disk": (disk, 2, True),
    "release": (release, 1, False),
    "shared": (shared, 2, True),
    "own": (own, 1, True),
    "hang": (hang, 1, True),
    "shapes": (shapes, 1, True),
}


def main() -> None:
    fault, rank, later = FAULTS.get(sys.argv[1], (lambda: None, -1, False))
    if rank == RANK and not later:
        fault()
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=SECONDS))
    if rank == RANK and later:
        fault()
    for _step in range(3):
        dist.all_reduce(torch.ones(1000))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
