# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node says about its network, read out of recorded outputs (see data/node/README.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import state
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.state import DefaultRoute, Details, Link

DATA = Path(__file__).parent / "data" / "node"
ETH0 = "77aac83b-5684-577a-b2bf-b2103dcc6ab1"
LO = "fc3868a4-1236-4043-a697-e8db8d8e5296"


def data(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def node(ssh_address: str = "", links: str = "links.json") -> state.NodeState:
    outputs = {"links": data(links), "routes4": data("routes4.json"), "routes6": "", "active": data("active.txt")}
    files = {
        "/proc/sys/net/ipv4/conf/eth0/arp_ignore": "1\n",
    }
    listed = [
        "/usr/lib/firewalld/zones/public.xml",
        "/etc/firewalld/zones/public.xml",
        "/etc/firewalld/zones/lab.xml",
        "/etc/sysconfig/network-scripts/keys-eth0",
    ]
    return state.make_state(outputs, files, listed, ssh_address)


def test_links_of_a_node() -> None:
    links = state.parse_links(data("links.json"))
    assert list(links) == ["lo", "eth0", "fab0"]
    assert links["eth0"] == Link(
        name="eth0",
        type="ether",
        kind="veth",
        mac="02:67:70:10:00:02",
        mtu=1500,
        min_mtu=68,
        max_mtu=65535,
        addresses=frozenset({"198.18.10.12/24", "fe80::67:70ff:fe10:2/64"}),
    )
    assert links["eth0"].hosts == {"198.18.10.12", "fe80::67:70ff:fe10:2"}
    assert [link.name for link in links.values() if link.is_card] == ["eth0", "fab0"]
    assert state.parse_links("") == {}


def test_links_that_stand_on_others() -> None:
    links = state.parse_links(data("links_stacked.json"))
    assert [link.name for link in links.values() if link.is_card] == ["eth0", "eth1", "eth2"]
    # The bond gave all of them one address.
    assert [links[name].mac for name in ("eth0", "eth1", "eth2")] == [f"02:00:00:00:00:1{n}" for n in range(3)]
    assert links["eth0"].master == "bond0"
    assert (links["bond0"].kind, links["bond0"].master, links["bond0"].parent) == ("bond", "", "")
    # In one spelling, and only those that are in force.
    assert links["bond0"].addresses == {"192.0.2.11/24", "2001:db8::3/64"}
    vlan = links["bond0.100"]
    assert (vlan.kind, vlan.parent, vlan.vlan_id) == ("vlan", "bond0", 100)


def test_the_other_end_of_a_virtual_cable_is_no_parent() -> None:
    text = '[{"ifname": "va", "link": "vb", "link_type": "ether", "linkinfo": {"info_kind": "veth"}}]'
    assert state.parse_links(text)["va"].parent == ""


def test_default_routes() -> None:
    assert state.parse_default_routes(data("routes4.json"), 4) == [
        DefaultRoute(4, "va", "192.0.2.1"),
        DefaultRoute(4, "va", "192.0.2.2"),
        DefaultRoute(4, "va", "192.0.2.3"),
    ]
    assert state.parse_default_routes(data("routes6.json"), 6) == [
        DefaultRoute(6, "va", "fe80::2"),
        DefaultRoute(6, "va", "fe80::1"),
    ]
    assert state.parse_default_routes("", 4) == []
    assert state.parse_default_routes('[{"type": "unreachable", "dst": "default", "flags": []}]', 6) == []
    on_link = '[{"dst": "default", "dev": "ppp0"}, {"dst": "default", "via": {"host": "fe80::1"}, "dev": "e"}]'
    assert state.parse_default_routes(on_link, 4) == [DefaultRoute(4, "ppp0", ""), DefaultRoute(4, "e", "fe80::1")]


def test_active_profiles() -> None:
    assert state.parse_active(data("active.txt")) == {"eth0": ETH0, "lo": LO}
    # A VPN stands at the device below it, a profile that is starting may have no device.
    assert state.parse_active("a:eth0:vlan\nb:eth0:vpn\nc::bond\n") == {"eth0": "a"}


def test_details() -> None:
    assert state.parse_details(data("details.txt")) == {
        ETH0: Details(True, "", {4: "manual", 6: "link-local"}),
        LO: Details(False, "", {4: "manual", 6: "manual"}),
    }
    assert state.parse_details("") == {}
    with_zone = "connection.uuid:a\nconnection.autoconnect:yes\nconnection.zone:internal\nipv4.method:auto\n"
    assert state.parse_details(with_zone) == {"a": Details(True, "internal", {4: "auto", 6: ""})}


def test_the_command_for_details_asks_for_all_at_once() -> None:
    argv = state.details_command(["a", "b"])
    assert argv[:2] == ("nmcli", "-t")
    assert argv[-4:] == ("uuid", "a", "uuid", "b")


def test_the_whole_state() -> None:
    found = node("198.18.10.12")
    assert found.ssh_interface == "eth0"
    assert found.zones == ["lab", "public"]
    assert found.sysctl("net/ipv4/conf/eth0/arp_ignore") == "1"
    assert found.sysctl("net/ipv4/conf/eth0/rp_filter") == ""
    assert found.default_routes[0] == DefaultRoute(4, "va", "192.0.2.1")
    assert found.active == {"eth0": ETH0, "lo": LO}
    assert state.with_details(found, data("details.txt")).details[ETH0].autoconnect


@pytest.mark.parametrize(
    ("address", "interface"),
    [
        ("", ""),
        ("192.0.2.99", ""),
        ("fe80::67:70ff:fe10:2%eth0", "eth0"),
        ("FE80::67:70ff:fe10:2", "eth0"),
        # A VLAN may have the link-local address of its card.
        ("fe80::67:70ff:fe10:2%fab0", "fab0"),
        ("no address", ""),
    ],
)
def test_where_the_ssh_connection_arrives(address: str, interface: str) -> None:
    assert node(address).ssh_interface == interface


def test_commands_only_read() -> None:
    for argv in state.COMMANDS.values():
        assert argv[0] in ("ip", "nmcli")
        assert not {"add", "del", "set", "up", "down", "modify", "load", "reload"} & set(argv)


def test_files_of_others_are_not_read() -> None:
    """Keyfiles of others may hold passwords, and so do keys-*."""
    assert not [one for one in state.PATTERNS if one.endswith("system-connections/*.nmconnection") or "keys-" in one]
