# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks with real torch: three processes of one machine, and damage done to the data on purpose."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import rank, rank_gpu
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.progress_note import Note
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import ranks_findings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports, rank_events

torch = pytest.importorskip(
    "torch", reason="torch is not installed in this environment; 'make setup-torch' installs it"
)

FAULTY_RANK = str(Path(__file__).with_name("faulty_rank.py"))
RANK_STARTER = str(Path(__file__).with_name("rank_starter.py"))
RANK_WITHOUT_GPU = str(Path(__file__).with_name("rank_without_gpu.py"))
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


MIB = 1 << 20
SIZES = [MIB, 4 * MIB, 16 * MIB, 32 * MIB]


def test_what_torch_has_code_for() -> None:
    """The build that is here is one for processors, which has no such function."""
    of_gpus = SimpleNamespace(_C=SimpleNamespace(_cuda_getArchFlags=lambda: "sm_80 sm_90 compute_90"))
    assert rank_gpu.architectures(of_gpus) == ["sm_80", "sm_90", "compute_90"]
    of_gpus._C._cuda_getArchFlags = lambda: None
    assert rank_gpu.architectures(of_gpus) == []
    assert rank_gpu.architectures(torch) == torch.cuda.get_arch_list()


class OneRankOfMany:
    """In place of torch.distributed: adds the other ranks' data itself, then damages it.

    The only rank is the slowest one, so what it agrees upon is what it says.
    """

    ReduceOp = torch.distributed.ReduceOp

    def __init__(self, damage: Any) -> None:
        self.damage = damage
        self.barriers = 0
        self.iteration = -1

    def barrier(self) -> None:
        self.barriers += 1

    def all_reduce(self, data: Any, op: Any = None) -> None:
        if op is not None:
            assert op == self.ReduceOp.MAX
            return
        self.iteration += 1
        pattern = rank.Pattern(3, self.iteration)
        rank.write_sum(torch, pattern, 0, data)
        if self.iteration == 2:
            self.damage(data, pattern)


def run_size(damage: Any, capsys: pytest.CaptureFixture[str], **changes: Any) -> dict[str, Any]:
    """The event of the size."""
    rank.run_size(torch, OneRankOfMany(damage), dict(JOB, rank=0, **changes), 300_000)
    event: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert event["event"] == "size"
    return event


def unharmed(data: Any, pattern: Any) -> None:
    pass


