# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a look at the nodes knows for certain explains links of the mesh, which are no findings of their own then.

Pure.  A card that is down, a route that leads nowhere: each closes links, and their probes say no more than that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import mesh_links
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Ends, Link, Links

#: What a node that is cut off shows.  A payload that stalls shows that packets do get through.
_SHOWN = (mesh_links.UNSENT, mesh_links.CLOSED, mesh_links.REFUSED, mesh_links.SILENT)
#: Of an address that two machines have: the other one may answer.
_TWICE = "GC-NODE-007"


@dataclass(frozen=True)
class Explained:
    """ends: the failing links that findings explain.  leading: these findings, and rest: those that explain none."""

    ends: frozenset[Ends]
    leading: list[Finding]
    rest: list[Finding]


def explain(static: Sequence[Finding], links: Links) -> Explained:
    """static: the findings of the nodes themselves, which say in ``cuts`` whom they cut off."""
    explained: set[Ends] = set()
    leading, rest = [], []
    failing = {ends: link for ends, link in links.items() if link.failures}
    for one in static:
        shown = list(_shown(one, failing)) if one.cuts else []
        explained.update(shown)
        if shown:
            probes = sum(links[ends].probes for ends in shown)
            failed = sum(len(links[ends].failures) for ends in shown)
            seen = f"{failed} of {probes} probes failed on the {len(shown)} links that it cuts"
            leading.append(replace(one, evidence=(*one.evidence, seen)))
        else:
            rest.append(one)
    return Explained(frozenset(explained), leading, rest)


def _shown(finding: Finding, failing: Links) -> Iterator[Ends]:
    """The links of the pairs that a finding cuts off, in both directions: answers take the same way."""
    cuts = set(finding.cuts)
    for ends, link in failing.items():
        if _is_cut(ends, cuts) and _is_shown(link, finding.id == _TWICE):
            yield ends


def _is_cut(ends: Ends, cuts: Collection[tuple[str, str]]) -> bool:
    return any(one in cuts for one in ((ends[0], ""), (ends[1], ""), (ends[0], ends[1]), (ends[1], ends[0])))


def _is_shown(link: Link, answered: bool) -> bool:
    wanted = (*_SHOWN, mesh_links.FOREIGN) if answered else _SHOWN
    return all(failure.trouble in wanted for failure in link.failures)
