# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for wanted interfaces that need no node."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import members
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.spec import (
    Bond,
    Interface,
    Route,
    Vlan,
    interface_problems,
    parse_interfaces,
)

A = {"name": "eth0", "addresses": ["192.0.2.11/24"]}
B = {"name": "eth1", "addresses": ["198.51.100.11/24"]}
SIX = {"name": "eth0", "addresses": ["2001:db8::11/64"]}
BOND = {"name": "bond0", "addresses": ["192.0.2.11/24"], "bond": {"mode": "active-backup", "ports": ["eth0", "eth1"]}}
VLAN = {"name": "eth0.5", "addresses": ["192.0.2.11/24"], "vlan": {"parent": "eth0", "id": 5}}


def bond(**changes: Any) -> dict[str, Any]:
    return dict(BOND, bond={"mode": "active-backup", "ports": ["eth0", "eth1"], **changes})


def lacp(**changes: Any) -> dict[str, Any]:
    return bond(mode="802.3ad", **changes)


def vlan(**changes: Any) -> dict[str, Any]:
    return dict(VLAN, vlan={"parent": "eth0", "id": 5, **changes})


def route(**changes: Any) -> dict[str, Any]:
    return dict(A, routes=[{"to": "203.0.113.0/24", "via": "192.0.2.254", **changes}])


def found(*entries: Any) -> list[tuple[str, str]]:
    """Path below the list, and rule; every problem is complete."""
    problems = interface_problems(list(entries), "list")
    assert all(problem.rule and problem.fix and "%" not in problem.rule.replace("%eth", "") for problem in problems)
    return [(problem.variable[len("list") :], problem.rule) for problem in problems]


def test_everything_that_can_be_said() -> None:
    (card, alias, trunk, tagged) = parse_interfaces(
        [
            {
                "name": " eth0 ",
                "mac": "02-00-00-00-00-AA",
                "addresses": [" 192.0.2.11/24", "2001:DB8:0::11/64"],
                "gateway": ["192.0.2.1", "fe80::1"],
                "routes": [
                    {"to": "203.0.113.0/24", "via": "192.0.2.254", "metric": 50, "table": 100},
                    {"to": "2001:db8:9:0::/48", "via": "2001:db8::2"},
                    {"to": "0.0.0.0/0", "via": "192.0.2.254", "table": 100},
                    {"to": "203.0.113.0/24"},
                ],
                "dns": ["192.0.2.53", "127.0.0.1", "2001:db8::53"],
                "dns_search": ["example.com", "~lab.example.com"],
                "mtu": "9000",
                "zone": "internal",
            },
            {"mac": "02:00:00:00:00:0B", "addresses": "198.51.100.11/24,198.51.100.12/24", "gateway": []},
            lacp(
                ports=["eth2", "02-00-00-00-00-CC"],
                lacp_rate="fast",
                xmit_hash_policy="layer3+4",
                min_links=2,
                miimon_ms=50,
            )
            | {"addresses": None},
            {"name": "vlan7", "addresses": ["203.0.113.11/24"], "vlan": {"parent": "bond0", "id": 7}},
        ]
    )
    assert card == Interface(
        name="eth0",
        mac="02:00:00:00:00:aa",
        addresses=("192.0.2.11/24", "2001:db8::11/64"),
        gateways=("192.0.2.1", "fe80::1"),
        routes=(
            Route("203.0.113.0/24", "192.0.2.254", 50, 100),
            Route("2001:db8:9::/48", "2001:db8::2"),
            Route("0.0.0.0/0", "192.0.2.254", None, 100),
            Route("203.0.113.0/24"),
        ),
        dns=("192.0.2.53", "127.0.0.1", "2001:db8::53"),
        dns_search=("example.com", "~lab.example.com"),
        mtu=9000,
        zone="internal",
    )
    assert (card.label, card.gateway(4), card.gateway(6)) == ("eth0", "192.0.2.1", "fe80::1")
    assert [str(address) for address in card.of(6)] == ["2001:db8::11/64"]
    assert card.variable == "static_network_interfaces[0]"
    assert alias.label == "02-00-00-00-00-0b"
    assert alias.addresses == ("198.51.100.11/24", "198.51.100.12/24")
    # Nothing said about a gateway, and said that there is none.
    assert (trunk.gateways, alias.gateways) == (None, ())
    assert trunk.bond == Bond("802.3ad", ("eth2", "02:00:00:00:00:cc"), 50, "fast", "layer3+4", 2, "")
    assert tagged.vlan == Vlan("bond0", 7)


