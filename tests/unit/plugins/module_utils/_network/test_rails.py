# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interfaces that share a subnet, and those that do not."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import rails
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.rails import Rail
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.spec import Interface, Route


def interface(name: str, *addresses: str, **more: object) -> Interface:
    return Interface(name=name, addresses=addresses, **more)  # type: ignore[arg-type]


MANAGEMENT = interface("eno1", "198.51.100.11/24")
FIRST = interface("eth0", "192.0.2.11/24")
SECOND = interface("eth1", "192.0.2.12/24")


def test_one_subnet_for_each_interface_needs_nothing() -> None:
    assert rails.find([]) == {}
    assert rails.find([MANAGEMENT, FIRST]) == {}
    # Two addresses of one interface in one subnet are no rails, and neither are networks of other sizes.
    assert rails.find([interface("eth0", "192.0.2.11/24", "192.0.2.12/24"), MANAGEMENT]) == {}
    assert rails.find([FIRST, interface("eth1", "192.0.2.130/25")]) == {}


def test_tables_are_numbered_by_position() -> None:
    assert rails.find([FIRST, MANAGEMENT, SECOND]) == {"eth0": Rail(8000, (4,)), "eth1": Rail(8002, (4,))}


def test_families_are_looked_at_one_by_one() -> None:
    both = interface("eth0", "192.0.2.11/24", "2001:db8::11/64")
    six = interface("eth1", "198.51.100.12/24", "2001:db8::12/64")
    four = interface("eth2", "192.0.2.13/24", "2001:db8:1::13/64")
    assert rails.find([both, six, four]) == {
        "eth0": Rail(8000, (4, 6)),
        "eth1": Rail(8001, (6,)),
        "eth2": Rail(8002, (4,)),
    }
    assert rails.routes(six, 4, Rail(8001, (6,))) == rails.rules(six, 4, Rail(8001, (6,))) == []


def test_the_table_of_a_rail() -> None:
    rail = interface(
        "eth0",
        "192.0.2.11/24",
        "192.0.2.21/24",
        "203.0.113.11/25",
        "2001:db8::11/64",
        gateways=("192.0.2.1", "fe80::1"),
        routes=(
            Route("198.51.100.0/24", "192.0.2.254", 50),
            Route("198.51.100.128/25", "192.0.2.254", table=7),
            Route("192.0.2.0/24"),
            Route("2001:db8:9::/48", "fe80::2"),
        ),
    )
    assert rails.routes(rail, 4, Rail(8003, (4,))) == [
        Route("192.0.2.0/24", src="192.0.2.11", table=8003),
        Route("203.0.113.0/25", src="203.0.113.11", table=8003),
        Route("0.0.0.0/0", "192.0.2.1", table=8003),
        # Again here: a table with a default route answers for everything.
        Route("198.51.100.0/24", "192.0.2.254", 50, 8003),
    ]
    assert rails.rules(rail, 4, Rail(8003, (4,))) == [
        "priority 8003 from 192.0.2.11 table 8003",
        "priority 8003 from 192.0.2.21 table 8003",
        "priority 8003 from 203.0.113.11 table 8003",
    ]
    assert rails.routes(rail, 6, Rail(8003, (6,))) == [
        Route("2001:db8::/64", src="2001:db8::11", table=8003),
        Route("::/0", "fe80::1", table=8003),
        Route("2001:db8:9::/48", "fe80::2", None, 8003),
    ]


def test_without_a_gateway_the_table_has_no_default_route() -> None:
    assert rails.routes(FIRST, 4, Rail(8000, (4,))) == [Route("192.0.2.0/24", src="192.0.2.11", table=8000)]


def test_sysctl() -> None:
    assert rails.sysctl_values(["eth1", "eth0.5"]) == {
        "net/ipv4/conf/eth0.5/arp_ignore": "1",
        "net/ipv4/conf/eth0.5/arp_announce": "2",
        "net/ipv4/conf/eth0.5/rp_filter": "2",
        "net/ipv4/conf/eth1/arp_ignore": "1",
        "net/ipv4/conf/eth1/arp_announce": "2",
        "net/ipv4/conf/eth1/rp_filter": "2",
    }
    assert rails.sysctl_text([]) == ""
    assert rails.sysctl_text(["eth1", "eth0.5"]) == (
        "# Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost.\n"
        "# These interfaces share a subnet. Names of interfaces may hold dots, so the keys are written with slashes.\n"
        "\n"
        "# answer ARP only for the addresses of the card that was asked\n"
        "net/ipv4/conf/eth0.5/arp_ignore = 1\n"
        "net/ipv4/conf/eth1/arp_ignore = 1\n"
        "\n"
        "# ask by ARP with an address of the card that asks\n"
        "net/ipv4/conf/eth0.5/arp_announce = 2\n"
        "net/ipv4/conf/eth1/arp_announce = 2\n"
        "\n"
        "# accept a packet when its sender is reachable through any card (RFC 3704, loose)\n"
        "net/ipv4/conf/eth0.5/rp_filter = 2\n"
        "net/ipv4/conf/eth1/rp_filter = 2\n"
    )
