# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read out of the rules of a node is what real packets meet, with exact ends of every interval."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from lab_cluster import Cluster
from lab_firewall import change, scan_from

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import blocked, ruleset
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.blocked import Block

PORTS_DRAWN = 2000
#: How a peer meets a verdict: the name of the error of connect(), or "timeout".
MEETS = {"drop": "timeout", "reject": "EHOSTUNREACH"}

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


def block(head: str, *lines: str) -> str:
    """``head { ... }`` as nft reads it."""
    return "\n".join([f"{head} {{", *lines, "}", ""])


TRACKED = "ct state established,related accept"


def base(hook: str, *rules: str, priority: int = 0, policy: str = "accept", name: str = "c") -> str:
    """A base chain that lets packets of connections pass."""
    return block(f"chain {name}", f"type filter hook {hook} priority {priority}; policy {policy};", TRACKED, *rules)


def cases(seed: random.Random, peer: str, other: str) -> dict[str, str]:
    """Intervals that nobody chose: the ends are drawn. They spare ssh."""
    low = seed.randrange(1024, 30000)
    high = low + seed.randrange(1, 30000)
    single = seed.randrange(60001, 65535)
    members = block("set s", "type ipv4_addr", "flags interval", f"elements = {{ {peer}, 198.51.100.0/24 }}")
    one = block("set s", "type ipv4_addr", f"elements = {{ {other} }}")
    rows = f"{peer} . {low}-{high} : jump d, {other} . 1-65535 : drop"
    pairs = block("map m", "type ipv4_addr . inet_service : verdict", "flags interval", f"elements = {{ {rows} }}")
    states = "ct state vmap { established : accept, related : accept, invalid : drop }"
    return {
        "drop": base("input", f"tcp dport {low}-{high} counter drop"),
        "reject": base("input", f"tcp dport {{ {low}-{high}, {single} }} reject with icmpx admin-prohibited"),
        "allowed list": members
        + base(
            "input",
            "iifname != fab0 accept",
            "meta l4proto icmp accept",
            f"ip saddr @s tcp dport {{ {low}-{high} }} accept",
            policy="drop",
        ),
        "another peer": one + base("input", "ip saddr @s drop", f"ip saddr != @s tcp dport {low}-{high} drop"),
        "maps and jumps": block("chain d", f"tcp dport {low} return", "drop")
        + block("chain e", "tcp flags syn / fin,syn,rst,ack drop")
        + pairs
        + base("input", states, "ip saddr . tcp dport vmap @m", f"tcp dport {single} goto e"),
        # Of equal priorities the chain that was made last comes first.
        "one priority": base("input", f"tcp dport {low}-{high} drop")
        + base("input", f"tcp dport {low}-{high} reject with icmpx admin-prohibited", name="later"),
        "early hook": base("prerouting", f"fib daddr type local tcp dport {low}-{high} drop", priority=-300),
    }


@contextmanager
def rules(cluster: Cluster, node: str, text: str) -> Iterator[None]:
    """A table of its own, beside what the node has."""
    try:
        cluster.shell(node, f"nft -f - <<'END'\n{block('table inet test_check', text)}END")
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


def to_scan(seed: random.Random, found: list[Block]) -> str:
    """Both sides of every end, and ports from everywhere."""
    ends = {port + step for one in found for port in (one.first, one.last) for step in (-2, -1, 0, 1, 2)}
    drawn = seed.sample(range(1, 65536), PORTS_DRAWN)
    return ",".join(str(port) for port in sorted({*ends, *drawn} & set(range(1, 65536))))


NAMES = list(cases(random.Random(0), "192.0.2.1", "192.0.2.2"))


@pytest.mark.parametrize("name", NAMES)
def test_what_the_rules_say_is_what_a_peer_meets(cluster: Cluster, name: str) -> None:
    """Beside firewalld, as site.yml left it: it rejects what the plan does not open."""
    node, peer, other = list(cluster.hosts)[:3]
    addresses = {one: cluster.fabric_address(one) for one in (node, peer, other)}
    start = random.randrange(10**9)
    print(f"seed {start}")
    seed = random.Random(start)
    with rules(cluster, node, cases(seed, addresses[peer], addresses[other])[name]):
        found = predicted(cluster, node, addresses[peer], addresses[node], "inbound")
        assert found and not [one for one in found if one.verdict == "unknown"], found
        assert any("test_check" in one.rule for one in found), found
        looked = to_scan(seed, found)
        through = ports_of(scan_from(cluster, peer, looked, addresses[node])[addresses[node]])
        blocked_ports = {port for one in found for port in range(one.first, one.last + 1)}
        scanned = ports_of(looked.split(","))
        assert scanned - through == blocked_ports & scanned
        ends = {port: one.verdict for one in found if "test_check" in one.rule for port in (one.first, one.last)}
        met = connected(cluster, peer, addresses[node], list(ends)[:4])
    for verdict in {ends[port] for port in met}:
        seen = {result for port, result in met.items() if ends[port] == verdict}
        # ICMP is rate limited: of several rejections some are not told.
        assert MEETS[verdict] in seen and seen <= {MEETS[verdict], "timeout"}


