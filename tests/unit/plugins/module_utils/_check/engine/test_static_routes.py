# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways that nodes take to each other."""

from __future__ import annotations

from typing import Any


def test_another_card_than_the_one_of_the_data_network(sample: Any) -> None:
    for way in sample.static["n2"]["routes"].values():
        way.update(interface="eth0", source="198.51.100.2")
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-005", "error", ("n2",))
    assert one.cause == (
        "n2 reaches n1, n3 through eth0 with the source address 198.51.100.2; expected fab0 and 192.0.2.2"
    )
    assert one.about.kind == "node"


def test_another_card_with_the_right_source_address(sample: Any) -> None:
    sample.static["n2"]["routes"]["n3"]["interface"] = "eth0"
    assert sample.found() == [("GC-NODE-005", "error", ("n2",))]


def test_one_peer_only_is_a_link(sample: Any) -> None:
    sample.static["n2"]["routes"]["n3"].update(interface="eth0", source="198.51.100.2")
    (one,) = sample.findings()
    assert (one.id, one.hosts, one.about.kind, one.about.nodes) == ("GC-NODE-005", ("n2",), "link", ("n2", "n3"))


def test_another_source_address_on_the_right_card(sample: Any) -> None:
    sample.static["n2"]["interfaces"]["fab0"]["addresses"].insert(0, "192.0.2.200/24")
    sample.static["n2"]["routes"]["n3"]["source"] = "192.0.2.200"
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-005", "error", ("n2",))
    assert "192.0.2.200, not expected there" in one.cause


def test_no_way_at_all(sample: Any) -> None:
    sample.static["n1"]["routes"]["n2"].update(
        interface="", source="", error="RTNETLINK answers: Network is unreachable"
    )
    (one,) = sample.findings()
    assert (one.id, one.hosts) == ("GC-NODE-005", ("n1",)) and "Network is unreachable" in one.cause


def test_a_gateway_in_one_direction_only(sample: Any) -> None:
    sample.static["n1"]["routes"]["n2"]["gateway"] = "192.0.2.254"
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-006", "warning", ("n1",))
    assert one.cause == "n1 sends to n2 through the gateway 192.0.2.254, and the answers come directly"


def test_a_gateway_in_both_directions_is_a_routed_network(sample: Any) -> None:
    sample.static["n1"]["routes"]["n2"]["gateway"] = "192.0.2.254"
    sample.static["n2"]["routes"]["n1"]["gateway"] = "192.0.2.253"
    assert sample.found() == []


def test_the_way_back_of_a_lost_node_is_not_known(sample: Any) -> None:
    sample.static["n1"]["routes"]["n2"]["gateway"] = "192.0.2.254"
    del sample.static["n2"]
    assert sample.found() == []


def test_a_learned_mtu_below_that_of_the_card(sample: Any) -> None:
    sample.static["n3"]["routes"]["n1"]["mtu"] = 1400
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-008", "warning", ("n3",))
    assert one.cause == "packets from n3 to n1 are kept to 1400 bytes, fab0 takes 1500"


def test_an_mtu_of_the_way_as_large_as_that_of_the_card(sample: Any) -> None:
    sample.static["n3"]["routes"]["n1"]["mtu"] = 1500
    assert sample.found() == []
