# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of a change of a node: when it is confirmed, given up, and what is said about it.

Pure but for the injected ``ask``, clock and sleep, so that every course of events can be played in a unit test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import FINAL

#: Ask the node at ``where`` (``new`` or ``old``) for a step (``look``, ``confirm``, ``abort``) over a fresh connection.
Ask = Callable[[str, str], "dict[str, Any]"]

NEW = "new"
OLD = "old"
PAUSE_SECONDS = 0.5
#: The last confirmation must reach the node before its own time is over.
MARGIN_SECONDS = 3
#: How long after the deadline a node may still be bringing the old state back: rolling back, settling, looking.
RETURN_SECONDS = 45


class Unreachable(Exception):
    """No answer over a fresh connection; the text is what ssh said."""


@dataclass(frozen=True)
class Words:
    """What a sentence says about one kind of change.

    ``back``: what is as it was after a change was taken back; ``seconds``: the variable with the time to confirm;
    ``power``: what a loss of power does to a change that is not confirmed, as a sentence.
    """

    back: str
    seconds: str
    power: str


@dataclass(frozen=True)
class Outcome:
    """How a change ended, as the controller saw it.

    ``state`` is what the node last said, empty when it was never heard again. ``error`` is the last failure of a
    connection to the new address, ``seconds`` the time the controller tried.
    """

    state: Mapping[str, Any]
    error: str
    seconds: float

    @property
    def confirmed(self) -> bool:
        """Whether the change is permanent."""
        return self.state.get("state") == "confirmed"


def carry_through(
    ask: Ask, *, moved: bool, confirm_seconds: float, clock: Callable[[], float], sleep: Callable[[float], None]
) -> Outcome:
    """Confirm the change when a fresh connection to the new address carries data; see it undone otherwise.

    ``moved`` says that the new address is another one than the one used so far: only then is the old one asked too.
    """
    start = clock()
    state: dict[str, Any] = {}
    error = ""
    while clock() - start < confirm_seconds - MARGIN_SECONDS:
        try:
            began = clock()
            state = ask(NEW, "look")
            if state["state"] == "applied" and state["applied_for"] > clock() - began:
                # This connection was opened after the change was in force, and it has carried data both ways.
                state = ask(NEW, "confirm")
        except Unreachable as failure:
            error = str(failure)
            state = look_back(ask, state) if moved else state
        if state.get("state") in FINAL:
            return Outcome(state, error, clock() - start)
        sleep(PAUSE_SECONDS)
    tried = clock() - start
    places = (OLD, NEW) if moved else (NEW,)
    aborted = False
    while clock() - start < confirm_seconds + RETURN_SECONDS:
        for place in places:
            try:
                state = ask(place, "look" if aborted else "abort")
                aborted = True
            except Unreachable as failure:
                error = error or str(failure)
                continue
            if state.get("state") in FINAL:
                return Outcome(state, error, tried)
        sleep(PAUSE_SECONDS)
    return Outcome(state if state.get("state") in FINAL else {}, error, tried)


def look_back(ask: Ask, state: dict[str, Any]) -> dict[str, Any]:
    """What the node says at its old address, or what it said last."""
    try:
        return ask(OLD, "look")
    except Unreachable:
        return state


def sentence(outcome: Outcome, words: Words, *, tried: str, new: str, old: str, confirm_seconds: int) -> str:
    """What was tried, what was seen, and whether the old state is back."""
    state = outcome.state
    where = new if new == old else f"{new} (until now {old})"
    if not state:
        seen = f"ssh to {where} said: {outcome.error}" if outcome.error else f"no answer at {where}"
        return (
            f"Tried: {tried}. Seen: {seen}. The node has not been heard of since, so nobody knows yet whether the old "
            f"state is back: it takes the change back by itself {confirm_seconds} s after it was made. Repeat the "
            f"command in a minute. {words.power}"
        )
    seen = str(state.get("reason", ""))
    if outcome.error and state["state"] != "failed":
        tried_for = f"within {outcome.seconds:.0f} s (last: {outcome.error})"
        cut = f"no fresh ssh connection to {where} carried 64 KiB {tried_for}"
        # That nobody confirmed is no reason of its own.
        seen = f"{seen}; {cut}" if state.get("own_reason") else cut
    elif not state.get("own_reason") and state["state"] != "failed":
        seen = (
            f"the node answered at {where}, but the {confirm_seconds} s to confirm were over first: "
            f"raise {words.seconds} for slow nodes"
        )
    if state.get("restored"):
        back = f"The old state is back: {words.back}"
    else:
        back = "The old state is NOT completely back: {}".format(
            "; ".join([*state.get("differences", []), *state.get("notes", [])])
        )
    return f"Tried: {tried}. Seen: {seen}. {back}."
