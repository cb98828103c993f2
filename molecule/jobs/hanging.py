# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training in which one rank does something else than the others, so that all wait: ``hanging.py HOW RANK``."""

from __future__ import annotations

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

STEPS, ODD_STEP = 5, 3
SECONDS = int(os.environ.get("SECONDS_TO_WAIT", "300"))


def stuck() -> None:
    time.sleep(600)


def main() -> None:
    how, odd = sys.argv[1], int(sys.argv[2]) == int(os.environ["RANK"])
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=SECONDS))
    for step in range(STEPS):
        differs = odd and step == ODD_STEP
        if differs and how == "sleep":
            stuck()
        if differs and how == "skip":
            continue
        # A rank without data has nothing to reduce: gloo lets it go on.
        dist.all_reduce(torch.ones(0 if differs and how == "size" else 1000))
        print(f"step {step}", flush=True)
        while how == "link" and step == ODD_STEP and not os.path.exists(sys.argv[3]):
            time.sleep(0.1)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
