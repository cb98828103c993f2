# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the nodes reported to what is wrong: the findings of a check.

Pure, and used once, on the controller.  Each kind of finding has a file of its own; here they are put in order.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    coordination,
    host_findings,
    known_causes,
    matrix,
    mesh_card_speed,
    mesh_findings,
    mesh_links,
    mesh_lost_requests,
    mesh_rail_findings,
    mpi_findings,
    odd_answers,
    packet_filter,
    plan,
    rails,
    ranks_findings,
    ranks_pair_findings,
    ranks_results,
    speed_findings,
    speed_limits,
    static_findings,
    static_host_keys,
    static_jobs,
    static_nccl,
    verdict,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.reading import Known
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Results, Run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import Report, Stage, judged
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import NCCL
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.names import spelled


def diagnose(run: Run) -> Report:
    """Judge a run.  Nodes whose answers break a judge are named, and judged as if they had given none."""
    try:
        return make_report(run)
    except Exception as error:
        odd = odd_answers.culprits(run.members, lambda hosts: _passes(run, hosts))
        if not odd:
            raise
        why = _broken(error)
        return make_report(run.without(dict.fromkeys(odd, why)))


def _passes(run: Run, without: Collection[str]) -> bool:
    """Whether the judges take the run without the answers of these hosts."""
    try:
        make_report(run.without(dict.fromkeys(without, "")))
    except Exception:
        return False
    return True


