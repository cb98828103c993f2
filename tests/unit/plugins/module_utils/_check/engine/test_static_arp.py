# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hardware addresses that are not found, or that somebody wrote by hand."""

from __future__ import annotations

from typing import Any

import pytest


def test_arp_that_is_turned_off(sample: Any) -> None:
    sample.static["n2"]["interfaces"]["fab0"]["arp"] = False
    (one,) = sample.findings()
    assert (one.id, one.hosts, one.cuts) == ("GC-NODE-026", ("n2",), (("n2", ""),))
    assert "ARP is turned off on fab0 of n2" in one.cause and "ip link set fab0 arp on" in one.command
    assert sample.again(one) == [("GC-NODE-026", "error", ("n2",))]


@pytest.mark.parametrize(("value", "told"), [(0, False), (1, False), (2, False), (8, True)])
def test_a_node_that_answers_no_request(sample: Any, value: int, told: bool) -> None:
    sample.static["n3"]["interfaces"]["fab0"]["arp_ignore"] = value
    found = sample.found()
    assert (found == [("GC-NODE-026", "error", ("n3",))]) is told
    assert (found == []) is not told


def test_a_card_with_a_dot_in_its_name(sample: Any) -> None:
    for member in sample.members:
        member["fabric_interface"] = "fab0.20"
    for said in sample.static.values():
        said["interfaces"]["fab0.20"] = said["interfaces"].pop("fab0")
        for way in said["routes"].values():
            way["interface"] = "fab0.20"
    sample.static["n1"]["interfaces"]["fab0.20"]["arp_ignore"] = 8
    (one,) = sample.findings()
    assert "net.ipv4.conf.fab0/20.arp_ignore=0" in one.command


def test_another_card_or_ipv6_has_no_say(sample: Any) -> None:
    sample.static["n1"]["interfaces"]["eth0"]["arp"] = False
    assert sample.found() == []


def test_a_fixed_entry_that_leads_to_no_card_of_the_peer(sample: Any) -> None:
    said = sample.static["n1"]
    said["neighbours"]["192.0.2.3"] = said["fixed_neighbours"]["192.0.2.3"] = "02:00:00:00:de:ad"
    (one,) = sample.findings()
    assert (one.id, one.hosts, one.cuts) == ("GC-NODE-026", ("n1",), (("n1", "n3"),)), "not another machine's address"
    assert "192.0.2.3 at 02:00:00:00:de:ad, which is no card of n3" in one.cause
    assert "ip neighbour delete 192.0.2.3 dev fab0" in one.command


def test_fixed_entries_that_are_right(sample: Any) -> None:
    said = sample.static["n1"]
    said["fixed_neighbours"] = dict(said["neighbours"], **{"192.0.2.99": "02:00:00:00:de:ad"})
    assert sample.found() == []


def test_a_node_that_gave_no_answer_has_no_cards_to_compare_with(sample: Any) -> None:
    sample.static["n1"]["fixed_neighbours"]["192.0.2.3"] = "02:00:00:00:de:ad"
    del sample.static["n3"]
    assert sample.found() == []


def test_a_card_that_is_down_is_all_that_is_said(sample: Any) -> None:
    sample.static["n2"]["interfaces"]["fab0"].update(state="down", arp=False)
    assert sample.found() == [("GC-NODE-003", "error", ("n2",))]
