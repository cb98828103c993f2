# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``ip -json`` prints, as iproute2 6.1 does, shortened."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import iproute
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.iproute import Address, Link, Route

LINKS = """[{},
{"ifindex":2,"ifname":"ens1","flags":["BROADCAST","SLAVE","UP","LOWER_UP"],"mtu":9000,"master":"bond0",
 "operstate":"UP","link_type":"ether","address":"02:AA:00:00:00:01","permaddr":"02:AA:00:00:00:02","min_mtu":68,
 "max_mtu":9978,"linkinfo":{"info_slave_kind":"bond"},"addr_info":[]},
{"ifindex":3,"link":"ens2","ifname":"ens2.7","flags":["UP"],"mtu":1500,"link_type":"ether",
 "linkinfo":{"info_kind":"vlan","info_data":{"protocol":"802.1Q","id":7}},"addr_info":[
  {"family":"inet","local":"192.0.2.11","prefixlen":24,"scope":"global"},{},
  {"family":"inet6","local":"fe80::1","prefixlen":64,"scope":"link","tentative":true,"dadfailed":true}]},
{"ifindex":4,"link":"veth0","ifname":"veth1","min_mtu":null,"linkinfo":{"info_kind":"veth"}}
]"""


def test_links_and_their_addresses() -> None:
    port, vlan, veth = iproute.links(LINKS)
    assert port == Link(
        name="ens1",
        type="ether",
        flags=frozenset({"BROADCAST", "SLAVE", "UP", "LOWER_UP"}),
        operstate="UP",
        mac="02:aa:00:00:00:01",
        mtu=9000,
        master="bond0",
        addresses=(),
        kind="",
        permanent_mac="02:aa:00:00:00:02",
        min_mtu=68,
        max_mtu=9978,
        parent="",
        vlan_id=0,
    )
    assert (vlan.kind, vlan.parent, vlan.vlan_id, vlan.permanent_mac) == ("vlan", "ens2", 7, "")
    assert vlan.addresses == (
        Address("192.0.2.11", 24, "global", tentative=False, duplicated=False),
        Address("fe80::1", 64, "link", tentative=True, duplicated=True),
    )
    assert vlan.addresses[0].cidr == "192.0.2.11/24"
    assert (veth.kind, veth.parent, veth.min_mtu, veth.flags, veth.addresses) == ("veth", "", 0, frozenset(), ())


def test_the_permanent_address_as_iproute2_before_5_6_prints_it() -> None:
    text = """[{"ifname":"ens1","address":"02:aa:00:00:00:01","linkinfo":
     {"info_slave_kind":"bond","info_slave_data":{"perm_hwaddr":"02:AA:00:00:00:02"}}}]"""
    assert [link.permanent_mac for link in iproute.links(text)] == ["02:aa:00:00:00:02"]


def test_each_hop_of_a_route() -> None:
    text = """[{"dst":"default","gateway":"192.0.2.1","dev":"ens1","prefsrc":"192.0.2.11","metrics":[{"mtu":1400}]},
    {"dst":"default","metric":20,"nexthops":[{"gateway":"192.0.2.1","dev":"ens1","weight":1},
     {"via":{"family":"inet6","host":"fe80::1"},"dev":"ens2","weight":1}]},
    {"type":"unreachable","dst":"default","flags":[]}]"""
    assert iproute.routes(text) == [
        Route("ens1", "192.0.2.1", "192.0.2.11", 1400),
        Route("ens1", "192.0.2.1"),
        Route("ens2", "fe80::1"),
        Route(),
    ]


def test_the_answers_of_a_batch_stay_in_their_order() -> None:
    text = '[{"dst":"192.0.2.4","dev":"fab0","metrics":[{"rtt":3},{"mtu":1400}]}]\n[]\n[{"dst":"::1","dev":"lo"}]\n'
    assert iproute.batch_routes(text) == [Route("fab0", mtu=1400), Route(), Route("lo")]
    assert iproute.batch_routes("\n") == []


def test_neighbours() -> None:
    text = """[{"dst":"192.0.2.12","dev":"fab0","lladdr":"52:54:00:AA:00:12","state":["REACHABLE"]},
    {"dst":"192.0.2.14","dev":"fab0","state":["FAILED"]}]"""
    assert iproute.neighbours(text) == [
        iproute.Neighbour("192.0.2.12", "52:54:00:aa:00:12", frozenset({"REACHABLE"})),
        iproute.Neighbour("192.0.2.14", "", frozenset({"FAILED"})),
    ]


@pytest.mark.parametrize("parser", [iproute.links, iproute.routes, iproute.neighbours])
@pytest.mark.parametrize("text", ["", 'Option "-json" is unknown', '[{"ifname":"ens1"'])
def test_output_that_is_no_json_is_an_error(parser: object, text: str) -> None:
    assert callable(parser)
    with pytest.raises(ValueError, match=r"Expecting"):
        parser(text)
    assert parser("[]") == []


def test_a_batch_that_was_cut_off_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"Expecting"):
        iproute.batch_routes('[{"dev":"fab0"}]\n[{"dev"')
