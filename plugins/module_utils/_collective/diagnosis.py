# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the nodes reported to what is wrong: the findings of a check.

Pure, and used once, on the controller.  No result is a failure, never a success.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective import bandwidth, matrix, mesh, plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.finding import ERROR, Finding

Results = Mapping[str, Mapping[str, Any]]

# A node is blamed for a bad row or column of the mesh when at least this share of it is bad (see docs/architecture.md).
NODE_SHARE = 0.6

HOW_IT_LOOKED = {
    mesh.TIMEOUT: "dropped (no answer)",
    mesh.UNREACHABLE: "rejected",
    mesh.REFUSED: "refused (reset)",
    mesh.STALLED: "connected, but the payload got no answer (path MTU?)",
    mesh.FOREIGN: "answered by something that is not this check",
}
FIX_FIREWALL = (
    "open the ports of the plan to the members: run the site playbook with --tags cluster_firewall; if they are open, "
    "look at what filters between the nodes"
)
FIX_MTU = "set the same MTU on all interfaces and switches of the path, or allow ICMP 'fragmentation needed'"


@dataclass(frozen=True)
class SizeResult:
    """One buffer size: median over iterations of the slowest rank.  Bandwidths in GB/s (10**9 bytes)."""

    size_bytes: int
    seconds: float
    algbw_gb_per_s: float
    busbw_gb_per_s: float
    iterations: int
    seconds_by_rank: dict[str, float]


@dataclass(frozen=True)
class Report:
    """What a check found.  verdict: ``PASSED``, ``FAILED`` or ``NOT VALIDATED``.

    notes: what a person must know to read it.  stack: host to the versions that were compared.  gpu_verified: the hosts
    whose GPUs took part; a host without one is never among them.
    """

    verdict: str
    headline: str
    run_id: str
    backend: str
    members: list[str]
    participants: list[str]
    world_size: int
    hostnames: dict[str, str]
    versions: dict[str, str]
    sizes: list[SizeResult]
    findings: list[Finding]
    mesh: dict[str, dict[str, str]]
    ranks: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stack: dict[str, dict[str, str]] = field(default_factory=dict)
    gpu_verified: list[str] = field(default_factory=list)

    @property
    def culprits(self) -> dict[str, str]:
        """Host to the causes of its errors."""
        causes: dict[str, list[str]] = {}
        for finding in self.findings:
            if finding.severity == ERROR:
                for host in finding.hosts:
                    causes.setdefault(host, []).append(f"{finding.id} {finding.cause}")
        return {host: "; ".join(texts) for host, texts in causes.items()}

    def as_dict(self) -> dict[str, Any]:
        return dict(asdict(self), schema_version=1, culprits=self.culprits)


def diagnose(
    *,
    run_id: str,
    backend: str,
    members: Sequence[str],
    selected: Sequence[str],
    launch: Results,
    probe: Results,
    go: Results,
    collect: Results,
    the_plan: Mapping[str, Any],
    facts: Results | None = None,
    pins: Results | None = None,
) -> Report:
    """Judge a run.

    members: the whole cluster.  selected: the members this run was meant for (all but those excluded by ``--limit``).
    launch, probe, go, collect: host to the result of that module; a host without a result was lost on the way.
    the_plan: what ``plan.make_plan`` returned.  facts: host to what gpu_node_facts read, empty for a host without.
    pins: host to the variables of its inventory that are compared with the facts.
    """
    lost = _lost(selected, launch, probe, go, collect, the_plan)
    findings = list(lost.values())
    findings += _not_started(selected, launch)
    findings += _same_node(launch)
    answered = [host for host in plan.launched(launch, selected) if "rows" in probe.get(host, {}) and host not in lost]
    findings += _mesh(answered, probe)
    versions = _versions(collect)
    nodes = matrix.nodes(facts or {}, pins or {}, versions)
    skew = matrix.findings(nodes)
    ranks = _ranks(the_plan, collect)
    wrong = _wrong_data(ranks)
    sizes = _sizes(ranks, the_plan["world_size"])
    # A different driver or kernel explains no rank that died over gloo; a different torch does.
    explained = bool(findings or wrong or any(one.id == matrix.TORCH_ID and one.severity == ERROR for one in skew))
    findings += skew + wrong
    findings += _rank_trouble(ranks, the_plan, lost, explained)
    findings += _interface(the_plan, collect, sizes)
    participants = list(the_plan["hosts"])
    if not participants and not any(finding.severity == ERROR for finding in findings):
        findings.append(
            Finding(
                "GC-RUN-003",
                ERROR,
                (),
                "no two nodes took part, so nothing was validated",
                "check at least two members",
            )
        )
    verdict = _verdict(members, participants, findings, sizes)
    return Report(
        verdict=verdict,
        headline=_headline(verdict, backend, members, participants, the_plan["world_size"], sizes, findings),
        run_id=run_id,
        backend=backend,
        members=list(members),
        participants=participants,
        world_size=the_plan["world_size"],
        hostnames={host: result["hostname"] for host, result in launch.items() if "hostname" in result},
        versions=versions,
        sizes=sizes,
        findings=findings,
        mesh=_grid(answered, probe),
        ranks=ranks,
        notes=matrix.notes(nodes, selected if facts else [], backend),
        stack=matrix.stack(nodes),
        gpu_verified=[node.name for node in nodes if verdict == "PASSED" and backend == "nccl" and node.has_gpu],
    )


