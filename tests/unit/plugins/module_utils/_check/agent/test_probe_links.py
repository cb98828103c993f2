# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The survey of one node over workers on loopback addresses, and its compact form."""

from __future__ import annotations

import selectors
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    probe_bisection,
    probe_dialing,
    probe_links,
    probe_quality,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

NONCE = "0123456789abcdef" * 2
SETTINGS = probe_dialing.Settings(NONCE, "127.0.0.1", 0.5)
PEER = {
    "host": "n2",
    "address": "192.0.2.2",
    "ports": [
        {"port": 29500, "range": "rendezvous"},
        {"port": 32768, "range": "ephemeral"},
        {"port": 60999, "range": "ephemeral"},
    ],
    "ranges": [{"name": "rendezvous", "first": 29500, "last": 29599}],
}


def respond(connection: socket.socket) -> None:
    responder = probe_ports.Responder(connection, NONCE)
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        while not responder.step():
            selector.select(1)
    connection.close()


def hole(connection: socket.socket) -> None:
    """A path that passes small packets only."""
    # A call that only connects ends with a reset.
    with suppress(ConnectionResetError):
        while len(connection.recv(2000)) == 104:
            connection.sendall(probe_ports.answer(NONCE))
    threading.Event().wait(5)


def banner(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH")


class Nodes:
    """Peers on loopback addresses; each port is answered by its own function, or closed."""

    def __init__(self) -> None:
        self.listeners: list[socket.socket] = []

    def peer(self, host: str, *handlers: Callable[[socket.socket], None] | None) -> dict[str, Any]:
        number = len(self.listeners) + 10
        address = f"127.0.0.{number}"
        ports = []
        for handler in handlers:
            listener = probe_ports.bind_listener(address, 0)
            ports.append({"port": listener.getsockname()[1], "range": "ephemeral"})
            if handler is None:
                listener.close()
                continue
            self.listeners.append(listener)
            threading.Thread(target=self.serve, args=(listener, handler), daemon=True).start()
        return {"host": host, "address": address, "ports": ports, "ranges": []}

    def serve(self, listener: socket.socket, handler: Callable[[socket.socket], None]) -> None:
        listener.setblocking(True)
        while True:
            try:
                connection, _peer = listener.accept()
            except OSError:
                return
            threading.Thread(target=handler, args=(connection,), daemon=True).start()


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    made = Nodes()
    yield made
    for one in made.listeners:
        one.shutdown(socket.SHUT_RDWR)  # close() alone would leave its thread waiting.
        one.close()


def first(book: list[dict[str, Any]], own_name: str, settings: probe_dialing.Settings) -> list[dict[str, Any]]:
    """What the survey says where there is one rail only."""
    found = probe_links.survey(book, own_name, settings)
    assert list(found) == [probe_links.FIRST_RAIL]
    return found[probe_links.FIRST_RAIL]


def retransmitted() -> int:
    """The segments that this machine has sent again, on any connection: a busy one does so even to itself."""
    names, values = (
        line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Tcp:")
    )
    return int(dict(zip(names, values))["RetransSegs"])


def test_a_healthy_link_is_short(nodes: Nodes) -> None:
    book = [nodes.peer("n1", respond), nodes.peer("n2", respond, respond, respond)]
    before = retransmitted()
    (found,) = first(book, "n1", SETTINGS)
    assert (found["host"], found["probes"]) == ("n2", 3)
    assert 0 <= found["retransmits"] <= retransmitted() - before
    assert 0 < found["milliseconds"] < 1000 and found["bytes_per_second"] > 1e6
    assert found["failures"] == found["blocked"] == found["searched"] == []


def test_each_trouble_is_told_apart(nodes: Nodes) -> None:
    book = [
        nodes.peer("hole", hole, respond),
        nodes.peer("gone", respond, None),
        nodes.peer("foreign", banner, respond),
        nodes.peer("good", respond),
    ]
    found = {one["host"]: one for one in first(book, "me", SETTINGS)}
    assert list(found) == ["hole", "gone", "foreign", "good"]
    (failure,) = found["hole"]["failures"]
    assert (failure["result"], failure["passed_bytes"], failure["stalled_bytes"]) == (probe_ports.STALLED, 64, 1300)
    (failure,) = found["gone"]["failures"]
    assert failure["result"] == probe_ports.REFUSED and "passed_bytes" not in failure
    (failure,) = found["foreign"]["failures"]
    assert (failure["result"], failure["said"]) == (probe_ports.FOREIGN, "SSH-2.0-OpenSSH")
    assert found["good"]["failures"] == []
    # A hole is not measured; the ladder of the other two found a port that works.
    assert {host: one["bytes_per_second"] is None for host, one in found.items()} == {
        "hole": True,
        "gone": False,
        "foreign": True,
        "good": False,
    }


def test_the_ladder_goes_elsewhere_when_its_port_is_closed(nodes: Nodes) -> None:
    (found,) = first([nodes.peer("n2", None, hole)], "n1", SETTINGS)
    assert [one["result"] for one in found["failures"]] == [probe_ports.REFUSED, probe_ports.STALLED]


def test_a_busy_moment_is_no_failure(nodes: Nodes) -> None:
    seen: list[int] = []

    def late(connection: socket.socket) -> None:
        seen.append(1)
        if len(seen) == 1:
            threading.Event().wait(2)
        respond(connection)

    (found,) = first([nodes.peer("n2", late, respond)], "n1", SETTINGS)
    assert found["failures"] == [] and len(seen) > 1


def test_blocked_ports_are_searched_on_eight_peers_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls are replaced: nothing on loopback drops."""
    knocked = set()

    def dial(
        targets: list[probe_dialing.Target], _settings: probe_dialing.Settings, **_limits: Any
    ) -> list[probe_dialing.Outcome]:
        knocked.update(target.host for target in targets if not target.payloads)
        found = []
        for target in targets:
            result = probe_ports.TIMEOUT if 40000 <= target.port <= 50000 else probe_ports.OK
            found.append(
                probe_dialing.Outcome(target, result, 1.0, None if result == probe_ports.TIMEOUT else 0.5, (), 0, "")
            )
        return found

    monkeypatch.setattr(probe_links, "dial", dial)
    monkeypatch.setattr(probe_quality, "dial", dial)
    ports = [{"port": 32768, "range": "ephemeral"}, {"port": 45000, "range": "ephemeral"}]
    book = [{"host": f"n{number}", "address": "192.0.2.9", "ports": ports, "ranges": []} for number in range(12)]
    found = {one["host"]: one for one in first(book, "n5", SETTINGS)}
    assert list(found) == [peer["host"] for peer in book if peer["host"] != "n5"]
    # Those after this node come first.
    assert knocked == {"n6", "n7", "n8", "n9", "n10", "n11", "n0", "n1"}
    assert found["n6"]["blocked"] == [{"first": 40000, "last": 50000, "result": probe_ports.TIMEOUT}]
    assert found["n6"]["searched"] == [[1024, 65535]]
    assert [one["port"] for one in found["n2"]["failures"]] == [45000]
    assert found["n2"]["blocked"] == found["n2"]["searched"] == []


def test_a_filter_that_drops_answers_to_own_ports_closes_no_port_of_a_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls are replaced: nothing on loopback drops.  The kernel's choice falls into the interval every time but
    one, and 45000 of the peer is closed for all."""
    chosen = iter(range(40000, 50000))

    def dial(
        targets: list[probe_dialing.Target], _settings: probe_dialing.Settings, **_limits: Any
    ) -> list[probe_dialing.Outcome]:
        found = []
        for target in targets:
            own_port = target.own_port or (35000 if (target.host, target.port) == ("n2", 29500) else next(chosen))
            dropped = 40000 <= own_port <= 50000 or target.port == 45000
            result = probe_ports.TIMEOUT if dropped else probe_ports.OK
            steps = () if dropped else (probe_dialing.Step(target.payloads[-1] if target.payloads else 0, 0.01, 0),)
            found.append(probe_dialing.Outcome(target, result, 1.0, None if dropped else 0.5, steps, 0, "", own_port))
        return found

    monkeypatch.setattr(probe_links, "dial", dial)
    monkeypatch.setattr(probe_quality, "dial", dial)
    ports = [{"port": port, "range": "ephemeral"} for port in (32768, 45000, 60999)]
    rendezvous = {"port": 29500, "range": "rendezvous"}
    book = [
        {"host": name, "address": "192.0.2.9", "ports": [rendezvous, *ports], "ranges": []} for name in ("n2", "n3")
    ]
    second, third = first(book, "n1", SETTINGS)
    assert [[one["port"] for one in found["failures"]] for found in (second, third)] == [[45000], [45000]]
    assert second["blocked"] == third["blocked"] == [{"first": 45000, "last": 45000, "result": probe_ports.TIMEOUT}]
    assert second["bytes_per_second"] and third["bytes_per_second"]
    assert len(second["unheard"]) == 2 and len(third["unheard"]) == 3
    assert all(40000 <= port <= 50000 for port in second["unheard"] + third["unheard"])


def test_every_rail_is_called_from_its_own_address(nodes: Nodes) -> None:
    """One rail that both have, one that only the peer has, one that only this node has."""
    callers = set()

    def note(connection: socket.socket) -> None:
        # A call that only connects may be over.
        with suppress(OSError):
            callers.add(connection.getpeername()[0])
        respond(connection)

    peer, second = nodes.peer("n2", respond), nodes.peer("n2", note, respond)
    rails = [
        {"name": "rail 2", "address": second["address"], "ports": second["ports"]},
        {"name": "rail 4", "address": second["address"], "ports": second["ports"]},
    ]
    own = [{"name": name, "address": "127.0.0.77", "ports": []} for name in ("rail 2", "rail 3")]
    book = [dict(nodes.peer("n1", respond), rails=own), dict(peer, rails=rails)]
    found = probe_links.survey(book, "n1", SETTINGS)
    assert {name: [one["host"] for one in of] for name, of in found.items()} == {"": ["n2"], "rail 2": ["n2"]}
    assert found["rail 2"][0]["probes"] == 2 and found["rail 2"][0]["failures"] == []
    assert found["rail 2"][0]["bytes_per_second"] > 1e6
    assert callers == {"127.0.0.77"}


def test_a_closed_port_of_one_rail_is_not_one_of_another(nodes: Nodes) -> None:
    peer, second = nodes.peer("n2", respond), nodes.peer("n2", respond, None)
    there = [{"name": "rail 2", "address": second["address"], "ports": second["ports"]}]
    book = [
        dict(nodes.peer("n1", respond), rails=[{"name": "rail 2", "address": "127.0.0.77", "ports": []}]),
        dict(peer, rails=there),
    ]
    found = probe_links.survey(book, "n1", SETTINGS)
    assert found[""][0]["failures"] == []
    assert [one["result"] for one in found["rail 2"][0]["failures"]] == [probe_ports.REFUSED]


def test_fewer_peers_of_each_rail_are_searched_when_many_rails_have_blocked_ports() -> None:
    def most(rails: int) -> dict[str, int]:
        names = [probe_links.FIRST_RAIL, *(f"rail {number}" for number in range(2, rails + 1))]
        blocked = [{"host": f"n{number}", "rail": name} for name in names for number in range(20)]
        return dict(Counter(one["rail"] for one in probe_links.searched(blocked)))

    assert most(1) == {"": 8}
    assert most(2) == {"": 8, "rail 2": 8}
    assert most(5) == {"": 8, **{f"rail {number}": 4 for number in range(2, 6)}}
    assert set(most(40).values()) == {8, 1}


def test_an_interval_of_one_rail_is_searched_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls are replaced: nothing on loopback drops."""

    def dial(
        targets: list[probe_dialing.Target], _settings: probe_dialing.Settings, **_limits: Any
    ) -> list[probe_dialing.Outcome]:
        found = []
        for target in targets:
            is_blocked = target.rail == "rail 2" and 40000 <= target.port <= 50000
            assert (target.address, target.source) == (
                ("192.0.2.9", "192.0.2.8") if target.rail else ("198.51.100.9", "")
            )
            result = probe_ports.TIMEOUT if is_blocked else probe_ports.OK
            found.append(probe_dialing.Outcome(target, result, 1.0, None if is_blocked else 0.5, (), 0, ""))
        return found

    monkeypatch.setattr(probe_links, "dial", dial)
    monkeypatch.setattr(probe_quality, "dial", dial)
    ports = [{"port": 32768, "range": "ephemeral"}, {"port": 45000, "range": "ephemeral"}]
    book = [
        {
            "host": host,
            "address": f"198.51.100.{number}",
            "ports": ports,
            "ranges": [],
            "rails": [{"name": "rail 2", "address": f"192.0.2.{number}", "ports": ports}],
        }
        for number, host in ((8, "n1"), (9, "n2"))
    ]
    found = probe_links.survey(book, "n1", SETTINGS)
    assert found[""][0]["failures"] == found[""][0]["blocked"] == found[""][0]["searched"] == []
    assert found["rail 2"][0]["blocked"] == [{"first": 40000, "last": 50000, "result": probe_ports.TIMEOUT}]
    assert [one["port"] for one in found["rail 2"][0]["failures"]] == [45000]


def test_one_port_of_a_peer_gets_the_ladder() -> None:
    found = probe_links.targets(PEER, 2.0)
    assert [(one.port, one.payloads) for one in found] == [
        (29500, probe_links.SMALL),
        (32768, probe_links.LADDER),
        (60999, probe_links.SMALL),
    ]
    assert [one.timeout_seconds for one in found] == [None, 2.0, None]
    assert probe_links.targets(PEER, 60.0)[1].timeout_seconds == probe_links.LADDER_SECONDS


def test_a_peer_without_ephemeral_ports_gets_the_ladder_on_its_first_one() -> None:
    peer = dict(PEER, ports=PEER["ports"][:1])
    assert [one.payloads for one in probe_links.targets(peer, 2.0)] == [probe_links.LADDER]
    assert probe_links.targets(dict(PEER, ports=[]), 2.0) == []


def test_each_node_begins_with_another_peer() -> None:
    book = [{"host": name} for name in "abcd"]
    assert ["".join(peer["host"] for peer in probe_links.rotated(book, name)) for name in "abcd"] == [
        "bcd",
        "cda",
        "dab",
        "abc",
    ]


def test_the_median_handshake_counts_only_ports_that_answered() -> None:
    def outcome(port: int, result: str, connect_ms: float | None) -> probe_dialing.Outcome:
        return probe_dialing.Outcome(
            probe_dialing.Target("n2", "192.0.2.2", port, "x"), result, 9.0, connect_ms, (), 0, ""
        )

    outcomes = [outcome(1, probe_ports.OK, 0.1), outcome(2, probe_ports.OK, 0.3), outcome(3, probe_ports.FOREIGN, 50.0)]
    outcomes.append(outcome(4, probe_ports.TIMEOUT, None))
    made = probe_links.link("n2", outcomes, probe_quality.Quality(1234.6, 2), None)
    assert (made["milliseconds"], made["bytes_per_second"], made["retransmits"], made["probes"]) == (0.2, 1235, 2, 4)
    assert [one["port"] for one in made["failures"]] == [3, 4]
    searched = probe_bisection.Search("n2", [], {})
    assert probe_links.link("n2", outcomes[3:], None, searched)["milliseconds"] is None


def an_outcome(port: int, result: str, lost: int = 0, host: str = "n2") -> probe_dialing.Outcome:
    connect_ms = 0.1 if result == probe_ports.OK else None
    target = probe_dialing.Target(host, "192.0.2.2", port, "mpi")
    return probe_dialing.Outcome(target, result, 1.0, connect_ms, (), 0, "", 50000 + port % 1000, lost)


def test_where_requests_get_lost_a_silent_port_is_called_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """And only there: a peer with closed ports, and none that answered late, costs nothing more."""
    asked: list[list[tuple[str, int]]] = []

    def dial(
        targets: list[probe_dialing.Target], _settings: probe_dialing.Settings, seconds: float
    ) -> list[probe_dialing.Outcome]:
        asked.append([(one.host, one.port) for one in targets])
        assert 0 < seconds <= probe_links.INSIST_SECONDS
        answers = {61001: len(asked) >= 2}
        return [
            an_outcome(one.port, probe_ports.OK if answers.get(one.port) else probe_ports.TIMEOUT, 2) for one in targets
        ]

    monkeypatch.setattr(probe_links, "dial", dial)
    outcomes = {
        ("", "n2"): [
            an_outcome(61000, probe_ports.OK, 1),
            an_outcome(61001, probe_ports.TIMEOUT, 3),
            an_outcome(61002, probe_ports.TIMEOUT, 3),
        ],
        ("", "n3"): [an_outcome(61000, probe_ports.OK, host="n3"), an_outcome(61001, probe_ports.TIMEOUT, 3, "n3")],
    }
    unheard: dict[tuple[str, str], list[int]] = {}
    calls = probe_links._insist(outcomes, unheard, SETTINGS)
    assert asked == [[("n2", 61001), ("n2", 61002)], [("n2", 61001), ("n2", 61002)], [("n2", 61002)]]
    assert len(calls) == 5 and [one.result for one in outcomes["", "n2"]] == [
        *(probe_ports.OK, probe_ports.OK, probe_ports.TIMEOUT)
    ]
    assert len(unheard["", "n2"]) == 1
    assert probe_links._insist({("", "n3"): outcomes["", "n3"]}, {}, SETTINGS) == []
