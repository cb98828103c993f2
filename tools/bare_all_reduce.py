# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time a bare all_reduce and that of the check in turn, in one job.  Runs on the nodes under torchrun.

Both are asked for the same sizes and iterations.  Rank 0 prints JSON objects, one a line: how long the start took, and
for each size the time of the slowest rank of every timed iteration, and the wall time of all iterations, of both.

Both run under SCHED_BATCH, where a thread that wakes up takes no processor from another.  Gloo's own thread does not
wait for the lock of a connection, it asks again and again (``Pair::handleEvents`` in gloo/transport/tcp/pair.cc): where
it has taken the processor from the thread that holds the lock, both wait for the scheduler's next tick.  With two
ranks, each bound to one of two processors, that hit about half of all sums, so that their median was either of two
times: 1 MiB took 0.8 or 3.5 ms, and 0.8 under SCHED_BATCH (torch 2.13.0, Linux 6.18 without preemption).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import rank

WARMUP = 5


def bare(size_bytes: int, iterations: int) -> list[float]:
    """The seconds of each iteration on this rank, as benchmarks take them: barrier, clock, collective, clock."""
    data = torch.zeros(size_bytes // 4)  # Other numbers grow to infinity in some 40 sums.
    seconds = []
    for iteration in range(WARMUP + iterations):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(data)
        if iteration >= WARMUP:
            seconds.append(time.perf_counter() - start)
    return seconds


def checked(size_bytes: int, iterations: int) -> list[float]:
    """The same as the check takes them, every sum compared."""
    events: list[dict[str, Any]] = []
    rank.emit = lambda event, **fields: events.append(dict(fields, event=event))
    job = {
        "rank": dist.get_rank(),
        "world_size": dist.get_world_size(),
        "backend": "gloo",
        "warmup": WARMUP,
        "iterations": iterations,
    }
    rank.run_size(torch, dist, job, size_bytes)
    (size,) = (event for event in events if event["event"] == "size")
    if size["wrong"] or size["checked"] != WARMUP + iterations:
        raise SystemExit(f"the sums are wrong: {size}")
    return list(size["seconds"])


def age() -> float:
    """Seconds since this process was started (proc(5): field 22 of stat, in ticks since boot)."""
    ticks = int(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    return uptime - ticks / os.sysconf("SC_CLK_TCK")


def slowest(seconds: list[float]) -> list[float]:
    """Of every iteration the time of its slowest rank."""
    times = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(times, op=dist.ReduceOp.MAX)
    return [float(one) for one in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", required=True, help="bytes, with commas")
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True, help="how often both are timed, in turn")
    given = parser.parse_args()
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    if dist.get_rank() == 0:
        print(json.dumps({"start_seconds": age()}), flush=True)
    ways = {"bare": bare, "checked": checked}
    for size_bytes in [int(one) for one in given.sizes.split(",")]:
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        wall = dict.fromkeys(ways, 0.0)
        for number in range(given.rounds):
            for name in sorted(ways, reverse=bool(number % 2)):
                dist.barrier()
                begun = time.perf_counter()
                times = ways[name](size_bytes, given.iterations)
                wall[name] += time.perf_counter() - begun
                seconds[name] += slowest(times)
        if dist.get_rank() == 0:
            print(json.dumps({"size_bytes": size_bytes, "seconds": seconds, "wall_seconds": wall}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
