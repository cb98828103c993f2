# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults made for real: each says what it did, who is to blame, and proves by a counter that it bit.

Where a fault is, is drawn: node, peer and interval come from the random numbers that the caller hands over.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from net_cluster import INTERFACE, NetCluster

#: What gloo and NCCL listen on by default, and what Open MPI and the rendezvous add.
DATA_PORTS = (1024, 65535)
EPHEMERAL = (32768, 60999)
#: What the port plan has of them: the rest is not asked for, and no fault. The ranges of the kernel and of MPI adjoin.
PLANNED = ((29400, 29599), (32768, 64999))
RULES = """
table {family} {table} {{
  counter bit {{ }}
  chain {hook} {{
    type filter hook {hook} priority 0; policy accept;
    {before}
    {match} counter name bit {verdict}
  }}
}}
"""
#: As a firewall does it: what was let in once is not looked at again.
FIREWALL = 'iifname "lo" accept; oifname "lo" accept; ct state established,related accept;'
#: A mail server, as far as it goes: it speaks first, and closes.
SERVICE = """
import socket
server = socket.create_server(("", 0))
print(server.getsockname()[1], flush=True)
while True:
    connection, _peer = server.accept()
    connection.sendall(b"220 mail.example.com ESMTP\\r\\n")
    connection.close()
"""
DROP = "drop"
REJECT = "reject with icmpx type admin-prohibited"
RESET = "reject with tcp reset"
#: What a cause says of closed ports; it has the one that was made, and no other.
ANSWERS = {"drop", "reject", "reset"}


@dataclass
class Injected:
    """A fault that is there. what: for a person. hosts: whom the finding must name. ids: one of these it must have.

    words: what its cause must contain. ports: all the intervals that it must name, where it names intervals. also:
    findings that must be there beside it.  fix: what the fix of its finding begins with.
    ranks_fail: whether the all_reduce may fail for it, which is one finding that accuses nobody and names those above.
    """

    what: str
    hosts: frozenset[str]
    ids: frozenset[str]
    bit: Callable[[], int]
    undo: Callable[[], Any]
    words: tuple[str, ...] = ()
    ports: tuple[tuple[int, int], ...] = ()
    also: frozenset[str] = frozenset()
    arguments: tuple[str, ...] = ()
    fix: str = ""
    ranks_fail: bool = False


@dataclass(frozen=True)
class Fault:
    """One kind of fault. name: as in tools/fault_table.py. make: net, names to choose from, random numbers."""

    name: str
    make: Callable[[NetCluster, Sequence[str], random.Random], Injected]
    raw: bool = field(default=True)


def filter_rule(
    net: NetCluster, name: str, hook: str, match: str, verdict: str, *, before: str = FIREWALL, family: str = "inet"
) -> tuple[Callable[[], int], Callable[[], Any]]:
    """Load a rule on a node, or on the hub; returns how to read its counter and how to take it back."""
    table = f"fault_{hook}"
    text = RULES.format(family=family, table=table, hook=hook, before=before, match=match, verdict=verdict)
    net.run(name, "nft", "-f", "-", stdin=text)

    def bit() -> int:
        found = json.loads(net.run(name, "nft", "-j", "list", "counter", family, table, "bit"))
        return sum(one["counter"]["packets"] for one in found["nftables"] if "counter" in one)

    return bit, lambda: net.run(name, "nft", "delete", "table", family, table)


def interval(rng: random.Random) -> tuple[int, int]:
    """Ports within the kernel's own range; half of it, so that of four ports spread over it one at least is hit."""
    first, last = EPHEMERAL
    length = (last - first) // 2
    start = rng.randint(first + 1, last - length - 1)
    return start, start + length


