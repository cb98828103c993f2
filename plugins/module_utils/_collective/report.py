# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as text for a person.  Pure; the first line is the answer."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective import mesh
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.diagnosis import Report, human_bytes

SYMBOLS = {
    mesh.OK: ".",
    mesh.TIMEOUT: "D",
    mesh.UNREACHABLE: "R",
    mesh.REFUSED: "C",
    mesh.STALLED: "M",
    mesh.FOREIGN: "F",
}
LEGEND = (
    "rows connect to columns: . ok, D dropped, R rejected, C refused, M stalls with payload, F foreign, ? no result"
)
# A wider grid does not fit a terminal; then only rows and columns with trouble are shown.
WIDE = 24


def lines(report: Report) -> Iterator[str]:
    """The report, line by line."""
    yield report.headline
    yield ""
    members = len(report.members)
    yield f"run {report.run_id}, backend {report.backend}, world size {report.world_size}, {members} members"
    yield from report.notes
    yield from _findings(report)
    yield from _sizes(report)
    yield from _ranks(report)
    yield from _mesh(report)


def _findings(report: Report) -> Iterator[str]:
    for finding in report.findings:
        yield ""
        yield f"{finding.severity.upper()} {finding.id}: {finding.cause}"
        for one in finding.evidence:
            yield f"  seen: {one}"
        yield f"  fix:  {finding.fix}"


def _sizes(report: Report) -> Iterator[str]:
    if not report.sizes:
        return
    yield ""
    yield f"{'size':>10} {'time (ms)':>10} {'algbw GB/s':>11} {'busbw GB/s':>11} {'iterations':>11}   slowest rank"
    for one in report.sizes:
        slowest = max(one.seconds_by_rank, key=lambda rank: one.seconds_by_rank[rank])
        yield (
            f"{human_bytes(one.size_bytes):>10} {one.seconds * 1e3:>10.3f} {one.algbw_gb_per_s:>11.3f} "
            f"{one.busbw_gb_per_s:>11.3f} {one.iterations:>11}   {slowest}"
        )


def _ranks(report: Report) -> Iterator[str]:
    if not report.ranks:
        return
    yield ""
    for rank in report.ranks:
        last = rank["events"][-1]["event"] if rank["events"] else "nothing"
        version = report.versions.get(rank["host"], "?")
        name = rank["hostname"] or "?"
        yield f"rank {rank['rank']:>3}  {rank['host']:<16} host name {name:<16} torch {version:<14} last event: {last}"


def _mesh(report: Report) -> Iterator[str]:
    hosts = list(report.mesh)
    if not hosts:
        return
    bad = {
        end
        for source, row in report.mesh.items()
        for target, result in row.items()
        if result != mesh.OK
        for end in (source, target)
    }
    yield ""
    if not bad:
        yield f"mesh: all {len(hosts) * (len(hosts) - 1)} directed links open on all sampled ports"
        return
    shown = hosts if len(hosts) <= WIDE else [host for host in hosts if host in bad]
    yield f"mesh, {LEGEND}"
    width = max(len(host) for host in shown)
    for number, source in enumerate(shown):
        cells = [" " if source == target else SYMBOLS.get(report.mesh[source].get(target, ""), "?") for target in shown]
        yield f"{number:>4} {source:<{width}} " + " ".join(cells)
