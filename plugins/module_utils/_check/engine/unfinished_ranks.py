# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks that did not reach their end: who is at fault, and what every text of theirs means.  Pure.

A text accuses nobody when a finding explains it.  What a rank says of its own node comes first, then the ranks that
fell silent, then what ranks say of others: most of those are victims.
"""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes, ranks_slow, ranks_start
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.last_word import last_word
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.lookup import Match
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.reading import (
    Known,
    closest,
    is_harmless,
    read,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    PEER,
    SELF,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ranks_results import (
    Rank,
    Results,
    events,
    reproduce,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import STDERR_BYTES
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.names import spelled

#: Errors that leave ranks without a peer or without the same PyTorch: with one of them no silent rank is accused.
EXPLAIN_SILENCE = (*causes.LEFT_ALONE, "GC-DATA-", "GC-NCCL-004", "GC-TEXT-", "GC-VER-001")
#: How much of a text is kept: the beginning of an error, the end of what was written to standard error.
ERROR_CHARACTERS = 1000
TEXT_CHARACTERS = 300
#: Lines that torch writes when nothing is wrong yet, with their stacks.  A rank that comes to the rendezvous early
#: writes dozens.
WARNING_LINE = re.compile(r"^(?:\[rank\d+\]:)?(\[W[\d ]|frame #\d|Exception raised from|<omitting )")
#: A warning of Python's, with the line of source that follows it: ``/usr/lib/x.py:12: UserWarning: text``.
PYTHON_WARNING = re.compile(r"^\S+:\d+: \w*Warning: .*\n(?:  .*\n?)?", re.MULTILINE)
#: In every warning of NCCL, which go to standard output.
NCCL_WARNING = "NCCL WARN"
SUMMARY = "GC-RUN-001"
#: The last event of a rank that did not come as far as the rendezvous.
BEFORE_RENDEZVOUS = ("nothing", "ready", "late", "gpu")
#: So long ranks wait for each other at the rendezvous at least (__cluster_check_join_seconds of the role).
LATE_SECONDS = 10
#: How sure a cause is that follows from texts alone: they are known of this version, or only of others.
SURE, LESS_SURE = 0.9, 0.6


@dataclass(frozen=True)
class Unfinished:
    """A rank that did not reach its end, or broke after it.

    process_state: of its process when its worker killed it; empty when it had ended.  text: its raw text, empty when it
    left none.  match: what the text means.  explained_by: the id of the finding that does.
    """

    rank: int
    host: str
    state: str
    last: str
    done: bool
    errors: bool
    exit_code: int | None
    process_state: str
    text: str
    match: Match | None
    explained_by: str = ""

    @property
    def stopped_talking(self) -> bool:
        """Whether nothing says that it waits for others.

        It ended or hung without a word, never came as far as the rendezvous by itself, or has an error of its own that
        no table knows.
        """
        if self.done or (self.match and self.match.text.about == PEER):
            return False
        if self.match is None:
            return True
        return not self.errors or (self.state == "finished" and self.last in BEFORE_RENDEZVOUS)

    @property
    def blames(self) -> bool:
        """Whether it says more than that it has waited in vain."""
        if self.match is None:
            return self.errors
        return not self.match.text.weak and self.match.id not in (causes.STOPPED, causes.ENDING)

    @property
    def waits(self) -> bool:
        """Whether it came to the rendezvous, and then waited until its worker killed it."""
        return self.cut_off and self.process_state == "S" and self.last not in BEFORE_RENDEZVOUS

    @property
    def cut_off(self) -> bool:
        """Whether its time was over before it had an end or an error."""
        return self.state == "deadline" and not self.done and not self.errors

    @property
    def ended(self) -> bool:
        """Whether it ended by itself, before its worker killed it."""
        if self.exit_code in (None, 0) or self.process_state:
            return False
        return self.state == "finished" or self.exit_code != -signal.SIGKILL

    @property
    def stopped(self) -> bool:
        """Whether a signal, or a debugger, held it."""
        return self.process_state in ("T", "t")

    @property
    def end(self) -> str:
        """How it came to its end, as a sentence without its subject."""
        if self.stopped:
            return "was stopped by a signal and never went on (process state T), until its worker killed it"
        if self.process_state == "D":
            return "hung in the kernel, as for a disk or a device (process state D), until its worker killed it"
        if self.process_state or self.exit_code is None:
            return "hung until its worker killed it"
        if self.errors and self.match is None:
            return f"ended with an error that is not known: {last_word(self.text)[:TEXT_CHARACTERS]}"
        if self.exit_code < 0:
            return f"was killed by signal {-self.exit_code} ({_signal_name(-self.exit_code)})"
        return f"ended with exit code {self.exit_code}" + ("" if self.text else " and without a word")

    @property
    def line(self) -> str:
        """As evidence."""
        text = self.text or f"no word; last event: {self.last}"
        note = f" [{self.match.text.says}]" if self.match else ""
        return f"rank {self.rank} on {self.host} ({self.state}, last event {self.last}): {text}{note}"


class Deadline(NamedTuple):
    """What the deadline of the ranks explains.

    cut_off: it came before anything could be an error.  left_no_time: because of rank 0, which was late (``slow``).
    """

    cut_off: bool
    left_no_time: bool


@dataclass(frozen=True)
class Trouble:
    """The findings about ranks, and the texts that nothing explains: ``host``, ``rank`` and ``text``."""

    findings: list[Finding]
    unexplained: list[dict[str, Any]]
    texts: dict[int, dict[str, str]]


def judge(
    ranks: Sequence[Rank],
    collect: Results,
    lost: Iterable[str],
    known: Sequence[Finding],
    addresses: Mapping[str, str] | None = None,
    known_of: Mapping[str, Known] | None = None,
) -> Trouble:
    """Explain every rank that did not finish.

    ranks: all of the plan.  collect: host to the answer to the step collect.  lost: hosts that have their finding for
    that.  known: the findings so far.  addresses: host to the address on the data network.  known_of: host to what
    is known about its texts; the version of torch the ranks tell themselves.
    """
    gone = set(lost)
    reported = [
        _unfinished(rank, (known_of or {}).get(rank["host"], Known())) for rank in ranks if rank["host"] not in gone
    ]
    open_ranks = [one for one in reported if not one.done or one.text]
    hosts = {rank["host"] for rank in ranks}
    explaining = [one for one in known if _can_explain(one, hosts)]
    places = _places(ranks, addresses or {})
    open_ranks = [_explained(one, explaining) for one in open_ranks]
    deadline = Deadline(ranks_slow.cut_off(collect, ranks), ranks_slow.left_no_time(collect, ranks))
    found, open_ranks = _before_torch(open_ranks, ranks)
    for step in (
        lambda left, so_far: _own_texts(left, ranks),
        lambda left, so_far: _never_came(left, ranks, so_far, deadline),
        lambda left, so_far: _loopback(ranks),
        lambda left, so_far: _other_texts(left, ranks, places),
        lambda left, so_far: _summary(left, ranks, so_far, deadline),
    ):
        found += step(open_ranks, [*explaining, *found])
        open_ranks = [_explained(one, [*explaining, *found]) for one in open_ranks]
    return Trouble(
        found,
        [
            {"host": one.host, "rank": one.rank, "text": one.text}
            for one in open_ranks
            if one.text and one.match is None and not one.explained_by
        ],
        {one.rank: _as_dict(one) for one in open_ranks},
    )


def _unfinished(rank: Mapping[str, Any], known: Known) -> Unfinished:
    """How far a rank came, and its text: its error, or else the end of what it wrote to standard error.

    NCCL's warnings come first, in their order: the first one is the cause, and the error has the last one or none.
    """
    errors = [event["text"] for event in events(rank, "error")]
    done = bool(events(rank, "done"))
    broke = not done or rank["exit_code"] not in (0, None)
    tail = _without_warnings(rank["stderr_tail"]) if broke else ""
    text = errors[0][:ERROR_CHARACTERS] if errors else tail[-TEXT_CHARACTERS:]
    torch = next((str(event["torch"]) for event in events(rank, "ready") if "torch" in event), "")
    steps = [event["event"] for event in rank["events"] if event["event"] not in ("keys", "output", "torch")]
    warned = [event["text"] for event in events(rank, "output") if NCCL_WARNING in event["text"]] if broke else []
    # An error is one text, whose parts may mean something only together.
    parts = [
        *warned,
        *(line for one in errors for line in (*one.splitlines(), " ".join(one.split()))),
        *tail.splitlines(),
    ]
    reading = closest(read(parts, replace(known, versions={**known.versions, "torch": torch})))
    if reading is None and broke and not errors and (rank["exit_code"] or 0) > 0:
        # Nothing but warnings: they may be those of a rank that has lost another one.
        warnings = read(rank["stderr_tail"].splitlines(), known)
        reading = closest(one for one in warnings if one.match.id == causes.STOPPED)
    match = reading.match if reading else None
    if reading and reading.text not in text:
        text = "; ".join(one for one in (reading.text[:ERROR_CHARACTERS], text) if one)
    if done and match and match.id != causes.ENDING:
        match = None  # It has its result; whatever broke then is another matter than what the tables are about.
    return Unfinished(
        rank=rank["rank"],
        host=rank["host"],
        state=rank["state"],
        last=([step for step in steps if step != "error"] or ["nothing"])[-1],
        done=done,
        errors=bool(errors),
        exit_code=rank["exit_code"],
        process_state=rank["process_state"],
        text=text,
        match=match,
    )


def _without_warnings(text: str) -> str:
    """Standard error without what is no error, and without the line in whose middle the worker has cut it."""
    lines = text.splitlines()[1:] if len(text.encode("utf-8")) >= STDERR_BYTES else text.splitlines()
    text = PYTHON_WARNING.sub("", "\n".join(lines) + "\n")
    return "\n".join(
        line for line in text.splitlines() if line.strip() and not WARNING_LINE.match(line) and not is_harmless(line)
    )


def _can_explain(finding: Finding, hosts: set[str]) -> bool:
    """Whether a finding is about nodes that took part: trouble with any other one disturbs no rank."""
    return finding.severity == ERROR and (not finding.hosts or bool(hosts & set(finding.hosts)))


def rank_name(number: int) -> str:
    """How a rank is called in the table of names, which holds addresses and host names too."""
    return f"rank {number}"


def _places(ranks: Sequence[Rank], addresses: Mapping[str, str]) -> dict[str, str]:
    """Rank number, address, host name and inventory name to the host that is meant; addresses as ``spelled`` does."""
    places = {spelled(address): host for host, address in addresses.items()}
    host_of = {rank["rank"]: rank["host"] for rank in ranks}
    for rank in ranks:
        for event in events(rank, "keys"):
            for number, (address, _port) in event["addresses"].items():
                if int(number) in host_of:
                    places[spelled(address)] = host_of[int(number)]
        for name in (rank_name(rank["rank"]), spelled(rank["hostname"]), spelled(rank["host"])):
            places[name] = rank["host"]
    return places


def _explained(one: Unfinished, known: Sequence[Finding]) -> Unfinished:
    """With the first finding that explains its text, when there is one."""
    if one.explained_by or one.match is None:
        return one
    for finding in known:
        if _leads_to(finding, one, one.match):
            return replace(one, explained_by=finding.id)
    return one


def _leads_to(finding: Finding, one: Unfinished, match: Match) -> bool:
    """Whether a finding explains the text of a rank.  What a rank says of its own node, trouble of another does not."""
    if finding.id == match.id:
        return one.line in finding.evidence
    # How a program ends is the business of whatever went wrong before, wherever that was.
    own = match.text.about == SELF and match.id != causes.ENDING
    if own and finding.hosts and one.host not in finding.hosts:
        return False
    return finding.severity == ERROR and finding.id.startswith(match.cause.explained_by)


def _before_torch(open_ranks: Sequence[Unfinished], ranks: Sequence[Rank]) -> tuple[list[Finding], list[Unfinished]]:
    """Why ranks ended before they had PyTorch, when nothing else explains it; and all ranks, these explained."""
    known = {one.rank: one.match is not None for one in open_ranks if not (one.explained_by or one.done)}
    found = ranks_start.findings(ranks, known)
    sure = {number for finding, numbers in found if finding.confidence > ranks_start.UNKNOWN for number in numbers}
    return (
        [finding for finding, _numbers in found],
        [replace(one, explained_by=ranks_start.ID) if one.rank in sure else one for one in open_ranks],
    )


def _own_texts(open_ranks: Sequence[Unfinished], ranks: Sequence[Rank]) -> list[Finding]:
    """What ranks say of their own node, when nothing else explains it."""
    groups: dict[tuple[str, str], list[Unfinished]] = {}
    for one in open_ranks:
        if one.match and not one.explained_by and one.match.text.about == SELF:
            groups.setdefault((one.match.id, one.match.what), []).append(one)
    return [_finding(group, tuple(dict.fromkeys(one.host for one in group)), ranks) for group in groups.values()]


def _other_texts(open_ranks: Sequence[Unfinished], ranks: Sequence[Rank], places: Mapping[str, str]) -> list[Finding]:
    """What ranks say of others, when nothing else explains it and no rank fell silent.

    Of a rank that stopped answering, only what no other cause explains is left: it is what victims print.
    """
    if _silent([one for one in open_ranks if not one.done], len(ranks)):
        return []
    said = [one for one in open_ranks if one.match and not one.explained_by and one.match.text.about != SELF]
    groups: dict[str, list[Unfinished]] = {}
    for one in [one for one in said if one.match and not one.match.text.weak] or said:
        groups.setdefault(one.match.id if one.match else "", []).append(one)
    if len(groups) > 1:
        groups.pop(causes.STOPPED, None)
    return [_finding(group, _most_named(group, places), ranks) for group in groups.values()]


def _most_named(group: Sequence[Unfinished], places: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts that most of the texts name.

    Of a rank that stopped answering, one that has printed such a text itself is a victim and not the first.
    """
    named: Counter[str] = Counter()
    victims = {one.host for one in group if one.match and one.match.id == causes.STOPPED}
    for one in group:
        if one.match:
            names = [*map(spelled, one.match.names.addresses), *map(rank_name, one.match.names.ranks)]
            named.update({places[name] for name in names if name in places} - {one.host} - victims)
    most = max(named.values(), default=0)
    return tuple(host for host, times in named.items() if times == most)


