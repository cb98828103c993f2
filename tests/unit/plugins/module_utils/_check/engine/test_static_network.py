# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The card of the data network, its address, its MTU, and others with the same address."""

from __future__ import annotations

from typing import Any

import pytest


def test_a_card_that_is_not_there(sample: Any) -> None:
    del sample.static["n2"]["interfaces"]["fab0"]
    sample.static["n2"]["present"] = ["eth0", "ens1f1"]
    for way in sample.static["n2"]["routes"].values():
        way.update(interface="eth0", source="198.51.100.2", gateway="198.51.100.254")
    sample.static["n2"]["macs"] = ["52:54:00:00:00:66"]
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-003", "error", ("n2",))
    assert one.cause == "n2 has no interface fab0; it has eth0, ens1f1"
    # No command makes a card.
    assert one.command == "" and one.look.endswith('"ip -br link"')


def test_a_node_whose_ip_gives_no_answer_is_not_said_to_have_no_card(sample: Any) -> None:
    """As where the package iproute is missing."""
    sample.static["n2"].update(interfaces={}, present=[], macs=[])
    (one,) = [one for one in sample.findings() if one.id == "GC-NODE-003"]
    assert one.cause.startswith("n2 tells of no interface at all, so not of fab0: `ip -j address show` failed there")
    assert "install the package iproute" in one.fix


@pytest.mark.parametrize(("state", "words"), [("down", "is down"), ("no carrier", "has no carrier")])
def test_a_card_that_does_not_work(sample: Any, state: str, words: str) -> None:
    sample.static["n3"]["interfaces"]["fab0"]["state"] = state
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-003", "error", ("n3",)) and words in one.cause
    assert one.command.endswith("--tags static_network --limit n3") if state == "down" else one.command == ""
    assert one.look.endswith('"ip -s link show dev fab0"')


def test_an_address_that_is_not_there(sample: Any) -> None:
    sample.static["n2"]["interfaces"]["fab0"]["addresses"] = ["192.0.2.77/24"]
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-004", "error", ("n2",))
    assert one.cause == "the interface fab0 of n2 does not have 192.0.2.2; it has 192.0.2.77/24"
    assert one.command.endswith("--tags static_network --limit n2")


def test_an_address_on_another_card_gives_the_variable(sample: Any) -> None:
    links = sample.static["n2"]["interfaces"]
    links["ens1f1"] = dict(links["fab0"])
    links["fab0"] = dict(links["fab0"], addresses=[], mac="52:54:00:00:00:aa")
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-004", "error", ("n2",))
    assert one.variables == {"n2": {"gpu_cluster_fabric_interface": "ens1f1"}}


def test_an_address_with_another_prefix_is_a_warning(sample: Any) -> None:
    sample.static["n2"]["interfaces"]["fab0"]["addresses"] = ["192.0.2.2/25"]
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-004", "warning", ("n2",))
    assert "192.0.2.2/25" in one.cause and "192.0.2.2/24" in one.cause


def test_a_member_with_the_address_of_another_is_at_fault(sample: Any) -> None:
    sample.static["n3"]["interfaces"]["fab0"]["addresses"].append("192.0.2.1/24")
    # What follows from it: n3 takes n1 for itself, n1 was answered by n3, n2 believes either.
    sample.static["n3"]["routes"]["n1"].update(interface="lo", source="192.0.2.1")
    sample.static["n1"]["duplicates"] = [{"address": "192.0.2.1", "mac": "52:54:00:00:00:03"}]
    sample.static["n2"]["neighbours"]["192.0.2.1"] = "52:54:00:00:00:03"
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-007", "error", ("n3",))
    assert one.cause == "n3 has 192.0.2.1 on fab0, which is the address of n1"


def test_the_same_address_of_no_member_is_nobodys_business(sample: Any) -> None:
    for name in sample.names:
        sample.static[name]["interfaces"]["virbr0"] = dict(
            sample.static[name]["interfaces"]["eth0"], addresses=["192.168.122.1/24"]
        )
    assert sample.found() == []


def test_a_machine_that_is_no_member_is_named_by_its_hardware_address(sample: Any) -> None:
    sample.static["n2"]["duplicates"] = [{"address": "192.0.2.2", "mac": "02:00:00:00:00:99"}]
    sample.static["n3"]["neighbours"]["192.0.2.2"] = "02:00:00:00:00:99"
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-007", "error", ("n2",))
    assert one.cause == "another machine, 02:00:00:00:00:99, has the address 192.0.2.2 of n2"
    assert len(one.evidence) == 2