def _lost(
    selected: Sequence[str], launch: Results, probe: Results, go: Results, collect: Results, the_plan: Mapping[str, Any]
) -> dict[str, Finding]:
    """Hosts without an answer to one of the steps, with the first step they missed."""
    found = {}
    for host in selected:
        steps = [("launch", launch.get(host, {}), "state")]
        if launch.get(host, {}).get("state") == "waiting":
            steps.append(("probe", probe.get(host, {}), "rows"))
            if host in the_plan["hosts"]:
                steps.append(("go", go.get(host, {}), "started"))
            steps.append(("collect", collect.get(host, {}), "state"))
        for step, result, key in steps:
            if key in result:
                continue
            text = str(result.get("msg", "")).strip().splitlines()
            found[host] = Finding(
                "GC-HOST-001",
                ERROR,
                (host,),
                f"{host} gave no answer to the step '{step}'",
                f"see whether {host} is up and answers ssh: ansible {host} -m ping",
                (text[0][:300],) if text else ("the controller lost the host before this step",),
            )
            break
    return found


def _not_started(selected: Sequence[str], launch: Results) -> list[Finding]:
    return [
        Finding(
            "GC-HOST-002",
            ERROR,
            (host,),
            f"the check could not start on {host}: {launch[host]['error']}",
            "mend what the text names on this node",
        )
        for host in selected
        if launch.get(host, {}).get("state") == "failed"
    ]


def _same_node(launch: Results) -> list[Finding]:
    """Two members with one host name are most likely one machine that is counted twice."""
    by_name: dict[str, list[str]] = {}
    for host, result in launch.items():
        if "hostname" in result:
            by_name.setdefault(result["hostname"], []).append(host)
    return [
        Finding(
            "GC-HOST-003",
            ERROR,
            tuple(hosts),
            f"{' and '.join(hosts)} all call themselves {name}",
            "give each node its own host name, or remove the second inventory name of the same machine",
        )
        for name, hosts in by_name.items()
        if len(hosts) > 1
    ]


def _grid(hosts: Sequence[str], probe: Results) -> dict[str, dict[str, str]]:
    """Source to target to the worst result among the ports of the link."""
    grid: dict[str, dict[str, str]] = {}
    for source in hosts:
        for row in probe[source]["rows"]:
            if row["host"] in hosts:
                cell = grid.setdefault(source, {})
                if cell.get(row["host"], mesh.OK) == mesh.OK:
                    cell[row["host"]] = row["result"]
    return grid


def _mesh(hosts: Sequence[str], probe: Results) -> list[Finding]:
    """Explain the bad links by as few causes as possible: nodes inbound, nodes outbound, then single links."""
    grid = _grid(hosts, probe)
    bad = {(source, target) for source, row in grid.items() for target, result in row.items() if result != mesh.OK}
    open_links = set(bad)
    causes: list[tuple[str, str, list[tuple[str, str]]]] = []
    while open_links:
        best: tuple[float, int, str, str, list[tuple[str, str]]] | None = None
        for host in hosts:
            for direction, end in (("inbound", 1), ("outbound", 0)):
                links = sorted(link for link in open_links if link[end] == host)
                others = len(hosts) - 1
                share = len([link for link in bad if link[end] == host]) / others
                candidate = (float(len(links)), direction == "inbound", direction, host, links)
                if share >= NODE_SHARE and links and (best is None or candidate[:2] > best[:2]):
                    best = candidate
        if best is None or (len(best[4]) == 1 and len(hosts) > 2):
            break
        causes.append((best[2], best[3], best[4]))
        open_links -= set(best[4])
    findings = [_node_finding(direction, host, links, hosts, probe) for direction, host, links in causes]
    findings = _merge(findings, hosts)
    for source, target in sorted(open_links):
        seen, ports = _seen([(source, target)], probe)
        findings.append(
            Finding(
                "GC-NET-003",
                ERROR,
                (source, target),
                f"the link {source} -> {target} is closed: {seen}",
                _fix(seen),
                (ports,),
            )
        )
    return findings


