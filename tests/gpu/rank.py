# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank: all_reduce of rank + 1 on the only GPU that it sees. Arguments: backend, elements, file for the result."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

TIMEOUT = timedelta(seconds=60)


def main() -> None:
    """Join by the environment's MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, sum, and write what came out."""
    backend, elements, result = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    on_gpu = backend == "nccl"
    device = torch.device("cuda", 0) if on_gpu else torch.device("cpu")
    dist.init_process_group(backend, timeout=TIMEOUT)
    values = torch.full((elements,), float(dist.get_rank() + 1), device=device)
    dist.all_reduce(values)
    said = {
        "rank": dist.get_rank(),
        "smallest": values.min().item(),
        "largest": values.max().item(),
        "torch": str(torch.__version__),
        "nccl": ".".join(str(part) for part in torch.cuda.nccl.version()) if on_gpu else "",
        "device": torch.cuda.get_device_name(0) if on_gpu else "cpu",
    }
    dist.destroy_process_group()
    result.write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main()
