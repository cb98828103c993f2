# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a job failed, by what its processes wrote.  Pure.

What a process says of its own node comes first, then an error of its own that no table knows, then what processes say
of the job and of each other, and what victims print last.  Of a rank that stopped answering, the one that has not
complained itself is the suspect: those that complain are its victims.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import job_facts
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.job_logs import Line, Process
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.last_word import (
    exceptions,
    thrown_by_cpp,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.lookup import SYSTEM, Match
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.reading import (
    Known,
    as_cause,
    is_harmless,
    read,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    NOBODY,
    PEER,
    SELF,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import FINDINGS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import mpi_output
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.names import spelled

UNKNOWN = "UNKNOWN"
#: How sure an explanation is: a text of this release, of another one, one that only follows from another error, none.
SURE, LESS_SURE, WEAK, NOT_KNOWN = 0.9, 0.6, 0.5, 0.3
TEXT_CHARACTERS = 1000
#: Of a text in a title.
TITLE_CHARACTERS = 200
#: Lines of an error of PyTorch about NCCL.
MOST_OF_ERROR = 6
#: What NCCL writes when it only tells how it works.
INFORMATION = re.compile(r"\bNCCL INFO\b|\bINFO\b")
#: An error that a program has by itself: the last line of Python's traceback, NCCL's warning, a signal.
OWN_ERROR = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Failure|Exit)\b(?::|$)"
    r"|.*\bNCCL WARN\b|\s*what\(\): |(?:FATAL|ERROR|[Ff]atal error|[Ee]rror)[: ]|.*\b(?:UCX|PMIX)\s+(?:ERROR|FATAL)\b"
)
#: PyTorch's words for an error of NCCL.
OF_NCCL = re.compile(r"\bNCCL error\b|\bnccl[A-Z]\w+Error\b")
FIX_UNKNOWN = "read the log of this process around this line; where other processes only waited, they are victims"
FIX_UNKNOWN_NCCL = "run the job again with NCCL_DEBUG=WARN: NCCL then prints its first warning, which names the cause"


@dataclass(frozen=True)
class Explanation:
    """One cause.

    cause: the kind of it, such as ``RDMA``, or ``UNKNOWN``.  title: a sentence with the place.  about: the hosts, ranks
    or addresses at fault, empty for nobody.  host, rank, file, line, text: who printed it first, and where.  severity:
    ``error``, or ``note`` where the line is none.  confidence: 0 to 1.  finding: the page that tells more, or empty.
    command: what mends it; look: what narrows it and changes nothing.
    """

    cause: str
    title: str
    about: list[str]
    host: str
    rank: int | None
    file: str
    line: int
    text: str
    severity: str
    confidence: float
    fix: str
    command: str = ""
    look: str = ""
    finding: str = ""
    processes: int = 1


@dataclass(frozen=True)
class _Said:
    """A line of a process.  match: None for an error of its own that no table knows."""

    process: Process
    line: Line
    match: Match | None
    note: bool = False

    @property
    def tier(self) -> int:
        """What comes first; see above."""
        if self.note:
            return 9
        if self.match is None:
            return 1
        text = self.match.text
        if text.weak:
            return 6 if self.match.id == causes.ENDING else 5
        if self.match.software == SYSTEM and text.about != SELF:
            return 4
        return {SELF: 0, NOBODY: 2, PEER: 3}[text.about]


@dataclass(frozen=True)
class Cluster:
    """What is known: of all nodes, and limits of single ones by their host."""

    known: Known = field(default_factory=Known)
    limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def explain(processes: Sequence[Process], cluster: Cluster | None = None) -> list[Explanation]:
    """The causes, best first; empty where no line looks like an error."""
    cluster = cluster or Cluster()
    alone = len({process.host for process in processes if process.host}) < 2
    facts = job_facts.of(processes)
    limits = {host: one.limits for host, one in facts.items() if one.limits}
    cluster = replace(cluster, limits={**cluster.limits, **limits})
    processes = job_facts.without(processes)
    said = [_of_world(one, processes) for process in processes for one in _said(process, cluster, alone)]
    groups: dict[tuple[object, ...], list[_Said]] = {}
    for one in said:
        what = (one.match.id, one.match.text.says) if one.match else (UNKNOWN, one.line.text)
        groups.setdefault((one.tier, *what), []).append(one)
    ordered = sorted(groups.values(), key=lambda group: (group[0].tier, _first(group)))
    found = [_explanation(_measured(group, facts), processes, said, cluster.known) for group in ordered]
    return _with_versions(found, [group[0].tier for group in ordered], job_facts.versions(facts))


