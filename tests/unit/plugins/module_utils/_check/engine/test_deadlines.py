# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the steps of a check may take, for a table of sizes."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import deadlines

NAMES = (
    *("skew", "join", "probe_most", "probe", "ready", "ranks", "lifetime"),
    *("pair", "pair_lifetime", "openmpi"),
)
PAIR_DEADLINE = 14
OPENMPI_DEADLINE = 20


def seconds(hosts: int, forks: int, backend: str, rails: int, samples: int, timeout: float, deadline: int) -> list[int]:
    """All times of a check, by ``NAMES``.  rails: besides the first."""
    skew = deadlines.skew(hosts, forks)
    probe = deadlines.probe(hosts, samples, 1 + rails, timeout)
    ranks = deadlines.ranks(deadline, skew, backend)
    pair = deadlines.ranks(PAIR_DEADLINE, skew, backend)
    return [
        skew,
        deadlines.join(skew, backend),
        deadlines.probe_most(hosts, samples, 1 + rails, timeout),
        probe,
        deadlines.ready(probe),
        ranks,
        deadlines.lifetime(probe, ranks, skew),
        pair,
        deadlines.pair_lifetime(pair, skew),
        deadlines.openmpi(OPENMPI_DEADLINE, skew),
    ]


# What the formulas in the variables of the role gave, before they were written in Python.
@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((2, 5, "gloo", 0, 4, 3, 40), [3, 13, 27, 79, 49, 43, 144, 17, 59, 23]),
        ((3, 1, "gloo", 0, 4, 3, 40), [9, 19, 27, 79, 49, 49, 180, 23, 89, 29]),
        ((6, 5, "gloo", 0, 4, 3, 40), [6, 16, 27, 79, 49, 46, 162, 20, 74, 26]),
        ((64, 5, "gloo", 2, 4, 3, 40), [39, 49, 27, 79, 49, 79, 360, 53, 239, 59]),
        ((250, 250, "gloo", 0, 4, 3, 40), [3, 13, 27, 79, 49, 43, 144, 17, 59, 23]),
        ((251, 251, "nccl", 0, 4, 3, 40), [3, 43, 54, 106, 60, 73, 201, 47, 89, 23]),
        ((1000, 50, "gloo", 1, 32, 0.5, 7200), [60, 70, 0, 52, 22, 7260, 7619, 74, 344, 80]),
        ((1000, 1, "nccl", 3, 8, 2.9, 60), [3000, 3040, 576, 628, 60, 3090, 18725, 3044, 15074, 3020]),
    ],
)
def test_times(size: tuple[int, int, str, int, int, float, int], expected: list[int]) -> None:
    assert dict(zip(NAMES, seconds(*size))) == dict(zip(NAMES, expected))


@pytest.mark.parametrize(("hosts", "forks"), [(3, 5), (64, 5), (64, 1), (1000, 50)])
def test_a_worker_lives_until_all_steps_of_all_nodes_are_over(hosts: int, forks: int) -> None:
    """With a fault every node takes its longest time for the probe, and all of them take it at the same time."""
    found = dict(zip(NAMES, seconds(hosts, forks, "gloo", 0, 4, 3, 40)))
    launch = begin = fetch = go = collect = found["skew"]
    # What docs/check-protocol.md says of the probe.
    probe = found["probe_most"] + 32
    assert probe < found["probe"] - 10
    before_the_ranks = launch + begin + probe + fetch + go
    assert before_the_ranks + found["ranks"] + collect < found["lifetime"] < 86400


@pytest.mark.parametrize(
    ("hosts", "forks", "more", "backend"),
    [(3, 5, 0, "gloo"), (6, 5, 18, "gloo"), (250, 250, 0, "gloo"), (251, 251, 27, "gloo"), (3, 5, 30, "nccl")],
)
def test_a_worker_that_nobody_collects_lives_as_long_as_the_readme_says(
    hosts: int, forks: int, more: int, backend: str
) -> None:
    found = dict(zip(NAMES, seconds(hosts, forks, backend, 0, 4, 3, 40)))
    assert found["lifetime"] == 40 + 104 + more


@pytest.mark.parametrize(("hosts", "most"), [(2, 49), (250, 49), (251, 60), (1000, 60)])
def test_the_import_of_torch_is_waited_for_so_long(hosts: int, most: int) -> None:
    """As docs/check-protocol.md and GC-RUN-002 say."""
    assert deadlines.ready(deadlines.probe(hosts, 4, 1, 3)) == most
