# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank: joins the process group and runs all_reduce on known data.

Runs on a node under the training environment's Python.  Reads one JSON object from standard input when it is to start,
writes one JSON object per line to standard output.  Needs torch, nothing of Ansible.  The worker kills it at its
deadline, because a hang inside torch can't be ended from inside; over NCCL it ends itself before (``on_gpu.Limit``).
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import math
import os
import sys
import time
import traceback
import zlib
from contextlib import nullcontext
from datetime import timedelta
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import find_spec
from statistics import median
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import store_keys
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.progress_note import NO_NOTE, Note
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent.rank_gpu import (
    DEVICES,
    ENVIRONMENT,
    PROCESS_GROUPS,
    Limit,
    OnGpu,
    architectures,
    take_gpu,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.bandwidth import (
    PLATEAU_FROM_BYTES,
    on_plateau,
    settled,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import NCCL
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.pattern import PERIOD, Pattern
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.wrong_data import explain

MAX_SAMPLES = 64
# 1 MiB, which fits into the cache of a core.
PART_ELEMENTS = 8 * PERIOD
# A buffer of 2 MiB or less stays in the cache of a core (L2) where a bare loop sums it again and again.
CACHED_ELEMENTS = 1 << 19
# 1 MiB: what a group of such buffers holds at most, or it would not stay there.  Beside a bare loop of barrier and
# all_reduce (tools/bench_bandwidth.py; torch 2.13.0, gloo over loopback, 2 ranks, 512 KiB of L2, 5 runs) 1 MiB took
# 0.99 to 1.05 times as long alone and 0.98 to 1.10 in groups of eight, 512 KiB 0.92 to 1.03 in pairs and 1.04 to 1.08
# in groups of eight, 2 MiB 1.00 to 1.07 alone; the bare loop beside itself 0.98 to 1.08.
CACHED_GROUP_ELEMENTS = 1 << 18
# 32 MiB: the same for larger ones.  4 MiB took 1.06 times as long in pairs (0.98 to 1.15), 1.05 in fours and 1.00 in
# groups of eight (0.94 to 1.09): the first of a group finds the caches full of what was filled and compared.
GROUP_ELEMENTS = 1 << 23
LIBC = ctypes.CDLL(None)
# Of wrong iterations after the first only the digests are kept, and those of so many.
MAX_WRONG = 32
# The fewest values whose smallest and largest hold the median with 95 % confidence: 1 - 2 / 2**6 (bandwidth.py).
LEAST_TIMED = 6
# A size that is foretold to take longer than this part of the time that is left is not begun: how long it takes is
# foretold from the sizes before it, and while a node does other work it takes longer.
PART_OF_TIME_LEFT = 0.5
# What the GPUs of a node sum among themselves before all nodes do, and how often.
INSIDE_BYTES = 16 << 20
INSIDE_ITERATIONS = 5
# Ranks that look into the store while the others are missing: rank 0 keeps it, rank 1 sees it over the network.
LOOKERS = 2
# What the ranks tell each other in the store before torch does.
HERE = "gpu_cluster_check/{rank}"
ALL_HERE = "gpu_cluster_check/all"


def emit(event: str, **fields: Any) -> None:
    """Write one event.  Flushed at once: what is written before a kill is a partial result.

    at: seconds since 1970 by the node's own clock.  The line break before it: an unfinished line of something else,
    such as of NCCL, must not swallow it.
    """
    sys.stdout.write(f"\n{json.dumps({'event': event, 'at': round(time.time(), 3), **fields})}\n")
    sys.stdout.flush()


@lru_cache(maxsize=4)
def blocks(torch: Any, world_size: int, rank: int) -> tuple[Any, Any]:
    """What ``rank`` puts in and the sum of all ranks, for two blocks of the first iteration and without their steps."""
    pattern, index = Pattern(world_size, 0), torch.arange(2 * PERIOD, dtype=torch.int64)
    base, weight = pattern.base(index), pattern.b(index)
    pairs = world_size * (world_size - 1) // 2
    return (base + rank * weight).float(), (world_size * base + pairs * weight).float()


def write(torch: Any, pattern: Pattern, two_blocks: Any, factor: int, target: Any, start: int = 0) -> None:
    """Write blocks and their steps.  start: where in the whole buffer ``target`` begins, a multiple of ``PERIOD``."""
    whole, rest = divmod(len(target), PERIOD)
    first = start // PERIOD
    steps = factor * pattern.step(torch.arange(first, first + whole + 1, dtype=torch.int64)).float()
    block = two_blocks[pattern.offset : pattern.offset + PERIOD]
    if whole:
        torch.add(block[None, :], steps[:whole, None], out=target[: whole * PERIOD].view(whole, PERIOD))
    if rest:
        torch.add(block[:rest], steps[whole], out=target[whole * PERIOD :])


def fill(torch: Any, pattern: Pattern, rank: int, data: Any) -> None:
    """Write what ``rank`` puts in."""
    write(torch, pattern, blocks(torch, pattern.world_size, rank)[0], 1, data)


def write_sum(torch: Any, pattern: Pattern, rank: int, target: Any, start: int = 0) -> None:
    """Write what all ranks together make, from element ``start`` on."""
    write(torch, pattern, blocks(torch, pattern.world_size, rank)[1], pattern.world_size, target, start)


def is_right(torch: Any, pattern: Pattern, rank: int, data: Any) -> bool:
    """Compare every element with the sum.

    Part by part, so that what it is compared with stays in the processor's cache.
    """
    part = torch.empty(min(len(data), PART_ELEMENTS))
    for start in range(0, len(data), PART_ELEMENTS):
        found = data[start : start + PART_ELEMENTS]
        write_sum(torch, pattern, rank, part[: len(found)], start)
        if not same(found, part[: len(found)]):
            return False
    return True


def same(one: Any, other: Any) -> bool:
    """Compare two buffers bit by bit: torch.equal takes six times as long (torch 2.13.0, one thread)."""
    length = ctypes.c_size_t(one.numel() * one.element_size())
    return bool(LIBC.memcmp(ctypes.c_void_p(one.data_ptr()), ctypes.c_void_p(other.data_ptr()), length) == 0)


def checksum(torch: Any, data: Any) -> int:
    """The sum of all words of a buffer, to see whether it is still what it was.

    No CRC, which takes several times as long.  One word that changes always changes the sum.
    """
    even = len(data) // 2 * 2
    return int(data[:even].view(torch.int64).sum()) + int(data[even:].view(torch.int32).sum())


def digest(data: Any) -> int:
    """CRC-32 of a buffer, for comparing it with that of another rank."""
    here = data.cpu().contiguous()
    return zlib.crc32((ctypes.c_char * (here.numel() * here.element_size())).from_address(here.data_ptr()))


def samples(torch: Any, bad: Any) -> list[int]:
    """Some of the wrong elements: neighbours, where data that moved shows, and others from all over."""
    near = bad[: MAX_SAMPLES // 2]
    far = bad[torch.linspace(0, len(bad) - 1, MAX_SAMPLES // 2, dtype=torch.float64).long()]
    return sorted({int(index) for index in torch.cat([near, far])})


def look_at(torch: Any, pattern: Pattern, rank: int, data: Any, before: int) -> dict[str, Any]:
    """What a wrong sum looks like.  before: the checksum of what this rank put in.

    What went in is made again from nothing: when it is not what lay in memory, the memory has changed it, and no
    network.  So is the sum: when the data agrees with it now, the memory had changed what it was compared with.
    """
    blocks.cache_clear()
    own, right = torch.empty(len(data)), torch.empty(len(data))
    fill(torch, pattern, rank, own)
    write_sum(torch, pattern, rank, right)
    bad = torch.nonzero(data != right).flatten()
    seen: dict[str, Any] = {
        "iteration": pattern.iteration,
        "elements": int(bad.numel()),
        "first": 0,
        "last": 0,
        "explanation": "the sum is right",
        "digest": digest(data),
        "input_changed": checksum(torch, own) != before,
        "sum_is_right": not bad.numel(),
    }
    if bad.numel():
        wrong = [(index, float(data[index])) for index in samples(torch, bad)]
        seen.update(first=int(bad[0]), last=int(bad[-1]), explanation=explain(pattern, wrong, len(data)))
    return seen


class Exchanges:
    """The iterations of one size: filled in, exchanged and compared in groups.

    In a group one collective follows the other as in a job, or in a benchmark.  With filling and comparing between them
    each would begin with cold caches and sleeping threads, and a small one take half as long again.

    dist: ``torch.distributed`` or an ``OnGpu``.  told: the event that tells of wrong data at once.
    """

    def __init__(
        self, torch: Any, dist: Any, job: dict[str, Any], count: int, note: Note = NO_NOTE, told: str = "wrong"
    ) -> None:
        self._torch, self._dist, self._job, self._note, self._told = torch, dist, job, note, told
        room = CACHED_GROUP_ELEMENTS if count <= CACHED_ELEMENTS else GROUP_ELEMENTS
        many = max(1, min(job["iterations"], room // count))
        self._buffers = [torch.empty(count) for _buffer in range(many)]
        device = DEVICES[job["backend"]]
        # What lies in the host's memory is summed where it is: copies between two collectives make the second slower.
        self._on_gpu = None if device == "cpu" else torch.empty(count, device=device)
        self.wrong: dict[str, Any] = {}
        self.checked = 0

    def run(self, iterations: int) -> list[float]:
        """So many of them; the seconds of each on this rank."""
        seconds: list[float] = []
        while len(seconds) < iterations:
            seconds += self._group(min(iterations - len(seconds), len(self._buffers)))
            self._note.write(iterations=self.checked)
        return seconds

    def _group(self, many: int) -> list[float]:
        patterns = [Pattern(self._job["world_size"], self.checked + number) for number in range(many)]
        before = []
        for number, pattern in enumerate(patterns):
            fill(self._torch, pattern, self._job["rank"], self._buffers[number])
            before.append(checksum(self._torch, self._buffers[number]))
        seconds: list[float] = []
        try:
            for data in self._buffers[:many]:
                work = data if self._on_gpu is None else self._on_gpu.copy_(data)
                self._dist.barrier()
                start = time.perf_counter()
                self._dist.all_reduce(work)
                seconds.append(time.perf_counter() - start)
                if work is not data:
                    data.copy_(work)
                self._note.count(self.checked + len(seconds))
            # Or this rank would compare while the collective of another one on this node still needs the processor.
            self._dist.barrier()
        finally:
            for number in range(len(seconds)):
                self._compare(patterns[number], self._buffers[number], before[number])
        return seconds

    def _compare(self, pattern: Pattern, data: Any, before: int) -> None:
        """In full.  What is wrong is told at once: the next collective may not end."""
        self.checked += 1
        if is_right(self._torch, pattern, self._job["rank"], data):
            return
        if self.wrong:
            self.wrong["iterations"] += 1
            if len(self.wrong["more"]) < MAX_WRONG:
                self.wrong["more"].append((pattern.iteration, digest(data)))
            return
        self.wrong = look_at(self._torch, pattern, self._job["rank"], data, before)
        emit(self._told, size_bytes=len(data) * 4, **self.wrong)
        self.wrong.update(iterations=1, more=[])


class Measured(NamedTuple):
    """What is known of a size, alike on all ranks."""

    size_bytes: int
    #: The median of the slowest rank.
    seconds: float
    #: What one iteration took with all that belongs to it: filling, barriers, comparing.
    seconds_in_all: float
    #: Until the first of the ranks is killed.
    seconds_left: float


def run_size(torch: Any, dist: Any, job: dict[str, Any], size_bytes: int, note: Note = NO_NOTE) -> Measured:
    """Time and check one size.

    ``iterations`` are timed, and more until their median is settled, at most ``max_iterations``; but only
    ``size_seconds`` long, where that is given.  A slow network gets fewer instead of running into its deadline: how
    many, the first iteration of the warm-up tells, and ``LEAST_TIMED`` are always timed.  Every iteration is compared
    in full, the warm-up too.  After a wrong one the rank goes on, or its peers would wait.
    """
    count = max(1, size_bytes // 4)
    begun = time.monotonic()
    exchanges = Exchanges(torch, dist, job, count, note)
    iterations, limit = job["iterations"], job.get("size_seconds", math.inf)
    if job["warmup"]:
        exchanges.run(1)
        (first,) = agree(torch, dist, [time.monotonic() - begun])
        more, iterations = affordable(job, first)
        exchanges.run(more)
    seconds: list[float] = []
    slowest: list[float] = []
    most = max(job["iterations"], job.get("max_iterations", 0))
    while True:
        batch = exchanges.run(min(iterations, most - len(seconds)))
        seconds += batch
        now = time.monotonic()
        *times, over, spent = agree(torch, dist, [*batch, now - job.get("ends", math.inf), now - begun])
        slowest += times
        if len(seconds) >= most or settled(slowest) or spent >= limit:
            break
    emit(
        "size",
        size_bytes=count * 4,
        seconds=seconds,
        checked=exchanges.checked,
        settled=settled(slowest),
        wrong=exchanges.wrong or None,
    )
    return Measured(count * 4, median(slowest), spent / exchanges.checked, -over)


def affordable(job: dict[str, Any], seconds: float) -> tuple[int, int]:
    """How many iterations of ``seconds`` a size has: of the warm-up after the first one, and timed ones at least."""
    possible = job.get("size_seconds", math.inf) / seconds
    return int(min(job["warmup"] - 1, possible)), int(min(job["iterations"], max(LEAST_TIMED, possible)))


def foretold(job: dict[str, Any], sizes: list[Measured], size_bytes: int) -> float:
    """How many seconds a size takes at least: ``t = alpha + size / beta`` through the last two that were measured.

    sizes: those before it, at least one.  One alone, or one that is larger than the next, tells no more than itself.
    """
    last = sizes[-1]
    one = last.seconds_in_all
    if len(sizes) > 1 and sizes[-2].size_bytes < last.size_bytes < size_bytes:
        slope = (one - sizes[-2].seconds_in_all) / (last.size_bytes - sizes[-2].size_bytes)
        one += max(0.0, slope) * (size_bytes - last.size_bytes)
    if not job["warmup"]:
        return float(one * job["iterations"])
    return float(one * (1 + sum(affordable(job, one))))


def agree(torch: Any, dist: Any, values: list[float]) -> list[float]:
    """The largest of each value over all ranks: what follows from it, every rank decides alike."""
    largest = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    return [float(value) for value in largest]


def run_sizes(torch: Any, dist: Any, job: dict[str, Any], note: Note = NO_NOTE) -> None:
    """All sizes in their order; with ``plateau`` only as far as larger ones are faster.

    With ``fit_deadline`` only as far as the time allows, once one is done that is large enough for bandwidth to rule.
    """
    done: list[Measured] = []
    for index, size_bytes in enumerate(job["sizes_bytes"]):
        left_out = len(job["sizes_bytes"]) - index
        if job.get("plateau") and len(done) > 1 and no_faster(*done[-2:]):
            emit("plateau", size_bytes=done[-1].size_bytes, left_out=left_out)
            return
        if job.get("fit_deadline") and any(one.size_bytes >= PLATEAU_FROM_BYTES for one in done):
            needed, left = foretold(job, done, size_bytes), done[-1].seconds_left
            if needed > PART_OF_TIME_LEFT * left:
                emit("no_time", size_bytes=size_bytes, left_out=left_out, needed_seconds=needed, left_seconds=left)
                return
        note.begin(job, index)
        done.append(run_size(torch, dist, job, size_bytes, note))


def no_faster(one: Measured, other: Measured) -> bool:
    """Whether the bandwidth of the second is no better, though it is larger."""
    return one.size_bytes < other.size_bytes and on_plateau(one[:2], other[:2])


def join_store(dist: Any, job: dict[str, Any]) -> Any:
    """Reach the rendezvous, on rank 0 by taking over the port that the worker has kept open, and say so there.

    Until the worker of rank 0 has its job it answers probes on that port, and ends a connection that is none.  A rank
    that was told to go earlier meets that, and tries again for as long as ranks wait for each other.
    """
    patience = timedelta(seconds=job["join_seconds"])
    where = job["master_address"], job["master_port"], job["world_size"]
    fields: dict[str, Any] = {"wait_for_workers": False}
    if job["rank"] == 0:
        fields["master_listen_fd"] = job["listen_fd"]
    end = time.monotonic() + job["join_seconds"]
    while True:
        try:
            store = dist.TCPStore(*where, job["rank"] == 0, patience, **fields)
            store.set(HERE.format(rank=job["rank"]), "")
            return store
        except dist.DistError:
            if time.monotonic() >= end or job["rank"] == 0:
                raise
            time.sleep(0.2)


def wait_for_all(store: Any, job: dict[str, Any]) -> None:
    """Until every rank has reached the rendezvous.

    Rank 0 counts: torch's own store only tells how many are there, this one which are not.
    """
    patience = timedelta(seconds=job["join_seconds"])
    if job["rank"] != 0:
        store.wait([ALL_HERE], patience)
        return
    keys = [HERE.format(rank=rank) for rank in range(job["world_size"])]
    try:
        store.wait(keys, patience)
    except Exception as error:
        missing = [rank for rank, key in enumerate(keys) if not store.check([key])]
        emit("keys", missing=missing, addresses={})
        names = ", ".join(str(rank) for rank in missing[:MAX_WRONG])
        raise TimeoutError(f"ranks {names} did not reach the rendezvous in {job['join_seconds']} s") from error
    store.set(ALL_HERE, "")


def join(dist: Any, job: dict[str, Any]) -> None:
    """Reach the rendezvous, and wait until all ranks are there and connected."""
    store = join_store(dist, job)
    emit("store")
    wait_for_all(store, job)
    watch: Any = nullcontext()
    if job["rank"] < LOOKERS:
        watch = store_keys.Watch(
            lambda: store_keys.summary(store_keys.read(dist, job), job["world_size"]),
            lambda seen: emit("keys", **seen),
        )
    with watch:
        dist.init_process_group(
            PROCESS_GROUPS[job["backend"]],
            store=store,
            rank=job["rank"],
            world_size=job["world_size"],
            timeout=timedelta(seconds=job["timeout_seconds"]),
        )
    emit("joined")


def give_up(text: str) -> None:
    """End here, from whichever thread: what this rank waits for does not come."""
    emit("error", text=text, where=[])
    os._exit(1)


def inside_node(torch: Any, dist: Any, job: dict[str, Any], limit: Limit) -> None:
    """Sum among the GPUs of this node alone, and say so: what fails here is no matter of the network.

    No rank waits for another node, so that only the ranks of a node with trouble do not come to the event.
    """
    first, many = job["rank"] - job["local_rank"], job["local_size"]
    if many < 2:
        return
    group = dist.new_group(
        list(range(first, first + many)),
        timeout=timedelta(seconds=job["timeout_seconds"]),
        backend=NCCL,
        use_local_synchronization=True,
    )
    own = dict(job, world_size=many, rank=job["local_rank"], iterations=INSIDE_ITERATIONS)
    exchanges = Exchanges(torch, OnGpu(torch, dist, limit, group), own, INSIDE_BYTES // 4, told="wrong_inside")
    seconds = exchanges.run(INSIDE_ITERATIONS)
    emit("inside", size_bytes=INSIDE_BYTES, seconds=seconds, wrong=exchanges.wrong or None)


def tell_torch() -> None:
    """Tell which file is PyTorch, where it is not a package in the environment of this Python.  Imports nothing.

    instead_of: the one that stands there, empty where there is none.
    """
    own = tuple(os.path.join(prefix, "") for prefix in (sys.prefix, sys.base_prefix))
    try:
        found = find_spec("torch")
        path = found.origin if found else None
        if found is None or path is None:
            return
        package = found.submodule_search_locations is not None
        if package and path.startswith(own):
            return
        usual = PathFinder.find_spec("torch", [one for one in sys.path if one.startswith(own)])
    except Exception:  # Another finder than Python's, or a module that says less of itself.
        return
    emit("torch", path=path, package=package, instead_of=(usual.origin or "") if usual else "")


def main() -> None:
    faulthandler.enable()
    tell_torch()
    started = time.perf_counter()
    # What an import makes stays: to look through it again and again costs a tenth of the import (torch 2.13.0).
    gc.disable()
    import torch
    import torch.distributed as dist

    gc.freeze()
    gc.enable()
    seconds = round(time.perf_counter() - started, 3)
    emit("ready", torch=torch.__version__, code=architectures(torch), seconds=seconds)
    line = sys.stdin.readline()
    if not line:
        return
    job = json.loads(line)
    if (late := time.monotonic() - job.get("told", math.inf)) >= 1:
        emit("late", seconds=round(late, 3))
    note = Note(job["rank"], job.get("note", ""))
    note.write(backend=job["backend"])
    on_gpu = job["backend"] == NCCL
    ways: Any = dist
    try:
        if on_gpu:
            os.environ.update(ENVIRONMENT)
            take_gpu(torch, job["local_rank"])
            emit("gpu")
        join(dist, job)
        torch.set_num_threads(1)
        if on_gpu:
            limit = Limit(job["timeout_seconds"], give_up)
            inside_node(torch, dist, job, limit)
            ways = OnGpu(torch, dist, limit)
        run_sizes(torch, ways, job, note)
        ways.barrier()
        dist.destroy_process_group()
        emit("done")
    except Exception as error:
        emit("error", text=f"{type(error).__name__}: {error}", where=traceback.format_exc().strip().splitlines()[-3:])
        raise SystemExit(1) from error


if __name__ == "__main__":
    main()
    # Everything is told. To take torch apart costs 0.5 s of a processor (torch 2.13.0), which the node is waited for.
    os._exit(0)