def _node_finding(
    direction: str, host: str, links: list[tuple[str, str]], hosts: Sequence[str], probe: Results
) -> Finding:
    seen, ports = _seen(links, probe)
    number = "GC-NET-001" if direction == "inbound" else "GC-NET-002"
    return Finding(
        number,
        ERROR,
        (host,),
        f"{direction} connections of {host} fail on the data network: {seen}",
        _fix(seen),
        (f"{len(links)} of {len(hosts) - 1} peers", ports),
    )


def _merge(findings: list[Finding], hosts: Sequence[str]) -> list[Finding]:
    """One finding in place of many when every node has the same trouble."""
    kinds = {(finding.id, finding.cause.split(": ", 1)[1]) for finding in findings}
    if len(findings) < len(hosts) or len(kinds) != 1 or len(hosts) < 2:
        return findings
    number, seen = kinds.pop()
    return [
        Finding(
            number,
            ERROR,
            tuple(hosts),
            f"all {len(hosts)} nodes block each other on the data network: {seen}",
            findings[0].fix,
            tuple(sorted({one for finding in findings for one in finding.evidence[1:]})),
        )
    ]


def _seen(links: Sequence[tuple[str, str]], probe: Results) -> tuple[str, str]:
    """What failed, by port range, and the ports as evidence."""
    total: Counter[str] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    ports: set[int] = set()
    for source, target in links:
        for row in probe[source]["rows"]:
            if row["host"] == target:
                total[row["range_name"]] += 1
                if row["result"] != mesh.OK:
                    failed[(row["range_name"], row["result"])] += 1
                    ports.add(row["port"])
    words = [
        f"{count} of {total[name]} probes of the {name} ports {HOW_IT_LOOKED.get(result, result)}"
        for (name, result), count in sorted(failed.items())
    ]
    return ", ".join(words), "failing ports: " + ", ".join(str(port) for port in sorted(ports))


def _fix(seen: str) -> str:
    return FIX_MTU if "MTU" in seen else FIX_FIREWALL


def _versions(collect: Results) -> dict[str, str]:
    """Host to the torch version that its ranks imported."""
    return {
        host: event["torch"]
        for host, result in collect.items()
        for rank in result.get("ranks", [])
        for event in rank["events"]
        if event["event"] == "ready"
    }


def _ranks(the_plan: Mapping[str, Any], collect: Results) -> list[dict[str, Any]]:
    """All ranks of the plan in order, with what they reported."""
    ranks = []
    for host in the_plan["hosts"]:
        reported = {rank["local_rank"]: rank for rank in collect.get(host, {}).get("ranks", [])}
        for local_rank, rank in enumerate(the_plan["ranks"][host]):
            one = reported.get(local_rank, {"events": [], "exit_code": None, "stderr_tail": ""})
            ranks.append(
                {
                    "rank": rank,
                    "host": host,
                    "hostname": collect.get(host, {}).get("hostname", ""),
                    "state": collect.get(host, {}).get("state", "lost"),
                    "exit_code": one["exit_code"],
                    "events": one["events"],
                    "stderr_tail": one["stderr_tail"],
                }
            )
    return ranks


