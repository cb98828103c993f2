# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks of Open MPI that are not what they should be: alone, of another library, or with a wrong sum.  Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import GROUP, Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mpi_results import Results
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.pattern import Pattern
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.wrong_data import explain

NUMBER = "GC-MPI-002"
FIX_WORLD = "let mpirun and libmpi of one installation find each other: the same prefix on all nodes, no other in PATH"
FIX_VERSION = "install the same Open MPI in the same place on all members"
FIX_DATA = "do not train on the nodes that are named; test their memory and network cards"
#: A theory about one rank, as ``explain`` words it.
ONE_RANK = re.compile(r"rank (\d+)\b")


def wrong_results(results: Results) -> list[Finding]:
    """The world first: ranks that run alone add up nothing but their own, and each finds that right."""
    world = _world(results)
    if world:
        return [world]
    return [one for one in (_versions(results), _sums(results)) if one]


def _finding(
    results: Results, hosts: Sequence[str], what: str, fix: str, evidence: Sequence[str], **fields: Any
) -> Finding:
    pair = list(dict.fromkeys([results.hosts[0], *hosts]))
    subject = None if hosts else Subject(GROUP, tuple(results.hosts))
    again = fixes.check(pair if len(pair) > 1 else results.hosts[:2])
    return Finding(NUMBER, tuple(hosts), what, fix, tuple(evidence), subject, reproduce=again, **fields)


def _ups(results: Results) -> list[tuple[str, Mapping[str, Any]]]:
    """Host and ``up`` event of the ranks that got as far."""
    return [(results.hosts[one["rank"]], one) for one in results.events if one["event"] == "up"]


def _world(results: Results) -> Finding | None:
    """Ranks with another world or number than mpirun gave them, or on another node than the one they were meant for."""
    wanted = len(results.hosts)
    odd = [(host, one) for host, one in _ups(results) if one["size"] != wanted or one["number"] != one["rank"]]
    if odd:
        told = [f"rank {one['rank']} on {host} is rank {one['number']} of {one['size']}" for host, one in odd]
        what = f"{len(odd)} of {wanted} ranks are not in one world: {told[0]}, expected {odd[0][1]['rank']} of {wanted}"
        hosts = [host for host, _one in odd] if len(odd) < wanted / 2 else []
        shown = fixes.look(hosts or results.hosts[:2], "rpm -V openmpi")
        return _finding(results, hosts, what, FIX_WORLD, told, look=shown)
    started = [one for one in results.events if one["event"] == "start"]
    names = Counter(one["host"] for one in started)
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        ranks = [str(one["rank"]) for one in started if one["host"] == twice[0]]
        what = f"ranks {', '.join(ranks)} ran all on {results.place(twice[0]) or twice[0]}, expected one on each node"
        fix = "give each member its own address and host name, and remove a user's own default host file of Open MPI"
        return _finding(results, [], what, fix, [f"{times} ranks on {name}" for name, times in names.items()])
    return None


def _versions(results: Results) -> Finding | None:
    """The library that each rank really has, whatever packages say; the minority is named."""
    versions = {host: one["version"] for host, one in _ups(results)}
    count = Counter(versions.values())
    if len(count) < 2:
        return None
    (most, times), (_next, second) = count.most_common(2)
    others = [host for host, version in versions.items() if version != most]
    hosts = others if times > second else []
    told = ", ".join(f"{version} on {listed([h for h, v in versions.items() if v == version])}" for version in count)
    variables = {host: {"openmpi_version": most} for host in hosts}
    return _finding(
        results,
        hosts,
        f"the ranks have different releases of Open MPI: {told}",
        FIX_VERSION,
        [f"MPI_Get_library_version on {host}: {version}" for host, version in versions.items()],
        variables=variables,
        command=fixes.site("openmpi", hosts),
    )


def _sums(results: Results) -> Finding | None:
    """Wrong sums.  The node of a rank is named whose own sums alone are wrong, or whose part all others miss."""
    wrong = [one for one in results.events if one["event"] == "wrong"]
    if not wrong:
        return None
    size = len(results.hosts)
    theories = [(one, _theory(one, size)) for one in wrong]
    evidence = [
        f"rank {one['rank']} on {results.hosts[one['rank']]}: {one['elements']} elements, {one['first']} to "
        f"{one['last']}, {one['size_bytes']} bytes, iteration {one['iteration']}: {theory}"
        for one, theory in theories
    ]
    ranks = {one["rank"] for one in wrong}
    meant = {int(found.group(1)) for found in (ONE_RANK.search(theory) for _one, theory in theories) if found}
    guilty: set[int] = set()
    if len(ranks) == 1:
        guilty = ranks
    elif len(meant) == 1 and all(ONE_RANK.search(theory) for _one, theory in theories):
        guilty = meant
    hosts = [results.hosts[rank] for rank in sorted(guilty) if rank < size]
    first, theory = theories[0]
    where = listed([results.hosts[one] for one in sorted(ranks)])
    return _finding(
        results,
        hosts,
        f"wrong data came out of the all_reduce over Open MPI on {where}, element {first['first']}: {theory}",
        FIX_DATA,
        evidence,
        confidence=0.8 if hosts else 0.5,
    )


def _theory(one: Mapping[str, Any], world_size: int) -> str:
    """What the wrong elements say about their cause."""
    samples = [(int(place), float(value)) for place, value in one["samples"]]
    if not samples:
        return "the sums differ in a way that no comparison of numbers shows"
    return explain(Pattern(world_size, one["iteration"]), samples, one["size_bytes"] // 4)
