# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slow and lossy links: named where they are, and nobody when a machine is only busy."""

from __future__ import annotations

import random
import statistics
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    mesh_link_quality,
    mesh_links,
    mesh_medians,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding

HOSTS = [f"n{number}" for number in range(1, 9)]
RATE = 1.1e9


class Mesh:
    """Rates and retransmissions of all links, to be damaged by a test."""

    def __init__(self, hosts: list[str], seed: int = 1, spread: float = 1.2) -> None:
        chance = random.Random(seed)
        self.hosts = hosts
        ends = [(source, target) for source in hosts for target in hosts if source != target]
        self.rates: dict[tuple[str, str], float | None] = {one: RATE / chance.uniform(1, spread) for one in ends}
        self.retransmits = {one: chance.choice([0, 0, 0, 1]) for one in ends}

    def slow(self, source: str, target: str, factor: float, retransmits: int = 0) -> None:
        for ends in self.rates:
            if source in ("", ends[0]) and target in ("", ends[1]):
                self.rates[ends] = (self.rates[ends] or RATE) / factor
                self.retransmits[ends] += retransmits

    def findings(self) -> list[Finding]:
        def row(source: str, target: str) -> dict[str, Any]:
            ends = (source, target)
            return {
                "host": target,
                "probes": 6,
                "bytes_per_second": self.rates[ends],
                "retransmits": self.retransmits[ends],
            }

        probe = {a: {"links": [row(a, b) for b in self.hosts if a != b]} for a in self.hosts}
        return mesh_link_quality.findings(self.hosts, mesh_links.read(self.hosts, probe))


def test_a_healthy_cluster_has_no_slow_link() -> None:
    assert Mesh(HOSTS).findings() == []
    assert Mesh(["n1", "n2"]).findings() == []


def test_a_node_with_a_slow_card_is_named_and_nobody_fails_for_it() -> None:
    mesh = Mesh(HOSTS)
    mesh.slow("n3", "", 20)
    mesh.slow("", "n3", 20)
    (finding,) = mesh.findings()
    assert (finding.id, finding.severity, finding.hosts) == ("GC-NET-007", "warning", ("n3",))
    assert "is slow to and from n3: " in finding.cause and "loses" not in finding.cause
    assert "MB/s between the others" in finding.cause
    assert "n3" in finding.reproduce and finding.reproduce.count(",") == 3, "fewer nodes are no comparison"


def test_one_direction_of_a_node() -> None:
    mesh = Mesh(HOSTS)
    mesh.slow("n3", "", 20)
    (finding,) = mesh.findings()
    assert finding.hosts == ("n3",) and "slow from n3: " in finding.cause


def test_a_link_that_loses_packets() -> None:
    mesh = Mesh(HOSTS)
    mesh.slow("n3", "n5", 4, retransmits=40)
    (finding,) = mesh.findings()
    assert finding.hosts == ("n3", "n5") and "slow and loses packets from n3 to n5" in finding.cause
    assert "retransmitted segments of 1 MiB: 40" in finding.evidence[1] or "41" in finding.evidence[1]


def test_a_link_that_is_slow_both_ways() -> None:
    mesh = Mesh(HOSTS)
    mesh.slow("n3", "n5", 30, retransmits=20)
    mesh.slow("n5", "n3", 30, retransmits=20)
    (finding,) = mesh.findings()
    assert finding.hosts == ("n3", "n5") and "slow and loses packets between n3 and n5" in finding.cause


def test_one_slow_link_without_loss_is_what_a_busy_machine_looks_like() -> None:
    mesh = Mesh(HOSTS)
    mesh.slow("n3", "n5", 100)
    mesh.slow("n5", "n3", 100)
    assert mesh.findings() == []


def test_loss_that_costs_nothing_is_not_told() -> None:
    mesh = Mesh(HOSTS)
    mesh.slow("n3", "n5", 1.0, retransmits=40)
    assert mesh.findings() == []


def test_of_three_nodes_one_that_is_very_slow_is_named() -> None:
    mesh = Mesh(HOSTS[:3])
    mesh.slow("n3", "", 100, retransmits=100)
    (finding,) = mesh.findings()
    assert finding.hosts == ("n3",) and "is slow and loses packets from n3" in finding.cause
    mesh = Mesh(HOSTS[:3])
    mesh.slow("", "n2", 30)
    (finding,) = mesh.findings()
    assert finding.hosts == ("n2",) and "is slow to n2: " in finding.cause
    mesh.slow("n2", "", 30)
    (finding,) = mesh.findings()
    assert finding.hosts == ("n2",) and "is slow to and from n2: " in finding.cause


def test_of_three_nodes_one_slow_link_without_loss_is_what_a_busy_machine_looks_like() -> None:
    mesh = Mesh(HOSTS[:3])
    mesh.slow("n3", "n1", 100)
    assert mesh.findings() == []
    mesh = Mesh(HOSTS[:3])
    mesh.slow("n3", "", 10)
    assert mesh.findings() == []


