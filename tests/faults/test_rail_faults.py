# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of one rail or one address family: the verdict names the node and the rail, and no other rail."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from checking import check, left_over, sweep, wait_for
from injection import DATA_PORTS, DROP, FIREWALL, PLANNED, Fault, Injected, filter_rule, interval, judge
from net_cluster import SECOND_INTERFACE, NetCluster

FIRST = "rail 1 (198.18.30.0/24)"
SECOND = "rail 2 (198.18.31.0/24)"
IPV6 = "rail 3 (fd00:20::/64)"
LOCAL = 'iifname "lo" accept;'
#: Everything of these tests is about the mesh; one size is enough to see that the collective still runs.
SHORT = ("-e", '{"cluster_check_sizes_bytes": [4096]}')


@pytest.fixture(scope="module")
def railed() -> Iterator[NetCluster]:
    with NetCluster(3, rails=2) as net:
        yield net


@pytest.fixture
def clean(railed: NetCluster) -> Iterator[NetCluster]:
    yield railed
    try:
        wait_for(lambda: not left_over(railed), 2, "nothing to be left over on any node")
    finally:
        sweep(railed)


def second_rail(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    name = rng.choice(list(names))
    first, last = interval(rng)
    bit, undo = filter_rule(net, name, "input", f'iifname "{SECOND_INTERFACE}" tcp dport {first}-{last}', DROP)
    what = f"{name} drops connections to its ports {first}-{last} on the second rail"
    ids = frozenset({"GC-NET-001"})
    return Injected(what, frozenset({name}), ids, bit, undo, (SECOND, "drop"), ((first, last),))


def ipv6(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    name = rng.choice(list(names))
    first, last = DATA_PORTS
    rule = f"meta nfproto ipv6 tcp dport {first}-{last}"
    bit, undo = filter_rule(net, name, "input", rule, DROP)
    what = f"{name} drops connections to its ports {first}-{last} over IPv6"
    ids = frozenset({"GC-NET-001"})
    return Injected(what, frozenset({name}), ids, bit, undo, (IPV6, "drop"), PLANNED)


def no_ipv6(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    """Neighbour discovery included: the node is not there any more for that family."""
    name = rng.choice(list(names))
    bit, undo = filter_rule(net, name, "input", "meta nfproto ipv6", DROP, before=LOCAL)
    words = (IPV6, f"to and from {name}")
    return Injected(f"{name} drops all of IPv6", frozenset({name}), frozenset({"GC-NET-012"}), bit, undo, words)


def mtu_hole(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    name = rng.choice(list(names))
    match = f'iifname "{SECOND_INTERFACE}" meta length > 1400'
    bit, undo = filter_rule(net, name, "input", match, DROP, before=LOCAL)
    what = f"packets of more than 1400 bytes to {name} vanish on the second rail"
    return Injected(what, frozenset({name}), frozenset({"GC-NET-005"}), bit, undo, (SECOND, "MTU"))


def no_address(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    name = rng.choice(list(names))
    address = net.node(name).second_address
    net.run(name, "ip", "address", "del", f"{address}/24", "dev", SECOND_INTERFACE)
    return Injected(
        f"{name} has lost {address}",
        frozenset({name}),
        frozenset({"GC-NET-012"}),
        lambda: int(address not in net.run(name, "ip", "-o", "address")),
        lambda: net.run(name, "ip", "address", "add", f"{address}/24", "dev", SECOND_INTERFACE),
        (SECOND, address, "Cannot assign requested address"),
    )


def everywhere(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    name = rng.choice(list(names))
    first, last = interval(rng)
    bit, undo = filter_rule(net, name, "input", f"tcp dport {first}-{last}", DROP, before=FIREWALL)
    what = f"{name} drops connections to its ports {first}-{last}, on all rails"
    ids = frozenset({"GC-NET-001"})
    return Injected(what, frozenset({name}), ids, bit, undo, ("on all 3 rails", "drop"), ((first, last),))


FAULTS = (
    (Fault("rail-drop", second_rail), [SECOND]),
    (Fault("ipv6-drop", ipv6), [IPV6]),
    (Fault("ipv6-gone", no_ipv6), [IPV6]),
    (Fault("rail-mtu", mtu_hole), [SECOND]),
    (Fault("rail-address", no_address), [SECOND]),
    (Fault("all-rails", everywhere), [FIRST, SECOND, IPV6]),
)


@pytest.mark.parametrize(("fault", "rails"), FAULTS, ids=[fault.name for fault, _rails in FAULTS])
def test_the_verdict_names_the_node_and_the_rail(
    clean: NetCluster, rng: random.Random, fault: Fault, rails: list[str]
) -> None:
    injected = fault.make(clean, clean.names, rng)
    print(injected.what)
    try:
        ended = check(clean, *SHORT)
        assert ended.code != 0, ended.text
        judge(ended.report, [injected])
    finally:
        injected.undo()
    # On the first rail it may be one that gloo has no need of (GC-NET-010), which is for the addresses to say.
    errors = [one for one in ended.report["findings"] if one["severity"] == "error" and one["id"] != "GC-NET-010"]
    (found,) = errors
    assert found["subject"]["rails"] == rails, found
    bad = {
        rail["name"]
        for rail in [{"name": FIRST, "mesh": ended.report["mesh"]}, *ended.report["rails"]]
        for row in rail["mesh"].values()
        for result in row.values()
        if result != "ok"
    }
    # A node without its address of a rail is not in that rail's mesh at all.
    assert bad == (set() if fault.name == "rail-address" else set(rails))
    if FIRST not in rails:
        assert ended.report["participants"] == clean.names, "the collective runs on the first rail, which is fine"


def test_three_rails_without_a_fault_are_fine(clean: NetCluster) -> None:
    """The other tests of this file would be worth nothing if this one were red."""
    ended = check(clean, *SHORT)
    assert ended.code == 0 and ended.report["verdict"] == "PASSED", ended.text
    assert ended.report["findings"] == []
    assert [(one["name"], one["family"]) for one in ended.report["rails"]] == [(SECOND, "IPv4"), (IPV6, "IPv6")]
    for rail in ended.report["rails"]:
        assert rail["mesh"] == {one: dict.fromkeys(set(clean.names) - {one}, "ok") for one in clean.names}
        assert all(value > 0 for row in rail["bytes_per_second"].values() for value in row.values())


def test_the_first_rail_alone_is_looked_at_where_the_site_says_so(clean: NetCluster, rng: random.Random) -> None:
    """With the fault on another rail: that it is not seen is told."""
    injected = second_rail(clean, clean.names, rng)
    try:
        ended = check(clean, *SHORT, "-e", "cluster_check_rails=first")
        assert ended.code == 0 and ended.report["rails"] == [], ended.text
        assert injected.bit() == 0
        assert f"not probed: {SECOND} and {IPV6} (cluster_check_rails)" in ended.report["notes"]
    finally:
        injected.undo()
