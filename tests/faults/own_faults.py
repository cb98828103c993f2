# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a node's own card, routes, neighbours and filters: what the node knows of itself, and the probes don't."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from injection import DATA_PORTS, Fault, Injected
from net_cluster import INTERFACE, NETWORK, NetCluster

Make = Callable[[NetCluster, Sequence[str], random.Random], Injected]

#: Prints 1 where a connection to a closed port of an address gets anything but the refusal of its kernel.
KNOCK = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), timeout=1.5)
except ConnectionRefusedError:
    print(0)
except OSError:
    print(1)
"""
#: Loads "drop TCP, pass the rest" for the card of the second argument, and holds it until it is killed: bpf(2), and
#: linux/bpf.h. The link goes with the last descriptor of it.
XDP = """
import ctypes, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
BPF = {"x86_64": 321, "aarch64": 280}[__import__("os").uname().machine]
def bpf(command, data):
    buffer = ctypes.create_string_buffer(data.ljust(128, b"\\0"))
    found = libc.syscall(BPF, command, buffer, 128)
    if found < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return found
def op(code, dst=0, src=0, off=0, imm=0):
    return struct.pack("<BBhi", code, dst | src << 4, off, imm)
program = b"".join((
    op(0x61, 2, 1, 0), op(0x61, 3, 1, 4),      # r2 = data, r3 = data_end
    op(0xBF, 4, 2), op(0x07, 4, 0, 0, 34),     # r4 = r2 + 34
    op(0x2D, 4, 3, 4),                         # too short: pass
    op(0x71, 5, 2, 23), op(0x55, 5, 0, 2, 6),  # r5 = protocol of IPv4; other than TCP: pass
    op(0xB7, 0, 0, 0, 1), op(0x95),            # XDP_DROP
    op(0xB7, 0, 0, 0, 2), op(0x95),            # XDP_PASS
))
text, licence = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"GPL")
load = struct.pack("<IIQQIIQII", 6, len(program) // 8, ctypes.addressof(text), ctypes.addressof(licence), 0, 0, 0, 0, 0)
loaded = bpf(5, load)
bpf(28, struct.pack("<IIII", loaded, socket.if_nametoindex(sys.argv[1]), 37, 2))
print("held", flush=True)
time.sleep(3600)
"""


def shell(net: NetCluster, name: str, *commands: str) -> None:
    for command in commands:
        net.run(name, "sh", "-c", command)


def knocks(net: NetCluster, source: str, target: str) -> int:
    """1 where the source gets no answer of the target's kernel."""
    return int(net.run(source, sys.executable, "-c", KNOCK, net.node(target).address))


def new_knocks(net: NetCluster, source: str, target: str) -> int:
    """The same, of a node that has forgotten the hardware address of the other."""
    net.run(source, "ip", "neighbour", "flush", "dev", INTERFACE)
    return knocks(net, source, target)


def by_command(
    number: str,
    do: str,
    undo: str,
    what: str,
    *words: str,
    where: str = "",
    inbound: bool = False,
    ranks_fail: bool = False,
) -> Make:
    """A fault of one node, made and undone by commands of a shell, with {own}, {peer} and {port} (of the hub).

    where: ``hub`` for commands of the switch.  inbound: whether it hits those who do not know the node yet.
    ranks_fail: as of Injected.
    """

    def make(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
        name, peer = rng.sample(list(names), 2)
        given = {"own": net.node(name).address, "peer": net.node(peer).address, "port": net.node(name).port}
        shell(net, where or name, do.format(**given))
        # What the others still know of the node's hardware address hides some of these.
        for one in net.names:
            net.run(one, "ip", "neighbour", "flush", "dev", INTERFACE, "nud", "reachable", check=False)
        return Injected(
            f"{name}: {what.format(name=name, peer=peer)}",
            frozenset({name}),
            frozenset({number}),
            lambda: new_knocks(net, peer, name) if inbound else knocks(net, name, peer),
            lambda: shell(net, where or name, undo.format(**given)),
            tuple(word.format(**{**given, "name": name, "peer": peer}) for word in words),
            ranks_fail=ranks_fail,
        )

    return make


def prefix(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    """So long that no peer is a neighbour."""
    name = rng.choice(list(names))
    own, length = net.node(name).address, rng.choice([31, 32])
    # The other address of a /31 may be one of a peer.
    other = f"{NETWORK}.{net.node(name).number ^ 1}"
    length = 32 if length == 31 and other in [node.address for node in net.nodes] else length
    shell(net, name, f"ip address del {own}/24 dev {INTERFACE}; ip address add {own}/{length} dev {INTERFACE}")
    peer = next(one for one in names if one != name)
    return Injected(
        f"{name} has {own}/{length}",
        frozenset({name}),
        frozenset({"GC-NODE-004"}),
        lambda: knocks(net, name, peer),
        lambda: shell(
            net, name, f"ip address del {own}/{length} dev {INTERFACE}; ip address add {own}/24 dev {INTERFACE}"
        ),
        (f"{own}/{length}", "the inventory says"),
    )


def forbidden(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    kind = rng.choice(["prohibit", "unreachable"])
    make = by_command(
        "GC-NODE-005",
        f"ip route add {kind} {{peer}}/32",
        f"ip route del {kind} {{peer}}/32",
        f"a {kind} route to {{peer}}",
        "{name} has no way to {peer}",
    )
    return make(net, names, rng)


def xdp(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
    """Nobody can read what a program does, so it is looked at first."""
    name, peer = rng.sample(list(names), 2)
    holder = subprocess.Popen(
        [*net.enter(name), sys.executable, "-c", XDP, INTERFACE], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"

    def undo() -> None:
        for pid in net.processes(name, "if_nametoindex"):
            os.kill(pid, signal.SIGKILL)
        holder.communicate()

    return Injected(
        f"an eBPF program on {INTERFACE} of {name} drops TCP",
        frozenset({name}),
        frozenset({"GC-NET-001"}),
        lambda: knocks(net, name, peer),
        undo,
    )


def nft(chain: str, rule: str, family: str = "inet") -> tuple[str, str]:
    """The commands that load a rule and that take it away."""
    add = (
        f"nft add table {family} f; nft 'add chain {family} f c {{{{ {chain} }}}}'; nft 'add rule {family} f c {rule}'"
    )
    return add, f"nft delete table {family} f"


def counted(net: NetCluster, name: str) -> int:
    """Packets that the rules with a counter have met, those of the old iptables included."""
    rules = json.loads(net.run(name, "nft", "-j", "list", "ruleset"))["nftables"]
    parts = [part for one in rules for part in one.get("rule", {}).get("expr", ()) if "counter" in part]
    old = net.run(name, "iptables-legacy", "-nvxL", "INPUT").splitlines()
    return sum(part["counter"]["packets"] for part in parts) + sum(
        int(line.split()[0]) for line in old if "DROP" in line
    )


def filtered(number: str, do: str, undo: str, what: str, fix: str) -> Make:
    """A packet filter: what the fix begins with is judged by the test."""
    make = by_command(number, do, undo, what)

    def judged(net: NetCluster, names: Sequence[str], rng: random.Random) -> Injected:
        injected = make(net, names, rng)
        injected.fix = fix
        (name,) = injected.hosts
        injected.bit = lambda: counted(net, name)
        return injected

    return judged


INPUT = "type filter hook input priority 0;"
INGRESS = f"type filter hook ingress device {INTERFACE} priority 0;"
PORTS = f"{DATA_PORTS[0]}-{DATA_PORTS[1]}"
REMOVE, LOOK = "remove the rule", "look at the packet filter of "

OWN = (
    Fault(
        "down", by_command("GC-NODE-003", "ip link set fab0 down", "ip link set fab0 up", "its card is down", "down")
    ),
    Fault(
        "carrier",
        by_command(
            "GC-NODE-003",
            "ip link set {port} down",
            "ip link set {port} up",
            "its cable is unplugged",
            "no carrier",
            where="hub",
        ),
    ),
    Fault(
        "address-gone",
        by_command(
            "GC-NODE-004",
            "ip address del {own}/24 dev fab0",
            "ip address add {own}/24 dev fab0",
            "its card has no address",
            "does not have {own}",
        ),
    ),
    Fault("prefix", prefix),
    Fault(
        "no-route",
        by_command(
            "GC-NODE-005",
            f"ip route del {NETWORK}.0/24",
            f"ip route add {NETWORK}.0/24 dev fab0 proto kernel scope link src {{own}}",
            "the route is gone",
            "{name} has no way to ",
        ),
    ),
    Fault(
        "blackhole",
        by_command(
            "GC-NODE-005",
            "ip route add blackhole {peer}/32",
            "ip route del blackhole {peer}/32",
            "a blackhole route to {peer}",
            "{name} has no way to {peer}",
        ),
    ),
    Fault("prohibit", forbidden),
    Fault(
        "rule",
        by_command(
            "GC-NODE-005",
            "ip rule add to {peer} prohibit pref 100",
            "ip rule del pref 100",
            "a rule forbids packets to {peer}",
            "{name} has no way to {peer}",
        ),
    ),
    Fault(
        "rule-table",
        by_command(
            "GC-NODE-005",
            "ip route add blackhole default table 100; ip rule add from {own} lookup 100 pref 100",
            "ip rule del pref 100; ip route flush table 100",
            "a rule for packets from its own address",
            "{name} has no way to ",
            "from {own}",
        ),
    ),
    Fault(
        "source",
        by_command(
            "GC-NODE-005",
            f"ip address add 203.0.113.9/32 dev fab0; ip route replace {NETWORK}.0/24 dev fab0 src 203.0.113.9",
            f"ip address del 203.0.113.9/32 dev fab0; ip route replace {NETWORK}.0/24 dev fab0 src {{own}}",
            "another source address",
            "with the source address 203.0.113.9",
            ranks_fail=True,
        ),
    ),
    Fault(
        "neighbour",
        by_command(
            "GC-NODE-026",
            "ip neighbour replace {peer} lladdr 02:00:00:00:de:ad dev fab0 nud permanent",
            "ip neighbour del {peer} dev fab0",
            "a fixed neighbour entry for {peer}",
            "the neighbour table of {name} has a fixed entry that is wrong",
            "which is no card of {peer}",
        ),
    ),
    Fault(
        "arp-off",
        by_command(
            "GC-NODE-026", "ip link set fab0 arp off", "ip link set fab0 arp on", "no ARP", "ARP is turned off on fab0"
        ),
    ),
    Fault(
        "arp-ignore",
        by_command(
            "GC-NODE-026",
            "sysctl -qw net.ipv4.conf.fab0.arp_ignore=8",
            "sysctl -qw net.ipv4.conf.fab0.arp_ignore=0",
            "no answer to ARP",
            "answers no ARP request on fab0",
            inbound=True,
        ),
    ),
    Fault(
        "xfrm",
        by_command(
            "GC-NET-002",
            "ip xfrm policy add src {own} dst {peer} dir out action block",
            "ip xfrm policy flush",
            "a policy blocks {peer}",
            "the kernel of {name} itself refuses connections to {peer}: EPERM",
        ),
    ),
    Fault("xdp", xdp),
    Fault(
        "netdev",
        filtered(
            "GC-NET-001", *nft(INGRESS, f"tcp dport {PORTS} tcp flags syn counter drop", "netdev"), "netdev", REMOVE
        ),
    ),
    Fault(
        "legacy",
        filtered(
            "GC-NET-001",
            f"iptables-legacy -A INPUT -i fab0 -p tcp --dport {PORTS.replace('-', ':')} -j DROP",
            "iptables-legacy -F INPUT",
            "old iptables",
            LOOK,
        ),
    ),
    Fault(
        "syn-limit",
        filtered(
            "GC-NET-001",
            *nft(INPUT, 'iifname "fab0" tcp flags & (syn | ack) == syn limit rate over 1/second counter drop'),
            "one new connection in a second",
            LOOK,
        ),
    ),
    Fault(
        "connection-count",
        filtered(
            "GC-NET-001",
            *nft(INPUT, f'iifname "fab0" tcp dport {PORTS} ct state new ct count over 1 counter reject'),
            "one connection at a time",
            LOOK,
        ),
    ),
    Fault(
        "stateless",
        filtered("GC-NET-001", *nft(INPUT, 'iifname "fab0" tcp dport 32768-60999 counter drop'), "answers too", REMOVE),
    ),
    Fault(
        "pair",
        filtered(
            "GC-NET-003", *nft(INPUT, f"ip saddr {{peer}} tcp dport {PORTS} counter drop"), "all of {peer}", REMOVE
        ),
    ),
)


def leads(report: dict[str, Any], injected: Injected) -> None:
    """The first line is short and has the cause, and its fix does not send anybody to the switch."""
    first = report["findings"][0]
    assert first["id"] in injected.ids and set(first["hosts"]) == injected.hosts, first
    assert len(report["headline"]) < 160 and first["cause"][:40] in report["headline"], report["headline"]
    assert "switch" not in first["fix"] or first["id"] == "GC-NODE-003", first["fix"]
    assert first["fix"].startswith(injected.fix), first["fix"]
