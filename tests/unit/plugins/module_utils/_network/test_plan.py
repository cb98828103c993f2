# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done to a node, what is left alone, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import keyfile, plan, rails, spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.spec import Interface, parse_interfaces
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.state import (
    DefaultRoute,
    Details,
    Link,
    NodeState,
)

FOREIGN = "f0000000-0000-4000-8000-000000000000"
IFCFG = "/etc/sysconfig/network-scripts"
ETH0 = {"name": "eth0", "addresses": ["192.0.2.11/24"]}
ETH1 = {"name": "eth1", "addresses": ["198.51.100.11/24"]}
BOND = {"name": "bond0", "addresses": ["192.0.2.11/24"], "bond": {"mode": "active-backup", "ports": ["eth0", "eth1"]}}
TAGGED = {"name": "eth0.5", "addresses": ["203.0.113.11/24"], "vlan": {"parent": "eth0", "id": 5}}


def link(name: str, *addresses: str, **more: Any) -> Link:
    mac = f"02:00:00:00:00:{ord(name[-1]):02x}"
    return Link(**{"name": name, "mac": mac, "min_mtu": 68, "max_mtu": 9978, "addresses": frozenset(addresses), **more})


LO = link("lo", "127.0.0.1/8", type="loopback", mac="00:00:00:00:00:00")
CARDS = [LO, link("eth0"), link("eth1"), link("eth2")]


def node(*links: Link, **more: Any) -> NodeState:
    """A node with three cards without configuration, unless said otherwise."""
    found = {one.name: one for one in (*CARDS, *links)}
    return NodeState(**{"links": found, "listed": frozenset(["/usr/lib/firewalld/zones/internal.xml"]), **more})


def made(entries: list[dict[str, Any]], state: NodeState) -> plan.Plan:
    return plan.make_plan(parse_interfaces(entries), state)


def after(entries: list[dict[str, Any]], state: NodeState) -> NodeState:
    """The node once the plan was carried out."""
    done = made(entries, state)
    assert done.problems == []
    links, active, files = dict(state.links), dict(state.active), dict(state.files)
    routes = list(state.default_routes)
    for path in done.set_aside:
        del files[path]
    for target in done.targets:
        described = target.interface
        old = links.get(target.name, link(target.name, kind="bond" if described.bond else "vlan"))
        if described.vlan:
            old = replace(old, parent=described.vlan.parent, vlan_id=described.vlan.id)
        links[target.name] = replace(old, mtu=described.mtu or old.mtu, addresses=frozenset(described.addresses))
        active[target.name] = target.uuid
        for port, file in zip(target.ports, target.keyfiles[1:]):
            links[port] = replace(links[port], master=target.name, addresses=frozenset())
            active[port] = file.uuid
        routes = [one for one in routes if one.device not in target.names]
        routes += [DefaultRoute(6 if ":" in text else 4, target.name, text) for text in described.gateways or ()]
    files.update({file.path: file.text for file in done.profiles})
    if done.sysctl:
        files[rails.SYSCTL_PATH] = done.sysctl["text"]
        files.update({f"/proc/sys/{key}": f"{value}\n" for key, value in done.sysctl["values"].items()})
    return replace(state, links=links, active=active, files=files, default_routes=tuple(routes))


def problems(entries: list[dict[str, Any]], state: NodeState) -> list[tuple[str, str]]:
    """Path below the list and rule."""
    found = made(entries, state).problems
    assert all(problem.rule and problem.fix for problem in found)
    prefix = len("static_network_interfaces")
    return [(problem.variable[prefix:], problem.rule) for problem in found]


EVERYTHING = [
    dict(ETH0, gateway=["192.0.2.1"], mtu=9000, zone="internal", dns=["192.0.2.53"]),
    {"mac": link("eth1").mac, "addresses": ["192.0.2.12/24", "2001:db8::12/64"], "mtu": 9000},
    {"name": "bond0", "bond": {"mode": "802.3ad", "ports": ["eth2"]}},
    {"name": "bond0.7", "addresses": ["203.0.113.11/24"], "vlan": {"parent": "bond0", "id": 7}},
]


