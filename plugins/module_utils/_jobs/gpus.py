# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs of this node and the processes on them, by nvidia-smi."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import commands

SMI = "nvidia-smi"
#: `nvidia-smi --help-query-gpu` and `--help-query-compute-apps`.  Without units, memory is in MiB and use in percent.
CARDS = ("--query-gpu=index,uuid,name,memory.total,memory.used,utilization.gpu", "--format=csv,noheader,nounits")
APPS = ("--query-compute-apps=gpu_uuid,pid,process_name,used_memory", "--format=csv,noheader,nounits")
#: Without the persistence daemon it wakes each GPU up first, and on a broken GPU it hangs.
SECONDS = 10.0
#: Where the driver shows its GPUs.
DRIVER = "/proc/driver/nvidia/gpus"
NO_DEVICES = "No devices were found"

ERR_NO_SMI = "a driver is loaded, but there is no nvidia-smi to ask who uses the GPUs"
ERR_LINE = "nvidia-smi printed a line that is not understood: %s"

Ask = Callable[[Sequence[str], float], commands.Answer]


@dataclass(frozen=True)
class Card:
    """One GPU.  None where nvidia-smi does not say."""

    index: int
    uuid: str
    model: str
    memory_mib: int | None
    used_mib: int | None
    percent: int | None


@dataclass(frozen=True)
class App:
    """A process that computes on a GPU, which is known by its number, or -1."""

    gpu: int
    pid: int
    name: str
    memory_mib: int | None


@dataclass(frozen=True)
class Gpus:
    """problem: why nothing or not all is known; empty also where there is no GPU."""

    cards: tuple[Card, ...] = ()
    apps: tuple[App, ...] = ()
    problem: str = ""


def look(ask: Ask = commands.ask, driver: str = DRIVER) -> Gpus:
    """Ask nvidia-smi, where it is."""
    path = shutil.which(SMI)
    if path is None:
        return Gpus(problem=ERR_NO_SMI if os.path.isdir(driver) and os.listdir(driver) else "")
    said = ask([path, *CARDS], SECONDS)
    if said.problem:
        return Gpus(problem="" if NO_DEVICES in said.out else said.problem)
    cards, problem = parse_cards(said.out)
    if not cards:
        return Gpus(problem=problem)
    said = ask([path, *APPS], SECONDS)
    apps, more = parse_apps(said.out, cards)
    return Gpus(cards, apps, said.problem or problem or more)


def parse_cards(text: str) -> tuple[tuple[Card, ...], str]:
    """The GPUs, and a sentence about the first line that is something else.  Pure."""
    found, problem = [], ""
    for row in _rows(text):
        try:
            index, uuid, model, total, used, percent = row
            found.append(Card(int(index), uuid, model, _number(total), _number(used), _number(percent)))
        except ValueError:
            problem = problem or ERR_LINE % ", ".join(row)
    return tuple(found), problem


def parse_apps(text: str, cards: Sequence[Card]) -> tuple[tuple[App, ...], str]:
    """The processes, and a sentence about the first line that is something else.  Pure."""
    numbers = {card.uuid: card.index for card in cards}
    found, problem = [], ""
    for row in _rows(text):
        # The name of a process may have commas.
        uuid, pid, name, memory = (*row[:2], ", ".join(row[2:-1]), row[-1]) if len(row) >= 4 else ("", "", "", "")
        if pid.isdecimal():
            found.append(App(numbers.get(uuid, -1), int(pid), name, _number(memory)))
        else:
            problem = problem or ERR_LINE % ", ".join(row)
    return tuple(found), problem


def _rows(text: str) -> list[list[str]]:
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines(), skipinitialspace=True)]
    return [row for row in rows if row and row != [NO_DEVICES]]


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
