# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface that has the fabric's address. The answer of ip is from a node of the lab, iproute2 6.1, shortened."""

from __future__ import annotations

import json

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import fabric

ANSWER = """[
{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"qdisc":"noqueue","operstate":"UNKNOWN",
 "addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host","label":"lo"}]},
{"ifindex":2,"link_index":1286,"ifname":"eth0","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"operstate":"UP",
 "addr_info":[{"family":"inet","local":"198.18.10.23","prefixlen":24,"scope":"global","label":"eth0"},
  {"family":"inet6","local":"fe80::67:70ff:fe10:d","prefixlen":64,"scope":"link"}]},
{"ifindex":3,"link_index":1287,"ifname":"fab0","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"operstate":"UP",
 "addr_info":[{"family":"inet","local":"198.18.20.23","prefixlen":24,"scope":"global","label":"fab0"},
  {"family":"inet6","local":"2001:db8::23","prefixlen":64,"scope":"global"}]}
]"""
LINKS = fabric.parse(ANSWER)


@pytest.mark.parametrize("address", ["198.18.20.23", "2001:db8:0::23"])
def test_found_by_its_address(address: str) -> None:
    link = fabric.find(LINKS, address)
    assert link is not None and link.name == "fab0"
    assert fabric.problems(link, LINKS, address) == []


def test_an_address_on_no_interface_is_refused_with_those_that_are_there() -> None:
    found = fabric.problems(fabric.find(LINKS, "198.18.20.99"), LINKS, "198.18.20.99")
    assert [problem.rule for problem in found] == [fabric.ERR_ABSENT % "eth0 198.18.10.23, fab0 198.18.20.23"]


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        (["BROADCAST"], fabric.ERR_DOWN % "fab0"),
        (["BROADCAST", "UP", "NO-CARRIER"], fabric.ERR_NO_CARRIER % "fab0"),
    ],
)
def test_an_interface_that_does_not_run_is_refused(flags: list[str], rule: str) -> None:
    answer = json.loads(ANSWER)
    answer[2]["flags"] = flags
    links = fabric.parse(json.dumps(answer))
    assert [one.rule for one in fabric.problems(fabric.find(links, "198.18.20.23"), links, "198.18.20.23")] == [rule]


def test_one_character_is_no_name_for_nccl() -> None:
    links = [fabric.Link("e", True, True, ("192.0.2.1",))]
    assert [one.rule for one in fabric.problems(links[0], links, "192.0.2.1")] == [fabric.ERR_SHORT]


def test_of_two_with_the_address_the_running_one() -> None:
    down = fabric.Link("old0", False, False, ("192.0.2.1",))
    up = fabric.Link("fab0", True, True, ("192.0.2.1",))
    assert fabric.find([down, up], "192.0.2.1") == up
    assert fabric.parse("") == []
