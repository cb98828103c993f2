# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks that were at work when their time was over: slow, or too much to do, but no hang.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import human_bytes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import PEER
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ranks_results import (
    Rank,
    Results,
    events,
)

SLOW_ID = "GC-RUN-006"
#: How old the last sign of rank 0 may be: half of the time after which a collective that hangs becomes an error.
PART_OF_TIMEOUT = 0.5
#: A rank 0 that came later than this part of the deadline is itself why the time was over (see trouble.py).
PART_OF_DEADLINE = 0.5
#: What cluster_check_deadline_seconds may be at most.
MOST_SECONDS = 7200


def findings(collect: Results, ranks: Sequence[Rank]) -> list[Finding]:
    """One finding, which accuses nobody, when the deadline came while all ranks were at work.

    collect: host to the answer to the step collect, with the ``progress_note`` of rank 0.  ranks: all of the plan.
    """
    note = at_work(collect, ranks)
    if note is None or left_no_time(collect, ranks):
        return []
    reached = (
        f"{human_bytes(note['size_bytes'])} (size {note['number']} of {note['of']}), iteration {note['iterations']} of "
        f"{note['at_most']} at most"
    )
    enough = min(2 * note["deadline_seconds"], MOST_SECONDS)
    more = {"gpu_cluster": {"cluster_check_deadline_seconds": enough}} if enough > note["deadline_seconds"] else {}
    return [
        Finding(
            SLOW_ID,
            (),
            f"the ranks did not hang: at their deadline of {note['deadline_seconds']} s they were at work on {reached}",
            "give them more time, or less to do: fewer of cluster_check_sizes_bytes, less cluster_check_size_seconds",
            (f"rank 0 had finished an iteration {note['seconds_ago']} s before its end",),
            ruled_out=(
                "a rank that hangs or a network that drops: a collective that stops is an error after "
                f"{note['timeout_seconds']} s",
            ),
            variables=more,
            reproduce=fixes.check(),
        )
    ]


def at_work(collect: Results, ranks: Sequence[Rank]) -> dict[str, Any] | None:
    """How far rank 0 was when the deadline came while all ranks were at work; None when it was not so."""
    note = _note(collect)
    return note if note and _age(note) <= PART_OF_TIMEOUT and cut_off(collect, ranks) else None


def cut_off(collect: Results, ranks: Sequence[Rank]) -> bool:
    """Whether the deadline ended the ranks before a collective that hangs could be an error.

    Then it says nothing whose worker was the first to end its rank, nor who complains of that.
    """
    note = _note(collect)
    if note is None or _age(note) >= 1:
        return False
    return all(_cut_off(rank) for rank in ranks) and any(_killed(rank) for rank in ranks)


def left_no_time(collect: Results, ranks: Sequence[Rank]) -> bool:
    """Whether rank 0, for which all others wait, came so late that the work had less than half of its time.

    Also where no rank told how much that was: rank 0 has not come to its work then.
    """
    late = max((event["seconds"] for rank in ranks[:1] for event in events(rank, "late")), default=0.0)
    told = [result["progress_note"]["deadline_seconds"] for result in collect.values() if result.get("progress_note")]
    return late > PART_OF_DEADLINE * max(told, default=0)


def _note(collect: Results) -> dict[str, Any] | None:
    """Rank 0's note, when it had begun a size."""
    return next(
        (result["progress_note"] for result in collect.values() if (result.get("progress_note") or {}).get("number")),
        None,
    )


def _age(note: Mapping[str, Any]) -> float:
    """How old the last sign of rank 0 is, in parts of the time after which a collective that hangs is an error."""
    return float(note["seconds_ago"] / note["timeout_seconds"])


def _killed(rank: Rank) -> bool:
    return rank["state"] == "deadline" and not events(rank, "done") and not events(rank, "error")


def _cut_off(rank: Rank) -> bool:
    """Whether a rank was at work until its worker killed it, or until the first of the others was killed."""
    if not events(rank, "joined"):
        return False
    if _killed(rank) or events(rank, "done"):
        return True
    matches = [lookup.match(event["text"], {}) for event in events(rank, "error")]
    return bool(matches) and all(match is not None and match.text.about == PEER for match in matches)