def test_what_ansible_module_hands_over() -> None:
    """Options that were not given are there, as None."""
    entry: dict[str, Any] = dict.fromkeys(spec.INTERFACE_OPTIONS) | A
    assert parse_interfaces([entry]) == parse_interfaces([A])
    options: dict[str, Any] = dict.fromkeys(spec.INTERFACE_OPTIONS["bond"]["options"])
    assert parse_interfaces([dict(entry, bond=options | BOND["bond"], name="bond0")]) == parse_interfaces([BOND])


def test_good_lists() -> None:
    assert parse_interfaces([]) == []
    for entries in (
        [A, B],
        [dict(SIX, gateway=["fe80::1"])],
        [dict(SIX, mtu=1280)],
        [dict(A, mtu=576)],
        [dict(A, addresses=["192.0.2.0/31"], gateway=["192.0.2.1"])],
        [dict(A, addresses=["192.0.2.11/32"])],
        [dict(A, gateway=["192.0.2.1"]), dict(B, gateway=[])],
        # The card below a VLAN needs no address, even when only its hardware address is known.
        [{"name": "eth0"}, VLAN],
        [{"mac": "02:00:00:00:00:0a"}, VLAN],
        [VLAN, {"name": "q", "addresses": ["198.51.100.1/24"], "vlan": {"parent": "eth0.5", "id": 5}}],
        # Of the tables, 255 alone is the kernel's.
        [route(table=254)],
        [dict(A, routes=[{"to": "203.0.113.0/24", "metric": 1}, {"to": "203.0.113.0/24", "metric": 2}])],
        [dict(A, routes=[{"to": "203.0.113.0/24", "table": 1}, {"to": "203.0.113.0/24"}])],
        [bond(primary="eth1")],
        [lacp(min_links=0)],
    ):
        assert found(*entries) == []


TYPES: list[tuple[Any, str, str]] = [
    ("eth0", "[0]", "expected a dictionary, found 'eth0'"),
    (None, "[0]", "expected a dictionary, found null"),
    (dict(A, adresses=[]), "[0].adresses", spec.ERR_UNKNOWN_KEY),
    (dict(A, name=["eth0"]), "[0].name", "expected a text, found a list"),
    (dict(A, name=" "), "[0].name", spec.ERR_EMPTY),
    (dict(A, mtu="big"), "[0].mtu", "expected a whole number, found 'big'"),
    (dict(A, mtu=1500.5), "[0].mtu", "expected a whole number, found 1500.5"),
    (dict(A, mtu=True), "[0].mtu", "expected a whole number, found true"),
    (dict(A, addresses={"a": 1}), "[0].addresses", "expected a list, found a dictionary"),
    (dict(A, addresses=[11]), "[0].addresses[0]", "expected a text, found 11"),
    (dict(A, dns=["192.0.2.53", None]), "[0].dns[1]", "expected a text, found null"),
    (dict(A, routes="203.0.113.0/24"), "[0].routes", "expected a list, found '203.0.113.0/24'"),
    (dict(A, routes=["203.0.113.0/24"]), "[0].routes[0]", "expected a dictionary, found '203.0.113.0/24'"),
    (dict(A, routes=[{"via": "192.0.2.1"}]), "[0].routes[0].to", spec.ERR_REQUIRED),
    (dict(A, bond="bond0"), "[0].bond", "expected a dictionary, found 'bond0'"),
    (dict(A, vlan=5), "[0].vlan", "expected a dictionary, found 5"),
    (vlan(id=None), "[0].vlan.id", spec.ERR_REQUIRED),
    (vlan(prent="x"), "[0].vlan.prent", spec.ERR_UNKNOWN_KEY),
    (bond(mode="balance-rr"), "[0].bond.mode", "expected one of active-backup, 802.3ad"),
    (bond(ports=None), "[0].bond.ports", spec.ERR_REQUIRED),
]