# --- nothing to do, something to do ---------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [[], [ETH0], [BOND], [ETH0, TAGGED], EVERYTHING], ids=len)
def test_a_second_run_has_nothing_to_do(entries: list[dict[str, Any]]) -> None:
    done = made(entries, after(entries, node()))
    assert (done.changed, done.problems, done.left_alone, done.activated, done.diffs()) == (False, [], [], [], [])
    assert [name for name, value in done.job().items() if value] == []


def test_a_new_card() -> None:
    routes = [{"to": f"203.0.113.{first}/25", "via": "192.0.2.2"} for first in (0, 128)]
    routes += [{"to": "198.51.100.0/24", "via": "192.0.2.1"}, {"to": "198.51.100.0/25"}]
    done = made([dict(ETH0, mtu=9000, gateway=["192.0.2.1"], routes=routes)], node())
    (file,) = done.profiles
    assert (done.changed, done.activated, done.left_alone) == (True, ["eth0"], [])
    assert done.job() == {
        "profiles": [{"name": "gpu-cluster-eth0.nmconnection", "uuid": file.uuid, "text": file.text}],
        "activate": [{"uuid": file.uuid, "interface": "eth0"}],
        "expect": [{"interface": "eth0", "addresses": ["192.0.2.11/24"], "mtu": 9000}],
        "conflicts": [{"interface": "eth0", "address": "192.0.2.11"}],
        "routers": [
            {"interface": "eth0", "router": "192.0.2.1", "to": ""},
            {"interface": "eth0", "router": "192.0.2.2", "to": "203.0.113.0/25"},
        ],
        "mtu_probes": [{"interface": "eth0", "mtu": 9000, "targets": ["192.0.2.1"]}],
        "sysctl": None,
        "set_aside": [],
    }
    assert done.diffs() == [
        {"before_header": file.path, "after_header": file.path, "before": "", "after": file.text},
    ]


def test_probes() -> None:
    """No probe without an MTU; who holds an address already is asked about it by nobody, and IPv6 asks by itself."""
    job = made([dict(ETH0, addresses=["192.0.2.11/24", "192.0.2.12/24", "2001:db8::1/64"])], node()).job()
    assert job["mtu_probes"] == []
    assert [entry["address"] for entry in job["conflicts"]] == ["192.0.2.11", "192.0.2.12"]
    held = node(link("eth0", "192.0.2.11/25"))
    assert made([ETH0], held).job()["conflicts"] == []


@pytest.mark.parametrize(
    "broken",
    [
        {"active": {}},
        {"active": {"eth0": FOREIGN}},
        {"files": {}},
        {"links": {"lo": LO, "eth0": link("eth0", "192.0.2.11/24")}},
        {"links": {"lo": LO, "eth0": link("eth0", "192.0.2.11/16", mtu=9000)}},
        {"default_routes": ()},
        {"default_routes": (DefaultRoute(4, "eth0", "192.0.2.2"),)},
        {"default_routes": (DefaultRoute(6, "eth0", "192.0.2.1"),)},
    ],
    ids=["inactive", "other profile", "no file", "mtu", "prefix", "no route", "other router", "other family"],
)
def test_each_difference_activates(broken: dict[str, Any]) -> None:
    entries = [dict(ETH0, mtu=9000, gateway=["192.0.2.1"])]
    right = after(entries, node())
    done = made(entries, replace(right, **broken))
    assert (done.problems, done.activated) == ([], ["eth0"])
    assert bool(done.profiles) == ("files" in broken)


def test_additional_addresses_do_not_activate() -> None:
    """IPv6 link-local ones, and those that somebody added for an hour."""
    right = after([ETH0], node())
    more = replace(right, links={**right.links, "eth0": link("eth0", "192.0.2.11/24", "192.0.2.99/24", "fe80::1/64")})
    assert not made([ETH0], more).changed


def test_a_default_route_that_was_dropped_is_gone() -> None:
    entries = [dict(ETH0, gateway=[])]
    right = after(entries, node())
    assert made(entries, replace(right, default_routes=(DefaultRoute(4, "eth0", "192.0.2.1"),))).activated == ["eth0"]


