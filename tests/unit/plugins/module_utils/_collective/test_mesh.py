# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes against real sockets on loopback: each result is caused, not made up."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective import mesh

NONCE = "0123456789abcdef" * 2


def serve(listener: socket.socket, handle: Callable[[socket.socket], Any]) -> threading.Thread:
    def loop() -> None:
        listener.setblocking(True)
        while True:
            try:
                connection, _peer = listener.accept()
            except OSError:
                return
            handle(connection)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    return thread


def respond(connection: socket.socket, nonce: str = NONCE) -> None:
    responder = mesh.Responder(connection, nonce)
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        while not responder.step():
            selector.select(1)
    connection.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    one = mesh.bind_listener("127.0.0.1", 0)
    yield one
    one.close()


def probe_one(port: int, payload: int = 64, timeout: float = 0.5) -> mesh.Outcome:
    (outcome,) = mesh.probe([mesh.Target("peer", "127.0.0.1", port, "ephemeral", payload)], NONCE, "127.0.0.1", timeout)
    return outcome


@pytest.mark.parametrize("payload", [0, 64, 5_000_000])
def test_a_worker_of_this_run_is_ok(listener: socket.socket, payload: int) -> None:
    serve(listener, respond)
    outcome = probe_one(listener.getsockname()[1], payload, 5)
    assert (outcome.result, outcome.host, outcome.range_name) == (mesh.OK, "peer", "ephemeral")


def test_a_worker_of_another_run_is_foreign(listener: socket.socket) -> None:
    serve(listener, lambda connection: respond(connection, "f" * 32))
    assert probe_one(listener.getsockname()[1]).result == mesh.FOREIGN


def test_what_is_no_probe_of_this_run_is_turned_away_at_its_first_bytes(listener: socket.socket) -> None:
    serve(listener, respond)
    with socket.create_connection(listener.getsockname(), timeout=5) as connection:
        connection.sendall(mesh.header("f" * 32, 0)[:8])
        assert connection.recv(100) == b""


def test_an_echo_service_is_foreign(listener: socket.socket) -> None:
    serve(listener, lambda connection: connection.sendall(connection.recv(1000)))
    assert probe_one(listener.getsockname()[1]).result == mesh.FOREIGN


def test_silence_after_connecting_is_stalled(listener: socket.socket) -> None:
    kept: list[socket.socket] = []
    serve(listener, kept.append)
    assert probe_one(listener.getsockname()[1]).result == mesh.STALLED


def test_a_closed_port_is_refused(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    listener.close()
    assert probe_one(port).result == mesh.REFUSED


def test_no_answer_is_a_timeout_and_ends_in_time() -> None:
    # A full backlog drops further SYNs, as a firewall with DROP does.
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            start = time.monotonic()
            outcome = probe_one(port, timeout=0.4)
            assert outcome.result == mesh.TIMEOUT
            assert time.monotonic() - start < 1.5


def test_more_targets_than_one_window(listener: socket.socket) -> None:
    serve(listener, respond)
    port = listener.getsockname()[1]
    targets = [mesh.Target(f"h{i}", "127.0.0.1", port, "ephemeral", 64) for i in range(mesh.WINDOW + 50)]
    outcomes = mesh.probe(targets, NONCE, "127.0.0.1", 10)
    assert {outcome.host for outcome in outcomes if outcome.result == mesh.OK} == {target.host for target in targets}


def test_an_address_that_is_not_local_is_an_error_not_a_crash() -> None:
    (outcome,) = mesh.probe([mesh.Target("peer", "127.0.0.1", 1, "x", 0)], NONCE, "192.0.2.1", 0.2)
    assert outcome.result == "EADDRNOTAVAIL"


def test_samples_are_spread_and_skip_taken_ports() -> None:
    taken = mesh.bind_listener("127.0.0.1", 45000)
    samples = mesh.bind_samples("127.0.0.1", 45000, 46000, 3)
    try:
        assert [sample.getsockname()[1] for sample in samples] == [45001, 45500, 46000]
    finally:
        for one in [taken, *samples]:
            one.close()
