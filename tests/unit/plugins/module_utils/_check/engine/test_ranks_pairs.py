# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rounds of pairs, played with drawn faults: exactly the culprits, in few rounds."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import ranks_pairs, set_cover
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ranks_pairs import (
    Culprit,
    Pair,
    Tried,
)

Fails = Callable[[str, str], bool]
SIZES = range(2, 25)
DRAWS = 30


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(1, count + 1)]


def racks(nodes: list[str], each: int) -> dict[str, dict[str, str]]:
    return {node: {"rack": f"r{number // each + 1}"} for number, node in enumerate(nodes)}


def play(
    nodes: list[str],
    fails: Fails,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    named: bool = False,
    lost: str = "",
    slow: Fails = lambda one, other: False,
) -> tuple[list[Culprit], list[ranks_pairs.Step], list[list[Tried]]]:
    """All rounds, with the faults below them.  lost: a node that answers in the first round only.

    slow: pairs that were at work when their time was over, though they would not fail.
    """
    rounds: list[list[Tried]] = []
    steps = []
    while step := ranks_pairs.next_round(nodes, rounds, labels or {}, named):
        used = [node for pair in step.pairs for node in pair]
        assert used and len(used) == len(set(used)), step
        steps.append(step)
        rounds.append([one_pair(pair, fails, lost if rounds else "", slow) for pair in step.pairs])
        assert len(rounds) <= ranks_pairs.MOST_ROUNDS
    return ranks_pairs.conclude(nodes, rounds, labels or {}), steps, rounds


def one_pair(pair: Pair, fails: Fails, lost: str, slow: Fails) -> Tried:
    if lost in pair:
        return Tried(pair, ranks_pairs.LOST, lost=(lost,))
    if fails(*pair):
        return Tried(pair, ranks_pairs.FAILED)
    return Tried(pair, ranks_pairs.SLOW if slow(*pair) else ranks_pairs.PASSED)


def culprits(found: list[Culprit]) -> list[tuple[str, list[str]]]:
    return sorted((one.kind, sorted(one.nodes)) for one in found)


@pytest.mark.parametrize("count", range(2, 18))
def test_the_circle_method_lets_every_node_meet_every_other_one_once(count: int) -> None:
    rounds = ranks_pairs.circle(names(count))
    assert len(rounds) == count - 1 + count % 2
    met = [frozenset(pair) for each in rounds for pair in each]
    assert len(met) == len(set(met)) == count * (count - 1) // 2
    for each in rounds:
        used = [node for pair in each for node in pair]
        assert len(used) == len(set(used)) >= count - 1


@pytest.mark.parametrize("count", SIZES)
def test_all_pairs_pass(count: int) -> None:
    """Somebody was named already: one pass, and the last one of an odd number is tried too."""
    found, steps, _rounds = play(names(count), lambda one, other: False, named=True)
    assert found == [] and len(steps) == (1 if count % 2 == 0 else 2)
    assert {node for step in steps for pair in step.pairs for node in pair} == set(names(count))


@pytest.mark.parametrize("count", SIZES)
def test_where_nothing_fails_it_soon_ends(count: int) -> None:
    """Nobody was named: neighbours meet too, and in a small cluster everybody."""
    nodes = names(count)
    found, steps, rounds = play(nodes, lambda one, other: False)
    met = {frozenset(one.nodes) for each in rounds for one in each}
    assert found == [] and len(steps) <= (ranks_pairs.CIRCLE_NODES + 2 if count <= ranks_pairs.CIRCLE_NODES else 5)
    assert {frozenset((nodes[number], nodes[number - 1])) for number in range(count)} <= met
    assert len(met) == count * (count - 1) // 2 or count > ranks_pairs.CIRCLE_NODES