@pytest.mark.parametrize("count", [1, 6, rank.PERIOD - 1, rank.PERIOD, rank.PERIOD * 2, rank.PERIOD * 2 + 7])
def test_fill_agrees_with_the_pure_pattern_across_blocks(count: int) -> None:
    data, expected = torch.full((count,), -1.0), torch.full((count,), -1.0)
    pattern = rank.Pattern(5, 9)
    rank.fill(torch, pattern, 3, data)
    rank.write_sum(torch, pattern, 3, expected)
    for index in {0, 1, rank.PERIOD - 1, rank.PERIOD, count // 2, count - 1} & set(range(count)):
        assert (int(data[index]), int(expected[index])) == pattern.both(3, index)
    assert data.min() >= 0 and expected.min() >= 0


def test_undamaged_data_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    event = run_size(unharmed, capsys)
    assert event["wrong"] is None and event["checked"] == 4 and len(event["seconds"]) == 3


def test_one_wrong_element_in_one_iteration_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    def flip(data: Any, pattern: Any) -> None:
        data.view(torch.int32)[50_000] ^= 1 << 7

    wrong = run_size(flip, capsys)["wrong"]
    assert wrong.pop("digest") > 0
    assert wrong == {
        "iteration": 2,
        "elements": 1,
        "first": 50_000,
        "last": 50_000,
        "explanation": "single bits are flipped: bit 7 of element 50000",
        "input_changed": False,
        "sum_is_right": False,
        "iterations": 1,
        "more": [],
    }


def test_a_missing_rank_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def drop(data: Any, pattern: Any) -> None:
        index = torch.arange(len(data), dtype=torch.int64)
        data -= pattern.contribution(1, index)

    assert run_size(drop, capsys)["wrong"]["explanation"] == "the contribution of rank 1 is missing"


def test_a_wrong_sum_is_told_at_once_and_later_ones_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """The collective may hang next; what was seen must not be lost with it."""

    class AlwaysDamaged(OneRankOfMany):
        def all_reduce(self, data: Any, op: Any = None) -> None:
            super().all_reduce(data, op)
            if op is None:
                data[5] += 1000

    with pytest.raises(RuntimeError):
        rank.run_size(torch, Hangs(unharmed, AlwaysDamaged(unharmed)), dict(JOB, rank=0), 4096)
    (told,) = (json.loads(line) for line in capsys.readouterr().out.splitlines() if line)
    assert told["event"] == "wrong" and told["size_bytes"] == 4096 and (told["first"], told["last"]) == (5, 5)
    rank.run_size(torch, AlwaysDamaged(unharmed), dict(JOB, rank=0), 4096)
    wrong = json.loads(capsys.readouterr().out.splitlines()[-1])["wrong"]
    assert wrong["iterations"] == 4 and [iteration for iteration, _digest in wrong["more"]] == [1, 2, 3]


class Hangs(OneRankOfMany):
    """The second collective fails, as it does after its timeout."""

    def __init__(self, damage: Any, inner: OneRankOfMany) -> None:
        super().__init__(damage)
        self.inner = inner

    def all_reduce(self, data: Any, op: Any = None) -> None:
        if self.inner.iteration == 0:
            raise RuntimeError("Timed out waiting 8000ms for recv operation to complete")
        self.inner.all_reduce(data, op)


rank_fill = rank.fill


class Real(OneRankOfMany):
    """Adds the others' data to what this rank really put in."""

    def all_reduce(self, data: Any, op: Any = None) -> None:
        if op is not None:
            return
        self.iteration += 1
        pattern = rank.Pattern(3, self.iteration)
        index = torch.arange(len(data), dtype=torch.int64)
        data += pattern.contribution(1, index) + pattern.contribution(2, index)


def test_data_that_was_changed_before_it_was_filled_in_is_told_from_the_network(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is filled in is kept from one iteration to the next; making it again must not use what has changed."""
    rank.blocks.cache_clear()
    rank.blocks(torch, 3, 0)[0][9] += 4
    rank.run_size(torch, Real(unharmed), dict(JOB, rank=0), 4096)
    wrong = json.loads(capsys.readouterr().out.splitlines()[-1])["wrong"]
    assert wrong["input_changed"] is True and wrong["iterations"] == 1


def test_an_input_that_was_changed_in_memory_is_told_from_the_network(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What went in is not what was filled in: no network has touched it yet."""
    changes = 0

    def fill(torch_: Any, pattern: Any, number: int, data: Any) -> None:
        nonlocal changes
        rank_fill(torch_, pattern, number, data)
        if pattern.iteration == 2 and number == 0 and changes == 0:
            changes += 1
            data.view(torch.int32)[9] ^= 1 << 14

    monkeypatch.setattr(rank, "fill", fill)
    rank.run_size(torch, Real(unharmed), dict(JOB, rank=0), 4096)
    wrong = json.loads(capsys.readouterr().out.splitlines()[-1])["wrong"]
    assert wrong["iteration"] == 2 and wrong["input_changed"] is True and wrong["sum_is_right"] is False


def test_a_right_sum_beside_a_changed_copy_of_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the sum is compared with changed in memory: the collective is not to blame."""
    changes = 0
    write_sum = rank.write_sum

    def changed(torch_: Any, pattern: Any, number: int, target: Any, start: int = 0) -> None:
        nonlocal changes
        write_sum(torch_, pattern, number, target, start)
        if pattern.iteration == 2:
            changes += 1
            # The first time the collective itself is played, the second time it is compared.
            target[9] += changes == 2

    monkeypatch.setattr(rank, "write_sum", changed)
    wrong = run_size(unharmed, capsys)["wrong"]
    assert wrong["sum_is_right"] is True and wrong["input_changed"] is False and wrong["elements"] == 0


@pytest.mark.parametrize("count", [5, rank.PART_ELEMENTS, rank.PART_ELEMENTS + 1, 3 * rank.PART_ELEMENTS + 77])
def test_every_part_is_compared(count: int) -> None:
    pattern = rank.Pattern(5, 3)
    data = torch.empty(count)
    rank.write_sum(torch, pattern, 2, data)
    assert rank.is_right(torch, pattern, 2, data)
    for element in {0, rank.PART_ELEMENTS - 1, rank.PART_ELEMENTS, count // 2, count - 1} & set(range(count)):
        data[element] += 1
        assert not rank.is_right(torch, pattern, 2, data)
        data[element] -= 1


def test_a_checksum_sees_every_bit() -> None:
    for count in (1, 2, 7):
        data = torch.arange(count).float()
        before = rank.checksum(torch, data)
        for element in range(count):
            for bit in (0, 13, 31):
                data.view(torch.int32)[element] ^= -(1 << 31) if bit == 31 else 1 << bit
                assert rank.checksum(torch, data) != before
                data.view(torch.int32)[element] ^= -(1 << 31) if bit == 31 else 1 << bit
        assert rank.checksum(torch, data) == before


class Slow(OneRankOfMany):
    """Takes as long as the next of the given times."""

    def __init__(self, seconds: list[float]) -> None:
        super().__init__(unharmed)
        self.seconds = seconds

    def all_reduce(self, data: Any, op: Any = None) -> None:
        if op is not None:
            # What follows the times is the same for all of them.
            data[:-2] = torch.tensor([self.seconds.pop(0) for _one in range(len(data) - 2)])


@pytest.mark.parametrize(
    ("times", "changes", "iterations", "settled"),
    [
        # Without more to ask for: as many as were asked for.
        ([1.0, 2.0, 3.0], {}, 3, False),
        # Of twelve values one outlier no longer matters.
        ([1.0, 2.0, 1.0] + [1.0] * 30, {"max_iterations": 60, "size_seconds": 60}, 12, True),
        # Never: up to the most.
        ([1.0, 2.0, 3.0] * 9, {"max_iterations": 8, "size_seconds": 60}, 8, False),
        # Never, and no time left.
        ([1.0, 2.0, 3.0] * 9, {"max_iterations": 60, "size_seconds": 0}, 3, False),
        ([1.0, 1.0, 1.0], {"max_iterations": 60, "size_seconds": 60}, 3, True),
    ],
)
def test_a_size_is_timed_until_its_median_is_settled(
    times: list[float], changes: dict[str, Any], iterations: int, settled: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    rank.run_size(torch, Slow(list(times)), dict(JOB, rank=0, warmup=0, **changes), 4096)
    event = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(event["seconds"]) == iterations == event["checked"]
    assert event["settled"] is settled


class Clock(OneRankOfMany):
    """Each collective takes so long, and nothing else takes time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        super().__init__(unharmed)
        self.now, self.seconds = 100.0, seconds
        for name in ("monotonic", "perf_counter"):
            monkeypatch.setattr(rank.time, name, lambda: self.now)

    def all_reduce(self, data: Any, op: Any = None) -> None:
        super().all_reduce(data, op)
        self.now += self.seconds if op is None else 0


@pytest.mark.parametrize(
    ("seconds", "limit", "checked", "timed"),
    [
        # 5 + 20 in the time; all are equally long, so their median is settled at once.
        (0.01, 0.5, 25, 20),
        # Ten fit: the warm-up and ten.
        (0.05, 0.5, 15, 10),
        # Two fit: two more of the warm-up, and the fewest.
        (0.25, 0.5, 9, 6),
        # None: the one that showed it, and the fewest.
        (2.0, 0.5, 7, 6),
        # Without a limit, as a benchmark asks for it.
        (2.0, None, 25, 20),
    ],
)
def test_a_slow_network_gets_fewer_iterations(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seconds: float,
    limit: float | None,
    checked: int,
    timed: int,
) -> None:
    job = dict(JOB, rank=0, warmup=5, iterations=20, **({} if limit is None else {"size_seconds": limit}))
    rank.run_size(torch, Clock(monkeypatch, seconds), job, 4096)
    (event,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line]
    assert (event["checked"], len(event["seconds"]), event["wrong"]) == (checked, timed, None)


@pytest.mark.parametrize(("plateau", "sizes"), [(True, [MIB, 4 * MIB, 16 * MIB]), (False, SIZES)])
def test_larger_sizes_are_left_out_once_they_are_no_faster(
    plateau: bool, sizes: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    # 100 MB/s, 200 MB/s, then 202 MB/s.
    times = {MIB: MIB / 1e8, 4 * MIB: 4 * MIB / 2e8, 16 * MIB: 16 * MIB / 2.02e8, 32 * MIB: 32 * MIB / 2.02e8}
    dist = Slow([times[size] for size in SIZES])
    rank.run_sizes(torch, dist, dict(JOB, rank=0, sizes_bytes=SIZES, warmup=0, iterations=1, plateau=plateau))
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line]
    assert [event["size_bytes"] for event in events if event["event"] == "size"] == sizes
    told = [(event["size_bytes"], event["left_out"]) for event in events if event["event"] == "plateau"]
    assert told == ([(16 * MIB, 1)] if plateau else [])


def test_nothing_is_left_out_at_the_last_size(capsys: pytest.CaptureFixture[str]) -> None:
    dist = Slow([MIB / 1e8, 4 * MIB / 1e8])
    job = dict(JOB, rank=0, sizes_bytes=[MIB, 4 * MIB], warmup=0, iterations=1, plateau=True)
    rank.run_sizes(torch, dist, job)
    assert "plateau" not in capsys.readouterr().out


class Link(Clock):
    """One of 100 MB/s on which nothing is faster than 10 ms."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch, 0)
        self.count = 0

    def all_reduce(self, data: Any, op: Any = None) -> None:
        if op is None:
            # The iterations of each size begin with the first.
            self.iteration = self.iteration if data.numel() == self.count else -1
            self.count = data.numel()
            self.seconds = 0.01 + data.numel() * 4 / 1e8
        super().all_reduce(data, op)


def sizes_that_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **changes: Any
) -> tuple[list[int], list[dict[str, Any]]]:
    """The sizes that were measured, and what is said about the others.  It is about time, so nothing is added up."""
    for name in ("fill", "write_sum"):
        monkeypatch.setattr(rank, name, lambda *_given: None)
    monkeypatch.setattr(rank, "is_right", lambda *_given: True)
    job = dict(JOB, rank=0, warmup=5, iterations=20, size_seconds=0.5, fit_deadline=True)
    rank.run_sizes(torch, Link(monkeypatch), {**job, **changes})
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line]
    assert all(event["wrong"] is None for event in events if event["event"] == "size")
    told = [event for event in events if event["event"] == "no_time"]
    return [event["size_bytes"] for event in events if event["event"] == "size"], told


@pytest.mark.parametrize(("seconds", "begins"), [(8.5, False), (8.7, True)])
def test_a_size_for_which_there_is_no_time_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seconds: float, begins: bool
) -> None:
    """The sizes up to 16 MiB take 3.1 s; 32 MiB takes 2.8 s, eight iterations, and twice as much must be left."""
    done, told = sizes_that_fit(monkeypatch, capsys, sizes_bytes=[4, *SIZES, 512 * MIB], ends=100 + seconds)
    assert done == [4, *(SIZES if begins else SIZES[:3])]
    (event,) = told
    assert rank_events.is_event(event)
    left_out, size, left = (1, 512 * MIB, seconds - 5.9) if begins else (2, 32 * MIB, seconds - 3.1)
    assert (event["size_bytes"], event["left_out"]) == (size, left_out)
    assert event["left_seconds"] == pytest.approx(left, abs=0.05)
    # None of 512 MiB fits into size_seconds: one for the warm-up, and the fewest.
    assert event["needed_seconds"] == pytest.approx((7 if begins else 8) * (0.01 + size / 1e8), abs=0.05)


@pytest.mark.parametrize(
    "changes",
    [
        {"ends": 100 + 60.0},
        # Nobody asked for it, as in a pair of nodes; or nothing says when it ends.
        {"ends": 100 + 7.0, "fit_deadline": False},
        {},
        # From the largest to the smallest.
        {"sizes_bytes": SIZES[::-1], "ends": 100 + 60.0},
    ],
)
def test_no_size_is_left_out_without_need(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], changes: dict[str, Any]
) -> None:
    job = {"sizes_bytes": SIZES, **changes}
    assert sizes_that_fit(monkeypatch, capsys, **job) == (job["sizes_bytes"], [])


def test_small_sizes_alone_are_no_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Until one of 1 MiB is done, the ranks run into their deadline rather than pass."""
    few = [4, 4096, 1 << 16, MIB, 4 * MIB]
    done, told = sizes_that_fit(monkeypatch, capsys, sizes_bytes=few, ends=100 + 0.5)
    assert done == few[:4] and [event["left_out"] for event in told] == [1]


def test_one_size_or_a_larger_one_foretells_its_own_time() -> None:
    job = dict(JOB, warmup=5, iterations=20, size_seconds=0.5)
    sizes = [rank.Measured(MIB, 0.1, 0.1, 9.0), rank.Measured(4 * MIB, 0.4, 0.4, 9.0)]
    assert rank.foretold(job, sizes[:1], 4 * MIB) == pytest.approx((1 + 4 + 6) * 0.1)
    assert rank.foretold(job, sizes, 2 * MIB) == pytest.approx((1 + 1 + 6) * 0.4)
    # Without a warm-up nothing tells that there are too many iterations.
    assert rank.foretold(dict(job, warmup=0), sizes, 2 * MIB) == pytest.approx(20 * 0.4)


@pytest.mark.parametrize(("size_bytes", "groups"), [(4096, 2), (MIB, 4), (4 * MIB, 2), (16 * MIB, 3), (32 * MIB, 4)])
def test_a_collective_after_a_comparison_begins_at_once_on_all_ranks(size_bytes: int, groups: int) -> None:
    """Comparing takes one rank longer than another; in a group nothing is compared in between."""
    dist = OneRankOfMany(unharmed)
    rank.run_sizes(torch, dist, dict(JOB, rank=0, sizes_bytes=[size_bytes]))
    before, after = 4, groups
    assert dist.iteration + 1 == 4 and dist.barriers == before + after


def test_no_copy_lies_between_two_collectives_of_a_group() -> None:
    """Each has a buffer of its own, which was filled before the first of them."""
    buffers: list[int] = []

    class Recorder(OneRankOfMany):
        def all_reduce(self, data: Any, op: Any = None) -> None:
            super().all_reduce(data, op)
            if op is None:
                buffers.append(data.data_ptr())

    rank.run_sizes(torch, Recorder(unharmed), dict(JOB, rank=0, sizes_bytes=[4096]))
    assert len(set(buffers[1:])) == 3


def test_a_note_is_never_timed() -> None:
    """A barrier lies between a note and the start of the clock."""
    order: list[str] = []

    class Recorder(OneRankOfMany):
        def barrier(self) -> None:
            order.append("barrier")

        def all_reduce(self, data: Any, op: Any = None) -> None:
            super().all_reduce(data, op)
            order.append("agree" if op is not None else "sum")

    class Recorded(Note):
        def write(self, **fields: Any) -> None:
            order.append(str(fields["iterations"]))

        def count(self, iterations: int) -> None:
            order.append(f"({iterations})")

    rank.run_sizes(torch, Recorder(unharmed), dict(JOB, rank=0, sizes_bytes=[4096]), Recorded(0, ""))
    timed = ["barrier", "sum"]
    warm_up = [*timed, "(1)", "barrier", "1", "agree"]
    assert order == ["0", *warm_up, *timed, "(2)", *timed, "(3)", *timed, "(4)", "barrier", "4", "agree"]


#: Where a rank finds what it listens on.
LISTEN_FD = 100


class Rank:
    """A running rank: its process, and both ends of what is said."""

    def __init__(self, pid: int, stdin: int, stdout: int) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout

    def say(self, line: str) -> None:
        os.write(self.stdin, f"{line}\n".encode())

    def told(self) -> list[bytes]:
        """Everything that it prints until it ends."""
        os.close(self.stdin)
        with open(self.stdout, "rb") as stream:
            return stream.read().splitlines()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class Starter:
    """The process that becomes the ranks."""

    def __init__(self) -> None:
        self.requests, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), OMP_NUM_THREADS="1")
        self.process = subprocess.Popen([sys.executable, RANK_STARTER], stdin=other, env=environment)
        other.close()

    def start(self, argv: list[str], environment: dict[str, str], listen_fd: int) -> Rank:
        (its_stdin, stdin), (stdout, its_stdout) = os.pipe(), os.pipe()
        request = {"argv": argv, "environment": environment, "listen_fd": LISTEN_FD}
        socket.send_fds(self.requests, [json.dumps(request).encode()], [its_stdin, its_stdout, listen_fd])
        os.close(its_stdin)
        os.close(its_stdout)
        return Rank(int(self.requests.recv(100)), stdin, stdout)

    def end(self) -> None:
        self.requests.close()
        self.process.wait(60)