def _events(rank: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return [event for event in rank["events"] if event["event"] == kind]


def _wrong_data(ranks: Sequence[Mapping[str, Any]]) -> list[Finding]:
    found: dict[str, list[str]] = {}
    hosts: dict[str, list[str]] = {}
    for rank in ranks:
        for event in _events(rank, "size"):
            wrong = event["wrong"]
            if wrong:
                found.setdefault(wrong["explanation"], []).append(
                    f"rank {rank['rank']} on {rank['host']}: {wrong['elements']} elements, "
                    f"{wrong['first']} to {wrong['last']}, {event['size_bytes']} bytes, iteration {wrong['iteration']}"
                )
                hosts.setdefault(wrong["explanation"], []).append(rank["host"])
    return [
        Finding(
            "GC-DATA-001",
            ERROR,
            tuple(dict.fromkeys(hosts[explanation])),
            f"all_reduce gave wrong sums: {explanation}",
            "do not train on this cluster; test the memory and the network cards of the ranks that are named",
            tuple(evidence),
        )
        for explanation, evidence in found.items()
    ]


def _sizes(ranks: Sequence[Mapping[str, Any]], world_size: int) -> list[SizeResult]:
    """The sizes that every rank finished."""
    by_size: dict[int, dict[int, list[float]]] = {}
    for rank in ranks:
        for event in _events(rank, "size"):
            by_size.setdefault(event["size_bytes"], {})[rank["rank"]] = event["seconds"]
    results = []
    for size, seconds in sorted(by_size.items()):
        if len(seconds) < world_size:
            continue
        typical = bandwidth.median_seconds(list(seconds.values()))
        algbw = bandwidth.algbw_gb_per_s(size, typical)
        results.append(
            SizeResult(
                size_bytes=size,
                seconds=typical,
                algbw_gb_per_s=algbw,
                busbw_gb_per_s=algbw * bandwidth.busbw_factor(world_size),
                iterations=min(len(times) for times in seconds.values()),
                seconds_by_rank={
                    str(rank): bandwidth.median_seconds([times]) for rank, times in sorted(seconds.items())
                },
            )
        )
    return results


def _rank_trouble(
    ranks: Sequence[Mapping[str, Any]], the_plan: Mapping[str, Any], lost: Mapping[str, Finding], explained: bool
) -> list[Finding]:
    """Ranks that did not reach their end.  Their texts are kept; they accuse nobody when a cause is known already."""
    unfinished = [rank for rank in ranks if not _events(rank, "done") and rank["host"] not in lost]
    if not unfinished:
        return []
    evidence = []
    died = []
    for rank in unfinished:
        last = rank["events"][-1]["event"] if rank["events"] else "nothing"
        errors = [event["text"] for event in _events(rank, "error")]
        text = errors[0] if errors else rank["stderr_tail"].strip()[-300:] or f"last event: {last}"
        evidence.append(f"rank {rank['rank']} on {rank['host']} ({rank['state']}, last event {last}): {text}")
        if (rank["state"] == "finished" and not errors) or (rank["state"] == "finished" and not _events(rank, "store")):
            died.append(rank["host"])
    culprits = tuple(dict.fromkeys(died)) if not explained and len(died) < len(ranks) else ()
    return [
        Finding(
            "GC-RUN-001",
            ERROR,
            culprits,
            f"{len(unfinished)} of {len(ranks)} ranks did not finish the all_reduce"
            + (f"; first {' and '.join(culprits)}" if culprits else "")
            + (" (explained by the findings above)" if explained else ""),
            "mend the findings above first"
            if explained
            else "read the texts of the ranks; the first error in time leads",
            tuple(evidence),
        )
    ]


def _interface(the_plan: Mapping[str, Any], collect: Results, sizes: Sequence[SizeResult]) -> list[Finding]:
    """Data that did not cross the interface under test went somewhere else.

    Each rank needs at least ``size * (n - 1) / n`` bytes from the others for every all_reduce.
    """
    nodes = len(the_plan["hosts"])
    if nodes < 2 or not sizes:
        return []
    least = sum(one.size_bytes * one.iterations for one in sizes) * (nodes - 1) / nodes
    findings = []
    for host in the_plan["hosts"]:
        moved = collect.get(host, {}).get("interface_bytes")
        if moved and moved["rx_bytes"] < least:
            findings.append(
                Finding(
                    "GC-NET-006",
                    ERROR,
                    (host,),
                    f"{host} received {moved['rx_bytes']} bytes on the data interface, all_reduce needs {least:.0f}",
                    "the data took another interface: compare routes and gpu_cluster_fabric_interface on this node",
                )
            )
    return findings


def _verdict(
    members: Sequence[str], participants: Sequence[str], findings: Sequence[Finding], sizes: Sequence[SizeResult]
) -> str:
    if any(finding.severity == ERROR for finding in findings):
        return "FAILED"
    if set(participants) != set(members):
        return "NOT VALIDATED"
    return "PASSED" if sizes else "FAILED"


def _headline(
    verdict: str,
    backend: str,
    members: Sequence[str],
    participants: Sequence[str],
    world_size: int,
    sizes: Sequence[SizeResult],
    findings: Sequence[Finding],
) -> str:
    if verdict == "FAILED":
        errors = [finding for finding in findings if finding.severity == ERROR]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return f"FAILED: {errors[0].cause}. Fix: {errors[0].fix}{more}" if errors else "FAILED: no size was measured"
    measured = ", ".join(
        f"{human_bytes(one.size_bytes)} {one.seconds * 1e3:.3g} ms busbw {one.busbw_gb_per_s:.3g} GB/s" for one in sizes
    )
    what = (
        f"world {world_size}, {len(participants)} nodes, all_reduce over {backend} exact in every iteration: {measured}"
    )
    if verdict == "NOT VALIDATED":
        return f"NOT VALIDATED, {len(participants)} of {len(members)} members: {what}"
    return f"PASSED: {what}"


def human_bytes(size: int) -> str:
    """1048576 as ``1 MiB``; binary units, as buffer sizes are given."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g} {unit}"
