# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rank whose collective is damaged on purpose: what a test puts in place of the Python of the training environment.

    faulty_rank.py '{"4096": "missing"}' -m <module of the rank>

The module is the one that every node runs, unchanged: the damage is done below it, in torch's all_reduce, or in the
memory that it has just filled; or it never ends.  By size in bytes; each in the third iteration.  Needs torch, nothing
of this project but the module.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections import Counter
from typing import Any

ITERATION = 2
SHIFT = 5
BIT = 12
ELEMENT = 7


def chunk(data: Any, number: int, of: int) -> Any:
    """One of so many equal parts."""
    size = len(data) // of
    return data[number * size : (number + 1) * size]


def damage_what_is_sent(kind: str, data: Any, world_size: int) -> None:
    if kind == "missing":
        data.zero_()
    elif kind == "doubled":
        data.mul_(2)
    elif kind == "shifted":
        data.copy_(data.roll(-SHIFT))
    elif kind == "hang":
        time.sleep(3600)
    elif kind == "chunk":
        chunk(data, 1, world_size).zero_()


def flip(torch: Any, data: Any) -> None:
    data.view(torch.int32)[ELEMENT] ^= 1 << BIT


def install(rank: Any, torch: Any, kinds: dict[str, str]) -> None:
    """Put the damage below the rank."""
    real_all_reduce, real_fill, real_is_right = torch.distributed.all_reduce, rank.fill, rank.is_right
    calls: Counter[int] = Counter()

    def all_reduce(data: Any, *args: Any, **fields: Any) -> Any:
        if "op" in fields or fields.get("group") is not None:
            # What the ranks agree upon is left alone, and what the GPUs of a node do among themselves.
            return real_all_reduce(data, *args, **fields)
        kind = kinds.get(str(len(data) * 4), "")
        now = calls[len(data)] == ITERATION
        calls[len(data)] += 1
        if now:
            damage_what_is_sent(kind, data, torch.distributed.get_world_size())
        real_all_reduce(data)
        if now and kind == "bit":
            flip(torch, data)
        return None

    def fill(torch_: Any, pattern: Any, number: int, data: Any) -> None:
        real_fill(torch_, pattern, number, data)
        size = str(len(data) * 4)
        if pattern.iteration == ITERATION and kinds.get(size) == "input":
            # Once: when the rank fills in the same again to compare, its memory is in order.
            kinds.pop(size)
            flip(torch_, data)

    def is_right(torch_: Any, pattern: Any, number: int, data: Any) -> bool:
        copy = kinds.get(str(len(data) * 4)) == "copy"
        return bool(real_is_right(torch_, pattern, number, data)) and not (copy and pattern.iteration == ITERATION)

    torch.distributed.all_reduce = all_reduce
    rank.fill = fill
    rank.is_right = is_right


def main() -> None:
    kinds, _dash_m, name = sys.argv[1:4]
    import torch

    rank = importlib.import_module(name)
    install(rank, torch, json.loads(kinds))
    rank.main()


if __name__ == "__main__":
    main()
