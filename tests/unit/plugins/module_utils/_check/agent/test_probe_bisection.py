# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The search against a firewall in memory: exact ends, lost packets, rate limited rejections, bounds."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import probe_bisection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.probe_bisection import (
    DROPPED,
    OPEN,
    REJECTED,
    Blocked,
    Search,
)

PLAN = [(29400, 29599), (32768, 60999), (61000, 64999)]
# Linux: six ICMP messages at once, one more each second.
BURST = 6


class Peers:
    """Firewalls of peers, and a clock that only their silence moves.

    rules: host to intervals.  loss: share of packets that get lost; a wait of more than a second sends two of them.
    """

    def __init__(self, rules: Mapping[str, Sequence[Blocked]], *, loss: float = 0.0, seed: int = 0) -> None:
        self.rules = rules
        self.loss = loss
        self.random = random.Random(seed)
        self.now = 0.0
        self.rounds = 0
        self.waits: list[float] = []
        self.knocked: list[probe_bisection.Door] = []
        self.tokens = dict.fromkeys(rules, (float(BURST), 0.0))

    def clock(self) -> float:
        return self.now

    def knock(self, doors: Sequence[probe_bisection.Door], seconds: float) -> dict[probe_bisection.Door, str]:
        self.rounds += 1
        self.waits.append(seconds)
        self.knocked += doors
        seen = {}
        for host, port in self.random.sample(doors, len(doors)):
            tries = [one for one in range(2 if seconds > 1 else 1) if self.random.random() >= self.loss]
            state = next((one.result for one in self.rules[host] if one.first <= port <= one.last), OPEN)
            if not tries or (state == REJECTED and not any(self._may_reject(host, self.now + one) for one in tries)):
                state = DROPPED
            seen[host, port] = state
        self.now += seconds if DROPPED in seen.values() else 0.01
        return seen

    def _may_reject(self, host: str, when: float) -> bool:
        tokens, since = self.tokens[host]
        tokens = min(BURST, tokens + int(when - since))
        if tokens < 1:
            return False
        self.tokens[host] = (tokens - 1, when)
        return True


def run(peers: Peers, known: Mapping[str, Mapping[int, str]] | None = None) -> dict[str, list[Blocked]]:
    searches = [Search(host, PLAN, (known or {}).get(host, {}), index / 10) for index, host in enumerate(peers.rules)]
    probe_bisection.search(searches, peers.knock, clock=peers.clock)
    return {one.host: one.blocked() for one in searches}


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([], id="nothing"),
        pytest.param([Blocked(40000, 50000, DROPPED)], id="one dropped"),
        pytest.param([Blocked(40000, 50000, REJECTED)], id="one rejected"),
        pytest.param([Blocked(1024, 65535, DROPPED)], id="everything"),
        pytest.param([Blocked(1024, 29499, REJECTED), Blocked(29501, 65535, REJECTED)], id="only 29500 open"),
        pytest.param([Blocked(29400, 29599, DROPPED), Blocked(61000, 64999, REJECTED)], id="dropped and rejected"),
        pytest.param([Blocked(32768, 60999, DROPPED)], id="exactly a range of the plan"),
        pytest.param([Blocked(60999, 61000, DROPPED)], id="two ports across a border"),
        pytest.param([Blocked(61000, 61000, DROPPED)], id="one port at a border"),
        pytest.param(
            [Blocked(1024, 29399, REJECTED), Blocked(29600, 60999, REJECTED), Blocked(65000, 65535, REJECTED)],
            id="firewalld with two ranges open",
        ),
        pytest.param([Blocked(65535, 65535, DROPPED)], id="the last port"),
    ],
)
def test_intervals_are_exact(rules: list[Blocked]) -> None:
    peers = Peers({"n2": rules})
    assert run(peers, {"n2": {29500: OPEN} if not any(one.first <= 29500 <= one.last for one in rules) else {}}) == {
        "n2": rules
    }
    assert peers.now <= probe_bisection.SEARCH_SECONDS + probe_bisection.SURE_SECONDS


def drawn(source: random.Random) -> list[Blocked]:
    """One to three intervals of at least 3,000 ports, wider than the grid, with as much space between them."""
    found: list[Blocked] = []
    first = 1024 + source.randrange(3000, 20000)
    for _number in range(source.randrange(1, 4)):
        last = first + source.randrange(3000, 12000)
        if last > 62000:
            break
        found.append(Blocked(first, last, source.choice([DROPPED, REJECTED])))
        first = last + source.randrange(3000, 12000)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_drawn_intervals_on_eight_peers_at_once(seed: int) -> None:
    source = random.Random(seed)
    rules = {f"n{number}": drawn(source) for number in range(8)}
    peers = Peers(rules, seed=seed)
    assert run(peers) == rules
    assert peers.now <= probe_bisection.SEARCH_SECONDS + probe_bisection.SURE_SECONDS
    assert len(peers.knocked) < 2500 and peers.rounds < 16


@pytest.mark.parametrize("seed", range(30))
def test_a_lost_packet_is_no_blocked_port(seed: int) -> None:
    # Of 60 knocks about three get no answer in the first round, and of 400 sure ones one gets none.
    assert run(Peers({"n2": []}, loss=0.05, seed=seed)) == {"n2": []}


