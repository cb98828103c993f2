# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collectives of a rank over NCCL, on one GPU.  Needs torch.

Only the buffer of the collective lies on the GPU.  It is filled from memory and compared in memory, outside of what is
timed, so the exact comparison is the one that gloo has.  What the ranks agree upon goes over gloo.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import NCCL

#: Where the buffer of a collective lies, by backend.
DEVICES = {"gloo": "cpu", NCCL: "cuda"}
#: What torch is asked for, by backend: with NCCL, gloo serves the tensors in memory.
PROCESS_GROUPS = {"gloo": "gloo", NCCL: "cpu:gloo,cuda:nccl"}
#: The first collective of a group connects its ranks, and loads NCCL's kernels into the GPU.
CONNECT_SECONDS = 30
#: By default the watchdog of torch kills the process some time after NCCL has lost a peer: the rank would look like
#: one that a signal has ended.  With this it only says so on standard error (torch, ProcessGroupNCCL.hpp).
ENVIRONMENT = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}


class TooFewGpusError(RuntimeError):
    """PyTorch sees no GPU for this rank."""


def architectures(torch: Any) -> list[str]:
    """What this build of PyTorch has code for, as ``sm_90``; none without CUDA.

    ``torch.cuda.get_arch_list`` of older releases starts CUDA first, and the list is empty where that fails.
    """
    flags = getattr(torch._C, "_cuda_getArchFlags", None)
    return str(flags() or "").split() if flags else []


def take_gpu(torch: Any, number: int) -> None:
    """Make this GPU the one of the rank: the first use of it takes seconds, and longer without nvidia-persistenced.

    number: from 0.  TooFewGpusError where there is none.
    """
    seen = torch.cuda.device_count()
    if number >= seen:
        raise TooFewGpusError(
            f"this rank needs GPU {number} of its node, and PyTorch {torch.__version__} sees {seen} there"
        )
    torch.cuda.set_device(number)
    torch.zeros(1, device=DEVICES[NCCL])
    torch.cuda.synchronize()


class Limit(threading.Thread):
    """Tells of a collective that takes too long, from another thread: its own waits inside of NCCL or CUDA, for good.

    NCCL waits for a peer that is cut off or stopped as long as that lasts, and ``torch.cuda.synchronize`` also for one
    that is gone, whatever limit torch was given (torch 2.11.0, NCCL 2.28.9; docs/gpu-evidence.md).

    seconds: what a collective may take, and the first one of a group ``CONNECT_SECONDS`` more.  give_up: is called
    once, with a sentence, and has to end the process.
    """

    LOOK_SECONDS = 0.2

    def __init__(self, seconds: float, give_up: Callable[[str], None]) -> None:
        super().__init__(daemon=True)
        self._seconds, self._give_up = seconds, give_up
        self._running: tuple[float, float, Any] | None = None
        self.start()

    def begin(self, data: Any, more_seconds: float) -> None:
        """A collective begins.  It is timed, so the sentence is made when it is needed."""
        self._running = (time.monotonic(), self._seconds + more_seconds, data)

    def end(self) -> None:
        """It has ended, or failed."""
        self._running = None

    def run(self) -> None:
        while True:
            time.sleep(self.LOOK_SECONDS)
            if running := self._running:
                begun, seconds, data = running
                if time.monotonic() - begun > seconds:
                    self._give_up(f"all_reduce of {data.nbytes} bytes over NCCL did not end within {seconds:g} s")
                    return


class OnGpu:
    """In place of ``torch.distributed``, for what a rank calls while it measures.

    limit: of each of its collectives on the GPU.  group: of ``torch.distributed.new_group``, None for all ranks.  A
    collective on a GPU has only been queued when torch returns, so each is waited for: its time is that until the data
    can be used.
    """

    def __init__(self, torch: Any, dist: Any, limit: Limit, group: Any = None) -> None:
        self._torch, self._dist, self._limit, self._group = torch, dist, limit, group
        self._connect_seconds = CONNECT_SECONDS
        self.ReduceOp = dist.ReduceOp

    def barrier(self) -> None:
        """All ranks of the job have come here; over gloo, so it costs no GPU anything."""
        if self._group is None:
            self._dist.all_reduce(self._torch.zeros(1))

    def all_reduce(self, data: Any, **fields: Any) -> None:
        if data.device.type != DEVICES[NCCL]:
            # What the ranks agree upon; gloo has a limit of its own.
            self._dist.all_reduce(data, group=self._group, **fields)
            return
        self._limit.begin(data, self._connect_seconds)
        try:
            self._dist.all_reduce(data, group=self._group, **fields)
            self._torch.cuda.synchronize()
        finally:
            self._limit.end()
        self._connect_seconds = 0