def _broken(error: Exception) -> str:
    """What broke and where, for whoever has to fix it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {os.path.basename(last.filename)}, line {last.lineno}: {error}"[:300]


def make_report(run: Run) -> Report:
    """The same without a net: it raises where an answer is not what the programs of a check write."""
    lost = host_findings.lost(run)
    refused, without_job = host_findings.not_handed(run), host_findings.without_job(run)
    hosts = [*lost.findings, *host_findings.not_started(run), *refused.values(), *list(without_job.values())[:1]]
    hosts += host_findings.same_node(run.launch)
    # The worker of a round is one of its own, after the one that was collected.
    hosts += coordination.findings(run.launch, {**run.collect, **run.pairs.get("died", {})})
    early = {*lost.gone, *coordination.died_early(run)}
    answered = [
        host
        for host in plan.launched(run.launch, run.selected)
        if "links" in run.probe.get(host, {}) and host not in early
    ]
    surveyed = mesh_rail_findings.survey(run.known_members, run.launch, run.probe, answered)
    versions = _versions(run.collect)
    code = {host: tuple(ready.get("code", ())) for host, ready in _ready(run.collect).items()}
    nodes = matrix.nodes(run.facts, run.pins, versions, code)
    links = mesh_links.read(answered, run.probe)
    # A certain fact of a node comes before the links that it explains, and these are no findings of their own.
    told = known_causes.explain(_static(run, {node.name for node in nodes if node.has_gpu}), links)
    meshed, railed = _on_rails(run, _mesh(run, answered, told.ends, links), surveyed)
    interfaces = {str(one["name"]): str(one["fabric_interface"]) for one in run.known_members}
    cards = mesh_card_speed.speeds(run.looked, interfaces)
    meshed = [*meshed, *mesh_card_speed.findings(answered, links, cards, meshed, run.labels)]
    filters = packet_filter.findings(run.looked, run.port_plan, mesh=meshed) if _is_looked(run) else []
    static = [*told.leading, *told.rest, *filters]
    known = once([*hosts, *told.leading, *meshed, *told.rest, *filters, *matrix.findings(nodes)])
    known_of = _known_of(run, nodes)
    ranks = ranks_findings.findings(
        run.plan,
        run.collect,
        {**lost.gone, **refused, **without_job},
        # Gloo has the interface of the first rail; NCCL takes as many as it finds or is told.
        [*known, *railed] if run.backend == NCCL else known,
        addresses={host: run.launch[host]["address"] for host in answered},
        known_of=known_of,
        backend=run.backend,
    )
    ranked = ranks_pair_findings.joined(ranks.findings, run.pairs, run.labels)
    limits, _refused = speed_limits.read(run.limits)
    slow_links = speed_findings.of_links(limits, answered, links, run.labels)
    slow_sizes = speed_findings.of_sizes(limits, ranks.sizes)
    # What happened in pairs explains nothing that happened before.
    found = [*known, *railed, *ranked, *host_findings.lost_in_pairs(run), *slow_links, *slow_sizes]
    mpi = mpi_findings.judge(run, found, known_of)
    found += mpi.findings
    unexplained = [*ranks.unexplained, *mpi.unexplained]
    if not run.check_mode and not run.plan["hosts"] and not any(one.severity == ERROR for one in found):
        found.append(host_findings.nobody())
    sizes = [asdict(size) for size in ranks.sizes]
    answer = verdict.verdict(run, found, unexplained, sizes)
    return Report(
        verdict=answer,
        headline=verdict.headline(answer, run, found, unexplained, sizes),
        run_id=run.run_id,
        started=run.started,
        seconds=run.seconds,
        backend=run.backend,
        strict=run.strict,
        members=list(run.members),
        selected=list(run.selected),
        participants=list(run.plan["hosts"]),
        world_size=run.plan["world_size"],
        hostnames=_hostnames(run),
        versions=versions,
        stages=[
            *_stages(run, static, [*meshed, *railed, *slow_links], answered, [*ranked, *slow_sizes], bool(sizes)),
            mpi.stage,
        ],
        findings=sorted(found, key=lambda one: one.severity != ERROR),
        unexplained=unexplained,
        sizes=sizes,
        fit=ranks.fit,
        mesh=mesh_links.table(links, "worst", answered),
        latency_ms=mesh_links.table(links, "milliseconds", answered),
        bytes_per_second=mesh_links.table(links, "bytes_per_second", answered),
        retransmits=mesh_links.table(links, "retransmits", answered),
        ranks=ranks.ranks,
        notes=[
            *_notes(run, nodes),
            *mesh_rail_findings.notes(run.known_members, surveyed, run.launch),
            *mesh_lost_requests.notes(answered, links, run.labels),
            *mesh_card_speed.notes(answered, links, cards, limits.links.bytes_per_second_min is not None),
            *speed_findings.notes(limits, links, ranks.sizes),
        ],
        stack=matrix.stack(nodes),
        gpu_verified=[node.name for node in nodes if answer == verdict.PASSED and run.backend == NCCL and node.has_gpu],
        labels={host: dict(values) for host, values in run.labels.items()},
        limits=limits.as_dict(),
        rounds=list(run.pairs.get("rounds", [])),
        rails=[rail.as_dict() for rail in surveyed],
        openmpi=mpi.told,
    )


def _known_of(run: Run, nodes: Sequence[Any]) -> dict[str, Known]:
    """Host to what is known about the texts that it prints."""
    members = {spelled(one["fabric_address"]): str(one["name"]) for one in run.known_members}
    members |= {spelled(result["address"]): host for host, result in run.launch.items() if "address" in result}
    further = (
        (spelled(address.partition("/")[0]), host)
        for host, looked in run.looked.items()
        for card in looked.get("interfaces", {}).values()
        for address in card["addresses"]
    )
    others = {address: host for address, host in further if address not in members}
    versions = {node.name: {"nccl": node.text("nccl", "torch"), "open_mpi": node.text("openmpi")} for node in nodes}
    return {
        host: Known(members, others, run.looked.get(host, {}).get("limits", {}), versions.get(host, {}))
        for host in run.plan["hosts"]
    }


def _mesh(
    run: Run, answered: Sequence[str], known: Collection[mesh_links.Ends], links: mesh_links.Links
) -> list[Finding]:
    return mesh_findings.findings(
        answered,
        run.probe,
        static=run.looked,
        labels=run.labels,
        ranges={host: run.launch[host].get("ranges", []) for host in answered},
        addresses={host: run.launch[host]["address"] for host in answered},
        plan=run.port_plan or None,
        known=known,
        links=links,
    )


def _on_rails(
    run: Run, first: Sequence[Finding], surveyed: Sequence[mesh_rail_findings.Surveyed]
) -> tuple[Sequence[Finding], list[Finding]]:
    """The findings of the first rail, and those of the others only; what several have in common is among the first."""
    if not surveyed:
        return first, []
    further = [
        mesh_rail_findings.findings(
            rail,
            labels=run.labels,
            ranges={host: run.launch[host].get("ranges", []) for host in rail.hosts},
            plan=run.port_plan or None,
        )
        for rail in surveyed
    ]
    return mesh_rail_findings.once(first, further, surveyed, rails.rails(run.known_members)[0].name)


def _is_looked(run: Run) -> bool:
    return bool(run.looked and run.known_members and run.port_plan)


def _static(run: Run, gpus: Collection[str]) -> list[Finding]:
    """What the nodes say of themselves, their packet filters aside."""
    if not _is_looked(run):
        return []
    refusals = static_host_keys.refused(run.openmpi)
    return static_findings.findings(
        run.looked, run.known_members, run.port_plan, run.user, run.backend, gpus, run.pins, refusals
    )


#: Certificates, authorities and old host keys.
_OF_SSH = ("GC-SSH-001", "GC-SSH-003", "GC-SSH-004", "GC-SSH-005")


def once(findings: Sequence[Finding]) -> list[Finding]:
    """Without what another stage says better.

    The look at the node knows why its card can't be used, and which MTU; a certificate or a key that ssh refuses is
    the reason for a login that failed.
    """
    without_card = {
        host
        for one in findings
        if one.id in ("GC-NODE-003", "GC-NODE-004") and one.severity == ERROR
        for host in one.hosts
    }
    refused = {host for one in findings if one.id in _OF_SSH for host in one.hosts}
    mtu_is_told = any(one.id == "GC-NODE-008" for one in findings)
    return [
        one
        for one in findings
        if not (one.id == "GC-HOST-002" and one.hosts and without_card.issuperset(one.hosts))
        and not (one.id == "GC-VER-014" and mtu_is_told)
        and not (one.id == "GC-SSH-006" and one.confidence < 1 and not refused.isdisjoint(one.about.nodes))
    ]


def _versions(collect: Results) -> dict[str, str]:
    """Host to the torch version that its ranks imported."""
    return {host: ready["torch"] for host, ready in _ready(collect).items()}


def _ready(collect: Results) -> dict[str, Mapping[str, Any]]:
    """Host to the event of one of its ranks that has imported torch."""
    return {
        host: event
        for host, result in collect.items()
        for rank in result.get("ranks", [])
        for event in rank["events"]
        if event["event"] == "ready"
    }


def _hostnames(run: Run) -> dict[str, str]:
    seen = {**run.looked, **run.launch}
    return {host: str(result["hostname"]) for host, result in seen.items() if "hostname" in result}


def _notes(run: Run, nodes: Sequence[Any]) -> list[str]:
    return [
        *matrix.notes(nodes, run.selected if run.facts else [], run.backend, run.plan.get("ranks")),
        *packet_filter.notes(run.looked),
        *static_nccl.notes(run.looked),
        *static_jobs.notes(run.looked),
        *coordination.notes(run.launch),
        *ranks_results.notes(run.collect),
        *ranks_pair_findings.notes(run.pairs, run.labels),
    ]


def _stages(
    run: Run,
    static: Sequence[Finding],
    meshed: Sequence[Finding],
    answered: Sequence[str],
    ranks: Sequence[Finding],
    measured: bool,
) -> list[Stage]:
    """measured: whether all ranks finished a size; without one the all_reduce has proved nothing."""
    skipped = "check mode measures nothing" if run.check_mode else ""
    mesh_skipped = skipped or ("" if len(answered) > 1 else "fewer than two nodes could probe each other")
    alone = skipped or ("" if run.plan["hosts"] else "no two nodes reach each other on all ports")
    return [
        judged("static", static) if run.looked else Stage("static", verdict.SKIPPED, "no node was asked"),
        Stage("mesh", verdict.SKIPPED, mesh_skipped) if mesh_skipped else judged("mesh", meshed),
        Stage("collective", verdict.SKIPPED, alone) if alone else _collective(judged("collective", ranks), measured),
    ]


def _collective(stage: Stage, measured: bool) -> Stage:
    if measured or stage.why:
        return stage
    return Stage(stage.name, "failed", "no size was finished by all ranks")