@pytest.mark.parametrize(("entry", "path", "rule"), TYPES, ids=[path + rule[:20] for _entry, path, rule in TYPES])
def test_missing_and_unknown_keys_and_wrong_types(entry: Any, path: str, rule: str) -> None:
    assert found(entry) == [(path, rule)]


RULES: list[tuple[list[Any], str, str]] = [
    # name and mac
    ([{"addresses": ["192.0.2.11/24"]}], "[0]", spec.ERR_WHICH),
    *(([dict(A, name=name)], "[0].name", spec.ERR_NAME) for name in ("a b", "a/b", "a" * 16, "..", "all", "a%d", "lo")),
    *(
        ([{"mac": mac, "addresses": ["192.0.2.11/24"]}], "[0].mac", spec.ERR_MAC)
        for mac in ("02:00:00:00:00", "02:00:00:00:00:0g", "01:00:5e:00:00:01", "00:00:00:00:00:00")
    ),
    ([dict(BOND, mac="02:00:00:00:00:0a")], "[0].mac", spec.ERR_MAC_VIRTUAL),
    ([dict(VLAN, name=None)], "[0].name", spec.ERR_NAME_VIRTUAL),
    ([A, dict(B, name="eth0")], "[1].name", spec.ERR_TWICE % "list[0].name"),
    (
        [dict(A, mac="02:00:00:00:00:0a"), dict(B, mac="02-00-00-00-00-0A")],
        "[1].mac",
        spec.ERR_TWICE % "list[0].mac",
    ),
    # addresses
    ([dict(A, addresses=["192.0.2.11"])], "[0].addresses[0]", members.ERR_NOT_CIDR),
    ([dict(A, addresses=["192.0.2.11/33"])], "[0].addresses[0]", members.ERR_NOT_CIDR),
    ([dict(A, addresses=["192.0.2.0/24"])], "[0].addresses[0]", members.ERR_NETWORK % "192.0.2.0/24"),
    ([dict(A, addresses=["192.0.2.255/24"])], "[0].addresses[0]", members.ERR_BROADCAST % "192.0.2.0/24"),
    ([dict(A, addresses=["2001:db8::/64"])], "[0].addresses[0]", members.ERR_NETWORK % "2001:db8::/64"),
    ([dict(A, addresses=["192.0.2.11/0"])], "[0].addresses[0]", spec.ERR_EVERYTHING),
    *(
        ([dict(A, addresses=[address])], "[0].addresses[0]", members.ERR_NOT_A_HOST % kind)
        for address, kind in (
            ("169.254.1.1/16", "link-local"),
            ("fe80::1/64", "link-local"),
            ("127.0.0.2/8", "loopback"),
            ("224.0.0.1/24", "multicast"),
            ("ff02::1/64", "multicast"),
            ("0.0.0.0/8", "unspecified"),
            ("240.0.0.1/8", "reserved"),
        )
    ),
    ([dict(A, addresses=[])], "[0].addresses", spec.ERR_NO_ADDRESSES),
    ([{"name": "eth7"}, VLAN], "[0].addresses", spec.ERR_NO_ADDRESSES),
    ([A, dict(B, addresses=["192.0.2.11/25"])], "[1].addresses[0]", spec.ERR_TWICE % "list[0].addresses[0]"),
    (
        [dict(A, addresses=["192.0.2.11/24", "192.0.2.11/24"])],
        "[0].addresses[1]",
        spec.ERR_TWICE % "list[0].addresses[0]",
    ),
    # gateways
    ([dict(A, gateway=["192.0.3.1"])], "[0].gateway[0]", spec.ERR_OFF_LINK % "192.0.2.0/24"),
    ([dict(A, gateway=["2001:db8::1"])], "[0].gateway[0]", spec.ERR_NO_FAMILY % 6),
    ([dict(A, gateway=["fe80::1"])], "[0].gateway[0]", spec.ERR_NO_FAMILY % 6),
    ([dict(A, gateway=["192.0.2.1/24"])], "[0].gateway[0]", spec.ERR_NOT_ADDRESS),
    ([dict(SIX, gateway=["fe80::1%eth0"])], "[0].gateway[0]", spec.ERR_NOT_ADDRESS),
    ([dict(A, gateway=["192.0.2.11"])], "[0].gateway[0]", spec.ERR_OWN_ADDRESS),
    ([dict(A, gateway=["192.0.2.0"])], "[0].gateway[0]", members.ERR_NETWORK % "192.0.2.0/24"),
    ([dict(A, gateway=["192.0.2.255"])], "[0].gateway[0]", members.ERR_BROADCAST % "192.0.2.0/24"),
    ([dict(A, gateway=["0.0.0.0"])], "[0].gateway[0]", members.ERR_NOT_A_HOST % "unspecified"),
    ([dict(A, gateway=["192.0.2.1", "192.0.2.2"])], "[0].gateway[1]", spec.ERR_TWO_GATEWAYS % 4),
    (
        [dict(A, gateway=["192.0.2.1"]), dict(B, gateway=["198.51.100.1"])],
        "[1].gateway",
        spec.ERR_TWO_DEFAULTS % ("eth0", 4),
    ),
    # routes
    ([route(to="203.0.113.0")], "[0].routes[0].to", spec.ERR_NOT_NETWORK),
    ([route(to="default")], "[0].routes[0].to", spec.ERR_NOT_NETWORK),
    ([route(to="224.0.0.0/4")], "[0].routes[0].to", spec.ERR_NOT_NETWORK),
    ([route(to="203.0.113.1/24")], "[0].routes[0].to", spec.ERR_HOST_BITS),
    ([route(to="0.0.0.0/0")], "[0].routes[0].to", spec.ERR_DEFAULT_ROUTE),
    ([route(to="0.0.0.0/0", table=254)], "[0].routes[0].to", spec.ERR_DEFAULT_ROUTE),
    ([route(to="2001:db8:9::/48", via=None)], "[0].routes[0].to", spec.ERR_NO_FAMILY % 6),
    ([route(via="192.0.3.254")], "[0].routes[0].via", spec.ERR_OFF_LINK % "192.0.2.0/24"),
    ([route(via="router")], "[0].routes[0].via", spec.ERR_NOT_ADDRESS),
    (
        [
            dict(
                SIX, addresses=["2001:db8::11/64", "192.0.2.11/24"], routes=[{"to": "203.0.113.0/24", "via": "fe80::1"}]
            )
        ],
        "[0].routes[0].via",
        spec.ERR_OTHER_FAMILY % "203.0.113.0/24",
    ),
    ([route(metric=-1)], "[0].routes[0].metric", spec.ERR_RANGE % (0, 2**32 - 1)),
    ([route(table=0)], "[0].routes[0].table", spec.ERR_RANGE % (1, 2**32 - 1)),
    ([route(table=255)], "[0].routes[0].table", spec.ERR_LOCAL_TABLE),
    (
        [dict(A, routes=[{"to": "203.0.113.0/24"}, {"to": "203.0.113.0/24", "via": "192.0.2.1"}])],
        "[0].routes[1].to",
        spec.ERR_TWICE % "list[0].routes[0]",
    ),
    (
        [dict(A, routes=[{"to": "203.0.113.0/24", "table": 9}, {"to": "203.0.113.0/24", "table": 9}])],
        "[0].routes[1].to",
        spec.ERR_TWICE % "list[0].routes[0]",
    ),
    # name servers
    ([dict(A, dns=["ns.example.com"])], "[0].dns[0]", spec.ERR_NOT_ADDRESS),
    ([dict(A, dns=["224.0.0.251"])], "[0].dns[0]", members.ERR_NOT_A_HOST % "multicast"),
    ([dict(A, dns=["2001:db8::53"])], "[0].dns[0]", spec.ERR_NO_FAMILY % 6),
    ([dict(A, dns_search=["a b"])], "[0].dns_search[0]", spec.ERR_DOMAIN),
    ([{"name": "eth0", "dns_search": ["example.com"]}, VLAN], "[0].dns_search", spec.ERR_SEARCH),
    # MTU and zone
    ([dict(A, mtu=575)], "[0].mtu", spec.ERR_RANGE % (576, 65536)),
    ([dict(A, mtu=65537)], "[0].mtu", spec.ERR_RANGE % (576, 65536)),
    ([dict(SIX, mtu=1279)], "[0].mtu", spec.ERR_MTU_IPV6),
    ([dict(A, zone="a b")], "[0].zone", spec.ERR_ZONE),
    ([dict(A, zone="a" * 18)], "[0].zone", spec.ERR_ZONE),
    # VLANs
    ([vlan(id=0)], "[0].vlan.id", spec.ERR_RANGE % (1, 4094)),
    ([vlan(id=4095)], "[0].vlan.id", spec.ERR_RANGE % (1, 4094)),
    ([vlan(parent="eth0.5")], "[0].vlan.parent", spec.ERR_OWN_PARENT),
    ([vlan(parent="a/b")], "[0].vlan.parent", spec.ERR_NAME),
    (
        [VLAN, dict(VLAN, name="other", addresses=["198.51.100.11/24"])],
        "[1].vlan.id",
        spec.ERR_SAME_VLAN % ("eth0.5", 5, "eth0"),
    ),
    (
        [BOND, dict(VLAN, addresses=["198.51.100.11/24"])],
        "[1].vlan.parent",
        spec.ERR_PARENT_IS_PORT % "bond0",
    ),
    ([BOND | {"vlan": {"parent": "eth9", "id": 5}}], "[0].vlan", spec.ERR_VLAN_AND_BOND),
    # bonds
    ([bond(ports=[])], "[0].bond.ports", spec.ERR_EMPTY),
    ([bond(ports=["a b"])], "[0].bond.ports[0]", spec.ERR_PORT),
    ([bond(ports=["eth0", "bond0"])], "[0].bond.ports[1]", spec.ERR_OWN_PORT),
    ([bond(ports=["eth0", "eth0"])], "[0].bond.ports[1]", spec.ERR_TWICE % "list[0].bond.ports"),
    ([bond(lacp_rate="fast")], "[0].bond.lacp_rate", spec.ERR_MODE_OPTION % "active-backup"),
    ([bond(xmit_hash_policy="layer2")], "[0].bond.xmit_hash_policy", spec.ERR_MODE_OPTION % "active-backup"),
    ([bond(min_links=1)], "[0].bond.min_links", spec.ERR_MODE_OPTION % "active-backup"),
    ([lacp(primary="eth0")], "[0].bond.primary", spec.ERR_MODE_OPTION % "802.3ad"),
    ([lacp(lacp_rate="quick")], "[0].bond.lacp_rate", spec.ERR_CHOICE % "slow, fast"),
    ([lacp(min_links=3)], "[0].bond.min_links", spec.ERR_MIN_LINKS % 2),
    ([bond(primary="eth7")], "[0].bond.primary", spec.ERR_PRIMARY % "eth0, eth1"),
    (
        [bond(ports=["02:00:00:00:00:0a", "eth1"], primary="02:00:00:00:00:0a")],
        "[0].bond.primary",
        spec.ERR_PRIMARY % "02:00:00:00:00:0a, eth1",
    ),
    ([bond(miimon_ms=0)], "[0].bond.miimon_ms", spec.ERR_RANGE % (10, 10000)),
    (
        [BOND, dict(BOND, name="bond1", addresses=["198.51.100.11/24"], bond={"mode": "802.3ad", "ports": ["eth1"]})],
        "[1].bond.ports",
        spec.ERR_PORT_TWICE % "bond0",
    ),
    ([BOND, B], "[0].bond.ports", spec.ERR_PORT_DECLARED % "list[1]"),
    (
        [bond(ports=["02:00:00:00:00:0a"]), dict(B, mac="02:00:00:00:00:0A")],
        "[0].bond.ports",
        spec.ERR_PORT_DECLARED % "list[1]",
    ),
]