def _finding(group: Sequence[Unfinished], hosts: tuple[str, ...], ranks: Sequence[Rank]) -> Finding:
    """What the texts of some ranks have in common."""
    matches = [one.match for one in group if one.match]
    cause = matches[0].cause
    return Finding(
        cause.id,
        hosts,
        f"{' and '.join(hosts)}: {matches[0].what}" if hosts else matches[0].what,
        matches[0].fix,
        tuple(one.line for one in group),
        confidence=SURE if all(match.sure for match in matches) else LESS_SURE,
        command=fixes.at(hosts, matches[0].command),
        look=matches[0].look,
        reproduce=reproduce(hosts, ranks),
    )


def _never_came(
    open_ranks: Sequence[Unfinished], ranks: Sequence[Rank], known: Sequence[Finding], deadline: Deadline
) -> list[Finding]:
    """Ranks that the store did not know, as the ranks that looked into it saw last, and a rank 0 that kept it too late.

    What such a rank says of others is a better cause, unless it came when they had already given up.  A rank that has
    joined saw all of them, whatever it saw before.
    """
    missing: dict[int, list[str]] = {}
    for rank in ranks:
        for event in [] if events(rank, "joined") else events(rank, "keys")[-1:]:
            for number in event["missing"]:
                missing.setdefault(number, []).append(f"rank {rank['rank']} on {rank['host']} read the store")
    accused = {host for finding in known for host in finding.hosts}
    by_rank = {one.rank: one for one in open_ranks}
    late = {rank["rank"]: event["seconds"] for rank in ranks for event in events(rank, "late")}
    late = {number: seconds for number, seconds in late.items() if seconds >= LATE_SECONDS}
    if 0 in by_rank and _kept_all_waiting(by_rank[0], 0 in late, open_ranks, deadline):
        absent = [number for number, one in by_rank.items() if number and one.cut_off and one.last == "nothing"]
        missing = {number: [] for number in (0, *absent)}
    return [
        Finding(
            "GC-RUN-002",
            (one.host,),
            *_why_missing(one, late.get(number)),
            (*seen, one.line),
            ruled_out=("PyTorch: the rank had imported it",) if one.last == "ready" else (),
            reproduce=reproduce((one.host,), ranks),
        )
        for number, seen in sorted(missing.items())
        for one in [by_rank.get(number)]
        if one is not None
        and one.host not in accused
        and (number in late or not (one.match and one.match.text.about == PEER))
    ]


