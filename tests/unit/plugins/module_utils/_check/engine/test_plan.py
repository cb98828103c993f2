# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who takes part, given who reaches whom."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import plan

HOSTS = ["n1", "n2", "n3", "n4"]


def launch(*hosts: str) -> dict:
    return {
        host: {
            "state": "waiting",
            "address": f"192.0.2.{number}",
            "ports": [{"range": "rendezvous", "port": 29500 + number}],
            "ranges": [{"name": "rendezvous", "first": 29500, "last": 29599}],
        }
        for number, host in enumerate(hosts)
    }


def probe(hosts: list[str], bad: set[tuple[str, str]]) -> dict:
    return {
        source: {
            "links": [
                {
                    "host": target,
                    "failures": [{"port": 1, "range": "ephemeral", "result": "timeout"}] * ((source, target) in bad),
                }
                for target in hosts
                if target != source
            ]
        }
        for source in hosts
    }


def test_everybody_takes_part_in_inventory_order() -> None:
    made = plan.make_plan(HOSTS, launch(*HOSTS), probe(HOSTS, set()), 2)
    assert made["ranks"] == {"n1": [0, 1], "n2": [2, 3], "n3": [4, 5], "n4": [6, 7]}
    assert (made["world_size"], made["master_host"], made["master_address"], made["master_port"]) == (
        8,
        "n1",
        "192.0.2.0",
        29500,
    )


@pytest.mark.parametrize(
    ("bad", "left"),
    [
        ({("n1", "n2"), ("n3", "n2"), ("n4", "n2")}, ["n1", "n3", "n4"]),
        ({("n1", "n2")}, ["n1", "n3", "n4"]),
        ({(a, b) for a in HOSTS for b in HOSTS if a != b}, ["n1"]),
    ],
)
def test_the_survivors_reach_each_other(bad: set[tuple[str, str]], left: list[str]) -> None:
    assert plan.survivors(HOSTS, bad) == left


def test_a_host_that_did_not_start_or_answer_has_no_rank() -> None:
    started = launch("n1", "n2", "n4")
    started["n3"] = {"state": "failed", "error": "x"}
    probes = probe(["n1", "n2", "n4"], set())
    del probes["n4"]
    assert plan.make_plan(HOSTS, started, probes, 1)["hosts"] == ["n1", "n2"]


def test_one_host_is_no_world() -> None:
    made = plan.make_plan(HOSTS, launch("n1"), probe(["n1"], set()), 1)
    assert made["world_size"] == 0 and made["hosts"] == []


def test_the_address_book_holds_only_workers_that_listen() -> None:
    started = launch("n1", "n2")
    started["n3"] = {"state": "failed", "error": "x"}
    ranges = [{"name": "rendezvous", "first": 29500, "last": 29599}]
    made = plan.address_book(started, HOSTS)
    assert [one.pop("rails") for one in made] == [[], []]
    assert made == [
        {"host": "n1", "address": "192.0.2.0", "ports": [{"range": "rendezvous", "port": 29500}], "ranges": ranges},
        {"host": "n2", "address": "192.0.2.1", "ports": [{"range": "rendezvous", "port": 29501}], "ranges": ranges},
    ]


def test_the_address_book_holds_only_rails_with_listeners() -> None:
    started = launch("n1", "n2")
    ports = [{"range": "rendezvous", "port": 29500}]
    rail = {"name": "rail 2", "address": "192.0.2.9", "ports": ports, "error": ""}
    started["n1"]["rails"] = [rail, {"name": "rail 3", "address": "192.0.2.10", "ports": [], "error": "gone"}]
    first, second = plan.address_book(started, HOSTS)
    assert first["rails"] == [{"name": "rail 2", "address": "192.0.2.9", "ports": ports}]
    assert second["rails"] == []


def test_a_bad_link_of_another_rail_costs_no_host_its_rank() -> None:
    """The collective runs on the first rail."""
    probes = probe(HOSTS, set())
    bad = {"host": "n1", "failures": [{"port": 1}]}
    probes["n2"]["rails"] = [{"name": "rail 2", "links": [bad]}]
    assert plan.make_plan(HOSTS, launch(*HOSTS), probes, 1)["hosts"] == HOSTS


def test_the_bad_links_are_looked_at_once_however_many_hosts_go() -> None:
    """Of a thousand hosts there may be a million of them, and the workers wait."""

    class Counted(set):
        looks = 0

        def __iter__(self) -> Iterator[tuple[str, str]]:
            self.looks += 1
            return super().__iter__()

    bad = Counted({(a, b) for a in HOSTS for b in HOSTS if a != b})
    assert plan.survivors(HOSTS, bad) == ["n1"]
    assert bad.looks == 1