@pytest.fixture(name="starter", scope="module")
def fixture_starter() -> Iterator[Starter]:
    starter = Starter()
    yield starter
    starter.end()


def start_rank(
    starter: Starter,
    number: int,
    listen_fd: int,
    port: int,
    program: tuple[str, ...] = (),
    interface: str = "lo",
    **changes: Any,
) -> Rank:
    job = dict(JOB, rank=number, master_port=port, listen_fd=LISTEN_FD, **changes)
    process = starter.start([*program, "-m", rank.__name__], {"GLOO_SOCKET_IFNAME": interface}, listen_fd)
    process.say(json.dumps(job))
    return process


def ends(processes: list[Rank], seconds: float = 60) -> list[list[dict[str, Any]]]:
    """The events of each rank, as a worker takes them; what has not ended in this time is killed."""
    killer = threading.Timer(seconds, lambda: [process.kill() for process in processes])
    killer.start()
    try:
        return [[rank_events.event(line) for line in process.told() if line] for process in processes]
    finally:
        killer.cancel()


def run_ranks(
    starter: Starter,
    numbers: list[int],
    different: dict[int, dict[str, Any]] | None = None,
    seconds: float = 60,
    **changes: Any,
) -> list[list[dict[str, Any]]]:
    """The events of each rank.

    different: what one rank has otherwise.  seconds: until all are killed.
    """
    listener = probe_ports.bind_samples("127.0.0.1", 29500, 29599, 1)[0]
    port = listener.getsockname()[1]
    processes = [
        start_rank(starter, number, listener.fileno(), port, **changes, **(different or {}).get(number, {}))
        for number in numbers
    ]
    listener.close()
    return ends(processes, seconds)


