# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks with real torch: three processes of one machine, and damage done to the data on purpose."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective import mesh, rank

torch = pytest.importorskip(
    "torch", reason="torch is not installed in this environment; 'make setup-torch' installs it"
)

JOB: dict[str, Any] = {
    "world_size": 3,
    "backend": "gloo",
    "master_address": "127.0.0.1",
    "sizes_bytes": [4, 4096, 300_000],
    "warmup": 1,
    "iterations": 3,
    "join_seconds": 20,
    "timeout_seconds": 10,
}


class OneRankOfMany:
    """In place of torch.distributed: adds the other ranks' data itself, then damages it."""

    def __init__(self, damage: Any) -> None:
        self.damage = damage
        self.iteration = -1

    def barrier(self) -> None:
        self.iteration += 1

    def all_reduce(self, data: Any) -> None:
        expected = torch.empty(len(data))
        pattern = rank.Pattern(3, self.iteration)
        rank.fill(torch, pattern, 0, torch.empty(len(data)), expected)
        data.copy_(expected)
        if self.iteration == 2:
            self.damage(data, pattern)


def run_damaged(damage: Any, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    rank.run_size(torch, OneRankOfMany(damage), dict(JOB, rank=0), 300_000)
    event: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return event


def test_fill_agrees_with_the_pure_pattern_across_chunks() -> None:
    count = rank.CHUNK_ELEMENTS * 2 + 7
    data, expected = torch.empty(count), torch.empty(count)
    pattern = rank.Pattern(5, 9)
    rank.fill(torch, pattern, 3, data, expected)
    for index in (0, 1, rank.CHUNK_ELEMENTS - 1, rank.CHUNK_ELEMENTS, count - 1):
        assert (int(data[index]), int(expected[index])) == pattern.both(3, index)


def test_undamaged_data_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    event = run_damaged(lambda data, pattern: None, capsys)
    assert event["wrong"] is None and event["checked"] == 4 and len(event["seconds"]) == 3


def test_one_wrong_element_in_one_iteration_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    def flip(data: Any, pattern: Any) -> None:
        data[50_000] = float(pattern.expected(50_000) ^ 1)

    wrong = run_damaged(flip, capsys)["wrong"]
    assert wrong == {
        "iteration": 2,
        "elements": 1,
        "first": 50_000,
        "last": 50_000,
        "explanation": "single bits are flipped",
    }


def test_a_missing_rank_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def drop(data: Any, pattern: Any) -> None:
        index = torch.arange(len(data), dtype=torch.int64)
        data -= pattern.contribution(1, index)

    assert run_damaged(drop, capsys)["wrong"]["explanation"] == "the contribution of rank 1 is missing"


def start_rank(number: int, listen_fd: int, port: int, **changes: Any) -> subprocess.Popen[str]:
    job = dict(JOB, rank=number, master_port=port, listen_fd=listen_fd, **changes)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    process = subprocess.Popen(
        [sys.executable, "-m", rank.__name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        pass_fds=[listen_fd],
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    return process


def run_ranks(numbers: list[int], **changes: Any) -> list[list[dict[str, Any]]]:
    listener = mesh.bind_samples("127.0.0.1", 29500, 29599, 1)[0]
    port = listener.getsockname()[1]
    processes = [start_rank(number, listener.fileno(), port, **changes) for number in numbers]
    listener.close()
    killer = threading.Timer(60, lambda: [process.kill() for process in processes])
    killer.start()
    try:
        return [[json.loads(line) for line in process.communicate()[0].splitlines()] for process in processes]
    finally:
        killer.cancel()


def test_three_ranks_reduce_exactly() -> None:
    for events in run_ranks([0, 1, 2]):
        assert [event["event"] for event in events] == ["ready", "store", "joined", "size", "size", "size", "done"]
        assert [event["wrong"] for event in events if event["event"] == "size"] == [None] * 3


def test_a_missing_rank_ends_in_an_error_not_in_a_hang() -> None:
    for events in run_ranks([0, 1], join_seconds=3):
        assert events[-1]["event"] == "error"


def test_a_rank_that_is_told_to_go_before_rank_0_waits_for_it() -> None:
    """The port of the rendezvous still belongs to the worker, which ends connections that are no probes."""
    (listener,) = mesh.bind_samples("127.0.0.1", 29500, 29599, 1)
    port = listener.getsockname()[1]
    early = [start_rank(number, listener.fileno(), port) for number in (1, 2)]
    listener.settimeout(60)
    turned_away = 0
    while turned_away < 4:
        connection, _peer = listener.accept()
        responder = mesh.Responder(connection, "f" * 32)
        connection.settimeout(10)
        assert responder.step()
        connection.close()
        turned_away += 1
    processes = [start_rank(0, listener.fileno(), port), *early]
    listener.close()
    for process in processes:
        events = [json.loads(line)["event"] for line in process.communicate(timeout=60)[0].splitlines()]
        assert events[-1] == "done"
