# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small training with DistributedDataParallel, as a user would write it; it checks itself.

Every rank learns y = 3x - 1 from points of its own.  In the end the loss must have fallen, the weights must be right,
and the same on all ranks.  With --checkpoint it goes on where the last attempt stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--checkpoint", type=Path, help="one file per node, written after every step")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step")
    parser.add_argument("--until", type=Path, help="go on until this file is there")
    parser.add_argument("--fail-rank", type=int, default=-1, help="this rank raises in the third step")
    return parser.parse_args()


def points(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Other points on every rank, so that only averaged gradients are right."""
    generator = torch.Generator().manual_seed(1000 * rank + step)
    x = torch.rand(32, 1, generator=generator) * 2 - 1
    return x, 3 * x - 1


def load(path: Path | None, model: torch.nn.Module) -> int:
    """The step to begin with: that of the oldest checkpoint, so that all ranks begin with the same."""
    found = torch.load(path) if path is not None and path.exists() else {"step": 0}
    step = torch.tensor(found["step"])
    dist.all_reduce(step, op=dist.ReduceOp.MIN)
    if found["step"] == int(step) and int(step):
        model.load_state_dict(found["model"])
    return int(step)


def save(path: Path | None, model: torch.nn.Module, step: int) -> None:
    if path is not None and int(os.environ["LOCAL_RANK"]) == 0:
        torch.save({"step": step, "model": model.state_dict()}, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").replace(path)


def told_to_end(path: Path | None) -> bool:
    """All ranks decide alike: one that sees the file ends all."""
    seen = torch.tensor(int(path is None or path.exists()))
    dist.all_reduce(seen, op=dist.ReduceOp.MAX)
    return bool(seen)


def train(options: argparse.Namespace) -> tuple[float, float, DistributedDataParallel]:
    torch.manual_seed(dist.get_rank())  # Different at first: DDP gives all ranks the weights of rank 0.
    line = torch.nn.Linear(1, 1)
    step = load(options.checkpoint, line)
    print(f"begin at step {step} of {dist.get_world_size()} ranks", flush=True)
    model = DistributedDataParallel(line)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    first = last = 0.0
    done = False
    begin = step
    while step < options.steps or not done:
        x, y = points(dist.get_rank(), step)
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last = loss.item()
        first = first if step > begin else last
        step += 1
        if step == 3 and dist.get_rank() == options.fail_rank:
            raise RuntimeError("this rank was told to fail")
        save(options.checkpoint, line, step)
        time.sleep(options.pause)
        done = told_to_end(options.until)
        if step == begin + 3:
            print("three steps done", flush=True)
    return first, last, model


def main() -> int:
    options = arguments()
    dist.init_process_group("gloo")
    first, last, model = train(options)
    mine = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    everybody = [torch.empty_like(mine) for _rank in range(dist.get_world_size())]
    dist.all_gather(everybody, mine)
    same = all(torch.equal(weights, everybody[0]) for weights in everybody)
    right = torch.allclose(mine, torch.tensor([3.0, -1.0]), atol=0.05)
    fell = last < first or first < 1e-3
    print(f"loss {first:.6f} to {last:.6f} weights {mine.tolist()} same {same} right {right} fell {fell}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    return 0 if same and right and fell else 3


if __name__ == "__main__":
    code = main()
    # Not through the end of the interpreter: threads of torch sometimes abort the process there, with "terminate called
    # without an active exception" (pytorch issue 190489), after all is said and all ranks have met at the barrier.
    sys.stdout.flush()
    os._exit(code)
