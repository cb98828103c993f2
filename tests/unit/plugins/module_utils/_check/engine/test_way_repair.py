# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that lead a node to its peers over the data network again."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import way_repair
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import make_view

NET, PEER = "192.0.2.0/24", "192.0.2.2"


def route(target: str, device: str = "", **more: Any) -> dict[str, Any]:
    plain = {"type": "unicast", "table": "main", "gateway": "", "source": "", "protocol": "boot", "metric": 0, "mtu": 0}
    return {**plain, "target": target, "device": device, **more}


def rule(priority: int, table: str = "", **more: Any) -> dict[str, Any]:
    plain = {"source": "all", "target": "all", "action": "", "further": False}
    return {**plain, "priority": priority, "table": table, **more}


USUAL = [rule(0, "local"), rule(32766, "main"), rule(32767, "default")]
OWN = route(NET, "fab0", source="192.0.2.1", protocol="kernel", metric=101)
BLACKHOLE = route(f"{PEER}/32", type="blackhole")


def steps(sample: Any, rules: list[dict[str, Any]], routes: list[dict[str, Any]], *peers: str) -> str:
    sample.static["n1"]["policy"] = {"rules": rules, "routes": {PEER: routes, "192.0.2.3": routes}}
    view = make_view(sample.static, sample.members)
    found = way_repair.command(view, "n1", peers or ("n2",))
    assert not found or found.startswith("ansible n1 -i <inventory> --become -m ansible.builtin.shell -a ")
    return found.partition('-a "')[2][:-1]


@pytest.mark.parametrize(
    ("rules", "routes", "command"),
    [
        ([], [BLACKHOLE, OWN], "ip route del blackhole 192.0.2.2/32"),
        ([], [route(f"{PEER}/32", "eth0"), OWN], "ip route del 192.0.2.2/32 dev eth0"),
        (
            [],
            [route(f"{PEER}/32", "fab0", gateway="192.0.2.9", metric=7), OWN],
            "ip route del 192.0.2.2/32 via 192.0.2.9 dev fab0 metric 7",
        ),
        ([], [route(f"{PEER}/32", "fab0", mtu=1300), OWN], "ip route del 192.0.2.2/32 dev fab0"),
        (
            [rule(60, action="prohibit", target=f"{PEER}/32")],
            [OWN],
            "ip rule del pref 60 to 192.0.2.2/32 prohibit",
        ),
        (
            [rule(50, "77", target=f"{PEER}/32")],
            [route(f"{PEER}/32", "eth0", table="77"), OWN],
            "ip rule del pref 50 to 192.0.2.2/32 lookup 77",
        ),
        # gloo binds its sockets to the address, so a rule about the source counts.
        (
            [rule(50, "77", source="192.0.2.1/32")],
            [route(NET, "eth0", table="77"), OWN],
            "ip route del 192.0.2.0/24 dev eth0 table 77",
        ),
        ([], [], "ip route add 192.0.2.0/24 dev fab0 proto kernel scope link src 192.0.2.1"),
        (
            [],
            [route("0.0.0.0/0", "eth0", gateway="198.51.100.254")],
            "ip route add 192.0.2.0/24 dev fab0 proto kernel scope link src 192.0.2.1",
        ),
        (
            [rule(60, action="unreachable")],
            [BLACKHOLE, OWN],
            "ip rule del pref 60 unreachable && ip route del blackhole 192.0.2.2/32",
        ),
        # Its own route, changed by hand.
        (
            [],
            [{**OWN, "source": "192.0.2.77"}],
            "ip route del 192.0.2.0/24 dev fab0 metric 101 && "
            "ip route add 192.0.2.0/24 dev fab0 proto kernel scope link src 192.0.2.1",
        ),
    ],
)
def test_what_is_in_the_way_is_taken_away(
    sample: Any, rules: list[dict[str, Any]], routes: list[dict[str, Any]], command: str
) -> None:
    assert steps(sample, rules + USUAL, routes) == command


@pytest.mark.parametrize(
    ("rules", "routes"),
    [
        # Nothing is wrong; what a rule with a mark does is not known.
        ([], [OWN]),
        ([rule(50, "77", further=True)], [route(f"{PEER}/32", "eth0", table="77"), OWN]),
        # The network of another card, as the kernel has it from that card's address.
        ([], [{**OWN, "device": "eth9", "metric": 5}, OWN]),
        # A table of somebody else, with everything in it.
        ([rule(50, "77")], [route("0.0.0.0/0", "wg0", table="77"), OWN]),
        # More than a slip of a hand.
        ([rule(number, action="prohibit", target=f"{PEER}/32") for number in range(50, 55)], [OWN]),
    ],
)
def test_no_command_where_it_would_not_be_right(
    sample: Any, rules: list[dict[str, Any]], routes: list[dict[str, Any]]
) -> None:
    assert steps(sample, rules + USUAL, routes) == ""


def test_one_command_for_several_peers(sample: Any) -> None:
    refusing = rule(60, action="blackhole", target=NET)
    assert steps(sample, [refusing, *USUAL], [OWN], "n2", "n3") == f"ip rule del pref 60 to {NET} blackhole"


@pytest.mark.parametrize(
    "spoiled",
    [
        route(f"{PEER}/32", "eth0; reboot"),
        route(f"{PEER}/32", "eth0", table="$(reboot)"),
        route("192.0.2.2/32; reboot", "eth0"),
        route(f"{PEER}/32", "eth0", gateway="x"),
        route(f"{PEER}/32", type="blackhole\nreboot"),
        {"target": PEER},
        7,
    ],
)
def test_words_of_a_node_that_are_none_of_ip_make_no_command(sample: Any, spoiled: Any) -> None:
    assert steps(sample, USUAL, [spoiled, OWN]) == ""


def test_a_learned_mtu_is_forgotten(sample: Any) -> None:
    sample.static["n3"]["routes"]["n1"]["mtu"] = 1400
    sample.static["n3"]["policy"] = {
        "rules": USUAL,
        "routes": {"192.0.2.1": [{**OWN, "source": "192.0.2.3"}]},
    }
    (one,) = sample.findings()
    assert one.command.endswith('"ip route flush cache"')
    sample.static["n3"]["policy"]["routes"]["192.0.2.1"] = [route("0.0.0.0/0", "eth0", mtu=1400)]
    (one,) = sample.findings()
    assert "flush" not in one.command


def test_a_way_that_is_wrong_has_its_command_and_what_shows_it(sample: Any) -> None:
    sample.static["n1"]["routes"]["n2"].update(interface="", source="", error="RTNETLINK answers: Invalid argument")
    sample.static["n1"]["policy"] = {"rules": USUAL, "routes": {PEER: [BLACKHOLE, OWN]}}
    (one,) = sample.findings()
    assert one.command.endswith('"ip route del blackhole 192.0.2.2/32"')
    assert one.look.endswith('"ip rule; ip route show table all to match 192.0.2.2"')
