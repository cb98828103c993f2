# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sums that are wrong: below the rank of one node the collective or the memory is damaged, and that node is named."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import project
import pytest
from checking import BACKEND, check
from net_cluster import NetCluster

FAULTY_RANK = project.ROOT / "tests/unit/plugins/module_utils/_check/agent/faulty_rank.py"
#: In place of the Python of the training environment; all but the ranks goes to the real one.
WRAPPER = """#!/bin/sh
if [ "$1" = -m ]; then
    exec {real} {program} '{kinds}' "$@"
fi
exec {real} "$@"
"""
SIZE = 1 << 20
#: Kind of damage to the finding and a part of its cause.
KINDS = {
    "missing": ("GC-DATA-001", "the contribution of rank {rank} is missing"),
    "doubled": ("GC-DATA-001", "the contribution of rank {rank} is counted twice"),
    "shifted": ("GC-DATA-001", "the contribution of rank {rank} is misplaced by 5 elements"),
    "chunk": ("GC-DATA-001", "the contribution of rank {rank} is missing, all of it in chunk 1 of 4"),
    "bit": ("GC-DATA-001", "single bits are flipped: bit 12 of element 7"),
    "input": ("GC-DATA-002", "changed what rank {rank} was about to send"),
}


def overlay(folder: Path, name: str, kind: str) -> Path:
    """An inventory that gives one node the damaged rank."""
    prefix = folder / f"faulty-{kind}"
    (prefix / "bin").mkdir(parents=True)
    program = prefix / "bin" / "python"
    kinds = json.dumps({str(SIZE): kind})
    program.write_text(WRAPPER.format(real=sys.executable, program=FAULTY_RANK, kinds=kinds), encoding="utf-8")
    program.chmod(0o755)
    found = folder / f"faulty-{kind}.json"
    found.write_text(json.dumps({"gpu_cluster": {"hosts": {name: {"cluster_check_torch_python": str(program)}}}}))
    return found


@pytest.mark.parametrize("kind", list(KINDS))
def test_wrong_data_names_its_node_and_its_kind(
    clean: NetCluster, rng: random.Random, kind: str, tmp_path: Path
) -> None:
    name = rng.choice(clean.names)
    print(f"{kind} on {name}")
    ended = check(
        clean,
        *("-i", str(overlay(tmp_path, name, kind))),
        *("-e", json.dumps({"cluster_check_sizes_bytes": [4096, SIZE]})),
    )
    assert ended.code != 0 and list(ended.report["culprits"]) == [name], ended.text
    number, words = KINDS[kind]
    if BACKEND == "nccl":
        # The chunks are those of gloo's ring; NCCL chooses its algorithm by itself.
        words = words.partition(", all of it in chunk")[0]
    causes = [one["cause"] for one in ended.report["findings"] if one["id"] == number]
    rank = clean.names.index(name)
    assert len(causes) == 1 and words.format(rank=rank) in causes[0], ended.text
    assert ended.report["unexplained"] == []
    # The damage is in one size only, and the other one is measured.
    assert 4096 in [size["size_bytes"] for size in ended.report["sizes"]]
