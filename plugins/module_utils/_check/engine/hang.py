# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a job hangs: which rank, node and collective, by where all ranks stand.  Pure.

A rank *waits* if it has entered a collective that has not ended.  Who waits is a victim, unless all others have entered
another collective.  Whoever is awaited and does not wait itself is the suspect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.hang_collectives import (
    absent,
    all_wait,
    disagree,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.hang_nodes import (
    gone,
    links,
    stopped,
    stuck_in_the_kernel,
    unanswered,
    unreachable,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.hang_ranks import (
    Node,
    Rank,
    Suspect,
    others_text,
    rank_of,
)

LINES = 8


class Verdict(NamedTuple):
    suspects: list[Suspect]
    notes: list[str]


def judge(nodes: Sequence[Node], ended: Iterable[int] = ()) -> Verdict:
    """Best first.  ended: ranks that are known to have ended, as victims: they are not missed."""
    answers = [(node, node.answer) for node in nodes if node.answer is not None]
    ranks = [rank_of(node.name, one) for node, answer in answers for one in answer["ranks"]]
    # One that has given up may still be ending.
    ranks = sorted((one for one in ranks if one.rank not in set(ended)), key=lambda one: one.rank)
    size = max((one["world_size"] for _node, answer in answers for one in answer["ranks"]), default=0)
    missing = sorted(set(range(min(size, 1 << 16))) - {one.rank for one in ranks} - set(ended))
    notes = [
        f"NCCL on {node.name}: {sanitize.one_line(line)}" for node, answer in answers for line in answer["ras"][:2]
    ]
    if not ranks:
        return Verdict([], notes)
    collected = [
        *stopped(ranks),
        # Who has no link reaches nobody, and is reached by nobody.
        *(links(nodes, ranks) or unreachable(nodes, ranks, missing) or unanswered(nodes, ranks)),
        *stuck_in_the_kernel(ranks),
    ]
    if not collected and any(one.moved and one.waits_in for one in ranks):
        moving = next(one for one in ranks if one.moved and one.waits_in)
        return Verdict([], [f"no hang: {moving.name} has gone on between two looks, in {moving.where}", *notes])
    if missing and not any(node.answer is None for node in nodes):
        collected += gone(missing, ranks)
    collected += disagree(ranks) or absent(ranks, ended) or ([] if collected else all_wait(ranks))
    return Verdict(collected, notes if collected else [*stand_where(ranks), *notes])


def stand_where(ranks: Sequence[Rank]) -> list[str]:
    """Without a suspect: each place with its ranks."""
    found: dict[str, list[Rank]] = {}
    for one in ranks:
        found.setdefault(one.where or "an unknown place", []).append(one)
    first = "no rank waits in a collective of torch.distributed, so no rank stands out"
    return [first, *(f"{others_text(members)}: {place}" for place, members in list(found.items())[: LINES - 3])]