@pytest.mark.parametrize("count", range(3, 25))
def test_one_bad_node_is_found_in_two_passes(count: int) -> None:
    for bad in names(count):
        found, steps, _rounds = play(names(count), lambda one, other, bad=bad: bad in (one, other))
        assert culprits(found) == [(set_cover.NODE, [bad])]
        # With three nodes nobody is known good after the first round; with five, three suspects share two partners.
        assert len(steps) <= (2 if count % 2 == 0 else 3), (bad, steps)
        assert len(found[0].failed) >= 2 and found[0].passed == ()


@pytest.mark.parametrize("count", range(4, 25))
def test_several_bad_nodes_are_found_and_nobody_else(count: int) -> None:
    dice = random.Random(count)
    for _draw in range(DRAWS):
        nodes = names(count)
        bad = set(dice.sample(nodes, dice.randint(1, count // 2)))
        found, steps, _rounds = play(nodes, lambda one, other, bad=bad: one in bad or other in bad)
        assert culprits(found) == sorted((set_cover.NODE, [node]) for node in bad), (bad, steps)
        assert len(steps) <= ranks_pairs.NONE_PASSED + 2 * len(bad)


@pytest.mark.parametrize("count", SIZES)
def test_where_all_pairs_fail_nobody_is_named(count: int) -> None:
    nodes = names(count)
    found, steps, _rounds = play(nodes, lambda one, other: True)
    assert [one.kind for one in found] == [set_cover.ALL]
    assert len(steps) <= ranks_pairs.NONE_PASSED


@pytest.mark.parametrize("count", range(3, 25))
def test_two_nodes_that_fail_with_each_other_only(count: int) -> None:
    dice = random.Random(count)
    nodes = names(count)
    drawn = [tuple(dice.sample(nodes, 2)) for _draw in range(DRAWS)]
    for bad in [*drawn, *ranks_pairs.first_pairs(nodes)]:
        found, steps, rounds = play(nodes, lambda one, other, bad=bad: {one, other} == set(bad))
        met = {frozenset(one.nodes) for each in rounds for one in each}
        if frozenset(bad) in met:
            assert culprits(found) == [(set_cover.LINK, sorted(bad))], (bad, steps)
        else:
            assert found == [] and count > ranks_pairs.CIRCLE_NODES, (bad, steps)
        assert len(steps) <= 6 + ranks_pairs.CIRCLE_NODES
        # These can't be missed.
        ring = list(zip(nodes, [*nodes[1:], nodes[0]]))
        assert {frozenset(pair) for pair in [*ring, *ranks_pairs.first_pairs(nodes)]} <= met or found


@pytest.mark.parametrize(("count", "each"), [(6, 2), (8, 2), (9, 3), (12, 3), (12, 4), (16, 4), (24, 4), (24, 3)])
def test_pairs_that_cross_a_rack(count: int, each: int) -> None:
    nodes = names(count)
    labels = racks(nodes, each)
    for number in range(count // each):
        rack = f"r{number + 1}"
        inside = {node for node in nodes if labels[node]["rack"] == rack}

        def crosses(one: str, other: str, inside: set[str] = inside) -> bool:
            return (one in inside) != (other in inside)

        found, steps, _rounds = play(nodes, crosses, labels)
        assert culprits(found) == [(set_cover.GROUP, sorted(inside))], (rack, steps)
        assert [label.text for label in found[0].labels] == [f"rack={rack}"] and found[0].direction == set_cover.ACROSS
        assert len(steps) <= 6 + ranks_pairs.CIRCLE_NODES


def test_bad_nodes_of_one_rack_are_not_taken_for_the_way_to_it() -> None:
    nodes = names(8)
    labels = racks(nodes, 2)
    found, _steps, _rounds = play(nodes, lambda one, other: bool({"n5", "n6"} & {one, other}), labels)
    assert culprits(found) == [(set_cover.NODE, ["n5"]), (set_cover.NODE, ["n6"])]


def test_labels_do_not_disturb_a_single_bad_node() -> None:
    nodes = names(8)
    for bad in nodes:
        found, steps, _rounds = play(nodes, lambda one, other, bad=bad: bad in (one, other), racks(nodes, 4))
        assert culprits(found) == [(set_cover.NODE, [bad])] and len(steps) == 2


def test_a_bad_node_beside_a_bad_pair() -> None:
    nodes = names(10)

    def fails(one: str, other: str) -> bool:
        return "n3" in (one, other) or {one, other} == {"n1", "n6"}

    found, _steps, _rounds = play(nodes, fails)
    assert culprits(found) == [(set_cover.LINK, ["n1", "n6"]), (set_cover.NODE, ["n3"])]


def test_what_fails_once_and_never_again_accuses_nobody() -> None:
    """A lost packet, a busy machine."""
    nodes = names(6)
    seen: list[frozenset[str]] = []

    def fails(one: str, other: str) -> bool:
        first = {one, other} == {"n1", "n4"} and frozenset((one, other)) not in seen
        seen.append(frozenset((one, other)))
        return first

    found, steps, _rounds = play(nodes, fails)
    assert found == [] and steps[-1].name == ranks_pairs.CIRCLE


@pytest.mark.parametrize("lost", ["n1", "n2", "n4"])
def test_a_node_that_is_lost_on_the_way_accuses_nobody_else(lost: str) -> None:
    nodes = names(6)
    found, steps, rounds = play(nodes, lambda one, other: "n3" in (one, other), lost=lost)
    assert culprits(found) == [(set_cover.NODE, ["n3"])], steps
    tried_after = [one for each in rounds[2:] for one in each if lost in one.nodes]
    assert tried_after == []


def test_suspects_wait_for_a_partner_when_there_are_too_few() -> None:
    """Three of four pairs are bad: six suspects, two partners, three rounds at least."""
    nodes = names(8)
    bad = {"n1", "n2", "n3"}
    found, steps, _rounds = play(nodes, lambda one, other: bool(bad & {one, other}))
    assert culprits(found) == sorted((set_cover.NODE, [node]) for node in bad)
    assert [step.name for step in steps[1:]] == [ranks_pairs.SUSPECTS] * len(steps[1:])
    assert len(steps[1].pairs) == 2


def test_of_a_lost_node_nothing_is_said() -> None:
    found, _steps, _rounds = play(names(3), lambda one, other: True, lost="n3")
    assert culprits(found) == [(set_cover.ALL, ["n1", "n2"])]


@pytest.mark.parametrize("count", range(2, 13))
@pytest.mark.parametrize("slow", ["all", "one node", "one rack"])
def test_pairs_that_were_only_slow_accuse_nobody_and_are_not_tried_again(count: int, slow: str) -> None:
    nodes = names(count)
    labels = racks(nodes, max(2, count // 2))

    def is_slow(one: str, other: str) -> bool:
        return slow == "all" or nodes[-1] in (one, other) or (slow == "one rack" and labels[one] != labels[other])

    found, steps, _rounds = play(nodes, lambda one, other: False, labels, slow=is_slow)
    tried = [frozenset(pair) for step in steps for pair in step.pairs]
    assert found == [] and len(tried) == len(set(tried))


@pytest.mark.parametrize("count", range(3, 13))
@pytest.mark.parametrize("all_slow", [True, False])
def test_beside_a_node_that_fails_slow_pairs_accuse_nobody(count: int, all_slow: bool) -> None:
    """Where all others are slow, nobody is known to be good, and nobody is named."""
    nodes = names(count)
    slow = nodes if all_slow else nodes[-1:]
    found, _steps, _rounds = play(
        nodes, lambda one, other: "n1" in (one, other), slow=lambda one, other: one in slow or other in slow
    )
    assert culprits(found) == ([] if all_slow or count == 3 else [(set_cover.NODE, ["n1"])])


def test_there_are_at_most_sixteen_rounds() -> None:
    passed = [Tried(("n1", "n2"), ranks_pairs.PASSED)]
    assert ranks_pairs.next_round(names(4), [passed] * 15, {}) is not None
    assert ranks_pairs.next_round(names(4), [passed] * 16, {}) is None
