# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of the check found, as it is written and shown.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import human_bytes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import step_times
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run

#: Of report.json.  Within one version keys are added and never removed or changed.
REPORT_VERSION = 2

PASSED = "PASSED"
FAILED = "FAILED"
NOT_VALIDATED = "NOT VALIDATED"
SKIPPED = "skipped"


@dataclass(frozen=True)
class Stage:
    """One stage.  result: ``passed``, ``failed`` or ``skipped``.  why: why it did not pass, or what it ran."""

    name: str
    result: str
    why: str = ""


def judged(name: str, findings: Sequence[Finding]) -> Stage:
    """A stage that ran, by its findings."""
    errors = [one for one in findings if one.severity == ERROR]
    return Stage(name, "failed", f"{errors[0].id} {errors[0].cause}") if errors else Stage(name, "passed")


@dataclass(frozen=True)
class Report:
    """What a check found.  verdict: ``PASSED``, ``FAILED`` or ``NOT VALIDATED``.

    notes: what a person must know to read it.  stack: host to the versions that were compared.  gpu_verified: the hosts
    whose GPUs took part; a host without one is never among them.  mesh, latency_ms, bytes_per_second, retransmits:
    source to target to the worst result and the numbers of that directed link.  sizes, fit, ranks, unexplained: as
    rank_findings.Judgement has them.  limits: of the site, as speed_limits.Limits.as_dict() gives them.  times: what
    step_times.spans() gives.  rounds: of pairs of nodes, as localise.py has them.  rails: those after
    the first, as mesh/rails.py tells them.  openmpi: as mpi/results.py tells it, empty where mpirun was not run.
    """

    verdict: str
    headline: str
    run_id: str
    started: str
    seconds: float
    backend: str
    strict: bool
    members: list[str]
    selected: list[str]
    participants: list[str]
    world_size: int
    hostnames: dict[str, str]
    versions: dict[str, str]
    stages: list[Stage]
    findings: list[Finding]
    unexplained: list[dict[str, Any]]
    sizes: list[dict[str, Any]]
    fit: dict[str, float] | None
    mesh: dict[str, dict[str, str]]
    latency_ms: dict[str, dict[str, float]]
    bytes_per_second: dict[str, dict[str, float]]
    retransmits: dict[str, dict[str, int]]
    ranks: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stack: dict[str, dict[str, str]] = field(default_factory=dict)
    gpu_verified: list[str] = field(default_factory=list)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    times: list[dict[str, Any]] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    rails: list[dict[str, Any]] = field(default_factory=list)
    openmpi: dict[str, Any] = field(default_factory=dict)

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
        """The content of ``report.json``, whose shape is published (report/schema.py)."""
        findings = [one.as_dict() for one in self.findings]
        return dict(asdict(self), findings=findings, schema_version=REPORT_VERSION, culprits=self.culprits)


def timed(report: Report, started: float, began: Mapping[str, float], ended: float) -> Report:
    """The report with its times.  All times in seconds since 1970."""
    return replace(
        report,
        seconds=max(0.0, round(ended - started, 1)),
        times=step_times.spans(began, started, ended),
    )


def verdict(
    run: Run, findings: Sequence[Finding], unexplained: Sequence[Mapping[str, Any]], sizes: Sequence[Mapping[str, Any]]
) -> str:
    """The answer.  No result is a failure, never a success."""
    if run.check_mode:
        return NOT_VALIDATED
    if any(finding.severity == ERROR for finding in findings) or (run.strict and unexplained):
        return FAILED
    if set(run.plan["hosts"]) != set(run.members):
        return NOT_VALIDATED
    return PASSED if sizes else FAILED


def headline(
    answer: str,
    run: Run,
    findings: Sequence[Finding],
    unexplained: Sequence[Mapping[str, Any]],
    sizes: Sequence[Mapping[str, Any]],
) -> str:
    """The answer as one sentence, with its reason or its numbers."""
    errors = [finding for finding in findings if finding.severity == ERROR]
    if run.check_mode:
        seen = f"{len(errors)} error(s), the first: {errors[0].cause}" if errors else "nothing wrong was seen"
        return f"{NOT_VALIDATED}: check mode only looks, the mesh and the all_reduce were skipped; {seen}"
    if answer == FAILED:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        if errors:
            return f"{FAILED}: {errors[0].cause}. Fix: {errors[0].fix}{more}"
        if unexplained:
            first = f"the first on {unexplained[0]['host']}: {unexplained[0]['text']}"
            return f"{FAILED}: strict, and nothing explains {len(unexplained)} text(s), {first}"
        return f"{FAILED}: no size was measured"
    measured = ", ".join(
        f"{human_bytes(one['size_bytes'])} {one['seconds'] * 1e3:.3g} ms busbw {one['busbw_gb_per_s']:.3g} GB/s"
        for one in sizes
    )
    nodes = len(run.plan["hosts"])
    what = (
        f"world {run.plan['world_size']}, {nodes} nodes, all_reduce over {run.backend} exact in every iteration: "
        f"{measured}"
    )
    if answer == NOT_VALIDATED:
        return f"{NOT_VALIDATED}, {nodes} of {len(run.members)} members: {what}"
    return f"{PASSED}: {what}"
