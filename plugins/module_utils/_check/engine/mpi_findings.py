# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the all_reduce over Open MPI shows, judged.  Pure.

A node is named when something points at it alone: ssh to it fails and ssh to others does not, connections of several
nodes wait for it, mpirun saw its rank die, its rank fell silent while others still spoke, or its sums are wrong.  Else
the finding is about the link or about all of them, and nobody is accused.  What another finding explains already makes
none of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    fixes,
    host_findings,
    ranks_slow,
    unfinished_ranks,
    verdict,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import (
    GROUP,
    LINK,
    Finding,
    Subject,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import (
    causes,
    lookup,
    open_mpi,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.lookup import Match
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.reading import Known
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import PEER, SELF
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mpi_results import Results, read
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mpi_wrong_data import wrong_results
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR, WARNING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import Stage, judged
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import mpi_output

STAGE = "openmpi"
START, WRONG, UNFINISHED = "GC-MPI-001", "GC-MPI-002", "GC-MPI-003"
#: How sure a cause is: a node is named by ssh or by mpirun itself, several things point at it, or only words do.
SURE, LIKELY, UNSURE = 0.9, 0.7, 0.5
#: Errors that keep a rank from its peers or its node from ssh, and so explain an mpirun that hangs.
EXPLAIN_SILENCE = (*causes.LEFT_ALONE, "GC-SSH-")
#: Signals that the check itself sends: the kernel's alarm in a rank, SIGTERM to mpirun and SIGKILL to what is left.
OURS = (14, 15)
#: What ssh shows of the node itself, and not of the way there, by its exit code.
FIX_DAEMON = {
    mpi_output.NO_DAEMON: "install Open MPI in the same place on all members",
    mpi_output.BROKEN_DAEMON: "see what is missing or damaged there, and install the packages of Open MPI and of its "
    "libraries again",
}
FIX_SIGNAL = (
    "look at the kernel log of this node: the out-of-memory killer, or a crash in a library that Open MPI loads"
)
FIX_SILENT = "look at the processor load, the memory and the kernel log of the nodes that are named"
FIX_NOBODY = "run mpirun by hand with two of the nodes at a time (docs/openmpi.md): two that hang lead to the cause"
FIX_LINK = (
    "let role openmpi write the networks and ports of the plan on all nodes, remove a user's own openmpi settings "
    "(~/.openmpi, ~/.prte, OMPI_MCA_*), and open the ports of the plan between the members"
)


#: Findings, or none where one of another stage explains it all.
Outcome = tuple[list[Finding], Optional[Finding]]


@dataclass(frozen=True)
class Judgement:
    """The stage.  unexplained: raw texts that nothing explains, as the report lists them.  told: its ``openmpi``."""

    stage: Stage
    findings: list[Finding] = field(default_factory=list)
    unexplained: list[dict[str, Any]] = field(default_factory=list)
    told: dict[str, Any] = field(default_factory=dict)


def judge(run: Run, known: Sequence[Finding], known_of: Mapping[str, Known] | None = None) -> Judgement:
    """known: the findings of all other stages.  known_of: host to what is known about its texts."""
    job = run.openmpi_job
    if run.check_mode:
        return _skipped("check mode measures nothing")
    if not run.plan["hosts"]:
        return _skipped("no two nodes reach each other on all ports")
    if not job:
        return _skipped("nobody asked for it")
    if job["lacking"]:
        return _stage([_lacking(job)])
    if not job["host"]:
        return _skipped(f"not run: {job['why']}")
    given = run.openmpi.get(job["host"], {})
    if job["host"] in run.broken:
        return Judgement(Stage(STAGE, "failed", f"the answers of {job['host']} cannot be judged"))
    if "state" not in given:
        return _stage(host_findings.lost_in_openmpi(run))
    if given["state"] == "failed":
        return _stage([_failed(job, given)])
    results = read(job, given, run.launch, (known_of or {}).get(job["host"]))
    found, blamed = _findings(results, _of_faults(known))
    unexplained = _unexplained(results) if not results.passed else []
    stage = judged(STAGE, found)
    if stage.result == verdict.FAILED.lower():
        return Judgement(stage, found, unexplained, results.told())
    if blamed or results.unfinished():
        why = f"explained by {blamed.id} {blamed.cause}" if blamed else "it did not come to its end"
        return Judgement(Stage(STAGE, "failed", why), found, unexplained, results.told())
    ended = "" if results.passed else f", and mpirun ended with {results.code} after that"
    return Judgement(Stage(STAGE, stage.result, results.words() + ended), found, unexplained, results.told())


def _skipped(why: str) -> Judgement:
    return Judgement(Stage(STAGE, verdict.SKIPPED, why))


def _stage(found: Sequence[Finding]) -> Judgement:
    return Judgement(judged(STAGE, found), list(found))


def _lacking(job: Mapping[str, Any]) -> Finding:
    """It is wanted, and cannot be."""
    hosts = tuple(job["lacking"])
    return Finding(
        START,
        hosts,
        f"Open MPI could not be tried: {job['why']}, and cluster_check_openmpi is true",
        "install Open MPI in the same place on all members, or set cluster_check_openmpi to auto",
        command=fixes.site("openmpi", hosts),
        reproduce=fixes.check(),
    )


def _failed(job: Mapping[str, Any], given: Mapping[str, Any]) -> Finding:
    """mpirun itself could not be started."""
    return Finding(
        START,
        (job["host"],),
        f"Open MPI could not be started on {job['host']}: {given['error']}",
        "fix what the text names on this node",
        look=fixes.look((job["host"],), "rpm -V openmpi"),
        reproduce=fixes.check([one["host"] for one in job["nodes"][:2]]),
    )


def _of_faults(known: Sequence[Finding]) -> list[Finding]:
    """Without what says that the ranks of the collective were slow: Open MPI has a job and a time of its own."""
    if not any(one.id == ranks_slow.SLOW_ID for one in known):
        return list(known)
    return [one for one in known if one.id not in (ranks_slow.SLOW_ID, unfinished_ranks.SUMMARY)]


def _findings(results: Results, known: Sequence[Finding]) -> Outcome:
    """What is wrong, the closest to a cause first, and the finding of another stage that explains it."""
    wrong = wrong_results(results)
    if wrong:
        return _unless(known, results, wrong, ("GC-DATA-", "GC-HOST-003"), own=True)
    if results.passed:
        return _by_luck(results), None
    if results.done == len(results.hosts):
        return [_after_the_end(results)], None
    for look in (_signal, _ssh, _own_texts, _daemons, _links, _peer_texts, _silence):
        outcome = look(results, known)
        if outcome is not None:
            return outcome
    return [], None


def _unless(
    known: Sequence[Finding],
    results: Results,
    found: Sequence[Finding],
    beginnings: Sequence[str],
    *,
    own: bool = False,
) -> Outcome:
    """These findings, unless another stage has one that explains them.  own: as in ``_explains``."""
    blamed = _explains(known, results, beginnings, [host for one in found for host in one.hosts], own=own)
    return ([] if blamed else list(found)), blamed


def _explains(
    known: Sequence[Finding],
    results: Results,
    beginnings: Sequence[str],
    accused: Sequence[str],
    *,
    own: bool = False,
) -> Finding | None:
    """The first error of other stages with such an id that is about a node of this job.

    accused: whom this stage would name.  Then it has to be about one of them, or about the node that starts the job:
    all others are reached from there.  own: it is trouble of their own, which does not come from another node.
    """
    reached_from = () if own else results.hosts[:1]
    nodes = {*accused, *reached_from} if accused else set(results.hosts)
    for one in known:
        concerned = not one.hosts or nodes.intersection(one.hosts)
        if one.severity == ERROR and one.id.startswith(tuple(beginnings)) and concerned:
            return one
    return None


def _signal(results: Results, known: Sequence[Finding]) -> Outcome | None:
    """mpirun saw a rank die."""
    seen = mpi_output.killed(results.text)
    if seen is None or seen[2] in OURS:
        return None
    rank, named, number, name = seen
    host = results.place(named) or (results.hosts[rank] if rank < len(results.hosts) else "")
    hosts = (host,) if host else ()
    what = f"rank {rank} on {host or named} was ended by signal {number} ({name}) in the all_reduce over Open MPI"
    found = _finding(results, UNFINISHED, hosts, what, FIX_SIGNAL, SURE)
    return _unless(known, results, [found], causes.LEFT_ALONE, own=True)


def _ssh(results: Results, known: Sequence[Finding]) -> Outcome | None:
    """ssh, asked after no rank came up, does not get to some of the nodes."""
    failed = [one for one in results.ssh if one["code"] != 0]
    if not failed:
        return None
    why = {one["host"]: _explains(known, results, _way(one), [one["host"]]) for one in failed}
    bad = [one for one in failed if why[one["host"]] is None]
    if not bad:
        return [], why[failed[0]["host"]]
    first, hosts = results.hosts[0], [one["host"] for one in bad]
    match = lookup.match(_line(bad[0]))
    cause = match.cause if match else causes.CAUSES[causes.NAMES]
    says = match.text.says if match else _line(bad[0])
    what = f"Open MPI could not start: ssh from {first} to {listed(hosts)} as the user of the job: {says}"
    evidence = [f"ssh from {first} to {one['host']}: {_line(one)}" for one in bad]
    others = len(results.ssh)
    named: tuple[str, ...] = tuple(hosts)
    confidence, subject = SURE, None
    of_daemon = bad[0]["code"] in FIX_DAEMON
    if len(bad) == others > 1 and not of_daemon:
        # To nobody at all: what they have in common is where it comes from.
        named, confidence = (first,), LIKELY
    elif others == 1 and not of_daemon:
        named, confidence, subject = (), UNSURE, Subject(LINK, (first, hosts[0]))
    fix, command = (match.fix, fixes.at(named, match.command)) if match else (cause.fix, cause.command)
    look = match.look if match else cause.look
    if of_daemon:
        # Where the package is not there, the matrix of versions has the command; where it is, no role puts a file back.
        fix, command, look = FIX_DAEMON[bad[0]["code"]], "", fixes.look(hosts, "rpm -V openmpi")
    return [_finding(results, START, named, what, fix, confidence, subject, evidence, command, look=look)], None


def _way(one: Mapping[str, Any]) -> tuple[str, ...]:
    """The beginnings of ids that explain why ssh does not get there."""
    match = lookup.match(_line(one))
    return (*(match.cause.explained_by if match else ()), *EXPLAIN_SILENCE)


def _line(one: Mapping[str, Any]) -> str:
    return " ".join(mpi_output.blocks(one["text"])) or f"it ended with {one['code']}"


def _own_texts(results: Results, known: Sequence[Finding]) -> Outcome | None:
    """What a rank or a daemon says of its own node."""
    return _of_texts(results, known, [one for one in results.matches() if one[1].text.about == SELF])


def _daemons(results: Results, known: Sequence[Finding]) -> Outcome | None:
    """mpirun lost the daemon of a node.  It ends all ranks then, and they say that of each other."""
    return _of_texts(results, known, [one for one in results.matches() if one[1].text is open_mpi.LOST_DAEMON])


def _peer_texts(results: Results, known: Sequence[Finding]) -> Outcome | None:
    """What they say of others, or of nobody.  Of a peer that stopped, only what no other cause is left for."""
    matches = [one for one in results.matches() if one[1].text.about != SELF]
    return _of_texts(results, known, [one for one in matches if one[1].id != causes.STOPPED] or matches)


def _of_texts(results: Results, known: Sequence[Finding], matches: Sequence[tuple[str, Match]]) -> Outcome | None:
    if not matches:
        return None
    first = matches[0][1]
    alike = [(block, match) for block, match in matches if match.id == first.id]
    named: Counter[str] = Counter()
    links: list[tuple[str, str]] = []
    for block, match in alike:
        source = results.place(mpi_output.speaker(block))
        targets = [place for place in map(results.place, match.names.addresses) if place and place != source]
        if match.text.about == SELF:
            named.update([source] if source else targets[:1])
        elif match.text.about == PEER:
            named.update(targets[:1])
            links += [(source, targets[0])] if source and targets else []
    hosts = tuple(host for host, times in named.items() if times == max(named.values()))
    subject, confidence = None, (SURE if hosts else UNSURE)
    if links and first.id == causes.BLOCKED:
        hosts, subject, confidence = _ends(links)
    elif len(hosts) > 1 and first.text.about != SELF:
        hosts, subject, confidence = (), Subject(GROUP, hosts), UNSURE
    who = " -> ".join(subject.nodes) if subject and subject.kind == LINK else " and ".join(hosts)
    what = f"Open MPI could not start or connect: {who}{': ' if who else ''}{first.what}"
    fix = FIX_LINK if first.id == causes.BLOCKED and not first.text.fix else first.fix
    evidence = [block[:300] for block, _match in alike]
    command = fixes.at(hosts, first.command)
    found = _finding(results, START, hosts, what, fix, confidence, subject, evidence, command, look=first.look)
    own = first.text.about == SELF
    return _unless(known, results, [found], (*first.cause.explained_by, "GC-SSH-"), own=own)


def _links(results: Results, known: Sequence[Finding]) -> Outcome | None:
    """Connections that wait in vain, as ranks or daemons told of their own sockets."""
    links = results.calls()
    if not links:
        return None
    pairs = list(dict.fromkeys((source, target) for source, target, _port in links))
    hosts, subject, confidence = _ends(pairs)
    evidence = [f"{source} waits for a connection to {target}, port {port}" for source, target, port in links]
    where = " -> ".join(pairs[0]) if len(pairs) == 1 else f"to {listed(list(dict.fromkeys(one for _s, one in pairs)))}"
    ports = ", ".join(map(str, sorted({port for _s, _t, port in links})))
    what = f"Open MPI could not connect: connections {where} are not answered, ports {ports}"
    look = fixes.look(list(dict.fromkeys(host for pair in pairs for host in pair))[: fixes.LISTED], "nft list ruleset")
    found = _finding(results, START, hosts, what, FIX_LINK, confidence, subject, evidence, look=look)
    return _unless(known, results, [found], EXPLAIN_SILENCE)


def _ends(links: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], Subject | None, float]:
    """Who is at one end of all of them: the culprit.  Of a single link it may be either, or what lies between."""
    sources, targets = {source for source, _target in links}, {target for _source, target in links}
    if len(sources) > 1 and len(targets) == 1:
        return tuple(targets), None, LIKELY
    if len(targets) > 1 and len(sources) == 1:
        return tuple(sources), None, LIKELY
    if len(sources) == len(targets) == 1:
        return (), Subject(LINK, (links[0][0], links[0][1])), UNSURE
    return (), Subject(GROUP, tuple(sorted(sources | targets))), UNSURE


def _silence(results: Results, known: Sequence[Finding]) -> Outcome | None:
    """Nothing says why: who did not report, and who said less than others."""
    silent = results.silent()
    missing = [results.hosts[rank] for rank in results.unfinished()]
    if results.errors():
        how = "gave up"
    elif results.state == "deadline":
        how = f"did not finish within {results.seconds:.0f} s"
    else:
        how = f"did not finish, and mpirun ended with {results.code}"
    what = f"{len(missing)} of {len(results.hosts)} ranks {how} in the all_reduce over Open MPI: {listed(missing)}"
    what += f"; first {' and '.join(silent)}" if silent else ""
    evidence = [*results.progress(), *(block[:300] for block in results.blocks[:4])]
    subject = None if silent else Subject(GROUP, tuple(results.hosts))
    fix = FIX_SILENT if silent else FIX_NOBODY
    sure = LIKELY if silent else UNSURE
    found = _finding(results, UNFINISHED, tuple(silent), what, fix, sure, subject, evidence)
    return _unless(known, results, [found], EXPLAIN_SILENCE)


def _after_the_end(results: Results) -> Finding:
    """All sums are right, and then it broke; a hang is what a job would meet too."""
    hangs = results.state == "deadline"
    how = f"did not end within {results.seconds:.0f} s" if hangs else f"ended with {results.code}"
    what = f"mpirun {how}, after all sums over Open MPI were right"
    evidence = [block[:300] for block in results.blocks[:4]]
    subject = Subject(GROUP, tuple(results.hosts))
    return _finding(
        results, UNFINISHED, (), what, FIX_NOBODY, SURE, subject, evidence, severity=ERROR if hangs else WARNING
    )


def _by_luck(results: Results) -> list[Finding]:
    """A job that passed although one of its connections failed: Open MPI 4.1 then waits for the other direction."""
    matches = [one for one in results.matches() if one[1].id == causes.BLOCKED]
    outcome = _of_texts(results, (), matches)
    if outcome is None:
        return []
    (one,) = outcome[0]
    what = one.cause.replace("could not start or connect", "passed although a connection had failed")
    return [replace(one, severity=WARNING, cause=what)]


def _unexplained(results: Results) -> list[dict[str, Any]]:
    """Texts that no table knows."""
    return [
        {"host": results.place(mpi_output.speaker(block)) or results.hosts[0], "rank": None, "text": block[:1000]}
        for block in results.unknown()
    ]


def _finding(
    results: Results,
    number: str,
    hosts: Sequence[str],
    what: str,
    fix: str,
    confidence: float,
    subject: Subject | None = None,
    evidence: Sequence[str] = (),
    command: str = "",
    severity: str = "",
    look: str = "",
) -> Finding:
    pair = sorted({results.hosts[0], *hosts}, key=results.hosts.index)
    if subject is not None and subject.kind == LINK:
        pair = sorted(subject.nodes, key=results.hosts.index)
    return Finding(
        number,
        tuple(hosts),
        what,
        fix,
        tuple(evidence),
        subject if subject is not None else (None if hosts else Subject(GROUP, tuple(results.hosts))),
        confidence,
        command=command,
        reproduce=fixes.check(pair if len(pair) > 1 else results.hosts[:2]),
        severity=severity,
        look=look,
    )
