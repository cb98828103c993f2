# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rate and retransmissions: of real connections on loopback, and of numbers."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    probe_dialing,
    probe_links,
    probe_quality,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

NONCE = "0123456789abcdef" * 2
SETTINGS = probe_dialing.Settings(NONCE, "127.0.0.1", 0.5)


class Worker(threading.Thread):
    """Answers probes on one port.  pause: seconds before each reading of the first ``slow`` connections."""

    def __init__(self, slow: int, pause: float) -> None:
        super().__init__(daemon=True)
        self.listener = probe_ports.bind_listener("127.0.0.1", 0)
        self.slow, self.pause = slow, pause
        self.accepted = 0

    def run(self) -> None:
        self.listener.setblocking(True)
        while True:
            try:
                connection, _peer = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            pause = self.pause if self.accepted <= self.slow else 0.0
            threading.Thread(target=self.serve, args=(connection, pause), daemon=True).start()

    def serve(self, connection: socket.socket, pause: float) -> None:
        responder = probe_ports.Responder(connection, NONCE)
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            time.sleep(pause)
            while not responder.step():
                selector.select(1)
        connection.close()

    def target(self, host: str) -> probe_dialing.Target:
        return probe_dialing.Target(host, "127.0.0.1", self.listener.getsockname()[1], "ephemeral")


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    made: list[Worker] = []
    yield made
    for one in made:
        one.listener.shutdown(socket.SHUT_RDWR)  # close() alone would leave its thread waiting.
        one.listener.close()


def begin(workers: list[Worker], slow: int = 0, pause: float = 0.0) -> Worker:
    worker = Worker(slow, pause)
    workers.append(worker)
    worker.start()
    return worker


def test_every_link_gets_a_rate(workers: list[Worker]) -> None:
    targets = [begin(workers).target(f"n{number}") for number in range(6)]
    found, failed = probe_quality.measure(targets, SETTINGS, 5)
    assert failed == [] and set(found) == {target.way for target in targets}
    assert all(one.bytes_per_second > 1e6 and one.retransmits == 0 for one in found.values())


def test_a_link_that_was_slow_once_is_measured_again(workers: list[Worker]) -> None:
    targets = [begin(workers).target(f"n{number}") for number in range(4)]
    hiccup = begin(workers, slow=1, pause=0.3)
    found, _failed = probe_quality.measure([*targets, hiccup.target("late")], SETTINGS, 5)
    assert hiccup.accepted == 2
    assert found["", "late"].bytes_per_second > probe_quality.LONG_BYTES / 0.3


def test_a_link_that_fails_once_is_no_failure_and_one_that_fails_twice_is(workers: list[Worker]) -> None:
    once, always = begin(workers, slow=1, pause=3), begin(workers, slow=9, pause=3)
    targets = [begin(workers).target("n1"), once.target("once"), always.target("always")]
    found, failed = probe_quality.measure(targets, SETTINGS, 5)
    assert set(found) == {("", "n1"), ("", "once")}
    assert [(one.target.host, one.result, one.stalled_bytes) for one in failed] == [
        ("always", probe_ports.STALLED, probe_quality.LONG_BYTES)
    ]


def test_the_best_of_several_measurements_counts() -> None:
    steps = [probe_dialing.Step(1000, 0.5, 0), probe_dialing.Step(1000, 0.1, 3)]
    assert probe_quality.quality(steps) == (10000.0, 0)


def test_what_is_measured_again() -> None:
    usual = {("", f"n{number}"): probe_quality.Quality(1000.0, 0) for number in range(5)}
    odd = {
        ("", "slow"): probe_quality.Quality(499.0, 0),
        ("", "fair"): probe_quality.Quality(501.0, 0),
        ("", "lossy"): probe_quality.Quality(1000.0, 1),
    }
    assert probe_quality.again({**usual, **odd}) == {("", "slow"), ("", "lossy")}
    assert probe_quality.again({}) == set()


def test_a_slow_rail_is_compared_with_itself() -> None:
    fast = {("", f"n{number}"): probe_quality.Quality(10_000.0, 0) for number in range(5)}
    slow = {("rail 2", f"n{number}"): probe_quality.Quality(1000.0, 0) for number in range(5)}
    odd = {("rail 2", "n9"): probe_quality.Quality(400.0, 0)}
    assert probe_quality.again({**fast, **slow, **odd}) == {("rail 2", "n9")}


def test_a_slow_link_is_measured_three_times_more_in_the_same_six_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def dial(
        targets: Sequence[probe_dialing.Target], _settings: probe_dialing.Settings, at_once: int, seconds: float
    ) -> list[probe_dialing.Outcome]:
        calls.append(({target.host: target.payloads for target in targets}, at_once, seconds))
        steps = {
            target.host: tuple(
                probe_dialing.Step(size, 9.0 if target.host == "slow" else 1.0, 0) for size in target.payloads
            )
            for target in targets
        }
        return [probe_dialing.Outcome(target, "ok", 0.0, 0.0, steps[target.host], 0, "") for target in targets]

    monkeypatch.setattr(probe_quality, "dial", dial)
    targets = [probe_dialing.Target(host, "192.0.2.1", 40000, "ephemeral") for host in ("a", "b", "c", "slow")]
    probe_quality.measure(targets, SETTINGS, probe_links.QUALITY_SECONDS)
    once = (probe_quality.LONG_BYTES,)
    assert calls == [({"a": once, "b": once, "c": once, "slow": once}, 4, 3.0), ({"slow": once * 3}, 4, 3.0)]
    calls.clear()
    probe_quality.measure(targets[:3], SETTINGS, probe_links.QUALITY_SECONDS)
    assert calls[1] == ({"a": once * 3, "b": once * 3, "c": once * 3}, 4, 3.0), "three links show nothing of each other"
    assert probe_quality.LONG_BYTES == 1 << 20
