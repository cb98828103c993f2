# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A complete training script for several nodes, to copy from: docs/training-script.md explains every part.

It runs under everything that sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT. At the end it compares the
weights of all ranks, and ends with exit code 3 if they differ or if nothing was learned.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small model on all ranks, and compare their weights.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32, help="samples in each step of a rank")
    parser.add_argument("--samples", type=int, default=1536, help="samples of an epoch, divided among the ranks")
    parser.add_argument("--checkpoint", type=Path, help="a file on shared storage, or on a disk of each node")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait in each epoch, to watch the job")
    return parser.parse_args()


def data(samples: int) -> TensorDataset:
    """The same on every rank: the sampler gives each rank its own part."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(samples, 16, generator=generator)
    rule = torch.randn(16, 4, generator=generator)
    return TensorDataset(x, torch.tanh(x @ rule))


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 4))


def read(path: Path | None) -> tuple[bytes, dict]:
    """The checkpoint that this rank can read, as bytes and as the state; a damaged one counts as none."""
    if path is None or not path.exists():
        return b"", {"epoch": 0}
    content = path.read_bytes()
    try:
        return content, torch.load(io.BytesIO(content), map_location="cpu")
    except Exception as error:  # Where the file was cut off decides which one of many kinds it is.
        print(f"rank {dist.get_rank()}: {path} is damaged ({type(error).__name__})", file=sys.stderr, flush=True)
        return b"", {"epoch": 0}


def load(path: Path | None, device: torch.device) -> dict:
    """The newest checkpoint that any rank can read; all ranks get the same one, also those that have none."""
    own, found = read(path)
    mine = torch.tensor([found["epoch"], len(own)], device=device)
    everybody = [torch.zeros_like(mine) for _rank in range(dist.get_world_size())]
    dist.all_gather(everybody, mine)
    newest = max(range(len(everybody)), key=lambda rank: int(everybody[rank][0]))
    epoch, size = (int(number) for number in everybody[newest])
    if epoch == 0:
        return found
    content = torch.zeros(size, dtype=torch.uint8)
    if dist.get_rank() == newest:
        content = torch.frombuffer(bytearray(own), dtype=torch.uint8)
    content = content.to(device)
    dist.broadcast(content, src=newest)
    return torch.load(io.BytesIO(bytes(content.cpu().tolist())), map_location="cpu")


def save(path: Path | None, state: dict) -> None:
    """One rank of each node writes; a node that dies meanwhile leaves the previous file."""
    if path is None or int(os.environ["LOCAL_RANK"]) != 0:
        return
    content = io.BytesIO()
    torch.save(state, content)
    temporary = path.with_name(f"{path.name}.{dist.get_rank()}.tmp")
    with temporary.open("wb") as stream:
        stream.write(content.getvalue())
        stream.flush()
        os.fsync(stream.fileno())  # Without it a node that loses its power may keep the name and lose the content.
    temporary.replace(path)


def train(options: argparse.Namespace, device: torch.device) -> tuple[nn.Module, float, float]:
    torch.manual_seed(dist.get_rank())  # Different at first: DDP gives all ranks the weights of rank 0.
    model = network().to(device)
    state = load(options.checkpoint, device)
    if state["epoch"]:
        model.load_state_dict(state["model"])
    wrapped = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.AdamW(wrapped.parameters(), lr=0.01)
    if state["epoch"]:
        optimizer.load_state_dict(state["optimizer"])
    dataset = data(options.samples)
    sampler = DistributedSampler(dataset, seed=7)
    loader = DataLoader(dataset, options.batch_size, sampler=sampler, pin_memory=device.type == "cuda")
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} begins at epoch {state['epoch']}", flush=True)
    first, last = state.get("first", 0.0), state.get("last", 0.0)
    for epoch in range(state["epoch"], options.epochs):
        sampler.set_epoch(epoch)  # Without it every epoch has the same order.
        total = torch.zeros(2, device=device)
        for x, y in loader:
            with torch.autocast(device.type, dtype=torch.bfloat16):
                predicted = wrapped(x.to(device, non_blocking=True))
            loss = nn.functional.mse_loss(predicted.float(), y.to(device, non_blocking=True))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += torch.tensor([loss.item(), 1.0], device=device)
        dist.all_reduce(total)
        last = float(total[0] / total[1])
        first = first or last
        state = {"epoch": epoch + 1, "first": first, "last": last}
        save(options.checkpoint, {**state, "model": model.state_dict(), "optimizer": optimizer.state_dict()})
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1} loss {last:.5f} ranks {dist.get_world_size()}", flush=True)
        time.sleep(options.pause)
    return model, first, last


def compare(model: nn.Module) -> tuple[str, bool]:
    """A hash of the weights of this rank, bit by bit, and whether all ranks have the same weights."""
    mine = nn.utils.parameters_to_vector(model.parameters()).detach()
    everybody = [torch.empty_like(mine) for _rank in range(dist.get_world_size())]
    dist.all_gather(everybody, mine)
    same = all(torch.equal(one, mine) for one in everybody)
    return hashlib.sha256(bytes(mine.cpu().view(torch.uint8).tolist())).hexdigest()[:16], same


def main() -> int:
    options = arguments()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    device = torch.device("cuda", torch.cuda.current_device()) if cuda else torch.device("cpu")
    dist.init_process_group("nccl" if cuda else "gloo")
    model, first, last = train(options, device)
    weights, same = compare(model)
    verdict = f"{'same' if same else 'DIFFERENT'} on {dist.get_world_size()} ranks"
    print(f"rank {dist.get_rank()} weights {weights} {verdict}, loss {first:.5f} to {last:.5f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    return 0 if same and last < first else 3


if __name__ == "__main__":
    code = main()
    # Not through the end of the interpreter: threads of torch sometimes abort the process there (pytorch issue 190489),
    # after all is said and all ranks have met at the barrier.
    sys.stdout.flush()
    os._exit(code)
