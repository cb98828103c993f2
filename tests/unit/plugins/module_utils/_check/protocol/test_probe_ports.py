# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answering end, against real sockets."""

from __future__ import annotations

import socket

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

NONCE = "0123456789abcdef" * 2


def exchange(sent: bytes) -> tuple[bytes, bool]:
    """What a responder answers to these bytes, and whether it is done with the connection."""
    asking, answering = socket.socketpair()
    with asking, answering:
        asking.sendall(sent)
        responder = probe_ports.Responder(answering, NONCE)
        finished = False
        for _number in range(20):
            finished = finished or responder.step()
        asking.setblocking(False)
        try:
            return asking.recv(1000), finished
        except BlockingIOError:
            return b"", finished


@pytest.mark.parametrize("payload", [0, 1, 64, 9000])
def test_a_whole_message_is_answered_and_the_connection_stays(payload: int) -> None:
    assert exchange(probe_ports.header(NONCE, payload) + bytes(payload)) == (probe_ports.answer(NONCE), False)


def test_every_message_of_a_connection_is_answered() -> None:
    sent = b"".join(probe_ports.header(NONCE, size) + bytes(size) for size in (64, 1300, 0))
    assert exchange(sent) == (probe_ports.answer(NONCE) * 3, False)


@pytest.mark.parametrize("sent", [probe_ports.header(NONCE, 0)[:39], probe_ports.header(NONCE, 10) + bytes(9)])
def test_half_a_message_has_no_answer_yet(sent: bytes) -> None:
    assert exchange(sent) == (b"", False)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(probe_ports.header("f" * 32, 0)[:8], id="first bytes of another run"),
        pytest.param(b"GET / HTTP/1.1\r\n", id="something else"),
        pytest.param(NONCE.encode() + b"12 45678", id="no length"),
    ],
)
def test_what_is_no_probe_of_this_run_is_turned_away(sent: bytes) -> None:
    assert exchange(sent) == (b"", True)


def test_a_peer_that_is_gone_ends_the_connection() -> None:
    asking, answering = socket.socketpair()
    with answering:
        asking.close()
        assert probe_ports.Responder(answering, NONCE).step()


@pytest.mark.parametrize(
    ("first", "last", "count", "ports"),
    [
        (45000, 46000, 3, [45000, 45500, 46000]),
        (45000, 45001, 4, [45000, 45001]),
        (10086, 10086, 4, [10086]),
        (45000, 46000, 1, [45000]),
    ],
)
def test_samples_are_spread_over_the_range(first: int, last: int, count: int, ports: list[int]) -> None:
    assert probe_ports.sample_ports(first, last, count) == ports


def test_a_taken_port_is_replaced_by_the_next_one() -> None:
    # Below the range from which the kernel takes the ports of connections that happen to be open.
    taken = probe_ports.bind_listener("127.0.0.1", 21000)
    samples = probe_ports.bind_samples("127.0.0.1", 21000, 22000, 3)
    try:
        assert [sample.getsockname()[1] for sample in samples] == [21001, 21500, 22000]
    finally:
        for one in [taken, *samples]:
            one.close()
