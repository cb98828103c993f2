# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collectives of a rank over NCCL, on one GPU.  Needs torch.

Only the buffer of the collective lies on the GPU.  It is filled from memory and compared in memory, outside of what is
timed, so the exact comparison is the one that gloo has.  What the ranks agree upon goes over gloo.
"""

from __future__ import annotations

from typing import Any

NCCL = "nccl"
#: Where the buffer of a collective lies, by backend.
DEVICES = {"gloo": "cpu", NCCL: "cuda"}
#: What torch is asked for, by backend: with NCCL, gloo serves the tensors in memory.
PROCESS_GROUPS = {"gloo": "gloo", NCCL: "cpu:gloo,cuda:nccl"}


class TooFewGpusError(RuntimeError):
    """PyTorch sees no GPU for this rank."""


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


class OnGpu:
    """In place of ``torch.distributed``, for what a rank calls while it measures.

    group: of ``torch.distributed.new_group``, None for all ranks.  A collective on a GPU has only been queued when
    torch returns, so each is waited for: its time is that until the data can be used.
    """

    def __init__(self, torch: Any, dist: Any, group: Any = None) -> None:
        self._torch, self._dist, self._group = torch, dist, group
        self.ReduceOp = dist.ReduceOp

    def barrier(self) -> None:
        """All ranks of the job have come here; over gloo, so it costs no GPU anything."""
        if self._group is None:
            self._dist.all_reduce(self._torch.zeros(1))

    def all_reduce(self, data: Any, **fields: Any) -> None:
        self._dist.all_reduce(data, group=self._group, **fields)
        self._torch.cuda.synchronize()
