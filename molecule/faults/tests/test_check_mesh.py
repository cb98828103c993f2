# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mesh against the kernel's own packet filter: the real prober and the real workers, in network namespaces.

A node with nine peers, each in its own namespace with its own cable.  Intervals are drawn; a failing run prints its
seed, and GPU_CLUSTER_SEED repeats it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_cluster import PROJECT

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import launch, worker
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import probe as prober
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_answer

NONCE = "0123456789abcdef" * 2
PREFIX = f"gcm{os.getpid()}"
PEERS = [f"n{number}" for number in range(2, 11)]
OWN = {4: "192.0.2.1", 6: "2001:db8::1"}
RANGES = [
    {"name": "rendezvous", "first": 29400, "last": 29599},
    {"name": "ephemeral", "first": 32768, "last": 60999},
    {"name": "mpi", "first": 61000, "last": 64999},
]
ALL_PORTS = {"first": 1024, "last": 65535}


def address(peer: str, family: int = 4) -> str:
    return f"192.0.2.{peer[1:]}" if family == 4 else f"2001:db8::{peer[1:]}"


def run(*argv: str, stdin: str = "") -> str:
    ended = subprocess.run(argv, input=stdin, check=False, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, f"{' '.join(argv)}: {ended.stderr}"
    return ended.stdout


def inside(name: str) -> list[str]:
    """What puts a command into the namespace of a node."""
    return ["ip", "netns", "exec", f"{PREFIX}-{name}"]


def environment() -> dict[str, str]:
    return dict(os.environ, PYTHONPATH=str(PROJECT / ".ansible" / "collections"))


class Net:
    """The namespaces.  The node under test is n1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        self.books: dict[int, list[dict[str, Any]]] = {4: [], 6: []}

    def build(self) -> None:
        for name in ("n1", *PEERS):
            run("ip", "netns", "add", f"{PREFIX}-{name}")
            run(*inside(name), "ip", "link", "set", "lo", "up")
        for peer in PEERS:
            self._cable(peer)
        for family in (4, 6):
            for peer in PEERS:
                self._start(peer, family)
        for family in (4, 6):
            for peer in PEERS:
                self.books[family].append(self._entry(peer, family))

    def _cable(self, peer: str) -> None:
        near, far = f"{PREFIX}-n1", f"{PREFIX}-{peer}"
        run("ip", "link", "add", peer, "netns", near, "type", "veth", "peer", "n1", "netns", far)
        ends = {"n1": (peer, OWN, {4: address(peer), 6: address(peer, 6)})}
        ends[peer] = ("n1", {4: address(peer), 6: address(peer, 6)}, OWN)
        for name, (interface, own, other) in ends.items():
            lines = [f"link set {interface} up mtu 9000"]
            for family, bits in ((4, 32), (6, 128)):
                nodad = "nodad" if family == 6 else ""
                lines.append(f"addr add {own[family]}/{bits} dev {interface} {nodad}")
                lines.append(f"route add {other[family]}/{bits} dev {interface} src {own[family]}")
            run(*inside(name), "ip", "-batch", "-", stdin="\n".join(lines) + "\n")

    def _start(self, peer: str, family: int) -> None:
        folder = self.folder / f"{peer}-{family}"
        (folder / "out").mkdir(parents=True)
        launch.write_payload(str(folder / "payload"))
        job = {
            "nonce": NONCE,
            "address": address(peer, family),
            "interface": "n1",
            "torch_python": "/bin/true",
            "ranks_per_node": 1,
            "lifetime_seconds": 600,
            "ranges": [dict(one, samples=4) for one in RANGES],
        }
        worker.write_json(str(folder / "job.json"), job)
        command = [*inside(peer), sys.executable, "-m", worker.__name__, str(folder)]
        self.workers.append(subprocess.Popen(command, env=dict(os.environ, PYTHONPATH=str(folder / "payload"))))

    def _entry(self, peer: str, family: int) -> dict[str, Any]:
        path = self.folder / f"{peer}-{family}" / "out" / "state.json"
        end = time.monotonic() + 30
        while not path.exists():
            assert time.monotonic() < end, f"no worker on {peer}"
            time.sleep(0.05)
        state = json.loads(path.read_text())
        assert state["state"] == "waiting", state
        return {"host": peer, "address": address(peer, family), "ports": state["ports"], "ranges": RANGES}

    def filter(self, name: str, *rules: str, table: str = "inet", hook: str = "input", kind: str = "filter") -> None:
        """Give a namespace these rules, besides those that it has."""
        priority = "-100" if kind == "nat" else "0"
        lines = [
            f"table {table} {kind}{hook} {{ chain c {{ type {kind} hook {hook} priority {priority}; policy accept;",
            *rules,
            "}",
            "}",
        ]
        run(*inside(name), "nft", "-f", "-", stdin="\n".join(lines) + "\n")

    def counted(self, name: str) -> list[int]:
        """Packets that each counting rule of a namespace has met."""
        return [int(one) for one in re.findall(r"counter packets (\d+)", run(*inside(name), "nft", "list", "ruleset"))]

    def open(self) -> None:
        for name in ("n1", *PEERS):
            run(*inside(name), "nft", "flush", "ruleset")

    def probe(self, *peers: str, family: int = 4, timeout_seconds: float = 1.5) -> tuple[dict[str, Any], float]:
        """What the prober of n1 finds for these peers, by peer, and how long it took."""
        folder = self.folder / "n1"
        (folder / "out").mkdir(parents=True, exist_ok=True)
        worker.write_json(str(folder / "job.json"), {"nonce": NONCE, "address": OWN[family]})
        book = [one for one in self.books[family] if one["host"] in peers]
        asked = {"host": "n1", "book": book, "timeout_seconds": timeout_seconds}
        worker.write_json(str(folder / worker.PROBE), asked)
        start = time.monotonic()
        argv = [*inside("n1"), sys.executable, "-m", prober.__name__, str(folder)]
        ended = subprocess.run(argv, env=environment(), check=False, capture_output=True, text=True, timeout=120)
        seconds = time.monotonic() - start
        assert ended.returncode == 0, ended.stdout + ended.stderr
        found = json.loads((folder / probe_answer.PATH).read_text())
        assert probe_answer.is_answer(found), found
        return {one["host"]: one for one in found["links"]}, seconds

    def remove(self) -> None:
        for process in self.workers:
            process.kill()
            process.wait()
        for name in ("n1", *PEERS):
            with contextlib.suppress(AssertionError):  # It was not made.
                run("ip", "netns", "delete", f"{PREFIX}-{name}")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    net = Net(tmp_path_factory.mktemp("mesh"))
    try:
        net.build()
        yield net
    finally:
        net.remove()


@pytest.fixture
def net(built: Net) -> Iterator[Net]:
    yield built
    built.open()


@pytest.fixture
def drawn() -> random.Random:
    seed = int(os.environ.get("GPU_CLUSTER_SEED") or random.randrange(2**32))
    print(f"GPU_CLUSTER_SEED={seed}")
    return random.Random(seed)


def interval(drawn: random.Random) -> tuple[int, int]:
    """Wide enough to hold one of the four sampled ports of the ephemeral range."""
    first = drawn.randrange(32769, 48000)
    return first, first + drawn.randrange(9500, 12000)


def results(link: dict[str, Any]) -> set[str]:
    return {one["result"] for one in link["failures"]}


@pytest.mark.parametrize("family", [4, 6])
def test_open_links_have_nothing_to_tell(net: Net, family: int) -> None:
    found, seconds = net.probe(*PEERS, family=family)
    assert list(found) == PEERS and seconds < 10
    for link in found.values():
        assert link["failures"] == link["blocked"] == link["searched"] == [], link
        assert link["probes"] == 12 and link["retransmits"] == 0
        assert 0 < link["milliseconds"] < 100 and link["bytes_per_second"] > 10_000_000


def test_blocked_intervals_are_exact_and_drop_is_not_reject(net: Net, drawn: random.Random) -> None:
    verdicts = {
        "n2": ("drop", "timeout"),
        "n3": ("reject with icmpx admin-prohibited", "unreachable"),
        "n4": ("reject", "unreachable"),
        "n5": ("drop", "timeout"),
    }
    spans = {peer: interval(drawn) for peer in verdicts}
    for peer, (verdict, _result) in verdicts.items():
        net.filter(peer, f"tcp dport {spans[peer][0]}-{spans[peer][1]} counter {verdict}")
    found, seconds = net.probe(*PEERS)
    assert seconds < 25
    for peer, (_verdict, result) in verdicts.items():
        first, last = spans[peer]
        assert found[peer]["blocked"] == [{"first": first, "last": last, "result": result}], found[peer]
        assert found[peer]["searched"] == [[1024, 65535]]
        assert all(first <= one["port"] <= last for one in found[peer]["failures"])
        assert net.counted(peer)[0] > 0
    for peer in set(PEERS) - set(verdicts):
        assert found[peer]["failures"] == found[peer]["blocked"] == [], found[peer]


def test_several_intervals_of_one_peer(net: Net, drawn: random.Random) -> None:
    first, second = 33000 + drawn.randrange(3000), 50000 + drawn.randrange(3000)
    net.filter(
        "n2",
        f"tcp dport {first}-{first + 9500} counter drop",
        f"tcp dport {second}-{second + 9500} counter reject with icmpx admin-prohibited",
    )
    # As firewalld leaves it when only the port of the rendezvous is open.
    net.filter("n3", "tcp dport 29400 accept", "meta l4proto tcp counter reject with icmpx admin-prohibited")
    found, _seconds = net.probe("n2", "n3", "n4")
    assert found["n2"]["blocked"] == [
        {"first": first, "last": first + 9500, "result": "timeout"},
        {"first": second, "last": second + 9500, "result": "unreachable"},
    ]
    assert found["n3"]["blocked"] == [
        {"first": 1024, "last": 29399, "result": "unreachable"},
        {"first": 29401, "last": 65535, "result": "unreachable"},
    ]
    assert all(count > 0 for peer in ("n2", "n3") for count in net.counted(peer))


@pytest.mark.parametrize("family", [4, 6])
def test_what_the_node_itself_does_not_let_out_is_found_too(net: Net, drawn: random.Random, family: int) -> None:
    first, last = interval(drawn)
    net.filter("n1", f"tcp dport {first}-{last} counter drop", hook="output")
    found, _seconds = net.probe(*PEERS[:3], family=family)
    for link in found.values():
        assert link["blocked"] == [{"first": first, "last": last, "result": "timeout"}], link
    assert net.counted("n1")[0] > 0


def test_each_trouble_is_told_apart(net: Net) -> None:
    port = next(one["port"] for one in net.books[4][0]["ports"] if one["range"] == "mpi")
    net.filter("n2", "tcp dport 46720-60999 counter reject with tcp reset")
    net.filter("n3", "meta length > 1400 counter drop")
    net.filter("n4", "meta length > 5000 counter drop")
    # Something else behind a port of the plan.
    net.filter("n5", f"tcp dport {port} counter redirect to :7", hook="prerouting", kind="nat", table="ip")
    speak = "import socket\ns = socket.create_server(('', 7))\nwhile True: s.accept()[0].sendall(b'SSH-2.0-other')"
    foreign = subprocess.Popen([*inside("n5"), sys.executable, "-c", speak])
    run(*inside("n6"), "ip", "addr", "del", f"{address('n6')}/32", "dev", "n1")
    try:
        time.sleep(0.5)
        found, seconds = net.probe(*PEERS)
    finally:
        foreign.kill()
        foreign.wait()
        run(*inside("n6"), "ip", "addr", "add", f"{address('n6')}/32", "dev", "n1")
        run(*inside("n6"), "ip", "route", "replace", OWN[4], "dev", "n1", "src", address("n6"))
    assert seconds < 40
    assert results(found["n2"]) == {"refused"} and found["n2"]["blocked"] == []
    assert all(46720 <= one["port"] <= 60999 for one in found["n2"]["failures"])
    for peer, passed, stalled in (("n3", 1300, 1500), ("n4", 1500, 9000)):
        (failure,) = found[peer]["failures"]
        assert (failure["result"], failure["passed_bytes"], failure["stalled_bytes"]) == ("stalled", passed, stalled)
    (failure,) = found["n5"]["failures"]
    assert (failure["result"], failure["port"], failure["said"]) == ("foreign", port, "SSH-2.0-other")
    # Nobody answers for the address: that is silence, whatever this kernel calls it.
    assert results(found["n6"]) == {"timeout"} and len(found["n6"]["failures"]) == 12
    assert found["n6"]["blocked"] == [{**ALL_PORTS, "result": "timeout"}]
    for peer in PEERS[5:]:
        assert found[peer]["failures"] == [], found[peer]
    assert all(net.counted(peer)[0] > 0 for peer in ("n2", "n3", "n4", "n5"))


def test_a_slow_and_a_lossy_link_stand_out_and_are_no_failure(net: Net) -> None:
    """On a cable of 20 Mbit/s 1 MiB takes 420 ms, and here a few otherwise."""
    net.filter("n3", "tcp dport 1024-65535 meta length > 1000 numgen random mod 100 < 10 counter drop")
    # Packets as on a wire: the kernel would hand over 64 KiB at once, of which 1 MiB needs few.
    run(*inside("n1"), "ip", "link", "set", "n3", "gso_max_segs", "1")
    shape = "rate 20mbit burst 64k limit 1m"
    run(*inside("n1"), "tc", "qdisc", "add", "dev", "n2", "root", "tbf", *shape.split())
    try:
        found, _seconds = net.probe(*PEERS)
        queue = run(*inside("n1"), "tc", "-s", "qdisc", "show", "dev", "n2")
    finally:
        run(*inside("n1"), "tc", "qdisc", "del", "dev", "n2", "root")
        run(*inside("n1"), "ip", "link", "set", "n3", "gso_max_segs", "65535")
    assert all(link["failures"] == [] for link in found.values()), found
    usual = sorted(link["bytes_per_second"] for link in found.values())[len(found) // 2]
    assert 500_000 < found["n2"]["bytes_per_second"] < 3_000_000 < usual / 2, found
    assert int(re.findall(r"Sent (\d+) bytes", queue)[0]) > 1_000_000
    assert found["n3"]["retransmits"] > 0 and net.counted("n3")[0] > 0
    assert all(found[peer]["retransmits"] == 0 for peer in PEERS[2:])


def test_lost_packets_close_no_port(net: Net) -> None:
    for peer in PEERS:
        net.filter(peer, "tcp flags & (syn | ack) == syn numgen random mod 100 < 3 counter drop")
    # Too short for the kernel to send a SYN again: only the second look can tell.
    found, _seconds = net.probe(*PEERS, timeout_seconds=0.5)
    assert all(link["failures"] == link["blocked"] == [] for link in found.values()), found
    assert sum(net.counted(peer)[0] for peer in PEERS) > 0
