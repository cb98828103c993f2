# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read out of the rules of a node is what real packets of its peers meet, for every port."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from lab_cluster import Cluster
from lab_firewall import scan_from

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import blocked, ruleset
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.blocked import Block

EVERY_PORT = "1-65535"
#: How a peer meets a verdict: the name of the error of connect(), or "timeout".
MEETS = {"drop": "timeout", "reject": "EHOSTUNREACH", "reset": "ECONNREFUSED"}

#: Connects once to each port given, and prints what came of it.
CONNECT = """
import errno, json, socket, sys
found = {}
for port in sys.argv[2:]:
    with socket.socket() as one:
        one.settimeout(1.5)
        try:
            one.connect((sys.argv[1], int(port)))
            found[port] = "ok"
        except socket.timeout:
            found[port] = "timeout"
        except OSError as error:
            found[port] = errno.errorcode[error.errno]
print(json.dumps(found))
"""
#: Listens on the ports given until its input ends.
LISTEN = """
import socket, sys
held = [socket.create_server(("", int(port))) for port in sys.argv[1:]]
print("ready", flush=True)
sys.stdin.read()
"""


class Case(NamedTuple):
    """Rules, and in which direction of the node that has them they are looked at."""

    text: str
    direction: str = "inbound"


def cases(seed: random.Random, peer: str, other: str) -> dict[str, Case]:
    """Intervals that nobody chose: the ends are drawn. They spare ssh."""
    low = seed.randrange(1024, 30000)
    high = low + seed.randrange(1, 30000)
    single = seed.randrange(60001, 65535)
    tracked = "ct state established,related accept;"
    head = "type filter hook input priority 0; policy accept;"
    late = "type filter hook input priority 0; policy drop;"
    early = "type filter hook prerouting priority -300; policy accept;"
    leaving = "type filter hook output priority 0; policy accept;"
    return {
        "drop": Case(f"chain c {{ {head} {tracked} tcp dport {low}-{high} counter drop; }}"),
        "reject": Case(
            f"chain c {{ {head} {tracked} tcp dport {{ {low}-{high}, {single} }} reject with icmpx admin-prohibited; }}"
        ),
        "reset": Case(f"chain c {{ {head} {tracked} tcp dport {low}-{high} reject with tcp reset; }}"),
        "allowed list": Case(
            f"set from {{ type ipv4_addr; flags interval; elements = {{ {peer}, 198.51.100.0/24 }}; }} "
            f"chain c {{ {late} {tracked} iifname != fab0 accept; meta l4proto icmp accept; "
            f"ip saddr @from tcp dport {{ {low}-{high} }} accept; }}"
        ),
        "another peer": Case(
            f"set from {{ type ipv4_addr; elements = {{ {other} }}; }} "
            f"chain c {{ {head} {tracked} ip saddr @from drop; ip saddr != @from tcp dport {low}-{high} drop; }}"
        ),
        "maps and jumps": Case(
            "map m { type ipv4_addr . inet_service : verdict; flags interval; "
            f"elements = {{ {peer} . {low}-{high} : jump d, {other} . 1-65535 : drop }}; }} "
            f"chain d {{ tcp dport {low} return; drop; }} chain e {{ tcp flags syn / fin,syn,rst,ack drop; }} "
            f"chain c {{ {head} ct state vmap {{ established : accept, related : accept, invalid : drop }}; "
            f"ip saddr . tcp dport vmap @m; tcp dport {single} goto e; }}"
        ),
        "early hook": Case(f"chain c {{ {early} {tracked} fib daddr type local tcp dport {low}-{high} drop; }}"),
        "outbound": Case(f"chain c {{ {leaving} {tracked} oifname fab0 tcp dport >= {single} drop; }}", "outbound"),
    }


@contextmanager
def rules(cluster: Cluster, node: str, text: str) -> Iterator[None]:
    """A table of its own, beside what the node has."""
    try:
        cluster.shell(node, f"nft -f - <<'END'\ntable inet test_check {{ {text} }}\nEND")
        yield
    finally:
        cluster.shell(node, "nft delete table inet test_check 2>/dev/null; true")