def test_ports() -> None:
    right = after([BOND], node())
    assert made([BOND], node()).activated == ["bond0"]
    assert len(made([BOND], node()).profiles) == 3
    file = made([BOND], node()).profiles[2]
    assert made([BOND], replace(right, files={**right.files, file.path: "old"})).profiles == (file,)
    assert made([BOND], replace(right, files={**right.files, file.path: "old"})).activated == ["bond0"]
    # That they are ports of this bond already is no obstacle.
    assert made([BOND], replace(right, files={})).problems == []
    taken = replace(right, active={**right.active, "eth1": FOREIGN})
    assert made([BOND], taken).activated == ["bond0"]
    # Without a carrier a port has no active profile; activating the bond again would not help it.
    unplugged = replace(right, active={name: uuid for name, uuid in right.active.items() if name != "eth1"})
    assert not made([BOND], unplugged).changed


# --- order and dependence -------------------------------------------------------------------------------------------


def test_the_order_of_activation() -> None:
    entries = [
        {"name": "qinq", "addresses": ["203.0.113.1/24"], "vlan": {"parent": "bond0.7", "id": 8}},
        {"name": "bond0.7", "vlan": {"parent": "bond0", "id": 7}},
        {"name": "bond0", "bond": {"mode": "802.3ad", "ports": ["eth2"]}},
        ETH1,
        ETH0,
    ]
    assert made(entries, node()).activated == ["eth1", "eth0", "bond0", "bond0.7", "qinq"]


def test_what_stands_on_something_that_changes_is_activated_again() -> None:
    entries = [
        {"name": "qinq", "addresses": ["198.51.100.1/24"], "vlan": {"parent": "eth0.5", "id": 8}},
        TAGGED,
        ETH0,
        {"name": "eth1.5", "addresses": ["203.0.113.99/25"], "vlan": {"parent": "eth1", "id": 5}},
    ]
    right = after(entries, node())
    done = made([*entries[:2], dict(ETH0, mtu=9000), entries[3]], right)
    assert done.activated == ["eth0", "eth0.5", "qinq"]
    assert [file.name for file in done.profiles] == ["gpu-cluster-eth0.nmconnection"]
    assert [entry["interface"] for entry in done.job()["expect"]] == ["eth0", "eth0.5", "qinq"]


def test_an_address_that_moves_is_given_up_first() -> None:
    before = [ETH0, ETH1]
    swapped = [dict(ETH0, addresses=["198.51.100.11/24"]), dict(ETH1, addresses=["203.0.113.11/24"])]
    done = made(swapped, after(before, node()))
    assert done.activated == ["eth1", "eth0"]
    assert done.job()["conflicts"] == [{"interface": "eth1", "address": "203.0.113.11"}]


def test_an_address_that_is_wanted_elsewhere_is_taken_away() -> None:
    """Somebody added it by hand to an interface that is as declared otherwise."""
    right = after([ETH0], node())
    extra = replace(right, links={**right.links, "eth0": link("eth0", "192.0.2.11/24", "198.51.100.11/24")})
    assert made([ETH0, ETH1], extra).activated == ["eth0", "eth1"]


# --- left alone -----------------------------------------------------------------------------------------------------

STATIC = Details(True, "", {4: "manual", 6: "link-local"})


def foreign(details: Details | None = STATIC, **more: Any) -> NodeState:
    """A node whose eth0 somebody else has configured, with the ssh connection and the default route."""
    return node(
        link("eth0", "192.0.2.11/24", "2001:db8::11/64", "fe80::1/64"),
        **{
            "active": {"eth0": FOREIGN},
            "default_routes": (DefaultRoute(4, "eth0", "192.0.2.1"),),
            "ssh_interface": "eth0",
            "details": {FOREIGN: details} if details else {},
            **more,
        },
    )


@pytest.mark.parametrize(
    "entry",
    [
        ETH0,
        dict(ETH0, mtu=1500),
        dict(ETH0, gateway=["192.0.2.1"]),
        dict(ETH0, dns=[]),
        {"mac": link("eth0").mac} | ETH0,
    ],
)
def test_what_is_right_and_static_is_left_alone(entry: dict[str, Any]) -> None:
    done = made([entry], foreign())
    assert (done.changed, done.problems) == (False, [])
    assert done.left_alone == [
        "eth0 has all that is wanted from the profile that somebody else made, and was left alone"
    ]
    assert plan.details_needed(parse_interfaces([entry]), foreign(None)) == [FOREIGN]


