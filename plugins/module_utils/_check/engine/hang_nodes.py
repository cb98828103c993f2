# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a node or a process makes a job hang: a stopped process, a link, storage, an end.  Pure."""

from __future__ import annotations

import collections
from collections.abc import Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.hang_ranks import (
    BLOCKED,
    FILES,
    INTERFACE,
    STOPPED,
    Node,
    Rank,
    Suspect,
    listed,
    numbers,
    waiters,
    waiting_for,
    waits_text,
)


def stopped(ranks: Sequence[Rank]) -> list[Suspect]:
    return [
        Suspect(
            STOPPED,
            f"{one.name} is stopped: by a signal, or by a debugger",
            one.host,
            one.rank,
            text=f"process {one.pid} has state {one.state}" + (f", in {one.where}" if one.where else ""),
            fix="let it go on, or end the debugger",
            command=f"ssh {one.host} kill -CONT {one.pid}",
            confidence=0.95,
        )
        for one in ranks
        if one.state in ("T", "t")
    ]


def unreachable(nodes: Sequence[Node], ranks: Sequence[Rank], missing: Sequence[int]) -> list[Suspect]:
    """Nodes that do not answer.  A node without ranks of the job does not matter."""
    silent = [node for node in nodes if node.answer is None]
    if not silent or not missing:
        return []
    whose = f"rank {missing[0]}" if len(missing) == 1 else f"ranks {numbers(missing)}"
    return [
        Suspect(
            INTERFACE,
            f"{node.name} does not answer on the data network"
            + (f": {whose} runs there" if len(silent) == 1 else f"; {whose} are not seen"),
            node.name,
            missing[0] if len(silent) == len(missing) == 1 else None,
            waiting_for(ranks),
            text=sanitize.one_line(node.reason),
            fix="check its power, its cable and its interface from its console or its management network",
            command=f"ping -c 3 {node.address}" if node.address else "",
            confidence=0.9,
        )
        for node in silent
    ]


def links(nodes: Sequence[Node], ranks: Sequence[Rank]) -> list[Suspect]:
    """Interfaces without a link."""
    found = []
    for node in nodes:
        for one in node.answer["interfaces"] if node.answer is not None else []:
            if not one["carrier"]:
                name = sanitize.one_line(one["name"])
                found.append(
                    Suspect(
                        INTERFACE,
                        f"{node.name}: the interface {name} of the data network has no link",
                        node.name,
                        next((rank.rank for rank in ranks if rank.host == node.name), None),
                        waiting_for(ranks),
                        text=f"{name} is {sanitize.one_line(one['state'])}, without carrier",
                        fix="bring the interface up, or look at its cable and the port of the switch",
                        command=f"ssh {node.name} ip link show {name}",
                        confidence=0.95,
                    )
                )
    return found


def unanswered(nodes: Sequence[Node], ranks: Sequence[Rank]) -> list[Suspect]:
    """Nodes that confirm nothing that others send."""
    found: list[Suspect] = []
    accused = collections.Counter(address for one in ranks for address in set(one.unanswered))
    for address, count in accused.most_common(1):
        node_of = next((node for node in nodes if node.address == address), None)
        by = [one.name for one in ranks if address in one.unanswered]
        # Two ends accuse each other where one link is broken: then nobody knows more than that.
        ties = [other for other, times in accused.items() if times == count]
        host = node_of.name if node_of and len(ties) == 1 else ""
        found.append(
            Suspect(
                INTERFACE if host else BLOCKED,
                f"{node_of.name if node_of else address} confirms nothing that {listed(by)} sends"
                + (f", and the same is true of {listed(sorted(set(ties) - {address}))}" if len(ties) > 1 else ""),
                host,
                next((rank.rank for rank in ranks if rank.host == host), None),
                waiting_for(ranks),
                text=f"TCP repeats what it sends to {address}",
                fix="look for the broken link or the filter between these nodes with the check of the cluster",
                command=fixes.check(),
                confidence=0.8,
            )
        )
    return found


def stuck_in_the_kernel(ranks: Sequence[Rank]) -> list[Suspect]:
    return [
        Suspect(
            FILES,
            f"{one.name} waits in the kernel and cannot be interrupted: for storage, or for a driver",
            one.host,
            one.rank,
            waiting_for(ranks),
            text=f"state D, in {one.kernel or 'an unknown function'}"
            + (f", called from {one.where}" if one.where else ""),
            fix="look at the file server or the device that its node's kernel log names",
            command=f"ssh {one.host} 'dmesg | tail -n 20'",
            confidence=0.85,
        )
        for one in ranks
        if one.state == "D" and not one.moved
    ]


def gone(missing: Sequence[int], ranks: Sequence[Rank]) -> list[Suspect]:
    """Ranks without a process, while others wait."""
    if not waiting_for(ranks):
        return []
    whose = f"rank {missing[0]} has" if len(missing) == 1 else f"ranks {numbers(missing)} have"
    return [
        Suspect(
            STOPPED,
            f"{whose} ended, and {waiters(ranks)} still wait for it",
            rank=missing[0] if len(missing) == 1 else None,
            collective=waiting_for(ranks),
            text=f"no process of it is left on the nodes of the job; {waits_text(ranks)}",
            fix="see its log: a rank that ends early leaves the others waiting",
            confidence=0.85,
        )
    ]
