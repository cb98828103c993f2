# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From an inventory to its rails: each case is a network as sites build it."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import members
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import rails

Interfaces = list[tuple[str, str]]


def cluster(
    count: int = 3, *, further: list[str] | None = None, cards: Interfaces | None = None, managed: str = "10.0.0.%d"
) -> dict[str, dict[str, Any]]:
    """The variables of n1, n2, ...; ``%d`` in an address is the number of the host."""

    def own(text: str, number: int) -> str:
        return text % number if "%d" in text else text

    return {
        f"n{number}": {
            "gpu_cluster_fabric_address": f"10.1.0.{number}/24",
            "gpu_cluster_fabric_interface": "fab0",
            "ansible_host": own(managed, number),
            "gpu_cluster_further_addresses": [own(one, number) for one in further or []],
            "static_network_interfaces": [
                {"name": name, "addresses": [own(address, number)]} for name, address in cards or []
            ],
        }
        for number in range(1, count + 1)
    }


def known(variables: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [one.as_dict() for one in members.make_members(variables, list(variables))]


def told(variables: dict[str, dict[str, Any]]) -> list[tuple[str, str, dict[str, str]]]:
    return [(one.name, one.family, dict(one.members)) for one in rails.rails(known(variables))[1:]]


def on(text: str, *numbers: int) -> dict[str, str]:
    return {f"n{number}": text % number for number in numbers or (1, 2, 3)}


def test_the_fabric_alone_is_the_first_rail() -> None:
    (first,) = rails.rails(known(cluster()))
    assert (first.name, first.family, first.members) == ("rail 1 (10.1.0.0/24)", "IPv4", on("10.1.0.%d"))
    assert rails.by_host(known(cluster())) == {"n1": [], "n2": [], "n3": []}


def test_one_member_or_none_has_no_rails() -> None:
    assert rails.rails([]) == [] and rails.by_host([]) == {} and rails.alone([]) == []
    assert rails.rails(known(cluster(1, further=["10.2.0.%d"]))) == []


def test_each_network_and_each_family_is_a_rail() -> None:
    """Without prefix lengths: a /24, of IPv6 a /64."""
    assert told(cluster(further=["10.2.0.%d", "fd00:20::%d"])) == [
        ("rail 2 (10.2.0.0/24)", "IPv4", on("10.2.0.%d")),
        ("rail 3 (fd00:20::/64)", "IPv6", on("fd00:20::%d")),
    ]


def test_the_order_of_an_entry_means_nothing() -> None:
    variables = cluster(further=["10.2.0.%d", "10.3.0.%d"])
    variables["n2"]["gpu_cluster_further_addresses"].reverse()
    assert [one[2] for one in told(variables)] == [on("10.2.0.%d"), on("10.3.0.%d")]


def test_a_declared_network_holds_addresses_that_declare_none() -> None:
    variables = cluster(2, cards=[("fab1", "10.2.%d.1/16")])
    variables["n3"] = {**cluster(3)["n3"], "gpu_cluster_further_addresses": ["10.2.77.1"]}
    assert told(variables) == [
        ("rail 2 (10.2.0.0/16)", "IPv4", {"n1": "10.2.1.1", "n2": "10.2.2.1", "n3": "10.2.77.1"})
    ]


def test_a_member_without_the_rail_is_not_on_it_and_an_address_alone_is_told() -> None:
    variables = cluster(further=["10.2.0.%d"])
    variables["n2"]["gpu_cluster_further_addresses"] = ["10.9.0.2"]
    assert told(variables) == [("rail 2 (10.2.0.0/24)", "IPv4", on("10.2.0.%d", 1, 3))]
    assert rails.alone(known(variables)) == ["10.9.0.2 of n2"]
    assert rails.by_host(known(variables))["n2"] == []
    assert rails.by_host(known(variables))["n3"] == [{"name": "rail 2 (10.2.0.0/24)", "address": "10.2.0.3"}]


def test_two_addresses_in_one_network_are_two_rails() -> None:
    variables = cluster(2, further=["10.2.0.%d", "10.2.0.10%d"])
    assert told(variables) == [
        ("rail 2 (10.2.0.0/24)", "IPv4", on("10.2.0.%d", 1, 2)),
        ("rail 3 (10.2.0.0/24)", "IPv4", on("10.2.0.10%d", 1, 2)),
    ]


def test_a_rail_of_links_between_router_and_node_is_one_rail() -> None:
    """Every node has a network of its own on the same card; IPv6 on that card is another rail."""
    cards = [("rail0", "10.9%d.0.1/31"), ("rail1", "10.9%d.1.1/31"), ("rail0", "fd00:%d::1/127")]
    assert told(cluster(cards=cards)) == [
        ("rail 2 (rail0, IPv4)", "IPv4", on("10.9%d.0.1")),
        ("rail 3 (rail1, IPv4)", "IPv4", on("10.9%d.1.1")),
        ("rail 4 (rail0, IPv6)", "IPv6", on("fd00:%d::1")),
    ]


def test_a_rail_that_is_routed_between_two_racks_is_one_rail() -> None:
    variables = cluster(4, cards=[("rail0", "10.2.0.%d/24")])
    for number in (3, 4):
        variables[f"n{number}"]["static_network_interfaces"][0]["addresses"] = [f"10.3.0.{number}/24"]
    ((name, _family, hosts),) = told(variables)
    assert (name, list(hosts)) == ("rail 2 (rail0, IPv4)", ["n1", "n2", "n3", "n4"])


def test_networks_that_share_a_member_are_not_routed_into_one() -> None:
    """Two addresses on one card: nobody says that the one network leads to the other."""
    cards = [("fab1", "10.2.0.%d/24"), ("fab1", "10.3.0.%d/24")]
    assert [one[0] for one in told(cluster(cards=cards))] == ["rail 2 (10.2.0.0/24)", "rail 3 (10.3.0.0/24)"]


def test_cards_of_other_names_in_one_network_are_one_rail() -> None:
    variables = cluster(2, cards=[("ens1", "10.2.0.%d/24")])
    variables["n2"]["static_network_interfaces"][0]["name"] = "enp5s0"
    assert told(variables) == [("rail 2 (10.2.0.0/24)", "IPv4", on("10.2.0.%d", 1, 2))]


def test_the_management_network_is_no_rail_unless_it_is_listed() -> None:
    cards = [("mgmt", "10.0.0.%d/24"), ("fab1", "10.2.0.%d/24")]
    assert [one[0] for one in told(cluster(cards=cards))] == ["rail 2 (10.2.0.0/24)"]
    listed = cluster(cards=cards, further=["10.0.0.%d"])
    assert [one[0] for one in told(listed)] == ["rail 2 (10.0.0.0/24)", "rail 3 (10.2.0.0/24)"]


def test_one_member_with_a_management_address_is_enough_to_know_its_network() -> None:
    variables = cluster(cards=[("mgmt", "10.0.0.%d/24")])
    for name in ("n1", "n2"):
        variables[name]["ansible_host"] = f"{name}.example.com"
    assert told(variables) == []


def test_link_local_and_loopback_addresses_are_no_rail() -> None:
    assert told(cluster(cards=[("fab0", "fe80::%d/64"), ("lo", "127.0.1.%d/8")])) == []