def test_left_alone_in_its_zone() -> None:
    entry = dict(ETH0, zone="internal")
    assert made([entry], foreign(replace(STATIC, zone="internal"))).left_alone
    assert not made([dict(entry, gateway=["192.0.2.1"])], foreign()).left_alone


@pytest.mark.parametrize(
    "change",
    [
        {"addresses": ["192.0.2.11/25"]},
        {"mtu": 9000},
        {"gateway": []},
        {"gateway": ["192.0.2.2"]},
        {"dns": ["192.0.2.53"]},
        {"dns_search": ["example.com"]},
        {"routes": [{"to": "203.0.113.0/24"}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_not_right_is_taken_over(change: dict[str, Any]) -> None:
    entry = {"gateway": ["192.0.2.1"], **ETH0, **change}
    done = made([entry], foreign())
    assert (done.problems, done.left_alone, done.activated) == ([], [], ["eth0"])
    assert plan.details_needed(parse_interfaces([entry]), foreign(None)) == []


@pytest.mark.parametrize(
    ("entry", "details"),
    [
        (ETH0, Details(True, "", {4: "auto", 6: "manual"})),
        (dict(ETH0, addresses=["2001:db8::11/64"]), Details(True, "", {4: "manual", 6: "auto"})),
        # NetworkManager's own picture of what was set up by hand.
        (ETH0, Details(False, "", {4: "manual", 6: "manual"})),
        (ETH0, None),
    ],
)
def test_dhcp_and_what_will_not_come_back_is_not_left_alone(entry: dict[str, Any], details: Details | None) -> None:
    done = made([dict(entry, gateway=["192.0.2.1"] if "192.0.2.11/24" in entry["addresses"] else [])], foreign(details))
    assert done.left_alone == []


def test_rails_are_not_left_alone() -> None:
    done = made([dict(ETH0, gateway=["192.0.2.1"]), {"name": "eth1", "addresses": ["192.0.2.12/24"]}], foreign())
    assert (done.left_alone, done.activated) == ([], ["eth0", "eth1"])


def test_whoever_holds_the_address_of_another_is_not_left_alone() -> None:
    entries = [
        dict(ETH0, addresses=["2001:db8::11/64"], gateway=[]),
        {"name": "eth1", "addresses": ["192.0.2.11/24"]},
    ]
    details = Details(True, "", {4: "manual", 6: "manual"})
    state = foreign(details, default_routes=())
    assert made(entries[:1], state).left_alone
    assert made(entries, state).left_alone == []


def test_a_bond_of_somebody_else_may_serve_as_it_is() -> None:
    state = node(link("bond0", "192.0.2.11/24", kind="bond"), active={"bond0": FOREIGN}, details={FOREIGN: STATIC})
    assert made([dict(ETH0, name="bond0")], state).left_alone
    # With the option bond it is ours to make.
    assert made([BOND], state).left_alone == []


def test_what_is_left_alone_keeps_its_files() -> None:
    files = {f"{IFCFG}/ifcfg-eth0": "DEVICE=eth0\n"}
    assert not made([ETH0], foreign(files=files)).changed


def test_our_own_profiles_are_not_somebody_elses() -> None:
    """A profile that an earlier run made for the same card, under its name, is replaced."""
    earlier = after([ETH0], node())
    entry = {"mac": link("eth0").mac, "addresses": ["192.0.2.11/24"]}
    assert plan.details_needed(parse_interfaces([entry]), earlier) == []
    assert made([entry], earlier).activated == ["eth0"]
    # Nor is one whose file somebody removed while it was active.
    assert plan.details_needed(parse_interfaces([ETH0]), replace(earlier, files={})) == []


# --- refused --------------------------------------------------------------------------------------------------------


def test_unknown_interfaces() -> None:
    present = "bond9, eth0, eth1, eth2"
    state = node(link("bond9", kind="bond", mac=link("eth0").mac))
    assert problems([dict(ETH0, name="eth7")], state) == [("[0].name", plan.ERR_UNKNOWN % present)]
    assert problems([dict(BOND, bond={"mode": "802.3ad", "ports": ["eth0", "eth8"]})], state) == [
        ("[0].bond.ports[1]", plan.ERR_UNKNOWN % present)
    ]
    vlan = dict(TAGGED, vlan={"parent": "eth7", "id": 5})
    assert problems([vlan], state) == [("[0].vlan.parent", plan.ERR_NO_PARENT % present)]
    # A parent that the same list makes.
    assert problems([dict(BOND, addresses=[]), dict(TAGGED, vlan={"parent": "bond0", "id": 5})], node()) == []


def test_hardware_addresses() -> None:
    mac = link("eth0").mac
    cards = ", ".join(f"eth{n} 02:00:00:00:00:3{n}" for n in range(3))
    entry = {"mac": "02:00:00:00:00:99", "addresses": ["192.0.2.11/24"]}
    assert problems([entry], node()) == [("[0].mac", plan.ERR_NO_MAC % cards)]
    # A VLAN and a bond have the address of a card; they are none.
    state = node(link("eth0.9", kind="vlan", mac=mac), link("bond9", kind="bond", mac=mac))
    assert made([dict(entry, mac=mac)], state).activated == ["eth0"]
    assert problems([dict(entry, mac=mac)], node(link("eth1", mac=mac))) == [
        ("[0].mac", plan.ERR_SEVERAL % "eth0, eth1")
    ]
    assert problems([dict(entry, mac=mac, name="eth1")], node()) == [
        ("[0].mac", plan.ERR_OTHER_NAME % ("eth0", "eth1"))
    ]
    assert problems([ETH0, {"mac": mac, "addresses": ["203.0.113.1/24"]}], node()) == [
        ("[1]", plan.ERR_SAME_CARD % "static_network_interfaces[0]")
    ]
    bond = {"mode": "802.3ad", "ports": ["02:00:00:00:00:99"]}
    assert problems([dict(BOND, bond=bond)], node()) == [("[0].bond.ports[0]", plan.ERR_NO_MAC % cards)]


def test_the_card_of_a_hardware_address_is_called_as_it_is_now() -> None:
    entry = {"mac": link("eth0").mac, "addresses": ["192.0.2.11/24"]}
    done = made([entry], node())
    assert done.job()["activate"] == [{"uuid": done.profiles[0].uuid, "interface": "eth0"}]
    assert "interface-name" not in done.profiles[0].text
    renamed = after([entry], node())
    links = {"lo": LO, "ens9": replace(renamed.links["eth0"], name="ens9")}
    assert not made([entry], replace(renamed, links=links, active={"ens9": renamed.active["eth0"]})).changed


def test_what_is_no_card() -> None:
    state = node(link("ib0", type="infiniband"), link("br0", kind="bridge"), link("eth2", master="br0"))
    assert problems([dict(ETH0, name="ib0")], state) == [
        ("[0].name", plan.ERR_NOT_ETHERNET % ("ib0", "of the type infiniband"))
    ]
    assert problems([dict(ETH0, name="br0")], state) == [("[0].name", plan.ERR_NOT_ETHERNET % ("br0", "bridge"))]
    assert problems([dict(ETH0, name="eth2")], state) == [("[0].name", plan.ERR_IS_PORT % ("eth2", "br0"))]
    bond = {"mode": "active-backup", "ports": ["eth0", "eth2", "br0"]}
    assert problems([dict(BOND, bond=bond)], state) == [
        ("[0].bond.ports[1]", plan.ERR_IS_PORT % ("eth2", "br0")),
        ("[0].bond.ports[2]", plan.ERR_NOT_ETHERNET % ("br0", "bridge")),
    ]


def test_a_bond_or_vlan_where_something_else_is() -> None:
    assert problems([dict(BOND, name="eth2")], node()) == [("[0].name", plan.ERR_OTHER_KIND % ("eth2", "a card"))]
    bridge = node(link("eth0.5", kind="bridge"))
    assert problems([TAGGED], bridge) == [("[0].name", plan.ERR_OTHER_KIND % ("eth0.5", "bridge"))]
    other = node(link("eth0.5", kind="vlan", parent="eth0", vlan_id=6))
    assert problems([TAGGED], other) == [("[0].vlan", plan.ERR_OTHER_VLAN % ("eth0.5", 6, "eth0"))]
    elsewhere = node(link("eth0.5", kind="vlan", parent="eth1", vlan_id=5))
    assert problems([TAGGED], elsewhere) == [("[0].vlan", plan.ERR_OTHER_VLAN % ("eth0.5", 5, "eth1"))]
    same = node(link("eth0.5", kind="vlan", parent="eth0", vlan_id=5))
    assert problems([TAGGED], same) == []


def test_ports_that_are_declared_under_another_spelling() -> None:
    mac = link("eth0").mac
    bond = {"mode": "active-backup", "ports": [mac, "eth1"]}
    entries = [dict(BOND, bond=bond), dict(ETH0, addresses=["203.0.113.1/24"])]
    assert problems(entries, node()) == [
        ("[0].bond.ports[0]", plan.ERR_PORT_DECLARED % ("eth0", "static_network_interfaces[1]"))
    ]
    twice = dict(BOND, bond={"mode": "active-backup", "ports": [mac, "eth0"]})
    assert problems([twice], node()) == [
        ("[0].bond.ports[1]", plan.ERR_PORT_DECLARED % ("eth0", "static_network_interfaces[0]"))
    ]
    assert problems([dict(BOND, bond=bond), TAGGED], node()) == [("[1].vlan.parent", spec.ERR_PARENT_IS_PORT % "bond0")]


def test_mtu() -> None:
    small = node(link("eth1", min_mtu=1280, max_mtu=1500), link("eth2", max_mtu=0))
    assert problems([dict(ETH1, mtu=9000)], small) == [("[0].mtu", plan.ERR_DRIVER_MTU % ("eth1", 1280, "1500"))]
    assert problems([dict(ETH1, mtu=1279)], small) == [("[0].mtu", plan.ERR_DRIVER_MTU % ("eth1", 1280, "1500"))]
    assert problems([dict(ETH1, name="eth2", mtu=65000)], small) == []
    assert problems([dict(BOND, mtu=9000)], small) == [("[0].mtu", plan.ERR_DRIVER_MTU % ("eth1", 1280, "1500"))]


def test_mtu_of_a_vlan() -> None:
    assert problems([dict(TAGGED, mtu=9000)], node()) == [("[0].mtu", plan.ERR_PARENT_MTU % ("eth0", 1500))]
    assert problems([dict(TAGGED, mtu=9000), dict(ETH0, mtu=9000)], node()) == []
    assert problems([dict(TAGGED, mtu=9000), ETH0], node(link("eth0", mtu=9000))) == []
    new = [dict(BOND, addresses=[]), dict(TAGGED, mtu=9000, vlan={"parent": "bond0", "id": 5})]
    assert problems(new, node()) == [("[1].mtu", plan.ERR_PARENT_MTU % ("bond0", 1500))]


def test_zones() -> None:
    assert problems([dict(ETH0, zone="internal")], node()) == []
    assert problems([dict(ETH0, zone="nosuch")], node()) == [("[0].zone", plan.ERR_ZONE % "internal")]
    none = node(listed=frozenset(["/etc/sysconfig/network-scripts/keys-eth0"]))
    assert problems([dict(ETH0, zone="nosuch")], none) == [("[0].zone", plan.ERR_ZONE % "none: it is not installed")]


def test_an_address_on_an_interface_that_is_not_declared() -> None:
    held = node(link("eth1", "192.0.2.11/16"))
    assert problems([ETH0], held) == [("[0].addresses[0]", plan.ERR_HELD % "eth1")]
    assert problems([ETH0, ETH1], held) == []
    # A port of the bond that gets it.
    assert problems([BOND], held) == []


def test_a_default_route_is_not_lost_by_silence() -> None:
    state = foreign(ssh_interface="")
    wanted = dict(ETH0, mtu=9000)
    rule = plan.ERR_GATEWAY_UNSAID % "eth0 has the default route via 192.0.2.1"
    assert problems([wanted], state) == [("[0].gateway", rule)]
    assert made([wanted], state).problems[0].fix == (
        "declare gateway: [192.0.2.1] to keep it, or gateway: [] to go without, or take the interface out of the list"
    )
    for gateway in ([], ["192.0.2.1"], ["192.0.2.2"]):
        assert problems([dict(wanted, gateway=gateway)], state) == []
    assert problems([BOND], state) == [("[0].gateway", rule)]


def test_the_way_of_the_ssh_connection_is_not_lost_by_silence() -> None:
    state = foreign(default_routes=())
    wanted = dict(ETH0, mtu=9000)
    rule = plan.ERR_GATEWAY_UNSAID % "eth0 carries Ansible's own ssh connection"
    assert problems([wanted], state) == [("[0].gateway", rule)]
    assert problems([BOND], state) == [("[0].gateway", rule)]
    assert problems([dict(wanted, gateway=[])], state) == []
    # Our own profile has said before what it is about.
    ours = after([dict(wanted, gateway=[])], state)
    assert problems([dict(ETH0, mtu=8000)], ours) == []


def test_two_default_routes() -> None:
    wanted = dict(ETH0, gateway=["192.0.2.1"])
    other = node(default_routes=(DefaultRoute(4, "eth1", "198.51.100.1"),))
    assert problems([wanted], other) == [("[0].gateway", plan.ERR_OTHER_DEFAULT % ("eth1", 4, "198.51.100.1"))]
    assert problems([wanted, dict(ETH1, gateway=[])], other) == []
    assert problems([dict(BOND, gateway=["192.0.2.1"])], other) == []
    six = node(default_routes=(DefaultRoute(6, "eth1", "fe80::1"),))
    assert problems([wanted], six) == []


def test_two_default_routes_of_which_one_would_be_left_alone() -> None:
    entries = [ETH0, dict(ETH1, gateway=["198.51.100.1"])]
    assert problems(entries, foreign()) == [("[1].gateway", plan.ERR_OTHER_DEFAULT % ("eth0", 4, "192.0.2.1"))]


def test_all_problems_at_once() -> None:
    entries = [
        dict(ETH0, zone="a", mtu=65000),
        dict(ETH1, name="eth7"),
        {"mac": "02:00:00:00:00:99", "addresses": ["203.0.113.1/24"]},
    ]
    found = made(entries, foreign(ssh_interface="")).problems
    assert [problem.variable[len("static_network_interfaces") :] for problem in found] == [
        "[1].name",
        "[2].mac",
        "[0].mtu",
        "[0].zone",
        "[0].gateway",
    ]


# --- files beside the profiles --------------------------------------------------------------------------------------


def test_ifcfg_files_are_set_aside() -> None:
    files = {
        f"{IFCFG}/ifcfg-eth0": "DEVICE=eth0\n",
        f"{IFCFG}/route-eth0": "203.0.113.0/24 via 192.0.2.1\n",
        f"{IFCFG}/ifcfg-p1": f"HWADDR={link('eth1').mac.upper()}\n",
        f"{IFCFG}/ifcfg-eth2": "DEVICE=eth2\n",
    }
    listed = frozenset([f"{IFCFG}/keys-eth0", f"{IFCFG}/keys-eth2"])
    done = made([BOND], node(files=files, listed=listed))
    assert done.set_aside == (
        f"{IFCFG}/ifcfg-eth0",
        f"{IFCFG}/ifcfg-p1",
        f"{IFCFG}/keys-eth0",
        f"{IFCFG}/route-eth0",
    )
    assert done.job()["set_aside"] == list(done.set_aside)
    assert {
        "before_header": f"{IFCFG}/ifcfg-eth0",
        "after_header": f"{IFCFG}/ifcfg-eth0 (set aside)",
        "before": "DEVICE=eth0\n",
        "after": "",
    } in done.diffs()


def test_an_ifcfg_file_alone_is_a_change() -> None:
    right = after([ETH0], node())
    done = made([ETH0], replace(right, files={**right.files, f"{IFCFG}/ifcfg-eth0": ""}))
    assert (done.changed, done.activated, done.profiles) == (True, [], ())


def test_profiles_of_ours_that_say_something_else_about_the_card_are_set_aside() -> None:
    """Two profiles of the same priority for one card: after a restart it might be the wrong one."""
    folder = keyfile.FOLDER
    earlier = after([ETH0, ETH1, {"mac": link("eth2").mac, "addresses": ["203.0.113.1/24"]}], node())
    assert made([BOND | {"gateway": []}], earlier).set_aside == (
        f"{folder}/gpu-cluster-eth0.nmconnection",
        f"{folder}/gpu-cluster-eth1.nmconnection",
    )
    by_name = {"name": "eth2", "addresses": ["203.0.113.1/24"]}
    assert made([by_name], earlier).set_aside == (f"{folder}/gpu-cluster-02-00-00-00-00-32.nmconnection",)


def test_profiles_of_ours_for_others_stay() -> None:
    earlier = after([ETH0, ETH1], node())
    assert not made([ETH0], earlier).changed
    bonded = after(
        [BOND, {"name": "eth2.5", "addresses": ["203.0.113.1/24"], "vlan": {"parent": "eth2", "id": 5}}], node()
    )
    nothing = made([], bonded)
    assert (nothing.changed, nothing.set_aside, nothing.activated) == (False, (), [])


# --- rails, host name -----------------------------------------------------------------------------------------------

RAILS = [ETH0, {"name": "eth1", "addresses": ["192.0.2.12/24"]}]


def test_rails() -> None:
    done = made(RAILS, node())
    sysctl = done.job()["sysctl"]
    assert sysctl["path"] == "/etc/sysctl.d/90-gpu-cluster-rails.conf"
    assert (sysctl["before"], sysctl["text"]) == ("", rails.sysctl_text(["eth0", "eth1"]))
    assert sysctl["values"] == rails.sysctl_values(["eth0", "eth1"])
    assert done.diffs()[-1]["after"] == sysctl["text"]
    assert "routing-rule1=priority 8001 from 192.0.2.12 table 8001" in done.profiles[1].text


@pytest.mark.parametrize("path", [rails.SYSCTL_PATH, "/proc/sys/net/ipv4/conf/eth1/rp_filter"])
def test_rails_whose_sysctl_differs(path: str) -> None:
    right = after(RAILS, node())
    done = made(RAILS, replace(right, files={**right.files, path: "0\n"}))
    assert (done.changed, done.activated) == (True, [])
    assert done.job()["sysctl"]["values"]["net/ipv4/conf/eth1/rp_filter"] == "2"


def test_rails_that_are_none_any_more() -> None:
    entries = [ETH0, ETH1]
    done = made(entries, after(RAILS, node()))
    assert done.sysctl == {
        "path": rails.SYSCTL_PATH,
        "text": "",
        "before": rails.sysctl_text(["eth0", "eth1"]),
        "values": {},
    }
    assert done.activated == ["eth0", "eth1"]


def test_rails_of_ipv6_need_no_sysctl() -> None:
    entries = [{"name": f"eth{n}", "addresses": [f"2001:db8::{n + 1}/64"]} for n in range(2)]
    assert made(entries, node()).sysctl is None


def test_the_plan_needs_no_details_of_what_is_ours() -> None:
    right = after(EVERYTHING, node())
    assert plan.details_needed(parse_interfaces(EVERYTHING), right) == []


def test_interfaces_made_without_a_list() -> None:
    """The core takes its own type; nothing needs the path of an entry."""
    done = plan.make_plan([Interface(name="eth0", addresses=("192.0.2.11/24",))], node())
    assert done.activated == ["eth0"]


def test_a_default_route_of_the_family_of_which_nothing_is_said_is_named() -> None:
    """A router of IPv6 announced itself, and gateway names the one of IPv4 only."""
    routes = (DefaultRoute(4, "eth0", "192.0.2.1"), DefaultRoute(6, "eth0", "fe80::1"))
    state = replace(foreign(), default_routes=routes)
    (sentence,) = made([dict(ETH0, gateway=["192.0.2.1"])], state).lost
    assert sentence.startswith("eth0 has the IPv6 default route via fe80::1,"), sentence
    # Both are named, none is wanted, or there is nothing to lose.
    both = dict(ETH0, addresses=[*ETH0["addresses"], "2001:db8::11/64"], gateway=["192.0.2.1", "fe80::1"])
    assert made([both], state).lost == [] and made([dict(ETH0, gateway=[])], state).lost == []
    assert made([dict(ETH0, gateway=["192.0.2.1"])], foreign()).lost == []
