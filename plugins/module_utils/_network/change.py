# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting the program that changes a node's network (``worker.py``), on the node.

Its job holds what every job does (``_commit_confirm/change.py``), and

    profiles    [{name, uuid, text}]            keyfiles that differ from those below /etc
    activate    [{uuid, interface}]             in this order
    expect      [{interface, addresses, mtu}]   the running state to wait for; mtu in bytes or null
    conflicts   [{interface, address}]          IPv4 addresses that this node did not hold before
    routers     [{interface, router, to}]       routers that must answer on the wire, unless they did not before either;
                                                ``to`` is the network behind one, empty for a default gateway
    mtu_probes  [{interface, mtu, targets}]     who must be reached with packets of the full size
    sysctl      {path, text, values} or null    keys with slashes; an empty text removes the file
    set_aside   [path]                          files that the profiles replace
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import Runner
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.change import Change
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import (
    BusyError,
    ChangeError,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import worker

#: NetworkManager's checkpoint would bring the network back as well, but not the files as they were.
NETWORK = Change(
    what="network",
    base="/run/gpu-cluster-network",
    unit="gpu-cluster-network.service",
    worker=worker,
    afterwards=True,
)

ERR_FOREIGN = (
    "NetworkManager holds a checkpoint that is not ours (%s, %s): another program, such as nmstate or Cockpit, is "
    "changing this node's network; nothing was changed. Repeat the command when it is done; if nobody is at it, give "
    "the checkpoint up on the node: busctl call org.freedesktop.NetworkManager /org/freedesktop/NetworkManager "
    "org.freedesktop.NetworkManager CheckpointDestroy o %s"
)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of NetworkManager: its D-Bus path, and how long it still lasts (0: until somebody ends it)."""

    path: str
    left_seconds: int


def parse_checkpoint(text: str, now_milliseconds: int) -> int:
    """Seconds that a checkpoint still lasts: from its Created (CLOCK_BOOTTIME, ms) and RollbackTimeout (s)."""
    numbers = [int(line.split()[1]) for line in text.splitlines() if len(line.split()) == 2]
    if len(numbers) != 2 or not numbers[1]:
        return 0
    return max(1, (numbers[0] + numbers[1] * 1000 - now_milliseconds + 999) // 1000)


def checkpoints(run: Runner) -> list[Checkpoint]:
    """The checkpoints that NetworkManager holds now."""
    service, path, interface = worker.BUS
    code, out, _err = run(["busctl", "get-property", service, path, interface, "Checkpoints"])
    found = []
    for one in re.findall(r'"([^"]+)"', out) if code == 0 else []:
        kind = interface + ".Checkpoint"
        _code, text, _err = run(["busctl", "get-property", service, one, kind, "Created", "RollbackTimeout"])
        found.append(Checkpoint(one, parse_checkpoint(text, int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000))))
    return found


def clear_way(run: Runner, *, check_mode: bool) -> list[str]:
    """Make sure that no other change is on its way, and clean up after one that ended; sentences about what was found.

    Raise ``ChangeError`` when another run, or another program, has a change that is not settled: ``BusyError`` when it
    has an end.
    """
    notes = NETWORK.clear_way(run, check_mode=check_mode)
    foreign = [] if check_mode else checkpoints(run)
    if foreign:
        left = f"it ends by itself in {foreign[0].left_seconds} s" if foreign[0].left_seconds else "it has no end"
        text = ERR_FOREIGN % (foreign[0].path, left, foreign[0].path)
        raise BusyError(text, foreign[0].left_seconds) if foreign[0].left_seconds else ChangeError(text)
    return notes


def start(run: Runner, job: dict[str, Any]) -> dict[str, Any]:
    """Start the program and wait until its checkpoint stands; its state (``armed`` or later, or ``failed``)."""
    return NETWORK.start(run, job)
