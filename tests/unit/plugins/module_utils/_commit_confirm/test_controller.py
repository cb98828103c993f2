# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the controller confirms a change, when it gives up, and what it says: every course of events, played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import controller
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.controller import (
    Outcome,
    Unreachable,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.controller import WORDS

UNDONE = {"state": "undone", "restored": True, "reason": "nobody confirmed the change within 60 s"}


class Node:
    """A node that is asked; ``answers`` decides by time, address and step. Each connection takes ``cost`` seconds."""

    def __init__(self, answers: Callable[[float, str, str], dict[str, Any]], cost: float = 1.0) -> None:
        self.now = 0.0
        self.answers = answers
        self.cost = cost
        self.asked: list[tuple[str, str]] = []

    def ask(self, where: str, step: str) -> dict[str, Any]:
        self.asked.append((where, step))
        self.now += self.cost
        return self.answers(self.now, where, step)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def run(self, *, moved: bool = False, seconds: int = 60) -> Outcome:
        return controller.carry_through(
            self.ask, moved=moved, confirm_seconds=seconds, clock=lambda: self.now, sleep=self.sleep
        )


def applied(seconds: float) -> dict[str, Any]:
    return {"state": "applied", "applied_for": seconds}


def test_it_confirms_only_over_a_connection_that_was_opened_after_the_change_was_in_force() -> None:
    def answers(now: float, where: str, step: str) -> dict[str, Any]:
        if step == "confirm":
            return {"state": "confirmed"}
        return applied(now - 2.2) if now > 2.2 else {"state": "applying"}

    node = Node(answers)
    assert node.run().confirmed
    # The second look ends at 2.5 and took 1.0, the change is in force since 2.2: it may have connected before that.
    assert node.asked == [("new", "look"), ("new", "look"), ("new", "look"), ("new", "confirm")]


def test_a_change_that_is_in_force_for_long_is_confirmed_after_one_look() -> None:
    node = Node(lambda now, where, step: {"state": "confirmed"} if step == "confirm" else applied(30))
    assert node.run().confirmed and node.asked == [("new", "look"), ("new", "confirm")]


def test_a_lost_answer_to_the_confirmation_is_asked_for_again() -> None:
    confirmed = False

    def answers(now: float, where: str, step: str) -> dict[str, Any]:
        nonlocal confirmed
        if step == "confirm":
            confirmed = True
            raise Unreachable("timed out")
        return {"state": "confirmed"} if confirmed else applied(30)

    assert Node(answers).run().confirmed


def test_a_failure_that_the_node_reports_ends_the_waiting_at_once() -> None:
    node = Node(lambda now, where, step: dict(UNDONE, reason="eth0: no carrier"))
    outcome = node.run()
    assert not outcome.confirmed and outcome.state["reason"] == "eth0: no carrier" and node.now < 3


def test_with_a_new_address_the_old_one_tells_of_a_failure_at_once() -> None:
    def answers(now: float, where: str, step: str) -> dict[str, Any]:
        if where == "new":
            raise Unreachable("no route to host")
        return UNDONE if now > 6 else {"state": "applying"}

    node = Node(answers)
    outcome = node.run(moved=True)
    assert outcome.state == UNDONE and outcome.error == "no route to host"
    assert node.now < 10


def test_without_an_answer_it_stops_confirming_in_time_and_waits_for_the_old_state() -> None:
    def answers(now: float, where: str, step: str) -> dict[str, Any]:
        if now < 65:
            raise Unreachable("timed out")
        return UNDONE

    node = Node(answers, cost=5)
    outcome = node.run()
    assert outcome.state == UNDONE and not outcome.confirmed
    assert 55 <= outcome.seconds <= 62
    assert ("new", "confirm") not in node.asked


def test_an_applied_change_that_cannot_be_reached_at_its_new_address_is_given_up_through_the_old_one() -> None:
    def answers(now: float, where: str, step: str) -> dict[str, Any]:
        if where == "new":
            raise Unreachable("timed out")
        return UNDONE if step == "abort" else applied(30)

    node = Node(answers, cost=5)
    assert node.run(moved=True).state == UNDONE
    assert node.asked[-1] == ("old", "abort") and node.now < 75


def test_a_node_that_is_never_heard_again_ends_the_waiting_too() -> None:
    def answers(now: float, where: str, step: str) -> dict[str, Any]:
        raise Unreachable("timed out")

    node = Node(answers, cost=5)
    outcome = node.run()
    assert outcome.state == {} and node.now < 60 + controller.RETURN_SECONDS + 10


def said(outcome: Outcome, new: str = "192.0.2.11", old: str = "192.0.2.11") -> str:
    return controller.sentence(outcome, WORDS, tried="eth0 192.0.2.11/30", new=new, old=old, confirm_seconds=60)


def test_the_sentence_about_a_node_that_was_cut_off() -> None:
    text = said(Outcome(UNDONE, "Connection timed out", 57.2))
    assert text == (
        "Tried: eth0 192.0.2.11/30. Seen: no fresh ssh connection to 192.0.2.11 carried 64 KiB within 57 s "
        "(last: Connection timed out). "
        "The old state is back: addresses, default routes and profile files are as they were."
    )


def test_the_sentence_about_what_the_node_found_itself() -> None:
    state = dict(UNDONE, reason="eth0: another machine has 192.0.2.11", own_reason=True)
    text = said(Outcome(state, "", 2), old="198.51.100.1")
    assert "Seen: eth0: another machine has 192.0.2.11. The old state is back" in text


def test_the_sentence_about_a_slow_node() -> None:
    assert "raise static_network_confirm_seconds for slow nodes" in said(Outcome(UNDONE, "", 57))


def test_the_sentence_about_both() -> None:
    state = dict(UNDONE, reason="after 8 s bond0 has no carrier", own_reason=True)
    text = said(Outcome(state, "timed out", 9), old="198.51.100.1")
    assert "after 8 s bond0 has no carrier; no fresh ssh connection to 192.0.2.11 (until now 198.51.100.1)" in text


def test_the_sentence_does_not_claim_what_is_not_so() -> None:
    state = dict(UNDONE, restored=False, differences=["eth0 has no address, MTU 1500, before 192.0.2.11/24, MTU 1500"])
    assert "The old state is NOT completely back: eth0 has no address" in said(Outcome(state, "x", 57))
    lost = said(Outcome({}, "timed out", 57))
    assert "nobody knows yet whether the old state is back" in lost and "power cycle" in lost