def test_what_a_node_may_not_send_is_what_it_cannot_connect_to(cluster: Cluster) -> None:
    node, peer = list(cluster.hosts)[:2]
    source, target = cluster.fabric_address(node), cluster.fabric_address(peer)
    # Within what the peer lets in.
    first = random.randrange(33000, 64000)
    print(f"first {first}")
    with rules(cluster, node, base("output", f"oifname fab0 tcp dport >= {first} drop")):
        found = predicted(cluster, node, source, target, "outbound")
        assert [(one.first, one.last, one.verdict) for one in found] == [(first, 65535, "drop")]
        met = connected(cluster, node, target, [first - 1, first, 64999])
    assert met == {first - 1: "ECONNREFUSED", first: "timeout", 64999: "timeout"}


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


def of_the_firewall(report: dict[str, Any], node: str) -> list[dict[str, Any]]:
    """The errors about what a node blocks, of the rules and of the probes."""
    return [
        one
        for one in report["findings"]
        if one["severity"] == "error" and one["id"].startswith(("GC-FW", "GC-NET")) and node in one["hosts"]
    ]


def test_check_mode_foretells_a_block_that_goes_with_the_override(cluster: Cluster) -> None:
    """The inventory of one node opens the rendezvous only."""
    node = list(cluster.hosts)[1]
    try:
        closed = change(cluster, {node: {"cluster_firewall_ports": ["29400-29599/tcp"]}})
        assert closed.code == 0, closed.text
        foretold = cluster.check("--check")
        assert foretold.code == 0, "findings never change the exit code of check mode"
        (finding,) = foretold.report["findings"]
        assert finding["id"] == "GC-FW-001" and finding["hosts"] == [node], finding
        assert finding["subject"]["ports"] == [[32768, 64999]] and finding["subject"]["direction"] == "inbound", finding
        assert finding["variables"] == {} and "cluster_firewall_ports, remove that" in finding["fix"], finding
        # The probes see the same, and say it once, with the rule.
        found = cluster.check()
        (measured,) = of_the_firewall(found.report, node)
        assert measured["id"] == "GC-NET-001" and measured["fix"] == finding["fix"], measured
        assert any("filter_IN_public: reject" in one for one in measured["evidence"]), measured
        assert list(found.report["culprits"]) == [node]
    finally:
        opened = change(cluster, {node: {}})
    assert opened.code == 0, opened.text
    after = cluster.check()
    assert after.code == 0 and after.report["findings"] == [], after.text


def test_the_variable_of_the_finding_loosens_the_reverse_path_filter_for_ipv6(cluster: Cluster) -> None:
    """The data network is on the second of two cards in one subnet. That answers leave by the first one is told too."""
    nodes = list(cluster.hosts)
    odd = nodes[1]
    hosts: dict[str, dict[str, Any]] = {
        name: {"gpu_cluster_fabric_address": f"fd00:20::{number}/64"} for number, name in enumerate(nodes, 1)
    }
    strict = {"cluster_firewall_ipv6_rpfilter": "strict"}
    hosts[odd] = {"gpu_cluster_fabric_address": "fd00:20::12/64", "gpu_cluster_fabric_interface": "fab9", **strict}
    path = cluster.reports / "ipv6.json"

    def look() -> list[dict[str, Any]]:
        path.write_text(json.dumps({"gpu_cluster": {"hosts": hosts}}))
        return list(cluster.check("--check", "-i", str(path)).report["findings"])

    try:
        for number, name in enumerate(nodes, 1):
            cluster.shell(name, f"ip address add fd00:20::{number}/64 dev fab0 nodad")
        cluster.shell(
            odd,
            "ip link add link fab0 name fab9 type macvlan mode bridge; ip link set fab9 up; "
            "ip address add fd00:20::12/64 dev fab9 nodad",
        )
        closed = change(cluster, hosts)
        assert closed.code == 0, closed.text
        before = look()
        (found,) = [one for one in before if one["id"].startswith("GC-FW")]
        assert (found["id"], found["hosts"]) == ("GC-FW-001", [odd]), found
        assert found["variables"] == {odd: {"cluster_firewall_ipv6_rpfilter": "loose"}}
        assert f"--tags cluster_firewall --limit {odd}" in found["command"]
        hosts[odd].update(found["variables"][odd])
        path.write_text(json.dumps({"gpu_cluster": {"hosts": hosts}}))
        run = cluster.play("site.yml", "--tags", "cluster_firewall", "--limit", odd, "-i", str(path))
        assert run.code == 0, run.text
        after = look()
        assert [one["cause"] for one in after] == [one["cause"] for one in before if one is not found]
        assert "GC-NODE-005" in [one["id"] for one in after]
    finally:
        cluster.shell(odd, "ip link del fab9")
        cluster.everywhere("ip -6 address flush dev fab0 scope global")
        back = change(cluster, {odd: strict})
    assert back.code == 0, back.text