@pytest.mark.parametrize("seed", range(10))
def test_edges_are_exact_though_packets_get_lost(seed: int) -> None:
    rules = [Blocked(41234, 52345, DROPPED)]
    assert run(Peers({"n2": rules}, loss=0.02, seed=seed)) == {"n2": rules}


def test_what_the_listeners_showed_finds_a_narrow_interval() -> None:
    rules = [Blocked(33333, 33335, DROPPED)]
    assert run(Peers({"n2": rules})) == {"n2": []}
    assert run(Peers({"n2": rules}), {"n2": {33334: DROPPED}}) == {"n2": rules}


def test_a_known_port_is_not_knocked_on_again() -> None:
    peers = Peers({"n2": [Blocked(40000, 50000, DROPPED)]})
    run(peers, {"n2": {61000: OPEN}})
    assert ("n2", 61000) not in peers.knocked and ("n2", 60999) in peers.knocked


def test_a_range_below_1024_belongs_to_the_search() -> None:
    rules = [Blocked(500, 2000, DROPPED)]
    search = Search("n2", [(400, 600)], {})
    probe_bisection.search([search], Peers({"n2": rules}).knock, clock=lambda: 0.0)
    assert search.first == 400 and search.blocked() == rules


def test_what_is_not_exact_in_time_is_left_out() -> None:
    peers = Peers({"n2": [Blocked(40000, 50000, DROPPED)]})
    search = Search("n2", PLAN, {})
    probe_bisection.search([search], peers.knock, seconds=0.7, clock=peers.clock)
    assert search.blocked() == [] and peers.now < 0.7 + probe_bisection.SURE_SECONDS


def test_a_known_port_between_open_ones_is_no_interval_until_its_ends_are_known() -> None:
    peers = Peers({"n2": [Blocked(33333, 33335, DROPPED)]})
    search = Search("n2", PLAN, {33334: DROPPED})
    probe_bisection.search([search], peers.knock, seconds=0.005, clock=peers.clock)
    assert peers.rounds == 1 and search.blocked() == []


def test_a_later_silence_does_not_undo_a_rejection() -> None:
    search = Search("n2", [], {})
    search.grid = []
    search.learn({1024: OPEN, 1025: REJECTED, 1026: OPEN}, sure=True)
    search.learn({1025: DROPPED}, sure=True)
    assert search.blocked() == [Blocked(1025, 1025, REJECTED)]


def test_a_node_that_can_not_knock_does_not_try_for_ever() -> None:
    peers = Peers({"n2": [Blocked(40000, 50000, DROPPED)]})

    def knock(doors: Sequence[probe_bisection.Door], seconds: float) -> dict[probe_bisection.Door, str]:
        assert peers.rounds < 50
        seen = peers.knock(doors, seconds)
        return seen if peers.rounds == 1 else {}

    search = Search("n2", PLAN, {})
    probe_bisection.search([search], knock, clock=lambda: 0.0)
    assert peers.rounds == 2 and search.blocked() == []


def after_confirming(states: Mapping[int, str]) -> Search:
    """A search that has seen these ports and given each of them enough time."""
    search = Search("n2", [], {})
    search.grid = []
    for _look in range(2):
        search.learn(states, sure=True)
    return search


REJECTING = {1024: OPEN, 1025: REJECTED, 1031: DROPPED, 1032: OPEN}
SILENT = {1999: OPEN, 2000: DROPPED, 2100: DROPPED, 2101: OPEN}


@pytest.mark.parametrize("answer", [REJECTED, DROPPED])
def test_a_silent_interval_beside_a_rejected_one_is_asked_once_more(answer: str) -> None:
    search = after_confirming({**REJECTING, **SILENT})
    assert search.next(8) == ([2050], probe_bisection.SURE_SECONDS)
    search.learn({2050: answer}, sure=True)
    assert search.next(8).ports == []
    assert search.blocked() == [Blocked(1025, 1031, REJECTED), Blocked(2000, 2100, answer)]


def test_where_nothing_is_rejected_silence_is_dropped() -> None:
    search = after_confirming(SILENT)
    assert search.next(8).ports == [] and search.blocked() == [Blocked(2000, 2100, DROPPED)]


def test_what_the_mesh_has_confirmed_needs_no_second_look() -> None:
    search = Search("n2", [], {33333: OPEN, 33334: DROPPED, 33335: OPEN})
    search.grid = []
    assert search.next(8).ports == [] and search.blocked() == [Blocked(33334, 33334, DROPPED)]


def test_the_patient_wait_until_nobody_is_in_a_hurry() -> None:
    # n2 is done with its edges long before n3.
    rules = {"n2": [Blocked(61000, 65535, DROPPED)], "n3": [Blocked(40001, 50002, DROPPED)]}
    peers = Peers(rules)
    assert run(peers) == rules
    assert peers.waits == sorted(peers.waits) and len(set(peers.waits)) == 2


def test_the_grids_of_two_nodes_differ() -> None:
    assert set(Search("n2", [], {}, 0.0).grid) & set(Search("n2", [], {}, 0.5).grid) == {1024, 65535}
