# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks of a job that differ in their collectives: who is awaited, and who has called another one.  Pure."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.hang_ranks import (
    DISAGREE,
    STOPPED,
    UNKNOWN,
    Rank,
    Record,
    Suspect,
    listed,
    others_text,
    stack_text,
    waiters,
    waiting_for,
    waits_text,
)

#: Collectives to which all ranks bring tensors of the same size.
SAME_SIZES = ("all_reduce", "allreduce", "reduce", "broadcast", "reduce_scatter", "all_gather", "allgather", "barrier")
#: Seconds of processor in a look of 1.5 seconds: it calculates.
BUSY = 0.7
#: So many suspects at most.
MOST_SUSPECTS = 4

FIX_CODE = "let every rank call the same collectives, in the same order and with tensors of the same size"


def disagree(ranks: Sequence[Rank]) -> list[Suspect]:
    """Ranks in the same place of the order, with another collective or another size."""
    found: list[Suspect] = []
    for (_group, number), members in places(ranks).items():
        if len(members) < 2:
            continue
        what: list[tuple[str, Callable[[Record], object], Callable[[Record], str]]] = [
            ("another collective", lambda one: one.name, lambda one: one.name),
            ("another size", lambda one: (one.sizes, one.types), lambda one: one.shape),
        ]
        for difference, key, words in what:
            if difference == "another size" and members[0][1].name not in SAME_SIZES:
                continue
            values = collections.Counter(key(record) for _rank, record in members)
            if len(values) < 2:
                continue
            usual, count = values.most_common(1)[0]
            odd = [one for one in members if key(one[1]) != usual]
            usual_record = next(record for _rank, record in members if key(record) == usual)
            tie = count * 2 <= len(members)
            rank, record = odd[0]
            here = f"{words(record)}" + (f" at {rank.where}" if rank.where else "")
            others = [one for one, other in members if key(other) == usual]
            there = f"{words(usual_record)}" + (f" at {others[0].where}" if others[0].where else "")
            place = record.text if difference == "another size" else f"collective number {number}"
            found.append(
                Suspect(
                    DISAGREE,
                    f"{rank.name} has {difference} than {listed([one.name for one in others])} in {place}",
                    rank.host if not tie else "",
                    rank.rank if not tie else None,
                    record.text,
                    text=f"rank {rank.rank}: {here}; {others_text(others)}: {there}",
                    fix=FIX_CODE
                    + ("" if difference == "another size" else "; this rank has skipped one, or called one more"),
                    confidence=0.9 if not tie else 0.6,
                )
            )
            break
    return found[:1] or by_their_lines(ranks)


def places(ranks: Sequence[Rank]) -> dict[tuple[str, int], list[tuple[Rank, Record]]]:
    """Group and number to the ranks that have entered it, where somebody still waits in it."""
    found: dict[tuple[str, int], list[tuple[Rank, Record]]] = {}
    for one in ranks:
        for record in one.records:
            found.setdefault((record.group, record.number), []).append((one, record))
    waiting = {(one.waits_in.group, one.waits_in.number) for one in ranks if one.waits_in}
    return {place: found[place] for place in sorted(found) if place in waiting}


def by_their_lines(ranks: Sequence[Rank]) -> list[Suspect]:
    """Without a recorder: all wait, and the stacks name several collectives."""
    if any(one.records for one in ranks) or any(one.waits_in is None for one in ranks):
        return []
    names = collections.Counter(one.waits_in.name for one in ranks if one.waits_in)
    if len(names) < 2:
        return []
    usual, count = names.most_common(1)[0]
    odd = next(one for one in ranks if one.waits_in and one.waits_in.name != usual)
    others = [one for one in ranks if one.waits_in and one.waits_in.name == usual]
    tie = count * 2 <= len(ranks)
    name = odd.waits_in.name if odd.waits_in else ""
    return [
        Suspect(
            DISAGREE,
            f"{odd.name} is in another collective than {listed([one.name for one in others])}",
            odd.host if not tie else "",
            odd.rank if not tie else None,
            name,
            text=f"rank {odd.rank}: {name} at {odd.where}; {others_text(others)}: {usual} at {others[0].where}",
            fix=f"{FIX_CODE}; this rank has skipped one, or called one more",
            confidence=0.7 if not tie else 0.5,
        )
    ]


def absent(ranks: Sequence[Rank], ended: Iterable[int] = ()) -> list[Suspect]:
    """Ranks that others wait for and that do not wait themselves, or wait in an earlier collective."""
    waiting = [one for one in ranks if one.waits_in]
    if not waiting and not set(ended):
        return []
    blockers: collections.Counter[int] = collections.Counter()
    for one in waiting:
        record = one.waits_in
        if record is None:
            continue
        members = set(one.groups.get(record.group, ())) or {other.rank for other in ranks}
        for other in ranks:
            known = bool(other.records)
            there = other.entered(record.group) >= record.number if known and record.number else bool(other.waits_in)
            if other.rank in members and other is not one and not there:
                blockers[other.rank] += 1
    if not waiting:
        blockers.update(one.rank for one in ranks)
    awaited = [one for one in ranks if one.rank in blockers]
    idle = [one for one in awaited if one.waits_in is None]
    chosen = idle or sorted(awaited, key=lambda one: -blockers[one.rank])
    # Of one without a stack nobody knows where it is: it may be about to end.
    shown = sorted(chosen, key=lambda one: not one.frames)[:MOST_SUSPECTS]
    return [
        Suspect(
            STOPPED,
            f"{one.name} {stands(one)}, and {waiters(ranks, ended, one)} for it",
            one.host,
            one.rank,
            waiting_for(ranks),
            text=waits_text(ranks) or (stack_text(one) and "its stack: " + stack_text(one)),
            fix="see what this rank does there: its stack is " + (stack_text(one) or "not to be had; install py-spy"),
            command="" if one.frames else f"ssh {one.host} py-spy dump --pid {one.pid}",
            confidence=0.9 if idle and len(chosen) == 1 else 0.7,
        )
        for one in shown
    ]


def stands(one: Rank) -> str:
    record = one.waits_in
    if record is not None:
        return f"is still in {record.text}"
    doing = "calculates" if one.cpu >= BUSY else "stands"
    return f"is in no collective: it {doing} in {one.where}" if one.where else "is in no collective"


def all_wait(ranks: Sequence[Rank]) -> list[Suspect]:
    """All ranks have entered the same collective with the same data: it is the network, or the device."""
    waiting = [one for one in ranks if one.waits_in]
    if len(waiting) < len(ranks) or not ranks:
        return []
    return [
        Suspect(
            UNKNOWN,
            f"all {len(ranks)} ranks wait in the same {waiting_for(ranks)}, and no rank or link stands out",
            collective=waiting_for(ranks),
            text=waits_text(ranks),
            fix="test the network between the nodes of the job",
            command=fixes.check(),
            confidence=0.4,
        )
    ]
