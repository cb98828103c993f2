# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second opinion about a job that hangs: PyTorch's own analyser of the flight recorder, where this machine has it.

It reads pickles, which could run code.  So it does not get what the nodes have written, but new files, made of answers
whose shape has been tested.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize

MODULE = "torch.distributed.flight_recorder.fr_trace"
#: It imports torch first, which takes 3 s of a processor, and longer where the environment is on a file server.
SECONDS = 60
#: As torch 2.13 writes it; the analyser compares only whether all ranks have the same.
VERSION = "2.10"
MOST_LINES = 2
_NUMBER = re.compile(
    r"(?:Collective|Not all ranks joining collective), ?sequence number: (\d+)|Collective sequence number: (\d+)"
)
_SAID = re.compile(r"(error msg|missing ranks): (.+)")


def opinion(python: str, ranks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Its words about the first collectives that did not work; none where it has none."""
    recorded = [one for one in ranks if one["records"]]
    if not recorded or not os.path.isfile(python):
        return []
    with tempfile.TemporaryDirectory(prefix="gpu-cluster-why-") as folder:
        for one in recorded:
            with open(os.path.join(folder, f"rank_{one['rank']}"), "wb") as stream:
                pickle.dump(trace(one, sorted({other["rank"] for other in ranks})), stream)
        try:
            ended = subprocess.run(
                [python, "-m", MODULE, folder],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return []
    return said(ended.stdout.decode("utf-8", "replace") + ended.stderr.decode("utf-8", "replace"))


def trace(rank: Mapping[str, Any], world: Sequence[int]) -> dict[str, Any]:
    """The records of a rank as its recorder would have written them."""
    entries = [
        {
            "record_id": index,
            "pg_id": 0,
            "process_group": (one["group"], one["group"]),
            "collective_seq_id": one["number"],
            "p2p_seq_id": 0,
            "op_id": one["number"],
            "profiling_name": f"nccl:{one['name']}",  # It knows no other backend.
            "time_created_ns": index,
            "input_sizes": one["sizes"],
            "input_dtypes": one["types"],
            "output_sizes": one["sizes"],
            "output_dtypes": one["types"],
            "state": "completed" if one["done"] else "scheduled",
            "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None,
            "retired": one["done"],
            "timeout_ms": 0,
            "is_p2p": False,
            "frames": [],
        }
        for index, one in enumerate(rank["records"])
    ]
    groups = {one["group"]: list(rank["groups"].get(one["group"]) or world) for one in rank["records"]}
    return {
        "version": VERSION,
        "pg_config": {name: {"name": name, "desc": name, "ranks": str(ranks)} for name, ranks in groups.items()},
        "pg_status": {},
        "entries": entries,
    }


def said(text: str) -> list[str]:
    """The lines that name ranks, each with the number of its collective."""
    found, number = [], ""
    for line in text.splitlines():
        place, words = _NUMBER.search(line), _SAID.search(line)
        if place:
            number = place[1] or place[2]
        elif words and number:
            told = words[2] if words[1] == "error msg" else f"missing ranks {words[2]}"
            found.append(f"PyTorch's analyser, collective number {number}: {sanitize.one_line(told)}")
    return found[:MOST_LINES]