def _kept_all_waiting(first: Unfinished, late: bool, open_ranks: Sequence[Unfinished], deadline: Deadline) -> bool:
    """Whether rank 0, which has the store, came so late that the store tells nothing of the others.

    first: rank 0.  Its port is open from the beginning, so that the others may wait for it until their time is over:
    torch 2.13.0 has no limit for the first answer of a store.  When another rank was killed first, rank 0 has an error.
    """
    if not late:
        return first.cut_off and first.last == "nothing" and any(one.last != "nothing" for one in open_ranks)
    if first.last in (*BEFORE_RENDEZVOUS, "store"):
        return True
    return deadline.left_no_time and (first.cut_off or deadline.cut_off)


def _why_missing(one: Unfinished, late_seconds: float | None) -> tuple[str, str]:
    """Cause and fix.  late_seconds: after it was told to begin, when that was longer than the others waited."""
    if late_seconds is not None:
        return (
            f"rank {one.rank} on {one.host} came too late to the rendezvous: it had imported PyTorch "
            f"{late_seconds:.0f} s after it was told to begin",
            f"put PyTorch of {one.host} on a faster disk; if only its first import is slow, check again",
        )
    how = f"ended with {one.exit_code}" if one.state == "finished" else "killed at the deadline"
    return (
        f"rank {one.rank} on {one.host} never came to the rendezvous (last event {one.last}, {how})",
        f"look at the processor load, the memory and the kernel log of {one.host}",
    )


