# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings about hosts that were lost, could not start, or are one and the same.  Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import NAMED, listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import GROUP, Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Results, Run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import worker_state
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import NO_JOB

#: How a step refuses a value: ``limits.out_of_range``, ``begin.wrong_ranges``, and the look at a node.
REFUSED = re.compile(r"^(range )?\w+ is \S+( to \S+)?, expected ")
FIX_AWAY = "let nothing suspend or stop the controller while the check runs, and check again"
FIX_REFUSED = "change the variable of the check that the text follows from"
STATIC, FACTS = "static", "facts"
#: Step to the keys of which its answer has one.
ANSWER = {"launch": {"state"}, "probe": {"links", "error"}, "go": {"started"}, "collect": {"state"}}


@dataclass(frozen=True)
class Lost:
    """Hosts without an answer.  findings: one for each step.  gone: host to its finding; those take no further part."""

    findings: list[Finding]
    gone: dict[str, Finding]


def lost(run: Run) -> Lost:
    """Hosts without an answer to one of the steps, by the first step they missed.

    A host that only gave no answer when it was looked at, or that was lost after its work, is not gone: what it
    measured counts.
    """
    missed: dict[tuple[str, bool], list[str]] = {}
    gone: dict[str, tuple[str, bool]] = {}
    broken = {host: _not_judged(host, why) for host, why in run.broken.items()}
    for host in run.selected:
        if host in broken:
            continue
        look = run.static.get(host, {})
        looked = not (run.static or run.check_mode) or "static" in look or bool(look.get("skipped"))
        step = _missed(run, host)
        if step or not looked or host in run.unreachable:
            first = STATIC if not looked else step or FACTS
            told = (first, bool(REFUSED.search(_said(run, first, host))))
            missed.setdefault(told, []).append(host)
            if step:
                gone[host] = told
    found = {told: _no_answer(run, told[0], hosts) for told, hosts in missed.items()}
    return Lost([*broken.values(), *found.values()], {**broken, **{host: found[told] for host, told in gone.items()}})


def _not_judged(host: str, why: str) -> Finding:
    """A node whose answers broke a judge, and were left out."""
    return Finding(
        "GC-HOST-006",
        (host,),
        f"the answers of {host} cannot be judged: they are not what the programs of the check write",
        f"look at who can become root or the user of the ranks on {host}; rebuild the node if you do not trust it. "
        "Where nobody changed it, report the text that was seen as a fault of this collection",
        (f"without the answers of {host} the others are judged, with them: {why}",),
        reproduce=fixes.check((host,)),
    )


def _missed(run: Run, host: str) -> str:
    """The first step of the measurement to which there is no answer, or nothing."""
    if run.check_mode:
        return ""
    steps = ["launch"]
    if run.launch.get(host, {}).get("state") == "waiting":
        steps += ["probe", "go", "collect"] if host in run.plan["hosts"] else ["probe", "collect"]
    return next((step for step in steps if not getattr(run, step).get(host, {}).keys() & ANSWER[step]), "")


def _said(run: Run, step: str, host: str) -> str:
    """What came in place of an answer."""
    answer = run.unreachable.get(host, "") if step == FACTS else getattr(run, step).get(host, {}).get("msg", "")
    said = str(answer).strip().splitlines()
    return said[0][:300] if said else "the controller lost it before this step"


def _no_answer(run: Run, step: str, hosts: Sequence[str]) -> Finding:
    """hosts: all of them refused the step, or none of them."""
    said = {host: _said(run, step, host) for host in hosts}
    texts = [f"{host}: {text}" for host, text in said.items()]
    if REFUSED.search(said[hosts[0]]):
        cause = f"{listed(hosts)} refused the step '{step}': {said[hosts[0]]}"
        return Finding("GC-HOST-001", (), cause, FIX_REFUSED, tuple(texts), reproduce=fixes.check())
    return Finding(
        "GC-HOST-001",
        tuple(hosts),
        f"{listed(hosts)} gave no answer to the step '{step}'",
        f"see whether it is up and answers ssh: {fixes.ping(hosts[:NAMED])}",
        tuple(texts),
        reproduce=fixes.ping(hosts[:NAMED]),
    )


