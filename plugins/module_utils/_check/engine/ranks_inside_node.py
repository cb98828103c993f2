# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose GPUs do not sum among themselves over NCCL: no network has a part in that.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ranks_results import (
    Rank,
    events,
    reproduce,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import NCCL

ID = "GC-NCCL-004"
FIX = (
    "see how the GPUs are connected (nvidia-smi topo -m) and what the kernel says of them (dmesg: Xid, NVLink, AER); "
    "when it works with NCCL_P2P_DISABLE=1 in launcher_environment, switch the IOMMU or PCIe ACS off, and restart the "
    "fabric manager where there are NVSwitches"
)


def findings(ranks: Sequence[Rank], lost: Collection[str], backend: str) -> list[Finding]:
    """One for each such node, of those with more than one rank.  lost: hosts that have their finding already.

    A rank waits for no other node between ``joined`` and ``inside``.
    """
    if backend != NCCL:
        return []
    by_host: dict[str, list[Rank]] = {}
    for rank in ranks:
        by_host.setdefault(rank["host"], []).append(rank)
    found = []
    for host, own in by_host.items():
        if len(own) > 1 and host not in lost:
            found += _of_node(host, own, ranks)
    return found


def _of_node(host: str, own: Sequence[Rank], ranks: Sequence[Rank]) -> list[Finding]:
    wrong = [(rank, event["explanation"]) for rank in own for event in events(rank, "wrong_inside")]
    stuck = [rank for rank in own if events(rank, "joined") and not events(rank, "inside")]
    if wrong:
        cause = f"wrong sums, {wrong[0][1]} (ranks counted on this node)"
        evidence = [f"rank {rank['rank']}: {explanation}" for rank, explanation in wrong]
    elif stuck:
        cause = f"{len(stuck)} of {len(own)} ranks did not end an all_reduce of this node alone"
        evidence = [f"rank {rank['rank']} ({rank['state']}): {_text(rank)}" for rank in stuck]
    else:
        return []
    return [
        Finding(
            ID,
            (host,),
            f"the GPUs of {host} do not work together over NCCL: {cause}",
            FIX,
            tuple(evidence),
            ruled_out=("the network: no other node takes part in this",),
            look=fixes.look((host,), "nvidia-smi topo -m"),
            reproduce=reproduce((host,), ranks),
        )
    ]


def _text(rank: Rank) -> str:
    """The error of a rank, or the end of what it wrote to standard error."""
    errors = [event["text"] for event in events(rank, "error")]
    return " ".join((errors[0] if errors else rank["stderr_tail"]).split())[-300:] or "no word"
