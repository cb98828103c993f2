# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of the check found, as it is written and shown.  Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import step_times
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.link_table import Table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run

#: Of report.json.  Within one version keys are added and never removed or changed.
REPORT_VERSION = 3

#: Of the first line: what a terminal of two halves of a wide screen still shows in two rows.
MOST_CHARACTERS = 159
#: Where a sentence may end early: after a clause, or else after a word.
_CLAUSE, _WORD = re.compile(r"[:;,](?= )| (?=\()"), re.compile(r" ")

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
    origin: where and with what the report was made, as delivery.with_origin() puts it in.
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
    mesh: Table
    latency_ms: Table
    bytes_per_second: Table
    retransmits: Table
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
    origin: dict[str, Any] = field(default_factory=dict)

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
        """What the formats of a report are made of; report/compact.py makes ``report.json`` of it.

        Only what is an object here is made a dictionary: the values of a thousand nodes are not copied.
        """
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        stages = [asdict(stage) for stage in self.stages]
        findings = [one.as_dict() for one in self.findings]
        return {
            **own,
            "stages": stages,
            "findings": findings,
            "schema_version": REPORT_VERSION,
            "culprits": self.culprits,
        }


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
    """The answer as one short line: who, what, and how to fix it."""
    errors = [finding for finding in findings if finding.severity == ERROR]
    if run.check_mode:
        seen = f"{len(errors)} error(s), the first: {errors[0].cause}" if errors else "nothing wrong was seen"
        return brief(
            f"{NOT_VALIDATED}: check mode only looks, the mesh and the all_reduce were skipped; {seen}", MOST_CHARACTERS
        )
    if answer == FAILED:
        if errors:
            return _failed(errors[0], len(errors) - 1)
        if unexplained:
            first = f"the first on {unexplained[0]['host']}: {unexplained[0]['text']}"
            return brief(f"{FAILED}: strict, and nothing explains {len(unexplained)} text(s), {first}", MOST_CHARACTERS)
        return f"{FAILED}: no size was measured"
    nodes = len(run.plan["hosts"])
    what = f"world {run.plan['world_size']}, {nodes} nodes, all_reduce over {run.backend} exact in every iteration"
    if answer == NOT_VALIDATED:
        return f"{NOT_VALIDATED}, {nodes} of {len(run.members)} members: {what}"
    return f"{PASSED}: {what}"


def _failed(first: Finding, further: int) -> str:
    """Its cause and its fix, each as far as there is room; a fix that is short leaves its room to the cause."""
    more = f" (and {further} more)" if further else ""
    room = MOST_CHARACTERS - len(f"{FAILED}: . Fix: {more}")
    cause = brief(first.cause, max(room - len(first.fix), room * 7 // 10))
    stop = "" if cause.endswith(".") else "."
    return f"{FAILED}: {cause}{stop} Fix: {brief(first.fix, room - len(cause))}{more}"


def brief(text: str, most: int) -> str:
    """The beginning of a sentence, at most ``most`` characters, up to where its first clauses end."""
    if len(text) <= most:
        return text
    ends = [one.start() for one in _CLAUSE.finditer(text, 0, most) if one.start() >= most // 2]
    clauses = [end for end in ends if text.count("(", 0, end) == text.count(")", 0, end)]
    if clauses:
        return text[: clauses[-1]].rstrip()
    words = [one.start() for one in _WORD.finditer(text, 0, most - 3)]
    return text[: words[-1]] + " ..." if words else text[: most - 3] + "..."