def lost_in_pairs(run: Run) -> list[Finding]:
    """Hosts that took part in the collective and gave no answer afterwards, when pairs of nodes were tried."""
    lost = [(host, one["why"]) for each in run.pairs.get("rounds", []) for one in each["pairs"] for host in one["lost"]]
    why = {host: text for host, text in lost if host not in run.pairs["died"]}
    away = [host for host in run.selected if NO_JOB in why.get(host, "")]
    found = [_away(away, NO_JOB + why[away[0]].rpartition(NO_JOB)[2])] if away else []
    gone = {host: text for host, text in why.items() if host not in away}
    if gone:
        found.append(replace(_no_answer(run, "pairs", list(gone)), evidence=tuple(gone.values())))
    return found


def lost_in_openmpi(run: Run) -> list[Finding]:
    """The host that was to start mpirun, and gave no answer then."""
    return [_no_answer(run, "openmpi", [run.openmpi_job["host"]])]


def not_started(run: Run) -> list[Finding]:
    """Hosts on which the worker refused to start, with its reason."""
    return [
        _refused(host, f"the check could not start on {host}: {run.launch[host]['error']}")
        for host in run.selected
        if run.launch.get(host, {}).get("state") == "failed"
    ]


def not_handed(run: Run) -> dict[str, Finding]:
    """Host to its finding, where the worker was there and could not probe or be given its job, with its reason.

    Not where it died, or its time was over: that is told for itself.
    """
    errors = {
        host: answer["error"]
        for host in run.selected
        for answer in (run.probe.get(host, {}), run.go.get(host, {}))
        if answer.get("started") is False and _state(run, host) not in (worker_state.DIED, worker_state.EXPIRED)
    }
    return {host: _refused(host, f"the check could not go on on {host}: {error}") for host, error in errors.items()}


def without_job(run: Run) -> dict[str, Finding]:
    """Host to one finding about all workers whose time was over before they had a job: the controller was away.

    It accuses nobody.
    """
    hosts = [host for host in run.selected if _state(run, host) == worker_state.EXPIRED]
    return dict.fromkeys(hosts, _away(hosts, str(run.collect[hosts[0]].get("error", "")))) if hosts else {}


def _state(run: Run, host: str) -> str:
    """The state of the worker when its results were fetched."""
    return str(run.collect.get(host, {}).get("state", ""))


def _away(hosts: Sequence[str], error: str) -> Finding:
    return Finding(
        "GC-HOST-002",
        (),
        f"the check could not go on on {listed(hosts)}: {error}",
        FIX_AWAY,
        subject=Subject(GROUP, tuple(hosts)),
        ruled_out=("the nodes: their workers waited until their time was over",),
        reproduce=fixes.check(),
    )


def _refused(host: str, cause: str) -> Finding:
    fix = "fix what the text names on this node"
    return Finding("GC-HOST-002", (host,), cause, fix, reproduce=fixes.check((host,)))


def same_node(launch: Results) -> list[Finding]:
    """Two members with one host name are most likely one machine that is counted twice."""
    by_name: dict[str, list[str]] = {}
    for host, result in launch.items():
        if "hostname" in result:
            by_name.setdefault(result["hostname"], []).append(host)
    return [
        Finding(
            "GC-HOST-003",
            tuple(hosts),
            f"{' and '.join(hosts)} all call themselves {name}",
            "give each node its own host name, or remove the second inventory name of the same machine",
            reproduce=fixes.check(hosts),
        )
        for name, hosts in by_name.items()
        if len(hosts) > 1
    ]


def nobody() -> Finding:
    """Nothing was measured, and nothing says why."""
    return Finding(
        "GC-RUN-003",
        (),
        "no two nodes took part, so nothing was validated",
        "check at least two members",
        reproduce=fixes.check(),
    )