def test_three_ranks_reduce_exactly(starter: Starter) -> None:
    for events in run_ranks(starter, [0, 1, 2]):
        assert [event["event"] for event in events] == ["ready", "store", "joined", "size", "size", "size", "done"]
        assert [event["wrong"] for event in events if event["event"] == "size"] == [None] * 3


def test_a_missing_rank_ends_in_an_error_not_in_a_hang_and_rank_0_names_it(starter: Starter) -> None:
    told = {1: {"told": time.monotonic() - 20}}
    first, second = run_ranks(starter, [0, 1], told, join_seconds=3)
    assert [event["event"] for event in first] == ["ready", "store", "keys", "error"]
    assert first[2]["missing"] == [2] and "ranks 2 did not reach the rendezvous in 3 s" in first[3]["text"]
    assert [event["event"] for event in second[:2]] == ["ready", "late"] and second[1]["seconds"] > 20
    assert second[-1]["event"] == "error"


def judged(ranks: list[list[dict[str, Any]]], per_node: int = 1, backend: str = "gloo") -> ranks_findings.Judgement:
    """What the controller makes of it: nodes n0, n1 and so on have their ranks one after the other."""
    numbers = {f"n{first // per_node}": range(first, first + per_node) for first in range(0, len(ranks), per_node)}
    the_plan = {
        "hosts": list(numbers),
        "ranks": {host: list(own) for host, own in numbers.items()},
        "world_size": len(ranks),
    }
    collect = {
        host: {
            "state": "finished",
            "hostname": host,
            "interface_bytes": {"rx_bytes": 0 if backend == "nccl" else 10**9, "tx_bytes": 10**9},
            "ranks": [
                {"local_rank": local, "events": ranks[number], "exit_code": 0, "process_state": "", "stderr_tail": ""}
                for local, number in enumerate(own)
            ],
        }
        for host, own in numbers.items()
    }
    return ranks_findings.findings(the_plan, collect, {}, [], backend=backend)