@pytest.mark.parametrize(("entries", "path", "rule"), RULES, ids=[f"{path}-{rule[:25]}" for _e, path, rule in RULES])
def test_each_rule(entries: list[Any], path: str, rule: str) -> None:
    """One wrong thing, one problem: nothing that follows from it is listed too."""
    assert found(*entries) == [(path, rule)]


def test_a_ring_of_vlans() -> None:
    first = dict(VLAN, name="a", vlan={"parent": "b", "id": 1})
    second = dict(VLAN, name="b", addresses=["198.51.100.11/24"], vlan={"parent": "a", "id": 2})
    assert found(first, second) == [
        ("[0].vlan.parent", spec.ERR_LOOP % "a on b on a"),
        ("[1].vlan.parent", spec.ERR_LOOP % "b on a on b"),
    ]


def test_all_problems_at_once_and_no_consequences() -> None:
    entries = [
        {"name": "eth0", "addresses": ["192.0.2.11", "192.0.2.12/24"], "gateway": ["198.51.100.1"], "mtu": 1},
        {"name": "eth0", "address": ["192.0.2.12/24"], "dns": ["2001:db8::53"]},
        3,
    ]
    assert found(*entries) == [
        ("[0].mtu", spec.ERR_RANGE % (576, 65536)),
        # Whether the gateway is on link is not known while an address is not.
        ("[0].addresses[0]", members.ERR_NOT_CIDR),
        ("[1].address", spec.ERR_UNKNOWN_KEY),
        ("[2]", "expected a dictionary, found 3"),
        ("[1].name", spec.ERR_TWICE % "list[0].name"),
    ]


