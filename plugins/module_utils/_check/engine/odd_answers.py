# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose answers break a judgement.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

#: How often it is judged again at most.  One node among a thousand takes 20 times, two take some 60.
MOST_TRIALS = 64


def culprits(hosts: Sequence[str], passes: Callable[[Collection[str]], bool]) -> list[str]:
    """The hosts to leave out so that a judgement passes; none where it does not pass without any answer.

    passes: whether it does without the answers of these hosts.  It does not pass with all of them.
    """
    trials = 0

    def tried(without: Collection[str]) -> bool:
        nonlocal trials
        trials += 1
        return passes(without)

    def among(few: Sequence[str], without: Sequence[str]) -> list[str]:
        """Without ``few`` and ``without`` it passes, without ``without`` alone it does not."""
        middle = len(few) // 2
        if not middle or trials >= MOST_TRIALS:
            return list(few)
        halves = (few[:middle], few[middle:])
        # All others stay: an answer that does not go with them is the odd one.
        for half in halves:
            if tried([*without, *half]):
                return among(half, without)
        second = among(halves[1], [*without, *halves[0]])
        return second if tried([*without, *second]) else [*among(halves[0], [*without, *second]), *second]

    return among(hosts, ()) if tried(hosts) else []
