# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank: joins the process group and runs all_reduce on known data.

Runs on a node under the training environment's Python.  Reads one JSON object from standard input when it is to start,
writes one JSON object per line to standard output.  Needs torch, nothing of Ansible.  It has no deadline of its own:
the worker kills it, because a hang inside torch can't be ended from inside.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from datetime import timedelta
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._collective.pattern import Pattern, explain

MAX_SAMPLES = 64
CHUNK_ELEMENTS = 32768


def emit(event: str, **fields: Any) -> None:
    """Write one event.  Flushed at once: what is written before a kill is a partial result."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def fill(torch: Any, pattern: Pattern, rank: int, data: Any, expected: Any) -> None:
    """Write the contribution of ``rank`` and the sum of all ranks; in chunks that stay in the processor's cache."""
    for start in range(0, len(data), CHUNK_ELEMENTS):
        stop = min(start + CHUNK_ELEMENTS, len(data))
        data[start:stop], expected[start:stop] = pattern.both(rank, torch.arange(start, stop, dtype=torch.int64))


def run_size(torch: Any, dist: Any, job: dict[str, Any], size_bytes: int) -> None:
    """Time and check all iterations of one size.

    Every iteration is compared in full, the warm-up too.  After a wrong one the rank goes on, or its peers would wait.
    """
    rank, world_size = job["rank"], job["world_size"]
    count = max(1, size_bytes // 4)
    data, expected = torch.empty(count), torch.empty(count)
    seconds: list[float] = []
    wrong: dict[str, Any] | None = None
    rounds = job["warmup"] + job["iterations"]
    for iteration in range(rounds):
        pattern = Pattern(world_size, iteration)
        fill(torch, pattern, rank, data, expected)
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(data)
        elapsed = time.perf_counter() - start
        if iteration >= job["warmup"]:
            seconds.append(elapsed)
        if wrong is None and not torch.equal(data, expected):
            bad = torch.nonzero(data != expected).flatten()
            sample = [(int(i), float(data[i])) for i in bad[:MAX_SAMPLES]]
            wrong = {
                "iteration": iteration,
                "elements": int(bad.numel()),
                "first": int(bad[0]),
                "last": int(bad[-1]),
                "explanation": explain(pattern, sample, count),
            }
    emit("size", size_bytes=count * 4, seconds=seconds, checked=rounds, wrong=wrong)


def join_store(dist: Any, job: dict[str, Any]) -> Any:
    """Reach the rendezvous, on rank 0 by taking over the port that the worker has kept open.

    Until the worker of rank 0 has its job it answers probes on that port, and ends a connection that is none.  A rank
    that was told to go earlier meets that, and tries again for as long as ranks wait for each other.
    """
    join = timedelta(seconds=job["join_seconds"])
    where = job["master_address"], job["master_port"], job["world_size"]
    if job["rank"] == 0:
        return dist.TCPStore(*where, True, join, master_listen_fd=job["listen_fd"])
    end = time.monotonic() + job["join_seconds"]
    while True:
        try:
            return dist.TCPStore(*where, False, join)
        except dist.DistError:
            if time.monotonic() >= end:
                raise
            time.sleep(0.2)


def main() -> None:
    started = time.perf_counter()
    import torch
    import torch.distributed as dist

    emit("ready", torch=torch.__version__, seconds=round(time.perf_counter() - started, 3))
    line = sys.stdin.readline()
    if not line:
        return
    job = json.loads(line)
    try:
        timeout = timedelta(seconds=job["timeout_seconds"])
        store = join_store(dist, job)
        emit("store")
        dist.init_process_group(
            job["backend"], store=store, rank=job["rank"], world_size=job["world_size"], timeout=timeout
        )
        emit("joined")
        torch.set_num_threads(1)
        for size_bytes in job["sizes_bytes"]:
            run_size(torch, dist, job, size_bytes)
        dist.barrier()
        dist.destroy_process_group()
        emit("done")
    except Exception as error:
        emit("error", text=f"{type(error).__name__}: {error}", where=traceback.format_exc().strip().splitlines()[-3:])
        raise SystemExit(1) from error


if __name__ == "__main__":
    main()
