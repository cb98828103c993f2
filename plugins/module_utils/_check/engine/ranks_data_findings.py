# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From wrong sums to their cause: which rank, which chunk, memory or network.  Pure.

A rank says what its own wrong sum looks like (``wrong_data``); only all of them together say where it became wrong:

* What a rank put in had changed before it was sent, or the sum is right and the copy to compare with is not: memory.
* All ranks have the same wrong sum: it was wrong before it was handed around, so in the reduce phase.
* Some have the right sum: it became wrong on its way to the others, so in the gather phase or in their memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import ranks_results, ranks_ring
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ranks_results import Rank

FIX_MEMORY = (
    "do not train on this node; test its memory (EDAC and MCE in the kernel log, memtest86+) and replace what fails"
)
FIX_NETWORK = "do not train on this cluster; test the memory and the network cards of the nodes that are named"
#: What a rank that was told of nothing else says.
RING = "gloo"


@dataclass(frozen=True)
class Wrong:
    """The first wrong sum of one rank and size."""

    rank: int
    host: str
    size_bytes: int
    seen: Mapping[str, Any]

    @property
    def what(self) -> str:
        """As evidence."""
        seen = self.seen
        more = f", and {seen['iterations'] - 1} more iterations" if seen.get("iterations", 1) > 1 else ""
        which = f"{seen['elements']} elements, {seen['first']} to {seen['last']}" if seen["elements"] else "none wrong"
        return f"rank {self.rank} on {self.host}: {which}, {self.size_bytes} bytes, iteration {seen['iteration']}{more}"

    @property
    def place(self) -> tuple[int, int]:
        """Which sum it was: size and iteration."""
        return self.size_bytes, self.seen["iteration"]


def findings(ranks: Sequence[Rank], backend: str = RING) -> list[Finding]:
    """The causes of all wrong sums.  backend: gloo's ring is known, of others no path is told."""
    wrong = _wrong(ranks)
    memory = [one for one in wrong if one.seen.get("input_changed") or one.seen.get("sum_is_right")]
    found = [_memory(one, ranks) for one in _first_by_host(memory)]
    spoilt = {one.place for one in memory if one.seen.get("input_changed")}
    groups: dict[tuple[tuple[int, int], str], list[Wrong]] = {}
    for one in wrong:
        if one not in memory and one.place not in spoilt:
            groups.setdefault((one.place, one.seen["explanation"]), []).append(one)
    merged: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (_place, explanation), group in groups.items():
        where, hosts = _where(explanation, group, ranks, backend)
        merged.setdefault((explanation + where, hosts), []).extend(one.what for one in group)
    return found + [
        Finding(
            "GC-DATA-001",
            hosts,
            f"all_reduce gave wrong sums: {cause}",
            FIX_NETWORK,
            tuple(evidence),
            confidence=0.9 if hosts else 0.7,
            ruled_out=("what the ranks put in: it had not changed before it was sent",),
            reproduce=ranks_results.reproduce(hosts, ranks),
        )
        for (cause, hosts), evidence in merged.items()
    ]


def _wrong(ranks: Sequence[Rank]) -> list[Wrong]:
    """One for each rank and size; of a size that a rank did not finish, what it told at once."""
    found = {}
    for rank in ranks:
        for event in ranks_results.events(rank, "wrong"):
            found[rank["rank"], event["size_bytes"]] = Wrong(rank["rank"], rank["host"], event["size_bytes"], event)
        for event in ranks_results.events(rank, "size"):
            if event["wrong"]:
                seen = event["wrong"]
                found[rank["rank"], event["size_bytes"]] = Wrong(rank["rank"], rank["host"], event["size_bytes"], seen)
    return list(found.values())


def _first_by_host(wrong: Sequence[Wrong]) -> list[Wrong]:
    return list({one.host: one for one in reversed(wrong)}.values())[::-1]


def _memory(one: Wrong, ranks: Sequence[Rank]) -> Finding:
    if one.seen.get("input_changed"):
        cause = f"the memory of {one.host} changed what rank {one.rank} was about to send"
        ruled_out = "the network: the data was wrong before it was sent"
    else:
        cause = f"the memory of {one.host} changed the right sum that rank {one.rank} compares with"
        ruled_out = "the network: the sum that came over it is right"
    return Finding(
        "GC-DATA-002",
        (one.host,),
        cause,
        FIX_MEMORY,
        (one.what,),
        ruled_out=(ruled_out,),
        reproduce=ranks_results.reproduce((one.host,), ranks),
    )


def _accuses(explanation: str, rank: int) -> bool:
    """Whether what all ranks saw is the doing of that one: its part is missing, there twice, or another one."""
    return explanation.startswith((f"the contribution of rank {rank} ", f"rank {rank} took part"))


def _where(
    explanation: str, group: Sequence[Wrong], ranks: Sequence[Rank], backend: str
) -> tuple[str, tuple[str, ...]]:
    """Where it became wrong, in words, and the hosts that are at fault."""
    size = len(ranks)
    host_of = {rank["rank"]: rank["host"] for rank in ranks}
    first = group[0]
    count = first.size_bytes // ranks_ring.ELEMENT_BYTES
    chunk = ranks_ring.chunk_of(first.seen["first"], first.seen["last"], count, size) if backend == RING else None
    words = "" if chunk is None or size < 2 else f", all of it in chunk {chunk} of {size}"
    holders = {one.rank for one in group}
    if len(holders) == size and len({one.seen.get("digest") for one in group}) == 1:
        named = [rank for rank in host_of if _accuses(explanation, rank)]
        return f"{words}, on all ranks alike: before the sum was handed around", tuple(host_of[r] for r in named)
    hop = ranks_ring.broken_hop(chunk, holders, size) if chunk is not None else None
    if hop is not None and len({one.seen.get("digest") for one in group}) == 1:
        sender, receiver = hop
        way = f"from rank {sender} on {host_of[sender]} to rank {receiver} on {host_of[receiver]}"
        return f"{words}, on the way {way} or in the memory of {host_of[receiver]}", (host_of[receiver],)
    return words, tuple(dict.fromkeys(one.host for one in group))
