# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members by what their nodes answered."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import members


def held(**interfaces: list[str]) -> dict[str, Any]:
    return {"changed": False, "interfaces": interfaces}


def test_the_address_of_the_interface() -> None:
    """IPv4 first; an address of all nodes, as that of a bridge, is no address of a member."""
    bridge = ["172.17.0.1/16"]
    answers = {
        "n1": held(fab0=["fd00::1/64", "198.18.20.1/23"], eth0=["198.18.10.1/24"], docker0=bridge),
        "n2": held(fab0=["fd00::2/64"], docker0=bridge),
    }
    found = members.find("fab0", {}, answers)
    assert found.addresses == {"n1": "198.18.20.1", "n2": "fd00::2"} and found.lost == {}
    first, second = found.known
    assert first == {
        "name": "n1",
        "fabric_address": "198.18.20.1",
        "fabric_prefix": 23,
        "fabric_interface": "fab0",
        "management_address": "n1",
        "addresses": ["198.18.20.1", "fd00::1", "198.18.10.1"],
        "rail_addresses": [],
    }
    assert second["fabric_prefix"] == 64 and second["addresses"] == ["fd00::2"]


def test_a_given_address_that_no_interface_has() -> None:
    """The check of the nodes says so."""
    found = members.find("fab0", {"n1": "198.18.20.9"}, {"n1": held(fab0=["198.18.20.1/23"])})
    assert found.addresses == {"n1": "198.18.20.9"} and found.known[0]["fabric_prefix"] == 24


def test_nodes_that_take_no_part() -> None:
    away = {"unreachable": True, "msg": "timed out"}
    answers = {"n1": away, "n2": held(), "n3": held(fab0=["127.0.0.2/8"]), "n4": {}, "n5": held(fab0=["x"])}
    # A given address is of no use without an answer.
    found = members.find("fab0", {"n1": "198.18.20.1"}, answers)
    assert found.known == [] and found.addresses == {} and found.lost.keys() == answers.keys()
    assert found.lost["n1"] == away
    assert found.lost["n2"] == found.lost["n3"]
    assert found.lost["n2"]["msg"] == "no address on the interface fab0; interfaces with one: none"
    assert "is not what its program returns" in found.lost["n4"]["msg"] and found.lost["n5"] == found.lost["n4"]
