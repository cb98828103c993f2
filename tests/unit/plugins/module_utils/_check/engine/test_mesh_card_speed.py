# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links beside the speed of their cards; and what is said where there are too few to compare."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import mesh_card_speed, mesh_links
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding


def links(hosts: list[str], rate: float, **slow: float) -> mesh_links.Links:
    """slow: host to the rate of all that it sends."""
    probe = {
        a: {"links": [{"host": b, "probes": 1, "bytes_per_second": slow.get(a, rate)} for b in hosts if a != b]}
        for a in hosts
    }
    return mesh_links.read(hosts, probe)


def looked(**cards: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {host: {"interfaces": {"fab0": card}} for host, card in cards.items()}


def found(hosts: list[str], rate: float, mbps: int, **slow: float) -> list[Finding]:
    return mesh_card_speed.findings(hosts, links(hosts, rate, **slow), dict.fromkeys(hosts, mbps), ())


def test_only_physical_cards_that_tell_their_speed_count() -> None:
    cards = looked(
        n1={"physical": True, "speed_mbps": 25000},
        n2={"physical": False, "speed_mbps": 10000},
        n3={"physical": True, "speed_mbps": None},
    )
    assert mesh_card_speed.speeds({**cards, "n4": {}}, dict.fromkeys(cards, "fab0")) == {"n1": 25000}


@pytest.mark.parametrize(
    ("mbps", "rate", "is_slow"),
    [
        (1000, 100e6, False),
        (1000, 7e6, False),
        (1000, 6e6, True),
        (10000, 63e6, False),
        (10000, 62e6, True),
        (400000, 63e6, False),
        (400000, 62e6, True),
    ],
)
def test_two_nodes(mbps: int, rate: float, is_slow: bool) -> None:
    ones = found(["n1", "n2"], rate, mbps)
    assert [(one.id, one.severity) for one in ones] == [("GC-NET-007", "warning")] * is_slow
    assert all(one.about.kind in ("link", "cluster") and "Gbit/s" in one.cause for one in ones)


def test_where_all_are_slow_it_is_the_cluster() -> None:
    (one,) = found(["n1", "n2", "n3"], 5e6, 10000)
    assert one.hosts == () and one.cause == (
        "the data network is slow between all 3 nodes: 5 MB/s, on cards of 10 Gbit/s"
    )


def test_one_node_of_three() -> None:
    (one,) = found(["n1", "n2", "n3"], 9e8, 10000, n2=5e6)
    assert one.hosts == ("n2",) and "slow from n2: 5 MB/s" in one.cause


def test_what_is_named_already_is_not_told_twice() -> None:
    hosts = ["n1", "n2", "n3"]
    (told,) = found(hosts, 9e8, 10000, n2=5e6)
    cards = dict.fromkeys(hosts, 10000)
    assert mesh_card_speed.findings(hosts, links(hosts, 9e8, n2=5e6), cards, (told,)) == []


def test_a_card_that_is_not_known_is_not_judged() -> None:
    hosts = ["n1", "n2"]
    assert mesh_card_speed.findings(hosts, links(hosts, 1e3), {"n1": 10000}, ()) == []


@pytest.mark.parametrize(
    ("count", "cards", "limited", "words"),
    [
        (2, 25000, False, ["2 links were not judged", "factor of 30", "the speed of the cards, 25 Gbit/s"]),
        (3, 0, False, ["6 links were not judged", "factor of 20", "nor by the speed of the cards", "cluster_check_"]),
        (3, 0, True, []),
        (4, 0, False, []),
    ],
)
def test_it_is_said_where_speeds_were_not_judged(count: int, cards: int, limited: bool, words: list[str]) -> None:
    hosts = [f"n{number}" for number in range(count)]
    known = dict.fromkeys(hosts, cards) if cards else {}
    notes = mesh_card_speed.notes(hosts, links(hosts, 1e9), known, limited)
    assert len(notes) == bool(words) and all(word in notes[0] for word in words)
