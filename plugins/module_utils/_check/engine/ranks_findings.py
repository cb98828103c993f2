# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the ranks of a run say, judged: wrong data, texts, silence, and the sizes that were measured.  Pure.

judgement = findings(the_plan, collect, lost, known)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    ranks_data_findings,
    ranks_inside_node,
    ranks_results,
    ranks_slow,
    unfinished_ranks,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.reading import Known
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ranks_results import (
    Rank,
    Results,
    SizeResult,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import NCCL


@dataclass(frozen=True)
class Judgement:
    """What follows from the ranks.

    unexplained: raw texts that no table knows, as ``host``, ``rank`` and ``text``.  ranks: all of the plan in order;
    one that did not finish has ``text``, what it ``says`` and the finding that it is ``explained_by``.  fit:
    ``alpha_seconds`` and ``beta_bytes_per_second``, None with fewer than three sizes.
    """

    findings: list[Finding]
    unexplained: list[dict[str, Any]]
    sizes: list[SizeResult]
    ranks: list[Rank]
    fit: dict[str, float] | None


def findings(
    the_plan: Mapping[str, Any],
    collect: Results,
    lost: Mapping[str, Finding],
    known: Sequence[Finding],
    *,
    addresses: Mapping[str, str] | None = None,
    known_of: Mapping[str, Known] | None = None,
    backend: str = ranks_data_findings.RING,
) -> Judgement:
    """Judge what ``collect`` brought back.

    the_plan: what ``plan.make_plan`` returned.  lost: host to its finding.  known: all findings so far, ``lost`` and
    those about versions among them.  addresses: host to its address on the data network.  known_of: host to what is
    known about its texts.
    """
    ranks = ranks_results.table(the_plan, collect)
    sizes = ranks_results.sizes(ranks, the_plan["world_size"])
    wrong = ranks_data_findings.findings(ranks, backend)
    slow = ranks_slow.findings(collect, ranks)
    wrong += ranks_inside_node.findings(ranks, lost, backend)
    trouble = unfinished_ranks.judge(ranks, collect, lost, [*lost.values(), *known, *wrong, *slow], addresses, known_of)
    # NCCL may take RDMA devices or several cards, whose bytes no counter of this interface has.
    elsewhere = [] if backend == NCCL else interface(the_plan, collect, sizes)
    return Judgement(
        findings=wrong + slow + trouble.findings + elsewhere,
        unexplained=trouble.unexplained,
        sizes=sizes,
        ranks=[
            {**{name: value for name, value in rank.items() if name != "start"}, **trouble.texts.get(rank["rank"], {})}
            for rank in ranks
        ],
        fit=ranks_results.fit(sizes),
    )


def interface(the_plan: Mapping[str, Any], collect: Results, sizes: Sequence[SizeResult]) -> list[Finding]:
    """Data that did not cross the interface under test went somewhere else.

    Each rank needs at least ``size * (n - 1) / n`` bytes from the others for every all_reduce.
    """
    nodes = len(the_plan["hosts"])
    if nodes < 2 or not sizes:
        return []
    least = sum(one.size_bytes * one.iterations for one in sizes) * (nodes - 1) / nodes
    found = []
    for host in the_plan["hosts"]:
        moved = collect.get(host, {}).get("interface_bytes")
        if moved and moved["rx_bytes"] < least:
            found.append(
                Finding(
                    "GC-NET-006",
                    (host,),
                    f"{host} received {moved['rx_bytes']} bytes on the data interface, all_reduce needs {least:.0f}",
                    "the data took another interface: compare routes and gpu_cluster_fabric_interface on this node",
                )
            )
    return found
