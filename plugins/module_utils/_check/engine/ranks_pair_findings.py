# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the rounds of pairs found, as findings, and joined with what the ranks had said before.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    finding,
    fixes,
    mesh_format,
    ranks_localise,
    ranks_pairs,
    set_cover,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ranks_pairs import (
    Culprit,
    Labels,
    Pair,
)

#: Pairs that are named as evidence, of each result.
SHOWN = 12
NODE_FIX = "do not train on this node; look at its kernel log, its memory and its cards, and at the link to its switch"
PAIR_FIX = "look at what only these two share: cables, switch ports, and the path between them where there are several"
GROUP_FIX = "look at what only these nodes share: their switch, its uplinks, their image"
ALL_FIX = "look at what all nodes share: the image, the PyTorch environment, the switch"


def joined(found: Sequence[Finding], state: Mapping[str, Any], labels: Labels) -> list[Finding]:
    """The findings about the ranks, with what the pairs add, and without those whom the pairs acquit.

    state: that of localise.py, or nothing where no pairs were run.
    """
    if not state.get("rounds"):
        return list(found)
    rounds = ranks_localise.tried(state)
    culprits = ranks_pairs.conclude(state["hosts"], rounds, labels)
    mine = [_finding(one, culprits, found, state, labels) for one in culprits]
    guilty = {host for one in mine for host in one.hosts}
    if not mine:
        return list(found)
    acquitted = {node for node in state["hosts"] if node not in guilty} - set(
        ranks_pairs.undecided(state["hosts"], rounds)
    )
    rest = [_acquit(one, acquitted) for one in found]
    # Wrong data says more of a node than that it fails.
    data = [one for one in rest if one.id.startswith("GC-DATA-") and one.hosts]
    return [*data, *mine, *(one for one in rest if one not in data)]


def notes(state: Mapping[str, Any], labels: Labels) -> list[str]:
    """What a person must know of rounds that named nobody."""
    if not state.get("rounds"):
        return []
    rounds = ranks_localise.tried(state)
    found = ranks_pairs.conclude(state["hosts"], rounds, labels)
    open_nodes = ranks_pairs.undecided(state["hosts"], rounds)
    results = Counter(one.result for each in rounds for one in each)
    said = []
    if not found and results[ranks_pairs.PASSED]:
        said.append(
            f"what went wrong did not happen again in {results[ranks_pairs.PASSED]} pairs of nodes: "
            "it comes and goes, or takes more than two nodes"
        )
    if results[ranks_pairs.SLOW]:
        said.append(f"pairs that were at work when their time was over, and tell nothing: {results[ranks_pairs.SLOW]}")
    if found and found[0].kind != set_cover.ALL and open_nodes:
        said.append(f"the pairs of nodes do not tell whether {mesh_format.names(open_nodes)} work")
    return said


def _acquit(one: Finding, acquitted: set[str]) -> Finding:
    """Without the nodes that pairs know to be good, where it had accused by what others saw.

    Not where wrong sums lead to a single node: that is seen in the data.
    """
    out = tuple(host for host in one.hosts if host in acquitted)
    exact = one.id == ranks_localise.WRONG and len(one.hosts) == 1
    if not out or exact or one.id not in ranks_localise.INDIRECT:
        return one
    left = tuple(host for host in one.hosts if host not in out)
    return replace(
        one,
        hosts=left,
        subject=one.subject if left else Subject(finding.CLUSTER),
        cause=one.cause.partition("; first ")[0] + (f"; first {' and '.join(left)}" if left else ""),
        ruled_out=(*one.ruled_out, f"{mesh_format.names(out)}: in pairs of nodes all went well there"),
    )


def _hosts(one: Culprit, found: Sequence[Finding], state: Mapping[str, Any], labels: Labels) -> tuple[str, ...]:
    """Who fails in the play: of a pair or a group only those to whom the data leads, when it does.

    Where all nodes belong to one of two sides, none of them is at fault more than the others.
    """
    if one.kind == set_cover.NODE:
        return one.nodes
    exact = {host for each in found if each.id == ranks_localise.WRONG and len(each.hosts) == 1 for host in each.hosts}
    if exact & set(one.nodes):
        return tuple(node for node in one.nodes if node in exact)
    if one.kind == set_cover.ALL:
        return one.nodes if len(one.nodes) == 2 else ()
    if one.kind == set_cover.GROUP and len(one.labels) == 1 and _two_sides(one, state, labels):
        return ()
    return one.nodes


