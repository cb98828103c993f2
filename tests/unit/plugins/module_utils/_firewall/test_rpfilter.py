# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the strict filter of IPv6 drops what members send."""

from __future__ import annotations

import json

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import rpfilter
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall.rpfilter import Rail


def addresses(**cards: str) -> str:
    return json.dumps(
        [
            {
                "ifname": name,
                "addr_info": [{"local": held.partition("/")[0], "prefixlen": int(held.partition("/")[2])}, {}],
            }
            for name, held in cards.items()
        ]
    )


PEERS = ["2001:db8::1", "2001:db8::11", "2001:db8::2", "2001:db8:1::2"]


def test_rails_with_subnets_of_their_own_are_not_asked_about() -> None:
    assert rpfilter.rails(addresses(fab0="2001:db8::1/64", fab1="2001:db8:1::1/64"), PEERS) == []
    assert rpfilter.rails("[]", PEERS) == []


def test_two_cards_in_one_subnet() -> None:
    found = rpfilter.rails(addresses(fab0="2001:db8::1/64", fab1="2001:db8::11/64"), PEERS)
    assert found == [Rail("fab0", "2001:db8::1", "2001:db8::2"), Rail("fab1", "2001:db8::11", "2001:db8::2")]
    assert found[1].question()[-4:] == ("get", "2001:db8::2", "from", "2001:db8::11")


def test_a_subnet_without_members_does_not_matter() -> None:
    assert rpfilter.rails(addresses(eth0="2001:db8:9::1/64", eth1="2001:db8:9::2/64"), PEERS) == []


def test_only_a_rail_whose_answers_leave_through_another_card_is_named() -> None:
    good, bad = Rail("fab0", "2001:db8::1", "2001:db8::2"), Rail("fab1", "2001:db8::11", "2001:db8::2")
    ways = {good: '[{"dev":"fab0"}]', bad: '[{"dev":"fab0"}]'}
    (warning,) = rpfilter.warnings(ways)
    assert warning.startswith("firewalld drops what members send to 2001:db8::11 on fab1 (IPv6_rpfilter=strict)")
    assert "static_network_interfaces" in warning and "cluster_firewall_ipv6_rpfilter: loose" in warning
    assert rpfilter.warnings({good: '[{"dev":"fab0"}]', bad: '[{"dev":"fab1"}]'}) == []
    assert rpfilter.warnings({bad: ""}) == []
