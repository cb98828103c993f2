# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of members: the same as in their hosts file, and no name of two members."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _hosts_file
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import names


def member(name: str, number: int, management: str = "", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "fabric_address": f"198.18.20.{number}",
        "fabric_prefix": 24,
        "fabric_interface": "fab0",
        "management_address": management or f"198.18.10.{number}",
        "addresses": [f"198.18.20.{number}"],
        **more,
    }


PLAIN = [member("n1", 11), member("n2", 12)]
LONG = [member("gpu01.cluster.example", 11), member("gpu02.cluster.example", 12)]
TWINS = [member("gpu01.east.example", 11), member("gpu01.west.example", 12)]
NAMED = [member("n1", 11, "n1.example"), member("n2", 12, "n2.example")]
SHARED = [member("n1", 11, "198.18.10.1"), member("n2", 12, "198.18.10.1")]
CLASH = [member("n1", 11), member("n1-mgmt", 12)]
ON_DATA = [member("n1", 11, "198.18.20.11"), member("n2", 12, "127.0.0.1")]
CAPITAL = [member("GPU01", 11), member("gpu02", 12)]


def in_the_hosts_file(members: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Address to its names, in lower case."""
    lines = [line.split() for line in _hosts_file.block_text(members).splitlines() if not line.startswith("#")]
    return {address: {name.lower() for name in own} for address, *own in lines}


@pytest.mark.parametrize("members", [PLAIN, LONG, TWINS, NAMED, SHARED, CLASH, ON_DATA, CAPITAL])
def test_the_names_of_the_hosts_file(members: list[dict[str, Any]]) -> None:
    found = names.all_names(members, {})
    block = in_the_hosts_file(members)
    for one in members:
        own = set(found[one["name"]])
        here = {address for address in block if address in (one["fabric_address"], one["management_address"])}
        assert here <= own
        assert {name for address in here for name in block[address]} == {
            name for name in own if names._address(name) == ""
        }


@pytest.mark.parametrize("members", [PLAIN, LONG, TWINS, NAMED, SHARED, CLASH, ON_DATA, CAPITAL])
def test_no_name_belongs_to_two_members(members: list[dict[str, Any]]) -> None:
    every = [name for own in names.all_names(members, {}).values() for name in own]
    assert len(every) == len(set(every))


def test_all_of_one_member() -> None:
    rails = member("n1", 11, addresses=["198.18.20.11", "198.18.21.11", "fd00:21:0::11"])
    found = names.all_names([rails, member("n2", 12)], {"n1": ["N1.cluster.example"]})
    addresses = ("198.18.20.11", "198.18.21.11", "fd00:21::11", "198.18.10.11")
    assert found["n1"] == ("n1", "n1-mgmt", "n1.cluster.example", *addresses)
    assert names.sources(rails) == "198.18.20.11/32,198.18.21.11/32,fd00:21::11/128,198.18.10.11/32"


def test_a_name_is_no_address_to_come_from() -> None:
    assert names.sources(NAMED[0]) == "198.18.20.11/32"


def test_another_member_changes_nothing_for_one() -> None:
    before, after = names.all_names(PLAIN, {}), names.all_names([*PLAIN, member("n3", 13)], {})
    assert before["n1"] == after["n1"]


def test_networks() -> None:
    assert names.networks([*PLAIN, member("n3", 13)]) == ("198.18.20.0/24",)