def test_a_rank_with_a_wrong_interface_is_named_by_what_the_others_read_in_the_store(starter: Starter) -> None:
    """The others know only a key that never came; who reads the store knows who is there, and with which address."""
    ranks = run_ranks(starter, [0, 1, 2], {1: {"interface": "eth9"}}, timeout_seconds=3)
    (keys,) = (event for event in ranks[0] if event["event"] == "keys")
    assert keys["missing"] == [1] and set(keys["addresses"]) == {"0", "2"}
    assert keys["addresses"]["0"][0] == "127.0.0.1"
    found = judged(ranks)
    # These three run on the loopback interface, which would be a finding of its own on nodes.
    assert [(one.id, one.hosts) for one in found.findings if one.id != "GC-RUN-004"] == [
        ("GC-TEXT-003", ("n1",)),
        ("GC-RUN-001", ()),
    ]
    assert found.unexplained == []


def test_a_rank_over_nccl_without_a_gpu_says_what_it_lacks(starter: Starter) -> None:
    """On the build of PyTorch that is here, which has no NCCL."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    places = {number: {"local_rank": 0, "local_size": 1} for number in (0, 1)}
    ranks = run_ranks(starter, [0, 1], places, world_size=2, backend="nccl")
    for events in ranks:
        assert [event["event"] for event in events] == ["ready", "error"]
        assert f"needs GPU 0 of its node, and PyTorch {torch.__version__} sees 0 there" in events[1]["text"]
    found = judged(ranks, backend="nccl")
    assert [(one.id, one.hosts) for one in found.findings] == [("GC-TEXT-009", ("n0", "n1")), ("GC-RUN-001", ())]
    assert found.unexplained == []


def over_nccl(
    starter: Starter, timeout: int = 10, seconds: float = 60, **kinds: list[int]
) -> list[list[dict[str, Any]]]:
    """Two nodes with two ranks each, gloo in place of NCCL."""
    places = {number: {"local_rank": number % 2, "local_size": 2} for number in range(4)}
    program = (RANK_WITHOUT_GPU, json.dumps(kinds))
    changes: dict[str, Any] = {"world_size": 4, "backend": "nccl", "timeout_seconds": timeout, "program": program}
    return run_ranks(starter, [0, 1, 2, 3], places, seconds, **changes)


def told_of(found: ranks_findings.Judgement) -> list[tuple[str, tuple[str, ...]]]:
    """These ranks run on the loopback interface, which would be a finding of its own on nodes."""
    return [(one.id, one.hosts) for one in found.findings if one.id != "GC-RUN-004"]


def test_the_way_of_nccl_sums_inside_of_each_node_and_then_over_all(starter: Starter) -> None:
    ranks = over_nccl(starter)
    for events in ranks:
        names = [event["event"] for event in events if event["event"] != "keys"]
        assert names == ["ready", "gpu", "store", "joined", "inside", "size", "size", "size", "done"]
        assert [event["wrong"] for event in events if event["event"] in ("inside", "size")] == [None] * 4
        (inside,) = (event for event in events if event["event"] == "inside")
        assert inside["size_bytes"] == rank.INSIDE_BYTES and len(inside["seconds"]) == rank.INSIDE_ITERATIONS
    found = judged(ranks, 2, "nccl")
    # No byte has crossed the interface, which says nothing with NCCL.
    assert told_of(found) == [] and [size.size_bytes for size in found.sizes] == JOB["sizes_bytes"]


def test_a_wrong_sum_inside_of_a_node_names_the_node(starter: Starter) -> None:
    found = judged(over_nccl(starter, inside=[2, 3]), 2, "nccl")
    assert told_of(found) == [("GC-NCCL-004", ("n1",))]
    assert "the GPUs of n1 do not work together over NCCL: wrong sums, " in found.findings[0].cause


def test_gpus_that_hang_inside_of_a_node_accuse_that_node_alone(starter: Starter) -> None:
    ranks = over_nccl(starter, timeout=3, seconds=15, hang=[2])
    assert [any(event["event"] == "inside" for event in events) for events in ranks] == [True, True, False, False]
    found = judged(ranks, 2, "nccl")
    assert told_of(found) == [("GC-NCCL-004", ("n1",)), ("GC-RUN-001", ())]
    assert "2 of 2 ranks did not end an all_reduce of this node alone" in found.findings[0].cause
    assert found.unexplained == []


@pytest.mark.parametrize("stuck", [[0, 1, 2, 3], [2]])
def test_a_sum_that_a_gpu_does_not_end_is_told_by_the_rank_itself(starter: Starter, stuck: list[int]) -> None:
    """As NCCL waits for one that is cut off: without a limit, and beyond that of torch."""
    started = time.monotonic()
    ranks = over_nccl(starter, timeout=3, seconds=50, stuck=stuck)
    assert time.monotonic() - started < 40
    told = "all_reduce of 4096 bytes over NCCL did not end within 3 s"
    for number, events in enumerate(ranks):
        assert events[-1]["event"] == "error", events[-1]
        assert (events[-1]["text"] == told) == (number in stuck), events[-1]
    found = judged(ranks, 2, "nccl")
    assert found.unexplained == [] and all(one.hosts == () for one in found.findings if one.id != "GC-RUN-004")


#: Size in bytes to what rank 2 of 3 does to it in its third iteration.
DAMAGE = {
    12288: "missing",
    24576: "doubled",
    36864: "shifted",
    49152: "chunk",
    61440: "bit",
    73728: "input",
    86016: "copy",
}


def test_every_kind_of_damage_to_real_data_is_named_right(starter: Starter) -> None:
    """Three ranks with gloo; below one of them the collective is damaged, in each size in another way."""
    kinds = json.dumps({str(size): kind for size, kind in DAMAGE.items()})
    ranks = run_ranks(starter, [0, 1, 2], {2: {"program": (FAULTY_RANK, kinds)}}, sizes_bytes=list(DAMAGE))
    found = {
        (one.id, one.hosts, one.cause.split(": ", 1)[-1].split(", on all")[0]): one for one in judged(ranks).findings
    }
    assert set(found) == {
        ("GC-DATA-001", ("n2",), "the contribution of rank 2 is missing"),
        ("GC-DATA-001", ("n2",), "the contribution of rank 2 is counted twice"),
        ("GC-DATA-001", ("n2",), "the contribution of rank 2 is misplaced by 5 elements"),
        ("GC-DATA-001", ("n2",), "the contribution of rank 2 is missing, all of it in chunk 1 of 3"),
        ("GC-DATA-001", ("n2",), "single bits are flipped: bit 12 of element 7, all of it in chunk 0 of 3"),
        ("GC-DATA-002", ("n2",), "the memory of n2 changed what rank 2 was about to send"),
    }
    copies = [event for event in ranks[2] if event["event"] == "size" and event["size_bytes"] == 86016]
    assert copies[0]["wrong"]["sum_is_right"] is True and copies[0]["wrong"]["input_changed"] is False


def test_a_rank_that_is_told_to_go_before_rank_0_waits_for_it(starter: Starter) -> None:
    """The port of the rendezvous still belongs to the worker, which ends connections that are no probes."""
    (listener,) = probe_ports.bind_samples("127.0.0.1", 29500, 29599, 1)
    port = listener.getsockname()[1]
    early = [start_rank(starter, number, listener.fileno(), port) for number in (1, 2)]
    listener.settimeout(60)
    turned_away = 0
    while turned_away < 4:
        connection, _peer = listener.accept()
        responder = probe_ports.Responder(connection, "f" * 32)
        connection.settimeout(10)
        assert responder.step()
        connection.close()
        turned_away += 1
    processes = [start_rank(starter, 0, listener.fileno(), port), *early]
    listener.close()
    assert [events[-1]["event"] for events in ends(processes)] == ["done"] * 3
