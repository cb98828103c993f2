# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls to real sockets on loopback: each result is caused, not made up."""

from __future__ import annotations

import errno
import resource
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import probe_dialing
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

NONCE = "0123456789abcdef" * 2
LONG = probe_dialing.LONG_BYTES


def serve(listener: socket.socket, handle: Callable[[socket.socket], Any]) -> None:
    def loop() -> None:
        listener.setblocking(True)
        while True:
            try:
                connection, _peer = listener.accept()
            except OSError:
                return
            threading.Thread(target=handle, args=(connection,), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()


def respond(connection: socket.socket, nonce: str = NONCE) -> None:
    responder = probe_ports.Responder(connection, nonce)
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        while not responder.step():
            selector.select(1)
    connection.close()


def respond_to_small(connection: socket.socket) -> None:
    """Answers a first message and swallows whatever comes then."""
    connection.recv(1000)
    connection.sendall(probe_ports.answer(NONCE))
    threading.Event().wait(5)


def stop(listener: socket.socket) -> None:
    """Close it and end its thread; one left in accept() would, after a pause, take the next file of that number."""
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    one = probe_ports.bind_listener("127.0.0.1", 0)
    yield one
    stop(one)


def settings(timeout: float = 0.5, source: str = "127.0.0.1") -> probe_dialing.Settings:
    return probe_dialing.Settings(NONCE, source, timeout)


def call(port: int, *payloads: int, timeout: float = 0.5, seconds: float | None = None) -> probe_dialing.Outcome:
    target = probe_dialing.Target("peer", "127.0.0.1", port, "ephemeral", payloads)
    (outcome,) = probe_dialing.dial([target], settings(timeout), seconds=seconds)
    return outcome


@pytest.mark.parametrize("payloads", [(0,), (64,), (64, 1300, 1500, 9000, 65536, LONG)])
def test_a_worker_of_this_run_is_ok(listener: socket.socket, payloads: tuple[int, ...]) -> None:
    serve(listener, respond)
    outcome = call(listener.getsockname()[1], *payloads, timeout=5)
    assert (outcome.result, outcome.target.host, outcome.target.range_name) == (probe_ports.OK, "peer", "ephemeral")
    assert [step.payload_bytes for step in outcome.steps] == list(payloads)
    assert outcome.connect_ms is not None and 0 < outcome.connect_ms <= outcome.milliseconds
    assert outcome.passed_bytes == max(payloads) and outcome.stalled_bytes == 0


def test_without_payload_it_only_connects(listener: socket.socket) -> None:
    outcome = call(listener.getsockname()[1])
    assert outcome.result == probe_ports.OK and outcome.steps == ()


def test_a_worker_of_another_run_is_foreign(listener: socket.socket) -> None:
    serve(listener, lambda connection: respond(connection, "f" * 32))
    assert call(listener.getsockname()[1], 64).result == probe_ports.FOREIGN


def test_an_echo_service_is_foreign(listener: socket.socket) -> None:
    serve(listener, lambda connection: connection.sendall(connection.recv(1000)))
    outcome = call(listener.getsockname()[1], 64)
    assert outcome.result == probe_ports.FOREIGN and outcome.said.startswith(NONCE)


def test_the_first_words_of_a_foreign_service_are_kept_printable(listener: socket.socket) -> None:
    serve(listener, lambda connection: connection.sendall(b"SSH-2.0-x\r\n\xff" + b"y" * 200))
    outcome = call(listener.getsockname()[1], 64)
    assert outcome.result == probe_ports.FOREIGN
    assert outcome.said.startswith("SSH-2.0-x..") and len(outcome.said) == 80


def test_silence_after_connecting_is_stalled(listener: socket.socket) -> None:
    kept: list[socket.socket] = []
    serve(listener, kept.append)
    outcome = call(listener.getsockname()[1], 64)
    assert (outcome.result, outcome.passed_bytes, outcome.stalled_bytes) == (probe_ports.STALLED, 0, 64)


def test_the_ladder_says_what_passed_and_what_did_not(listener: socket.socket) -> None:
    serve(listener, respond_to_small)
    outcome = call(listener.getsockname()[1], 64, 1300, 1500)
    assert (outcome.result, outcome.passed_bytes, outcome.stalled_bytes) == (probe_ports.STALLED, 64, 1300)


def test_many_slow_answers_do_not_last_for_ever(listener: socket.socket) -> None:
    def late(connection: socket.socket) -> None:
        while connection.recv(1000):
            time.sleep(0.3)
            connection.sendall(probe_ports.answer(NONCE))

    serve(listener, late)
    start = time.monotonic()
    outcome = call(listener.getsockname()[1], *[64] * 20, timeout=0.5)
    assert time.monotonic() - start < 5
    assert outcome.result == probe_ports.STALLED and len(outcome.steps) <= 3


def test_a_worker_that_ends_in_the_middle_is_not_foreign(listener: socket.socket) -> None:
    def once(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(probe_ports.answer(NONCE))
        connection.close()

    serve(listener, once)
    assert call(listener.getsockname()[1], 64, 64).result == "ECONNRESET"


def read_slowly(bytes_per_second: int) -> Callable[[socket.socket], None]:
    def read(connection: socket.socket) -> None:
        while connection.recv(bytes_per_second // 20):
            time.sleep(0.05)

    return read


@contextmanager
def slow_listener() -> Iterator[socket.socket]:
    """With a small receive buffer, so that the sender feels how slowly it is read."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    one.bind(("127.0.0.1", 0))
    one.listen(5)
    yield one
    stop(one)


def test_a_long_payload_that_moves_is_slow_and_not_stalled() -> None:
    with slow_listener() as listener:
        serve(listener, read_slowly(400_000))
        start = time.monotonic()
        outcome = call(listener.getsockname()[1], LONG, timeout=0.4, seconds=1.0)
        assert time.monotonic() - start < 8
    (step,) = outcome.steps
    assert outcome.result == probe_ports.OK and 0 < step.payload_bytes < LONG and step.seconds >= 1.0
    assert step.payload_bytes / step.seconds < 1_000_000


def test_a_long_payload_that_does_not_move_is_stalled() -> None:
    with slow_listener() as listener:
        kept: list[socket.socket] = []
        serve(listener, kept.append)
        start = time.monotonic()
        outcome = call(listener.getsockname()[1], LONG, timeout=0.4, seconds=10)
        assert time.monotonic() - start < 8
    assert (outcome.result, outcome.stalled_bytes) == (probe_ports.STALLED, LONG)


def test_a_closed_port_is_refused(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    listener.close()
    assert call(port, 64).result == probe_ports.REFUSED


def test_no_answer_is_a_timeout_and_ends_in_time() -> None:
    # A full backlog drops further SYNs, as a firewall with DROP does.
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            start = time.monotonic()
            outcome = call(port, 64, timeout=0.4)
            assert outcome.result == probe_ports.TIMEOUT and outcome.connect_ms is None
            assert time.monotonic() - start < 15


def test_more_targets_than_one_window(listener: socket.socket) -> None:
    serve(listener, respond)
    port = listener.getsockname()[1]
    targets = [probe_dialing.Target(f"h{i}", "127.0.0.1", port, "ephemeral") for i in range(100)]
    outcomes = probe_dialing.dial(targets, settings(60), at_once=7)
    assert {one.target for one in outcomes if one.result == probe_ports.OK} == set(targets)


def test_what_has_not_begun_in_time_is_left_out(listener: socket.socket) -> None:
    kept: list[socket.socket] = []
    serve(listener, kept.append)
    targets = [probe_dialing.Target(f"h{i}", "127.0.0.1", listener.getsockname()[1], "x") for i in range(5)]
    outcomes = probe_dialing.dial(targets, settings(0.3), at_once=1, seconds=0.4)
    assert ["h0", "h1"][: len(outcomes)] == [one.target.host for one in outcomes] != []


def test_an_address_that_is_not_local_is_an_error_not_a_crash() -> None:
    (outcome,) = probe_dialing.dial([probe_dialing.Target("peer", "127.0.0.1", 1, "x")], settings(0.2, "192.0.2.1"))
    assert outcome.result == "EADDRNOTAVAIL"


def test_the_window_follows_the_limit_of_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (256, 1024))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, limits: asked.append(limits))
    assert probe_dialing.window() == 1024 - probe_dialing.SPARE_FILES and asked == [(1024, 1024)]
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1_000_000, 1_000_000))
    assert probe_dialing.window() == probe_dialing.WINDOW and len(asked) == 1


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (errno.EHOSTUNREACH, "EHOSTUNREACH"),
        (errno.ENETUNREACH, "ENETUNREACH"),
        (errno.ECONNREFUSED, probe_ports.REFUSED),
        (errno.ETIMEDOUT, probe_ports.TIMEOUT),
        (errno.EMFILE, "EMFILE"),
        (None, "errno None"),
    ],
)
def test_names_of_errors(code: int | None, name: str) -> None:
    assert probe_dialing.errno_name(code) == name


def test_calls_go_out_from_the_own_port_that_they_are_given(listener: socket.socket) -> None:
    serve(listener, respond)
    others = [probe_ports.bind_listener("127.0.0.1", 0) for _number in range(3)]
    for one in others:
        serve(one, respond)
    ports = [one.getsockname()[1] for one in (listener, *others)]
    first = call(ports[0], 64)
    assert first.result == probe_ports.OK and first.own_port not in (0, *ports)
    targets = [probe_dialing.Target("peer", "127.0.0.1", port, "x", own_port=first.own_port) for port in ports[1:]]
    assert {(one.result, one.own_port) for one in probe_dialing.dial(targets, settings())} == {
        (probe_ports.OK, first.own_port)
    }
    for one in others:
        stop(one)


def test_an_own_port_that_is_taken_is_left_to_the_kernel(listener: socket.socket) -> None:
    serve(listener, respond)
    port = listener.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)) as there:
        taken = there.getsockname()[1]
        (outcome,) = probe_dialing.dial(
            [probe_dialing.Target("peer", "127.0.0.1", port, "x", own_port=taken)], settings()
        )
        assert outcome.result == probe_ports.OK and outcome.own_port not in (0, taken)
    # The end of this connection is remembered for a while, so the same two ports are taken, too.
    again = probe_dialing.Target("peer", "127.0.0.1", port, "x", own_port=outcome.own_port)
    (other,) = probe_dialing.dial([again], settings())
    assert other.result == probe_ports.OK and other.own_port