def _two_sides(one: Culprit, state: Mapping[str, Any], labels: Labels) -> bool:
    name = one.labels[0].name
    others = {labels.get(node, {}).get(name) for node in state["hosts"] if node not in one.nodes}
    return one.direction == set_cover.ACROSS and len(others) == 1


def _finding(
    one: Culprit, culprits: Sequence[Culprit], found: Sequence[Finding], state: Mapping[str, Any], labels: Labels
) -> Finding:
    tried = [each for step in ranks_localise.tried(state) for each in step]
    why = {frozenset(each.nodes): each.why for each in tried if each.result == ranks_pairs.FAILED}
    blamed = {frozenset(pair) for each in culprits for pair in each.failed}
    good = [each.nodes for each in tried if each.result == ranks_pairs.PASSED and frozenset(each.nodes) not in blamed]
    failed = [f"{_pair(pair)} failed: {why.get(frozenset(pair), '')}" for pair in one.failed[:SHOWN]]
    if len(one.failed) > SHOWN:
        failed.append(f"{len(one.failed) - SHOWN} more pairs failed")
    share = len(one.failed) / (len(one.failed) + len(one.passed))
    return Finding(
        "GC-RUN-005",
        _hosts(one, found, state, labels),
        _cause(one, len(good)),
        {set_cover.NODE: NODE_FIX, set_cover.LINK: PAIR_FIX, set_cover.ALL: ALL_FIX}.get(one.kind, GROUP_FIX),
        (*failed, *_passed(good)),
        subject=_subject(one),
        confidence=round((0.7 if one.kind == set_cover.ALL else 0.95) * share, 2),
        ruled_out=_ruled_out(one, good, state["hosts"]),
        reproduce=fixes.check(_few(one, state["hosts"])),
    )


def _few(one: Culprit, hosts: Sequence[str]) -> list[str]:
    """The nodes that it takes to show the same: two that fail, and a third one to tell which of them it is."""
    shown = {node for pair in one.failed[: 2 if one.kind == set_cover.NODE else 1] for node in pair}
    return [host for host in hosts if host in shown]


def _pair(pair: Pair) -> str:
    return f"{pair[0]} with {pair[1]}"


def _passed(good: Sequence[Pair]) -> tuple[str, ...]:
    if not good:
        return ()
    more = f" and {len(good) - SHOWN} more" if len(good) > SHOWN else ""
    return (f"passed: {', '.join(_pair(pair) for pair in good[:SHOWN])}{more}",)


def _cause(one: Culprit, good: int) -> str:
    if one.kind == set_cover.NODE:
        of = len(one.failed) + len(one.passed)
        every = "every partner" if not one.passed else "most partners"
        return (
            f"the all_reduce goes wrong on {one.nodes[0]} with {every} ({len(one.failed)} of {of}), "
            f"and went well in {good} pairs without it"
        )
    if one.kind == set_cover.LINK:
        return f"the all_reduce goes wrong between {mesh_format.names(one.nodes)}, and both do well with others"
    if one.kind == set_cover.ALL:
        which = ", and no third node tells whose fault it is" if len(one.nodes) == 2 else ""
        return f"the all_reduce goes wrong in every pair of {mesh_format.names(one.nodes)}{which}"
    where = mesh_format.where(_as_cause(one))
    crossing = f"all failing pairs cross {one.labels[0].text}: " if one.direction == set_cover.ACROSS else ""
    return f"{crossing}the all_reduce goes wrong {where}, {len(one.failed)} pairs of nodes"


def _as_cause(one: Culprit) -> set_cover.Cause:
    return set_cover.Cause(one.kind, one.nodes, one.direction, one.failed, len(one.failed), labels=one.labels)


def _subject(one: Culprit) -> Subject:
    if one.kind == set_cover.NODE:
        return Subject(finding.NODE, one.nodes)
    if one.kind == set_cover.ALL and len(one.nodes) > 2:
        return Subject(finding.CLUSTER, one.nodes)
    return Subject(finding.GROUP, one.nodes, label=", ".join(label.text for label in one.labels))


def _ruled_out(one: Culprit, good: Sequence[Pair], hosts: Sequence[str]) -> tuple[str, ...]:
    ports = "closed ports: the mesh is open between these nodes"
    fine = {node for pair in good for node in pair} - (set(one.nodes) if one.kind == set_cover.NODE else set())
    names = mesh_format.names([host for host in hosts if host in fine])
    return (ports, f"{names}: in pairs of nodes all went well there") if fine else (ports,)
