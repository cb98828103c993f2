# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The training of train.py with Horovod, to copy from: docs/launching.md, "Horovod", has the commands.

At the end it compares the weights of all ranks, and ends with exit code 3 if they differ or if nothing was learned.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time

import horovod.torch as hvd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small model with Horovod, and compare the weights.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32, help="samples in each step of a rank")
    parser.add_argument("--samples", type=int, default=1536, help="samples of an epoch, divided among the ranks")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait in each epoch, to watch the job")
    return parser.parse_args()


def data(samples: int) -> TensorDataset:
    """The same on every rank: the sampler gives each rank its own part."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(samples, 16, generator=generator)
    rule = torch.randn(16, 4, generator=generator)
    return TensorDataset(x, torch.tanh(x @ rule))


def train(options: argparse.Namespace, device: torch.device) -> tuple[nn.Module, float, float]:
    torch.manual_seed(hvd.rank())  # Different at first: the broadcast gives all ranks the weights of rank 0.
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 4)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    dataset = data(options.samples)
    sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank(), seed=7)
    loader = DataLoader(dataset, options.batch_size, sampler=sampler)
    print(f"rank {hvd.rank()} of {hvd.size()} begins at epoch 0", flush=True)
    first = last = 0.0
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)  # Without it every epoch has the same order.
        total = torch.zeros(2)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()  # Waits for the mean of the gradients of all ranks.
            total += torch.tensor([loss.item(), 1.0])
        total = hvd.allreduce(total, name="loss", op=hvd.Sum)
        last = float(total[0] / total[1])
        first = first or last
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1} loss {last:.5f} ranks {hvd.size()}", flush=True)
        time.sleep(options.pause)
    return model, first, last


def compare(model: nn.Module) -> tuple[str, bool]:
    """A hash of the weights of this rank, bit by bit, and whether all ranks have the same weights."""
    mine = nn.utils.parameters_to_vector(model.parameters()).detach().cpu()
    everybody = hvd.allgather(mine.unsqueeze(0), name="weights")
    same = all(torch.equal(one, mine) for one in everybody)
    return hashlib.sha256(bytes(mine.view(torch.uint8).tolist())).hexdigest()[:16], same


def main() -> int:
    options = arguments()
    hvd.init()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(hvd.local_rank())
    device = torch.device("cuda", torch.cuda.current_device()) if cuda else torch.device("cpu")
    model, first, last = train(options, device)
    weights, same = compare(model)
    verdict = f"{'same' if same else 'DIFFERENT'} on {hvd.size()} ranks"
    print(f"rank {hvd.rank()} weights {weights} {verdict}, loss {first:.5f} to {last:.5f}", flush=True)
    hvd.shutdown()
    return 0 if same and last < first else 3


if __name__ == "__main__":
    code = main()
    # Not through the end of the interpreter: threads of torch sometimes abort the process there (pytorch issue 190489).
    sys.stdout.flush()
    os._exit(code)