def test_the_error_holds_the_problems() -> None:
    with pytest.raises(spec.InputError) as caught:
        parse_interfaces([dict(A, mtu=1)])
    (problem,) = caught.value.problems
    assert problem == interface_problems([dict(A, mtu=1)])[0]
    assert str(caught.value) == problem.sentence()
    assert problem.sentence() == (
        "static_network_interfaces[0].mtu = 1: expected 576 to 65536. Fix: choose a value in this range."
    )


@pytest.mark.parametrize("value", [None, "eth0", {"name": "eth0"}, 3])
def test_what_is_no_list(value: Any) -> None:
    (problem,) = interface_problems(value)
    assert problem.variable == "static_network_interfaces"
    assert problem.rule.startswith("expected a list of interfaces, found ")


def test_fixes_name_what_was_meant() -> None:
    (problem,) = interface_problems([dict(A, gatway=["192.0.2.1"])])
    assert problem.fix == "write gateway instead"
    # YAML makes a number of it.
    (problem,) = interface_problems([{"mac": 37090800011, "addresses": ["192.0.2.11/24"]}])
    assert (problem.variable, problem.fix) == ("static_network_interfaces[0].mac", "put it in quotes")
    (problem,) = interface_problems([route(to="203.0.113.1/24")])
    assert problem.fix == "write 203.0.113.0/24"


@pytest.mark.parametrize("name", ["", "gpu01", "gpu01.lab.example.com", "a" * 63, "a-b"])
def test_good_host_names(name: str) -> None:
    assert spec.hostname_problems(name) == []


@pytest.mark.parametrize(
    "name",
    [
        "a_b",
        "-a",
        "a-",
        "a..b",
        "a.",
        "a" * 64,
        "localhost",
        "LocalHost",
        "localhost.localdomain",
        "localhost4",
        "ip6-localhost",
        "gpu01.localhost",
        "a b",
        "1",
        "0x7f.1",
        "10.0.0.011",
        "a\n",
        None,
        3,
        "a.b" * 22,
    ],
)
def test_bad_host_names(name: Any) -> None:
    assert [problem.variable for problem in spec.hostname_problems(name)] == ["static_network_hostname"]


def test_seconds_to_confirm() -> None:
    assert [spec.confirm_seconds_problems(value) for value in (15, 600, "60")] == [[], [], []]
    for value in (14, 601, "soon", "²", None, True, 60.5):
        (problem,) = spec.confirm_seconds_problems(value)
        assert problem.rule == "expected 15 to 600 seconds"