@pytest.mark.parametrize("seed", range(200))
def test_three_busy_nodes_accuse_nobody(seed: int) -> None:
    """Twice as far apart as the rates of healthy namespaces on two busy cores were, and one link like none of them."""
    mesh = Mesh(HOSTS[:3], seed, spread=20)
    ends = random.Random(seed).choice(sorted(mesh.rates))
    mesh.slow(*ends, 60)
    assert mesh.findings() == []


def test_of_two_nodes_the_slow_direction_is_named() -> None:
    mesh = Mesh(HOSTS[:2])
    mesh.slow("n1", "n2", 40, retransmits=50)
    (finding,) = mesh.findings()
    assert finding.hosts == ("n1", "n2") and finding.about.kind == "link"
    assert "is slow and loses packets from n1 to n2: " in finding.cause and "in the other direction" in finding.cause
    mesh = Mesh(HOSTS[:2])
    mesh.slow("n1", "n2", 20)
    assert mesh.findings() == []


@pytest.mark.parametrize("count", [4, 5, 8])
def test_one_node_of_few_that_is_slow_both_ways_does_not_hide(count: int) -> None:
    """Of four nodes it is an end of the half of all links."""
    mesh = Mesh(HOSTS[:count])
    mesh.slow("n3", "", 100)
    mesh.slow("", "n3", 100)
    assert [finding.hosts for finding in mesh.findings()] == [("n3",)]


def test_many_nodes() -> None:
    mesh = Mesh([f"n{number}" for number in range(40)])
    mesh.slow("", "n33", 50, retransmits=30)
    (finding,) = mesh.findings()
    assert finding.hosts == ("n33",) and "to n33" in finding.cause


def test_where_rates_differ_widely_more_is_asked_of_a_slow_one() -> None:
    mesh = Mesh(HOSTS)
    mesh.slow("n3", "", 15)
    assert [finding.hosts for finding in mesh.findings()] == [("n3",)]
    for number, ends in enumerate(mesh.rates):
        if ends[0] != "n3":
            mesh.slow(*ends, 2 ** (number % 5) / 4)
    assert mesh.findings() == []


def test_three_slow_links_without_loss_are_too_few() -> None:
    mesh = Mesh(HOSTS[:4])
    mesh.slow("n3", "", 100)
    assert mesh.findings() == []
    mesh.slow("n3", "", 1.0, retransmits=30)
    assert [finding.hosts for finding in mesh.findings()] == [("n3",)]
    mesh = Mesh(HOSTS[:5])
    mesh.slow("n3", "", 100)
    assert [finding.hosts for finding in mesh.findings()] == [("n3",)]


def test_three_slow_links_that_lose_enough_together_are_named() -> None:
    """As a slow cable of a node among four did, in the best of four measurements of each link."""
    mesh = Mesh(HOSTS[:4])
    mesh.slow("", "n2", 50)
    for ends in mesh.retransmits:
        mesh.retransmits[ends] = 0
    assert mesh.findings() == []
    mesh.retransmits["n3", "n2"] = mesh.retransmits["n4", "n2"] = 4
    (finding,) = mesh.findings()
    assert finding.hosts == ("n2",) and "is slow to n2: " in finding.cause


def test_links_without_a_rate_are_not_judged() -> None:
    mesh = Mesh(HOSTS)
    for ends in mesh.rates:
        mesh.rates[ends] = None
    assert mesh.findings() == []


@pytest.mark.parametrize("seed", range(100))
def test_a_busy_machine_accuses_nobody(seed: int) -> None:
    """Every fifth link is 5 to 60 times slower, the others up to 8 times, with a few packets sent again."""
    mesh = Mesh(HOSTS, seed, spread=8)
    chance = random.Random(seed)
    for ends in mesh.rates:
        if chance.random() < 0.2:
            mesh.slow(*ends, chance.uniform(5, 60), retransmits=chance.choice([0, 0, 1, 3]))
    assert mesh.findings() == []


@pytest.mark.parametrize("seed", range(50))
def test_what_is_usual_without_some_links_is_what_statistics_says(seed: int) -> None:
    """With values that occur once, and with few that occur often."""
    chance = random.Random(seed)
    draw = chance.random if seed % 2 else lambda: float(chance.randrange(4))
    values = {("n1", f"n{number}"): draw() for number in range(chance.randint(1, 40))}
    gone = chance.sample(sorted(values), chance.randrange(len(values)))
    left = [value for ends, value in values.items() if ends not in gone]
    others = mesh_medians.Ordered(values).without(gone)
    middle = statistics.median(left)
    assert (len(others), others.median()) == (len(left), middle)
    assert others.deviation(middle) == statistics.median(abs(value - middle) for value in left)
