# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for one member's own entries, and the list that roles get."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import members

HOST = {
    "gpu_cluster_fabric_address": "10.1.0.11/24",
    "gpu_cluster_fabric_interface": "fab0",
    "ansible_host": "10.0.0.11",
}


def test_members_in_inventory_order() -> None:
    variables = {"n2": HOST, "n1": {**HOST, "gpu_cluster_fabric_address": "fd00::1/64", "ansible_host": None}}
    assert [member.as_dict() for member in members.make_members(variables, ["n2", "n1"])] == [
        {
            "name": "n2",
            "fabric_address": "10.1.0.11",
            "fabric_prefix": 24,
            "fabric_interface": "fab0",
            "management_address": "10.0.0.11",
            "addresses": ["10.1.0.11"],
            "rail_addresses": [],
        },
        {
            "name": "n1",
            "fabric_address": "fd00::1",
            "fabric_prefix": 64,
            "fabric_interface": "fab0",
            "management_address": "n1",
            "addresses": ["fd00::1"],
            "rail_addresses": [],
        },
    ]


def test_all_addresses_of_a_member_are_known_each_once() -> None:
    own = {
        **HOST,
        "static_network_interfaces": [
            {"name": "fab0", "addresses": ["10.1.0.11/24", "fd00:1::11/64"]},
            {"name": "fab1", "addresses": "10.2.0.11/24,not an address"},
            "malformed",
        ],
        "gpu_cluster_further_addresses": ["FD00:2:0::11", "10.2.0.11"],
    }
    (member,) = members.make_members({"n1": own}, ["n1"])
    assert member.addresses == ("10.1.0.11", "fd00:1::11", "10.2.0.11", "fd00:2::11")
    assert member.as_dict()["rail_addresses"] == [
        {"address": "fd00:1::11", "prefix": 64, "interface": "fab0", "listed": False},
        {"address": "10.2.0.11", "prefix": 24, "interface": "fab1", "listed": True},
        {"address": "fd00:2::11", "prefix": 0, "interface": "", "listed": True},
    ]


@pytest.mark.parametrize(
    ("value", "variable", "rule"),
    [
        ("10.2.0.11", "gpu_cluster_further_addresses", members.ERR_NOT_ADDRESSES),
        (["10.2.0.11/24"], "gpu_cluster_further_addresses[0]", members.ERR_NOT_ADDRESS),
        (["10.2.0.11", "fe80::1"], "gpu_cluster_further_addresses[1]", members.ERR_NOT_ADDRESS),
        (["2001:db8::7"], "gpu_cluster_further_addresses[0]", members.ERR_SAMPLE),
        (
            members.Unreadable("no such variable"),
            "gpu_cluster_further_addresses",
            "cannot be evaluated: no such variable",
        ),
    ],
)
def test_a_wrong_further_address_is_refused(value: Any, variable: str, rule: str) -> None:
    (problem,) = members.further_address_problems(value)
    assert (problem.variable, problem.rule) == (variable, rule)
    if rule != members.ERR_SAMPLE:
        with pytest.raises(members.MembersError):
            members.make_members({"n1": {**HOST, "gpu_cluster_further_addresses": value}}, ["n1"])


def test_every_missing_entry_is_named_with_its_host() -> None:
    with pytest.raises(members.MembersError) as caught:
        members.make_members({"n1": {}, "n2": HOST}, ["n1", "n2"])
    assert [(problem.host, problem.variable) for problem in caught.value.problems] == [
        ("n1", "gpu_cluster_fabric_address"),
        ("n1", "gpu_cluster_fabric_interface"),
    ]
    assert "n1: gpu_cluster_fabric_address: not set, every member needs it. Fix: " in str(caught.value)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (None, members.ERR_MISSING),
        (members.Unreadable("'x' is undefined"), "cannot be evaluated: 'x' is undefined"),
        ("10.1.0.11", members.ERR_NOT_CIDR),
        ("10.1.0.300/24", members.ERR_NOT_CIDR),
        ("10.1.0.11/33", members.ERR_NOT_CIDR),
        (["10.1.0.11/24"], members.ERR_NOT_CIDR),
        ("10.1.0.0/24", "is the address of the network 10.1.0.0/24 itself"),
        ("10.1.0.255/24", "is the broadcast address of the network 10.1.0.0/24"),
        ("127.0.0.1/8", "is not the address of a network card (loopback)"),
        ("169.254.1.1/16", "is not the address of a network card (link-local)"),
        ("224.0.0.1/24", "is not the address of a network card (multicast)"),
        ("0.0.0.0/8", "is not the address of a network card (unspecified)"),
        ("192.0.2.1/24", members.ERR_SAMPLE),
        (" 10.1.0.11/24", members.ERR_NOT_CIDR),
        ("198.51.100.1/24", members.ERR_SAMPLE),
        ("203.0.113.1/24", members.ERR_SAMPLE),
        ("2001:db8::1/64", members.ERR_SAMPLE),
    ],
)
def test_a_refused_fabric_address(value: Any, rule: str) -> None:
    found = members.fabric_address_problems(value)
    assert [problem.rule for problem in found] == [rule]
    assert found[0].variable == "gpu_cluster_fabric_address"
    assert found[0].fix


@pytest.mark.parametrize("value", ["10.1.0.11/24", "10.1.0.0/31", "10.1.0.255/16", "fd00::ff/64"])
def test_an_accepted_fabric_address(value: str) -> None:
    assert members.fabric_address_problems(value) == []


@pytest.mark.parametrize(
    ("value", "rules"),
    [
        ("fab0", []),
        ("enp3s0f0.100", []),
        (None, [members.ERR_MISSING]),
        (members.Unreadable("no"), ["cannot be evaluated: no"]),
        ("", [members.ERR_INTERFACE]),
        ("a name", [members.ERR_INTERFACE]),
        ("sixteen_letters_", [members.ERR_INTERFACE]),
        ("..", [members.ERR_INTERFACE]),
        (7, [members.ERR_INTERFACE]),
    ],
)
def test_fabric_interface(value: Any, rules: list[str]) -> None:
    assert [problem.rule for problem in members.fabric_interface_problems(value)] == rules


def test_sample_addresses_make_members() -> None:
    sample = {**HOST, "gpu_cluster_fabric_address": "192.0.2.1/24"}
    assert members.make_members({"n1": sample}, ["n1"])[0].fabric_address == "192.0.2.1"