def _measured(group: Sequence[_Said], facts: Mapping[str, job_facts.Facts]) -> Sequence[_Said]:
    """With what was measured on the node, where all of it is of one."""
    hosts = {one.process.host for one in group}
    if len(hosts) > 1:
        return group
    return [
        replace(one, match=job_facts.measured(one.match, facts.get(one.process.host))) if one.match else one
        for one in group
    ]


def _with_versions(
    found: list[Explanation], tiers: Sequence[int], versions: job_facts.Versions | None
) -> list[Explanation]:
    """With nodes that have another PyTorch: after what a process knows of its own node.

    An error that no table knows comes first where it is one of other nodes.  What such a node says of versions itself
    gets them.
    """
    if versions is None:
        return found
    others = [not {*one.about} & {*versions.about} for one in found]
    before = sum(tier == 0 or (tier == 1 and other) for tier, other in zip(tiers, others))
    cause = causes.CAUSES[causes.VERSIONS]
    title = f"{listed(versions.about)}: {FINDINGS[cause.id].title}: {versions.says}"
    confirmed = [one for one in found if one.finding == cause.id and one.about and {*one.about} <= {*versions.about}]
    if confirmed:
        return [replace(one, title=title) if one in confirmed else one for one in found]
    severity = "error" if any(one.severity == "error" for one in found) else "note"
    made = Explanation(
        cause=cause.kind,
        title=title,
        about=versions.about,
        host=versions.about[0],
        rank=None,
        file=versions.line.file,
        line=versions.line.number,
        text=sanitize.one_line(versions.line.text)[:TEXT_CHARACTERS],
        severity=severity,
        confidence=LESS_SURE,
        fix=cause.fix,
        command=cause.command,
        finding=cause.id,
    )
    return [*found[:before], made, *found[before:]]


def _first(group: Sequence[_Said]) -> tuple[int, int]:
    """When it was said first, and in which line.  Clocks of nodes differ by less than a second where it matters."""
    seconds = [one.line.second for one in group if one.line.second is not None]
    return (min(seconds) if len(seconds) == len(group) else 86400, min(one.line.number for one in group))


def _said(process: Process, cluster: Cluster, alone: bool) -> list[_Said]:
    """What one process says, each meaning once, and its own error that no table knows.

    That one counts unless the process has said before it what it is about, or says anything else of itself or the job.
    alone: all processes are on one node, where any interface will do.
    """
    known = replace(cluster.known, limits=cluster.limits.get(process.host, cluster.known.limits))
    readings = read((one.text for one in process.lines), known)
    found: dict[tuple[str, str], _Said] = {}
    for one in readings:
        # A block of Open MPI is one text.
        line = process.lines[one.line - 1]._replace(text=one.text)
        note = bool(INFORMATION.search(line.text)) and (alone or one.match.id != causes.INTERFACE)
        found.setdefault((one.match.id, one.match.text.says), _Said(process, line, one.match, note))
    strong = [one for one in found.values() if one.match and not one.note and not one.match.text.weak]
    warned = any("NCCL WARN" in one.line.text for one in strong)
    number = _own_error(process, {one.line for one in readings}, warned)
    before = {one.text for one in readings if number is not None and one.line <= number}
    if number is None or any(one.match and (one.match.text.about != PEER or one.line.text in before) for one in strong):
        return list(found.values())
    return [_Said(process, _whole(process, number), None), *found.values()]


def _of_world(one: _Said, processes: Sequence[Process]) -> _Said:
    """A rank that is waited for and is none of the job's: the ranks have different world sizes."""
    ranks = {process.rank for process in processes if process.rank is not None}
    named = one.match.names.ranks if one.match and one.match.id == causes.STOPPED else ()
    if one.match is None or not named or len(ranks) < 2 or ranks != set(range(len(ranks))) or min(named) < len(ranks):
        return one
    says = f"rank {min(named)} is waited for, and the job has the ranks 0 to {len(ranks) - 1}: world sizes differ"
    names = replace(one.match.names, ranks=())
    return replace(one, match=replace(as_cause(one.match, causes.DISAGREE, says), names=names))


def _own_error(process: Process, known: set[int], warned: bool) -> int | None:
    """Where the first warning of NCCL stands, or else the last error, that no table knows.

    warned: whether a warning of NCCL is known; what PyTorch says of NCCL's error is less.
    """
    ended = _ended(process)
    errors = [
        number
        for number, line in enumerate(process.lines)
        if (number in ended or OWN_ERROR.match(line.text))
        and not (warned and OF_NCCL.search(line.text))
        and not is_harmless(line.text)
        and known.isdisjoint(range(number + 1, number + 1 + len(_parts(process, number))))
    ]
    warnings = [number for number in errors if "NCCL WARN" in process.lines[number].text]
    return next(iter(warnings or errors[-1:]), None)


