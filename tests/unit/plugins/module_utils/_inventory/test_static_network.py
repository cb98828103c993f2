# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts' own lists of interfaces against each other and against the fabric addresses."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.static_network import (
    mtu_notes,
    static_network_problems,
)

LIST = "static_network_interfaces"


def fabric(number: int) -> dict[str, Any]:
    return {"name": "fab0", "addresses": [f"10.1.0.{number}/24"]}


def found(**lists: Any) -> list[tuple[str, str, str]]:
    variables: dict[str, dict[str, Any]] = {
        f"n{number}": {
            "ansible_host": f"10.0.0.{number}",
            "gpu_cluster_fabric_address": f"10.1.0.{number}/24",
            "gpu_cluster_fabric_interface": "fab0",
        }
        for number in (1, 2, 3)
    }
    for host, value in lists.items():
        variables[host].update(value if isinstance(value, dict) else {LIST: value})
    problems = static_network_problems(variables, list(variables))
    assert all(problem.fix for problem in problems)
    return [(problem.host, f"{problem.variable} = {problem.value}", problem.rule) for problem in problems]


def test_lists_that_go_together() -> None:
    assert found() == []
    own = {"name": "eth0", "addresses": ["10.0.0.1/24", "fd00::1/64"]}
    assert found(n1=[own, fabric(1)], n2=[fabric(2)], n3=[]) == []


def test_an_address_of_two_hosts() -> None:
    twin = {"name": "eth1", "addresses": ["10.2.0.9/24"]}
    other = {"name": "eth2", "addresses": ["10.2.0.8/24", "10.2.0.9/16"]}
    assert found(n1=[fabric(1), twin], n3=[other, fabric(3)]) == [
        ("n1", f"{LIST}[1].addresses[0] = '10.2.0.9/24'", "is also an address of n3"),
        ("n3", f"{LIST}[0].addresses[1] = '10.2.0.9/16'", "is also an address of n1"),
    ]


def test_the_fabric_address_of_another_host() -> None:
    assert found(n1=[fabric(1), {"name": "eth1", "addresses": ["10.1.0.2/24"]}]) == [
        ("n1", f"{LIST}[1].addresses[0] = '10.1.0.2/24'", "is also the fabric address of n2")
    ]


def test_the_fabric_address_of_another_host_is_named_once() -> None:
    assert found(n1=[fabric(1), {"name": "eth1", "addresses": ["10.1.0.2/24"]}], n2=[fabric(2)]) == [
        ("n1", f"{LIST}[1].addresses[0] = '10.1.0.2/24'", "is also the fabric address of n2")
    ]


def test_the_ssh_address_of_another_host() -> None:
    assert found(n1=[fabric(1), {"name": "eth1", "addresses": "10.0.0.1/24,10.0.0.3/24"}]) == [
        ("n1", f"{LIST}[1].addresses[1] = '10.0.0.3/24'", "is the ssh address of another member, n3")
    ]


def test_a_further_address_that_another_host_has_too() -> None:
    further = "gpu_cluster_further_addresses"
    other = {"name": "eth1", "addresses": ["10.2.0.9/24"]}
    assert found(n1={further: ["10.2.0.8", "10.2.0.9"]}, n2=[fabric(2), other], n3={further: ["10.1.0.1"]}) == [
        ("n1", f"{further}[1] = '10.2.0.9'", "is also an address of n2"),
        ("n2", f"{LIST}[1].addresses[0] = '10.2.0.9/24'", "is also an address of n1"),
        ("n3", f"{further}[0] = '10.1.0.1'", "is also the fabric address of n1"),
    ]