def inbound(verdict: str, word: str) -> Callable[[NetCluster, Sequence[str], random.Random], Injected]:
    """All data ports of one node."""

    def make(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
        name = rng.choice(list(names))
        first, last = DATA_PORTS
        bit, undo = filter_rule(net, name, "input", f"tcp dport {first}-{last}", verdict)
        what = f"{name} {word}s all connections to its ports {first}-{last}"
        if verdict == RESET:
            return Injected(what, frozenset({name}), frozenset({"GC-NET-009"}), bit, undo, (word,))
        return Injected(what, frozenset({name}), frozenset({"GC-NET-001"}), bit, undo, (word,), PLANNED)

    return make


def highest(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    """The node that gloo never connects to."""
    name = list(names)[-1]
    first, last = DATA_PORTS
    bit, undo = filter_rule(net, name, "input", f"tcp dport {first}-{last}", DROP)
    what = f"{name}, which has the highest address, drops all inbound connections"
    also = frozenset({"GC-NET-010"})
    return Injected(what, frozenset({name}), frozenset({"GC-NET-001"}), bit, undo, ("drop",), PLANNED, also)


def outbound(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    name = rng.choice(list(names))
    first, last = DATA_PORTS
    bit, undo = filter_rule(net, name, "output", f"tcp dport {first}-{last}", DROP)
    what = f"{name} drops all connections that it opens to ports {first}-{last}"
    return Injected(what, frozenset({name}), frozenset({"GC-NET-002"}), bit, undo, ("drop",), PLANNED)


def partial(verdict: str, word: str) -> Callable[[NetCluster, Sequence[str], random.Random], Injected]:
    """Part of the data ports of one node."""

    def make(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
        name = rng.choice(list(names))
        first, last = interval(rng)
        bit, undo = filter_rule(net, name, "input", f"tcp dport {first}-{last}", verdict)
        what = f"{name} {word}s connections to its ports {first}-{last}"
        return Injected(what, frozenset({name}), frozenset({"GC-NET-001"}), bit, undo, (word,), ((first, last),))

    return make


def everywhere(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    """The classic: only the rendezvous port is open, on all nodes."""
    rules = [filter_rule(net, name, "input", "tcp dport { 1024-29499, 29600-65535 }", REJECT) for name in names]
    what = "every node rejects all ports but the rendezvous ports"
    return Injected(
        what,
        frozenset(names),
        frozenset({"GC-NET-001"}),
        lambda: sum(bit() for bit, _undo in rules),
        lambda: [undo() for _bit, undo in rules],
        ("reject",),
        ((29400, 29499), (32768, 64999)),
    )


def link(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    source, target = rng.sample(list(names), 2)
    match = f"ip saddr {net.node(source).address} tcp dport {DATA_PORTS[0]}-{DATA_PORTS[1]}"
    bit, undo = filter_rule(net, target, "input", match, DROP)
    what = f"{target} drops the connections of {source}, and of nobody else"
    words = (f"{source} -> {target}", "drop")
    return Injected(what, frozenset({target}), frozenset({"GC-NET-003"}), bit, undo, words, PLANNED)


def between(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    """A switch with an access list: no rule on any node."""
    name = rng.choice(list(names))
    first, last = interval(rng)
    match = f"ip daddr {net.node(name).address} tcp dport {first}-{last}"
    bit, undo = filter_rule(net, "hub", "forward", match, DROP, before="", family="bridge")
    what = f"the switch drops packets to ports {first}-{last} of {name}"
    return Injected(what, frozenset({name}), frozenset({"GC-NET-001"}), bit, undo, ("drop",), ((first, last),))


def mtu_hole(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    """Large packets to one node vanish, without a word from the router."""
    name = rng.choice(list(names))
    bit, undo = filter_rule(net, name, "input", "meta length > 1400", DROP, before='iifname "lo" accept;')
    what = f"packets of more than 1400 bytes to {name} vanish"
    return Injected(what, frozenset({name}), frozenset({"GC-NET-005"}), bit, undo, ("MTU",))


def loopback_name(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    """One node takes its own name for 127.0.1.1, as the Debian installer writes it."""
    name = rng.choice(list(names))
    path = net.folder / name / "hosts"
    before = path.read_text()
    path.write_text(f"127.0.1.1 {name}\n{before}")
    what = f"/etc/hosts of {name} has 127.0.1.1 for {name}"
    return Injected(
        what,
        frozenset({name}),
        frozenset({"GC-NODE-001"}),
        lambda: int(net.run(name, "getent", "hosts", name).startswith("127.0.1.1")),
        lambda: path.write_text(before),
        ("127.0.1.1",),
    )


def wrong_interface(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    name = rng.choice(list(names))
    variables = {"gpu_cluster": {"hosts": {name: {"gpu_cluster_fabric_interface": "eth9"}}}}
    overlay = net.folder / "wrong-interface.json"
    overlay.write_text(json.dumps(variables))
    return Injected(
        f"the inventory names eth9 for {name}, which has {INTERFACE}",
        frozenset({name}),
        frozenset({"GC-NODE-003", "GC-NODE-004"}),
        lambda: int("eth9" not in net.run(name, "ip", "-o", "link")),
        overlay.unlink,
        ("eth9", INTERFACE),
        arguments=("-i", str(overlay)),
    )


def jobs_interface(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    """The ranks of the check take the data network all the same, so the all_reduce passes."""
    name = rng.choice(list(names))
    path = net.folder / name / "environment"
    path.write_text("GLOO_SOCKET_IFNAME=eth9\n")
    return Injected(
        f"/etc/environment of {name} has GLOO_SOCKET_IFNAME=eth9",
        frozenset({name}),
        frozenset({"GC-NODE-016"}),
        lambda: int("eth9" in net.run(name, "cat", "/etc/environment")),
        lambda: path.write_text(""),
        ("GLOO_SOCKET_IFNAME is eth9 in /etc/environment", "there is no interface eth9"),
    )


def foreign(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    """Some of a node's ports lead to another service, as an address translation or a proxy does it."""
    name = rng.choice(list(names))
    first, last = interval(rng)
    server = subprocess.Popen(
        [*net.enter(name), sys.executable, "-c", SERVICE], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert server.stdout is not None
    port = int(server.stdout.readline())
    text = f"tcp dport {first}-{last} counter name bit redirect to :{port}"
    rules = (
        f"table ip fault_nat {{ counter bit {{ }}; chain c {{ type nat hook prerouting priority -100; {text}; }}; }}"
    )
    net.run(name, "nft", "-f", "-", stdin=rules)

    def bit() -> int:
        found = json.loads(net.run(name, "nft", "-j", "list", "counter", "ip", "fault_nat", "bit"))
        return sum(one["counter"]["packets"] for one in found["nftables"] if "counter" in one)

    def undo() -> None:
        net.run(name, "nft", "delete", "table", "ip", "fault_nat")
        for pid in net.processes(name, "220 mail.example.com"):
            os.kill(pid, signal.SIGKILL)
        server.communicate()

    what = f"another service answers on ports {first}-{last} of {name}"
    return Injected(what, frozenset({name}), frozenset({"GC-NET-008"}), bit, undo, ("220 mail.example.com",))


def duplicate(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    """A machine that is no member has the address of one."""
    name = rng.choice(list(names))
    stack = contextlib.ExitStack()
    enter = stack.enter_context(net.stranger(net.node(name).address))

    def bit() -> int:
        path = f"/sys/class/net/{INTERFACE}/statistics/rx_packets"
        read = ["unshare", "--mount", "sh", "-c", f"mount -t sysfs sysfs /sys && cat {path}"]
        return int(subprocess.run([*enter, *read], capture_output=True, text=True, check=True).stdout)

    what = f"another machine has the address {net.node(name).address} of {name}"
    return Injected(what, frozenset({name}), frozenset({"GC-NODE-007"}), bit, stack.close, ("another machine",))


MESH = (
    Fault("drop", inbound(DROP, "drop")),
    Fault("reject", inbound(REJECT, "reject")),
    Fault("reset", inbound(RESET, "reset")),
    Fault("highest", highest),
    Fault("outbound", outbound),
    Fault("half-drop", partial(DROP, "drop")),
    Fault("half-reject", partial(REJECT, "reject")),
    Fault("everywhere", everywhere),
    Fault("link", link),
    Fault("between", between),
    Fault("mtu", mtu_hole),
    Fault("loopback", loopback_name),
    Fault("foreign", foreign),
    Fault("duplicate", duplicate, raw=False),
    Fault("interface", wrong_interface, raw=False),
    Fault("gloo", jobs_interface),
)


def judge(report: dict[str, Any], injected: Sequence[Injected]) -> None:
    """The verdict names exactly the culprits: each fault has one finding, and nobody and nothing else is accused."""
    errors = [one for one in report["findings"] if one["severity"] == "error"]
    said = json.dumps(errors, indent=1)
    assert report["verdict"] == "FAILED" and report["headline"].startswith("FAILED: ")
    # That gloo passes all the same is told where it does, which depends on who has the higher address.
    beside = {"GC-NET-010"}.union(*(fault.also for fault in injected))
    rest = [one for one in errors if one["id"] not in beside]
    if any(fault.ranks_fail for fault in injected):
        rest = [one for one in rest if one["hosts"] or one["fix"] != "fix the findings above first"]
    for fault in injected:
        assert fault.bit() > 0, f"the fault did not bite: {fault.what}\n{said}"
        assert fault.also <= {one["id"] for one in errors}, f"expected {sorted(fault.also)} too\n{said}"
        found = [one for one in rest if one["id"] in fault.ids and set(one["hosts"]) == fault.hosts]
        expected = f"one finding {sorted(fault.ids)} about {sorted(fault.hosts)} for: {fault.what}"
        assert len(found) == 1, f"expected {expected}\n{said}"
        rest.remove(found[0])
        cause, ports = found[0]["cause"], tuple(tuple(span) for span in found[0]["subject"]["ports"])
        assert all(word in cause for word in fault.words), f"expected {fault.words} in {expected}\n{cause}"
        others = ANSWERS.difference(fault.words) if ANSWERS.intersection(fault.words) else set()
        assert not any(word in cause for word in others), f"expected none of {sorted(others)} in {expected}\n{cause}"
        if fault.ports:
            assert ports == fault.ports, f"expected ports {fault.ports} in {expected}\n{ports}"
    assert rest == [], f"{[one['id'] for one in rest]} beside what was expected\n{said}"
    blamed = set().union(*(fault.hosts for fault in injected))
    assert set(report["culprits"]) == blamed, f"expected {sorted(blamed)}, accused {sorted(report['culprits'])}\n{said}"