def _ended(process: Process) -> dict[int, str]:
    """Where a traceback of Python ends, whatever the exception is called, and where C++ gives up: the line, its text.

    The text of a group of exceptions has its first member, that of C++ its type.
    """
    texts = [line.text for line in process.lines]
    return {**exceptions(texts), **{number + 1: said for number, said in thrown_by_cpp(texts).items() if ": " in said}}


def _whole(process: Process, number: int) -> Line:
    """An error with the lines that belong to it."""
    said = _ended(process).get(number)
    parts = _parts(process, number)
    return process.lines[number]._replace(text=said if said and len(parts) == 1 else " ".join(parts))


def _parts(process: Process, number: int) -> list[str]:
    """The lines of an error: PyTorch writes what NCCL said last below its own words."""
    parts = [process.lines[number].text]
    for line in process.lines[number + 1 : number + MOST_OF_ERROR] if OF_NCCL.search(parts[0]) else ():
        if not line.text.strip() or line.text.startswith(("Exception raised", "frame #", "Traceback")):
            break
        parts.append(line.text)
    return parts


def _cut(text: str) -> str:
    return text if len(text) <= TITLE_CHARACTERS else f"{text[: TITLE_CHARACTERS - 3]}..."


def _explanation(
    group: Sequence[_Said], processes: Sequence[Process], said: Sequence[_Said], known: Known
) -> Explanation:
    first = min(group, key=lambda one: _first([one]))
    about = _about(group, processes, said, known)
    place = f"{listed(about)}: " if about else ""
    text = sanitize.one_line(first.line.text)[:TEXT_CHARACTERS]
    unknown = Explanation(
        cause=UNKNOWN,
        title=f"{place}an error that is not known: {_cut(text)}",
        about=about,
        host=first.process.host,
        rank=first.process.rank,
        file=first.line.file,
        line=first.line.number,
        text=text,
        severity="note" if first.note else "error",
        confidence=NOT_KNOWN,
        fix=FIX_UNKNOWN_NCCL if OF_NCCL.search(text) else FIX_UNKNOWN,
        processes=len({id(one.process) for one in group}),
    )
    match = first.match
    if match is None:
        return unknown
    return replace(
        unknown,
        cause=match.cause.kind,
        title=f"{place}{FINDINGS[match.id].title}: {sanitize.one_line(match.text.says)}",
        confidence=WEAK if match.text.weak else SURE if match.sure else LESS_SURE,
        fix=match.fix,
        command=match.command,
        look=match.look,
        finding=match.id,
    )


def _about(group: Sequence[_Said], processes: Sequence[Process], said: Sequence[_Said], known: Known) -> list[str]:
    """Whom it accuses."""
    match = group[0].match
    if match is None or match.text.about == SELF:
        named_as = (_name(one.process) or mpi_output.speaker(one.line.text) for one in group)
        return list(dict.fromkeys(name for name in named_as if name))
    named: dict[str, int] = {}
    for one in group:
        if one.match is None:
            continue
        places = [known.members.get(spelled(name), name) for name in one.match.names.addresses[:1]]
        places += [_of_rank(number, processes) for number in one.match.names.ranks]
        for place in dict.fromkeys(places):
            named[place] = named.get(place, 0) + 1
    # One that prints the same is a victim itself.
    speakers = {_name(one.process) for one in group}
    most = max((times for place, times in named.items() if place not in speakers), default=0)
    found = [place for place, times in named.items() if times == most and place not in speakers]
    if found or match.id != causes.STOPPED:
        return found
    return _silent(processes, said)


def _silent(processes: Sequence[Process], said: Sequence[_Said]) -> list[str]:
    """The ranks that have not complained, where most have."""
    ranks = [one for one in processes if one.rank is not None or one.host]
    victims = {id(one.process) for one in said if one.match is not None and not one.note}
    silent = [one for one in ranks if id(one) not in victims]
    if not silent or len(silent) >= len(victims):
        return []
    return list(dict.fromkeys(_name(one) for one in silent))


def _name(process: Process) -> str:
    """How a process is called: by its node, else by its rank."""
    return process.host or ("" if process.rank is None else f"rank {process.rank}")


def _of_rank(number: int, processes: Sequence[Process]) -> str:
    host = next((one.host for one in processes if one.rank == number and one.host), "")
    return host or f"rank {number}"
