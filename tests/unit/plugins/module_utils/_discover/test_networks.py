# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cards are in one network, and which network is the best for data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.machine import machine
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.networks import (
    ADDRESSES,
    HEARD,
    NAMES,
    Network,
    equals,
    networks,
)

Answers = list[dict[str, Any]]
TWELVE = range(1, 13)


def found_in(answers: Answers) -> list[Network]:
    return networks([machine(f"h{number}", one["address"], one) for number, one in enumerate(answers, 1)])


def data(found: Iterable[Network]) -> list[tuple[str, int, str]]:
    """Name of the first card, machines and evidence of the networks of fast cards."""
    return [(one.names[0], len(one.cards), one.evidence) for one in found if one.speed == 400000]


def test_subnets_are_networks(twelve: Callable[..., Answers]) -> None:
    found = found_in(twelve(fast=2))
    assert data(found) == [("ens1np0", 12, ADDRESSES), ("ens2np0", 12, ADDRESSES)]
    assert [one.is_management for one in found] == [False, False, True] and len(equals(found)) == 2


def test_an_answer_in_a_ring_is_enough(twelve: Callable[..., Answers]) -> None:
    answers = twelve(fast=2, addressed=False)
    for number, one in enumerate(answers):
        for own, other in zip(one["cards"][-2:], answers[number - 1]["cards"][-2:], strict=True):
            own["heard"] = [other["mac"]]
    assert data(found_in(answers)) == [("ens1np0", 12, HEARD), ("ens2np0", 12, HEARD)]


def test_all_ports_in_one_segment(twelve: Callable[..., Answers]) -> None:
    answers = twelve(fast=2, addressed=False)
    everybody = [card["mac"] for one in answers for card in one["cards"][-2:]]
    for one in answers:
        for own in one["cards"][-2:]:
            own["heard"] = everybody
    (best, _management) = found_in(answers)
    assert {len(cards) for cards in best.cards.values()} == {2} and best.names == ["ens1np0"]


def test_two_halves_that_do_not_reach_each_other(twelve: Callable[..., Answers]) -> None:
    answers = [*twelve(fast=1, addressed=False, heard=range(1, 9))[:8]]
    answers += twelve(fast=1, addressed=False, heard=range(9, 13))[8:]
    assert data(found_in(answers)) == [("ens1np0", 8, HEARD), ("ens1np0", 4, HEARD)]


def test_a_card_without_an_address_joins_those_that_have_one(twelve: Callable[..., Answers]) -> None:
    answers = twelve(fast=1)
    last = answers[11]["cards"][-1]
    last.update(addresses=[], heard=[answers[3]["cards"][-1]["mac"]])
    assert data(found_in(answers)) == [("ens1np0", 12, ADDRESSES)]
    # It joins nothing by an address that it hears from itself, or that several have.
    last["heard"] = [last["mac"], "02:00:00:00:00:99"]
    for one in answers[:2]:
        one["cards"][1].update(mac="02:00:00:00:00:99", carrier=True)
    assert data(found_in(answers)) == [("ens1np0", 11, ADDRESSES), ("ens1np0", 1, NAMES)]


def test_names_are_a_guess(twelve: Callable[..., Answers]) -> None:
    assert data(found_in(twelve(fast=1, addressed=False))) == [("ens1np0", 12, NAMES)]


def test_what_few_machines_have_is_not_for_data(twelve: Callable[..., Answers]) -> None:
    answers = twelve(fast=1)
    for one in answers[6:]:
        one["cards"].pop()
    assert found_in(answers)[0].names == ["eno1"]
    answers = twelve(fast=1)
    for one in answers[7:]:
        one["cards"].pop()
    assert found_in(answers)[0].names == ["ens1np0"]


def test_of_equally_fast_cards_the_one_without_ssh(twelve: Callable[..., Answers]) -> None:
    answers = twelve(fast=1)
    for one in answers:
        one["cards"][0]["speed_mbit"] = one["cards"][-1]["speed_mbit"] = 0
    assert [found.names for found in found_in(answers)] == [["ens1np0"], ["eno1"]]


def test_nobody_sets_an_address_on_infiniband(twelve: Callable[..., Answers]) -> None:
    answers = twelve(fast=2, addressed=False)
    for one in answers:
        for card in one["cards"][-2:]:
            card.update(type="infiniband", rdma_layer="InfiniBand", speed_mbit=400000)
        one["cards"][-1]["addresses"] = ["10.9.2." + one["address"].split(".")[3] + "/24"]
    assert [found.names for found in found_in(answers)] == [["ens2np0"], ["eno1"]]
    for one in answers:
        one["cards"][-1]["addresses"] = []
    assert [found.names for found in found_in(answers)] == [["eno1"]]
