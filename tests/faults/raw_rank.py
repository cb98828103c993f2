# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank as anybody would write it, to compare with: no part of the check, and no help from it.

Arguments: rank, world size, rendezvous, its interface, seconds until a collective times out, number of collectives.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta


def main() -> None:
    rank, world_size, rendezvous, interface, seconds, count = sys.argv[1:]
    os.environ["GLOO_SOCKET_IFNAME"] = interface
    import torch
    import torch.distributed as dist

    # Imported: the clock starts when everybody could.
    print("ready", flush=True)
    sys.stdin.readline()
    started = time.monotonic()
    try:
        dist.init_process_group(
            "gloo",
            init_method=f"tcp://{rendezvous}",
            rank=int(rank),
            world_size=int(world_size),
            timeout=timedelta(seconds=float(seconds)),
        )
        # 4 MiB: more than fits one packet of any network.
        for number in range(int(count)):
            data = torch.full((1 << 20,), float(rank))
            dist.all_reduce(data)
            if number == 1:
                print("works", flush=True)
        text = f"all_reduce gave {data[0].item():g}"
        dist.destroy_process_group()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    print(f"{time.monotonic() - started:.1f} {text.splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main()