def _loopback(ranks: Sequence[Rank]) -> list[Finding]:
    """Ranks that told the others to connect to a loopback address.

    An error even when all went well: such a rank passes when its address is the one that dials.
    """
    host_of = {rank["rank"]: rank["host"] for rank in ranks}
    told: dict[int, str] = {}
    for rank in ranks:
        for event in events(rank, "keys"):
            told.update({int(number): one[0] for number, one in event["addresses"].items()})
    wrong = {
        number: address
        for number, address in sorted(told.items())
        if number in host_of and ip_address(address).is_loopback
    }
    if not wrong:
        return []
    return [
        Finding(
            "GC-RUN-004",
            tuple(dict.fromkeys(host_of[number] for number in wrong)),
            "ranks published a loopback address, which leads every other node to itself: "
            + ", ".join(f"rank {number} on {host_of[number]} {address}" for number, address in wrong.items()),
            "set gpu_cluster_fabric_interface to the interface of the data network on these nodes, and let no line of "
            "/etc/hosts give a node's own name a loopback address",
            look=fixes.look(tuple(dict.fromkeys(host_of[number] for number in wrong)), "hostname -i"),
            reproduce=reproduce(tuple(dict.fromkeys(host_of[number] for number in wrong)), ranks),
        )
    ]


def _silent(unfinished: Sequence[Unfinished], count: int) -> list[Unfinished]:
    """The ranks that a signal holds; else those that stopped talking while others had something to say or came further.

    When no rank at all has said anything or finished, only those are told that came less far than others.
    """
    stopped = [one for one in unfinished if one.stopped]
    if stopped:
        return stopped
    silent = [one for one in unfinished if one.stopped_talking]
    ended = [one for one in silent if one.ended]
    if ended or any(one.blames for one in unfinished):
        silent = [one for one in silent if not one.waits]
    named = {rank for one in unfinished if one.match and one.match.text.about == PEER for rank in one.match.names.ranks}
    silent = [one for one in silent if one.rank in named] or silent
    if len(silent) == count:
        behind = [one for one in silent if one.last in BEFORE_RENDEZVOUS]
        return behind if len(behind) < count else []
    return silent


