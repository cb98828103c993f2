# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bandwidth of torch's all_reduce, in the units of nccl-tests, to stand beside its all_reduce_perf.

Started by torchrun, one process for each GPU; --backend gloo runs the same on the CPU.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parents[2] / ".ansible" / "collections"))

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import bandwidth

WARMUP = 5
ITERATIONS = 20


def seconds_of(values: torch.Tensor, on_gpu: bool) -> list[float]:
    """The times of the iterations of this rank, each until the GPU has ended."""
    times = []
    for _iteration in range(WARMUP + ITERATIONS):
        dist.barrier()
        if on_gpu:
            torch.cuda.synchronize()
        started = time.perf_counter()
        dist.all_reduce(values)
        if on_gpu:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return times[WARMUP:]


def main() -> None:
    """Measure sizes from 1 MiB on, each four times the one before, and print a table on rank 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--backend", choices=["nccl", "gloo"], default="nccl")
    parser.add_argument("--largest-bytes", type=int, default=1 << 30)
    arguments = parser.parse_args()
    on_gpu = arguments.backend == "nccl"
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group(arguments.backend)
    world = dist.get_world_size()
    size = 1 << 20
    while size <= arguments.largest_bytes:
        mine = seconds_of(torch.zeros(size // 4, device=device), on_gpu)
        everybody: list[list[float]] = [[] for _rank in range(world)]
        dist.all_gather_object(everybody, mine)
        seconds = bandwidth.median_seconds(everybody)
        algbw = bandwidth.algbw_gb_per_s(size, seconds)
        if dist.get_rank() == 0:
            busbw = algbw * bandwidth.busbw_factor(world)
            print(
                f"{size:>12} B  {seconds * 1e6:10.1f} us  algbw {algbw:8.2f} GB/s  busbw {busbw:8.2f} GB/s", flush=True
            )
        size *= 4
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