def test_another_card_of_a_member_that_answers_is_no_other_machine(sample: Any) -> None:
    sample.static["n3"]["neighbours"]["192.0.2.2"] = sample.static["n2"]["interfaces"]["eth0"]["mac"]
    sample.static["n1"]["duplicates"] = [
        {"address": "192.0.2.1", "mac": sample.static["n3"]["interfaces"]["eth0"]["mac"]}
    ]
    assert sample.found() == []


def test_a_router_that_answers_for_all_is_no_other_machine(sample: Any) -> None:
    sample.static["n1"]["neighbours"] = {"192.0.2.2": "02:00:00:00:00:99"}
    sample.static["n2"]["neighbours"] = {"192.0.2.1": "02:00:00:00:00:99"}
    assert sample.found() == []


def test_a_router_that_answers_even_for_the_own_address_is_no_other_machine(sample: Any) -> None:
    for member in sample.members:
        sample.static[member["name"]]["duplicates"] = [
            {"address": member["fabric_address"], "mac": "02:00:00:00:00:99"}
        ]
    assert sample.found() == []


def test_the_kernel_refused_an_address_of_ipv6(sample: Any) -> None:
    sample.static["n1"]["interfaces"]["fab0"]["duplicated"] = ["2001:db8::1/64"]
    (one,) = sample.findings()
    assert (one.id, one.hosts) == ("GC-NODE-007", ("n1",)) and "2001:db8::1" in one.cause


def test_the_minority_has_the_wrong_mtu(sample: Any) -> None:
    for name in ("n1", "n3"):
        sample.static[name]["interfaces"]["fab0"]["mtu"] = 9000
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-008", "warning", ("n2",))
    assert one.cause == "the MTU of the data network differs: 1500 bytes on n2; 9000 bytes on n1, n3"


def test_the_command_to_see_another_mtu_again_has_the_nodes_that_it_differs_from(sample: Any) -> None:
    sample = type(sample)(8)
    for name in ("n3", "n6"):
        sample.static[name]["interfaces"]["fab0"]["mtu"] = 9000
    (one,) = sample.findings()
    assert sample.again(one) == [("GC-NODE-008", "warning", ("n3", "n6"))]
    assert one.command.startswith("ansible n3,n6 ") and one.command.endswith('"ip link set dev fab0 mtu 1500"')
    for name in ("n1", "n2"):
        sample.static[name]["interfaces"]["fab0"]["mtu"] = 9000
    (one,) = sample.findings()
    assert one.hosts == () and sample.again(one) == [("GC-NODE-008", "warning", ())]


def test_the_command_to_see_a_foreign_machine_again_has_those_who_saw_it(sample: Any) -> None:
    sample = type(sample)(5)
    for name in ("n3", "n4"):
        sample.static[name]["neighbours"]["192.0.2.2"] = "02:00:00:00:00:99"
    (one,) = sample.findings()
    assert sample.again(one) == [("GC-NODE-007", "error", ("n2",))]


def test_without_a_majority_nobody_is_accused(sample: Any) -> None:
    for number, name in enumerate(sample.names):
        sample.static[name]["interfaces"]["fab0"]["mtu"] = 1500 + number
    assert sample.found() == [("GC-NODE-008", "warning", ())]


def rails(sample: Any, **values: int) -> dict[str, Any]:
    """A second card in the subnet of n2's data network."""
    links: dict[str, Any] = sample.static["n2"]["interfaces"]
    links["fab1"] = dict(links["fab0"], mac="52:54:00:00:00:f1", addresses=["192.0.2.102/24"])
    for name in ("fab0", "fab1"):
        links[name].update(values)
    return links


def test_cards_in_one_subnet_that_are_not_kept_apart(sample: Any) -> None:
    rails(sample, rp_filter=1)
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-009", "warning", ("n2",))
    keys = {entry["key"]: entry["value"] for entry in one.variables["n2"]["kernel_tuning_extra"]}
    assert keys == {
        f"net.ipv4.conf.{name}.{key}": value
        for name in ("fab0", "fab1")
        for key, value in (("arp_ignore", "1"), ("arp_announce", "2"), ("rp_filter", "2"))
    }


@pytest.mark.parametrize("rp_filter", [0, 2])
def test_cards_in_one_subnet_that_are_kept_apart(sample: Any, rp_filter: int) -> None:
    rails(sample, arp_ignore=1, arp_announce=2, rp_filter=rp_filter)
    assert sample.found() == []


def test_a_card_in_another_subnet_needs_nothing(sample: Any) -> None:
    rails(sample)["fab1"]["addresses"] = ["192.168.9.2/24"]
    assert sample.found() == []