def _summary(
    open_ranks: Sequence[Unfinished], ranks: Sequence[Rank], known: Sequence[Finding], deadline: Deadline
) -> list[Finding]:
    """All ranks that did not finish, with their texts.  It accuses the silent ones when nothing explains them.

    Where the deadline cut off all of them, it says nothing who fell silent first, unless a signal holds that one.
    """
    unfinished = [one for one in open_ranks if not one.done]
    if not unfinished:
        return []
    explained = any(one.severity == ERROR and one.id.startswith(EXPLAIN_SILENCE) for one in known)
    silent = [] if explained else _silent(unfinished, len(ranks))
    if deadline.cut_off:
        silent = [one for one in silent if one.stopped or one.ended]
    culprits = tuple(dict.fromkeys(one.host for one in silent))
    return [
        Finding(
            SUMMARY,
            culprits,
            f"{len(unfinished)} of {len(ranks)} ranks did not finish the all_reduce"
            + (f"; first {' and '.join(culprits)}: {_ends(silent)}" if silent else "")
            + (" (explained by the findings above)" if explained else ""),
            _fix(silent, explained),
            tuple(one.line for one in unfinished),
            confidence=SURE if culprits or explained else LESS_SURE,
            reproduce=reproduce(culprits, ranks),
        )
    ]


def _ends(silent: Sequence[Unfinished]) -> str:
    """How the ranks ended with which it began, those that ended alike together."""
    alike: dict[str, list[str]] = {}
    for one in silent:
        alike.setdefault(one.end, []).append(f"rank {one.rank} on {one.host}")
    return "; ".join(f"{listed(who)} {end}" for end, who in alike.items())


def _fix(silent: Sequence[Unfinished], explained: bool) -> str:
    if explained:
        return "fix the findings above first"
    if any(one.stopped for one in silent):
        return "find who stops processes there (SIGSTOP, a debugger, a manager of jobs or of power) and run it again"
    if any(one.exit_code == -signal.SIGKILL and not one.process_state for one in silent):
        return "look for the out-of-memory killer in the kernel log of that node, then for whoever else kills processes"
    if silent:
        return "look at the kernel log, the processes and the GPUs of that node: nothing said why"
    return "read the texts of the ranks; the first error in time leads"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _as_dict(one: Unfinished) -> dict[str, str]:
    """For the report: what the text of a rank means, and which finding explains it."""
    return {
        "text": one.text,
        "says": one.match.what if one.match else "",
        "explained_by": one.explained_by,
    }
