# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts whose answers break a judgement are found, and no others."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import odd_answers

HOSTS = [f"n{number}" for number in range(1, 1001)]


@pytest.mark.parametrize("odd", [["n1"], ["n1000"], ["n377"], ["n1", "n1000"], ["n3", "n4", "n500"]])
def test_those_that_break_it_alone(odd: list[str]) -> None:
    trials: list[int] = []

    def passes(without: Collection[str]) -> bool:
        trials.append(len(without))
        return not set(odd) - set(without)

    assert odd_answers.culprits(HOSTS, passes) == odd
    assert len(trials) <= odd_answers.MOST_TRIALS + 1


@pytest.mark.parametrize("odd", ["n1", "n500", "n1000"])
def test_the_one_that_breaks_it_only_beside_others(odd: str) -> None:
    """Such as text that is compared with the numbers of all others."""

    def passes(without: Collection[str]) -> bool:
        left = set(HOSTS) - set(without)
        return odd not in left or left == {odd}

    assert odd_answers.culprits(HOSTS, passes) == [odd]


def test_many_are_left_out_together_and_in_a_bounded_number_of_trials() -> None:
    odd = set(HOSTS[::2])
    trials: list[int] = []

    def passes(without: Collection[str]) -> bool:
        trials.append(len(without))
        return not odd - set(without)

    assert odd <= set(odd_answers.culprits(HOSTS, passes))
    assert len(trials) < 2 * odd_answers.MOST_TRIALS


def test_nobody_where_it_breaks_without_any_answer() -> None:
    assert odd_answers.culprits(HOSTS, lambda _without: False) == []