def test_addresses_are_compared_and_not_their_spelling() -> None:
    one = {"name": "eth1", "addresses": ["fd00::9/64"]}
    assert [entry[0] for entry in found(n1=[fabric(1), one], n2=[fabric(2), {"addresses": ["FD00:0::9/64"]}])] == [
        "n1",
        "n2",
    ]


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        (
            [
                {"name": "eth0", "addresses": ["10.0.0.1/24"]},
                {"mac": "02:00:00:00:00:01", "addresses": ["10.3.0.1/24"]},
            ],
            (
                "gpu_cluster_fabric_interface = 'fab0'",
                "static_network_interfaces of this host has no entry for it; it has eth0, 02:00:00:00:00:01",
            ),
        ),
        (
            [{"name": "fab0", "addresses": ["10.1.0.1/16"]}],
            (
                f"{LIST}[0].addresses = ['10.1.0.1/16']",
                "does not hold gpu_cluster_fabric_address, 10.1.0.1/24",
            ),
        ),
        (
            [{"name": "eth0", "addresses": ["10.0.0.1/24"]}, {"name": "fab0"}],
            (f"{LIST}[1].addresses = []", "does not hold gpu_cluster_fabric_address, 10.1.0.1/24"),
        ),
        (
            [{"name": "eth7", "addresses": ["10.1.0.1/24"]}, {"name": "fab0", "addresses": ["10.1.0.77/24"]}],
            (
                "gpu_cluster_fabric_interface = 'fab0'",
                "static_network_interfaces of this host gives gpu_cluster_fabric_address (10.1.0.1/24) to eth7",
            ),
        ),
    ],
)
def test_a_list_that_contradicts_the_fabric_address(own: Any, problem: tuple[str, str]) -> None:
    assert found(n1=own) == [("n1", *problem)]


@pytest.mark.parametrize(
    "own",
    [
        [{"mac": "02:00:00:00:00:01", "addresses": ["10.1.0.1/24"]}],
        [{"name": "fab0", "addresses": ["fd00::1/64", " 10.1.0.1/24 "]}],
        [],
        None,
        "fab0",
        ["fab0"],
        Unreadable("'x' is undefined"),
    ],
)
def test_a_list_that_does_not_contradict_it_or_cannot_be_read(own: Any) -> None:
    assert found(n1=own) == []


def test_a_member_without_a_readable_fabric_address_is_not_compared() -> None:
    own = {LIST: [{"name": "fab0", "addresses": ["10.1.0.9/24", 7, "10.1.0.300/24"]}]}
    variables: dict[str, dict[str, Any]] = {
        "n1": {**own, "gpu_cluster_fabric_interface": "fab0"},
        "n2": {"gpu_cluster_fabric_address": "10.1.0.9/24", "gpu_cluster_fabric_interface": "fab0"},
    }
    assert [(problem.host, problem.rule) for problem in static_network_problems(variables, ["n1", "n2"])] == [
        ("n1", "is also the fabric address of n2")
    ]


@pytest.mark.parametrize(
    ("mtus", "noted"),
    [
        ([9000, 9000, 9000], []),
        ([9000, "9000", None], []),
        ([9000, 1500, 9000], ["n2"]),
        ([9000, 9000, "1500"], ["n3"]),
        ([None, None, None], []),
        # Nobody knows whose is meant.
        ([9000, 1500, None], ["n1", "n2"]),
    ],
)
def test_members_of_one_network_with_different_mtus_are_noted(mtus: list[Any], noted: list[str]) -> None:
    variables: dict[str, dict[str, Any]] = {
        f"n{number}": {LIST: [{"name": "eth9"}, {**fabric(number), "mtu": mtu}]} for number, mtu in enumerate(mtus, 1)
    }
    notes = mtu_notes(variables, list(variables))
    assert [note.host for note in notes] == noted
    assert all(note.variable == f"{LIST}[1].mtu" and "10.1.0.0/24" in note.rule for note in notes)
    # In two networks they may differ.
    for number, own in enumerate(variables.values(), 1):
        own[LIST][1]["addresses"] = [f"10.{number}.0.1/24"]
    assert mtu_notes(variables, list(variables)) == []


@pytest.mark.parametrize(
    "value", [Unreadable("x"), "text", 7, None, [7], [{"mtu": 9000}], [{"addresses": 7, "mtu": []}]]
)
def test_lists_that_are_none_are_no_notes(value: Any) -> None:
    assert (
        mtu_notes({"n1": {LIST: value}, "n2": {LIST: [{**fabric(2), "mtu": 9000}]}, "n3": {}}, ["n1", "n2", "n3"]) == []
    )
