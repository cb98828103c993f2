# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first line: short, with who, what and the fix."""

from __future__ import annotations

import random

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import verdict
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run

WORDS = (
    "connections",
    "of",
    "n12",
    "fail:",
    "ports",
    "29400-29599,",
    "32768-64999",
    "(all",
    "of",
    "mpi);",
    "and",
    "so",
)


def headline(cause: str, fix: str, number: int = 1) -> str:
    run = Run(run_id="x", backend="gloo", members=["n1"], selected=["n1"])
    return verdict.headline(verdict.FAILED, run, [Finding("GC-NODE-003", ("n1",), cause, fix)] * number, [], [])


def test_what_fits_is_said_whole() -> None:
    assert headline("the interface fab0 of n1 is down", "plug the cable in") == (
        "FAILED: the interface fab0 of n1 is down. Fix: plug the cable in"
    )


def test_clauses_are_left_out_from_the_end() -> None:
    text = headline(
        "inbound connections of n3 fail on the data network: ports 29400-29599, 32768-64999 (all of rendezvous, "
        "ephemeral and mpi) dropped (no answer)",
        "remove the rule, or let the members through before it: it belongs to the table 'inet f', which this "
        "collection does not manage",
        3,
    )
    assert text == (
        "FAILED: inbound connections of n3 fail on the data network: ports 29400-29599, 32768-64999. Fix: remove the "
        "rule, or let the members through ... (and 2 more)"
    )


@pytest.mark.parametrize("seed", range(50))
def test_never_longer_than_two_rows(seed: int) -> None:
    chance = random.Random(seed)
    cause, fix = (" ".join(chance.choices(WORDS, k=chance.randint(1, 80))) for _text in range(2))
    for text in (headline(cause, fix, chance.randint(1, 2000)), headline("x" * 500, "y" * 500)):
        assert len(text) <= verdict.MOST_CHARACTERS and ". Fix: " in text, text