def predicted(cluster: Cluster, node: str, source: str, destination: str, direction: str) -> list[Block]:
    """What the rules of a node say."""
    objects = json.loads(cluster.shell(node, "nft -j list ruleset"))["nftables"]
    asker = blocked.Asker(ruleset.compiled(objects))
    return asker.blocked(source=source, destination=destination, interface="fab0", direction=direction)


def ports_of(ranges: list[str]) -> set[int]:
    found: set[int] = set()
    for one in ranges:
        first, _dash, last = one.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def connected(cluster: Cluster, node: str, target: str, ports: list[int]) -> dict[int, str]:
    """What connect() says on a node, port by port."""
    said = cluster.lab("exec", node, "python3", "-c", CONNECT, target, *map(str, ports))
    return {int(port): result for port, result in json.loads(said).items()}


NAMES = list(cases(random.Random(0), "192.0.2.1", "192.0.2.2"))


@pytest.mark.parametrize("name", NAMES)
def test_what_the_rules_say_is_what_a_peer_meets(cluster: Cluster, name: str) -> None:
    """Beside firewalld, as site.yml left it: it rejects what the plan does not open."""
    node, peer, other = list(cluster.hosts)[:3]
    addresses = {one: cluster.fabric_address(one) for one in (node, peer, other)}
    start = random.randrange(10**9)
    print(f"seed {start}")
    case = cases(random.Random(start), addresses[peer], addresses[other])[name]
    source, target = (peer, node) if case.direction == "inbound" else (node, peer)
    with rules(cluster, node, case.text):
        found = predicted(cluster, node, addresses[source], addresses[target], case.direction)
        assert found and not [one for one in found if one.verdict == "unknown"], found
        assert any("test_check" in one.rule for one in found), found
        # A reset looks like a port on which nobody listens: those are looked at below.
        stopped = {port for one in found if one.verdict != "reset" for port in range(one.first, one.last + 1)}
        if case.direction == "outbound":
            # What the peer's own rules stop is no matter of this node.
            found_there = predicted(cluster, target, addresses[source], addresses[target], "inbound")
            stopped |= {port for one in found_there for port in range(one.first, one.last + 1)}
        through = ports_of(scan_from(cluster, source, EVERY_PORT, addresses[target])[addresses[target]])
        assert set(range(1, 65536)) - through == stopped
        ends = [port for one in found if "test_check" in one.rule for port in {one.first, one.last}]
        met = connected(cluster, source, addresses[target], ends[:4])
        expected = {port: one.verdict for one in found for port in {one.first, one.last} & set(met)}
        # ICMP is rate limited: of several rejections some are not told.
        assert {port: MEETS[verdict] for port, verdict in expected.items() if verdict != "reject"} == {
            port: result for port, result in met.items() if expected[port] != "reject"
        }
        rejected = {result for port, result in met.items() if expected[port] == "reject"}
        assert not rejected or "EHOSTUNREACH" in rejected <= {"EHOSTUNREACH", "timeout"}


def test_a_reset_is_told_from_a_port_on_which_nobody_listens(cluster: Cluster) -> None:
    """Somebody listens on both sides of the border, and only the inner side is refused."""
    node, peer = list(cluster.hosts)[:2]
    source, target = cluster.fabric_address(peer), cluster.fabric_address(node)
    border = random.randrange(33000, 60000)
    print(f"border {border}")
    text = (
        "chain c { type filter hook input priority 0; policy accept; ct state established accept; "
        f"tcp dport {border}-{border + 1} reject with tcp reset; }}"
    )
    ports = [border - 1, border, border + 1, border + 2]
    listener = subprocess.Popen(
        cluster.lab_argv("exec", node, "python3", "-c", LISTEN, *map(str, ports)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert listener.stdout is not None and listener.stdout.readline() == "ready\n"
        with rules(cluster, node, text):
            found = predicted(cluster, node, source, target, "inbound")
            assert [(one.first, one.last) for one in found if one.verdict == "reset"] == [(border, border + 1)]
            met = connected(cluster, peer, target, ports)
        assert list(met.values()) == ["ok", "ECONNREFUSED", "ECONNREFUSED", "ok"]
    finally:
        listener.communicate(timeout=20)
