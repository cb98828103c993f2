# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rank that goes NCCL's way with gloo in place of NCCL and memory in place of its GPU.

    rank_without_gpu.py '{"inside": [3], "hang": [2]}' -m <module of the rank>

It shows the order of steps, the groups and what is told; of NCCL and of a GPU it shows nothing.  The numbers are
ranks: those whose sum inside of their node is damaged, those that never begin it, and as ``stuck`` those whose GPU does
not end the sums of all nodes.  Needs torch.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

GPUS_OF_A_NODE = 2
#: Of the sums of all nodes, the last that ends: the first one may take longer.
STUCK_AFTER = 2


def install(rank: Any, torch: Any, kinds: dict[str, list[int]]) -> None:
    """Put memory and gloo below the rank, and the damage."""
    dist = torch.distributed
    real_new_group, real_all_reduce = dist.new_group, dist.all_reduce
    rank.DEVICES[rank.NCCL], rank.PROCESS_GROUPS[rank.NCCL] = "cpu", "cpu:gloo"
    torch.cuda.device_count = lambda: GPUS_OF_A_NODE
    torch.cuda.set_device = lambda number: None
    sums = [0]

    def synchronize() -> None:
        if sums[0] > STUCK_AFTER and dist.get_rank() in kinds.get("stuck", []):
            time.sleep(3600)

    def new_group(ranks: list[int], backend: str, **fields: Any) -> Any:
        assert backend == rank.NCCL
        return real_new_group(ranks, backend="gloo", **fields)

    def all_reduce(data: Any, group: Any = None, **fields: Any) -> None:
        if group is not None and dist.get_rank() in kinds.get("hang", []):
            time.sleep(3600)
        real_all_reduce(data, group=group, **fields)
        sums[0] += group is None and len(data) > 1
        if group is not None and dist.get_rank() in kinds.get("inside", []):
            data[7] += 1

    dist.new_group, dist.all_reduce, torch.cuda.synchronize = new_group, all_reduce, synchronize


def main() -> None:
    kinds, _dash_m, name = sys.argv[1:4]
    import torch

    rank = importlib.import_module(name)
    install(rank, torch, json.loads(kinds))
    rank.main()


if __name__ == "__main__":
    main()
