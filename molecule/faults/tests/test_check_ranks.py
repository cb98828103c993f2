# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sums that are wrong on nodes whose network is in order, and what the right ones say about latency and bandwidth.

More kinds of damage: tests/faults/test_wrong_data.py.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from lab_cluster import PROJECT, Cluster

FAULTY_RANK = PROJECT / "tests/unit/plugins/module_utils/_check/agent/faulty_rank.py"
#: In place of the training environment; all but the ranks themselves goes to the real one.
PREFIX = "/run/gpu-cluster-faulty"
REAL = "/opt/gpu-cluster/torch/bin/python"
WRAPPER = """#!/bin/sh
if [ "$1" = -m ]; then
    exec {real} {prefix}/faulty_rank.py '{kinds}' "$@"
fi
exec {real} "$@"
"""
KIBI, MEBI = 4096, 1 << 20
SIZES = [KIBI, MEBI, 4 * MEBI]


def put(cluster: Cluster, node: str, path: str, text: str) -> None:
    subprocess.run(
        cluster.lab_argv("exec", node, "sh", "-c", f"mkdir -p $(dirname {path}) && cat > {path} && chmod 755 {path}"),
        input=text,
        text=True,
        check=True,
        cwd=PROJECT,
        timeout=60,
    )


def only(cluster: Cluster, node: str, tmp_path: Path) -> list[str]:
    """Arguments that give one node the other environment."""
    overlay = tmp_path / "overlay.json"
    overlay.write_text(json.dumps({"gpu_cluster": {"hosts": {node: {"torch_runtime_prefix": PREFIX}}}}))
    return ["-i", str(overlay), "-e", json.dumps({"cluster_check_sizes_bytes": SIZES})]


@pytest.mark.parametrize(
    ("kinds", "number", "words"),
    [
        ({KIBI: "missing"}, "GC-DATA-001", ["the contribution of rank 1 is missing"]),
        ({MEBI: "doubled"}, "GC-DATA-001", ["the contribution of rank 1 is counted twice"]),
        ({4 * MEBI: "input"}, "GC-DATA-002", ["changed what rank 1 was about to send"]),
    ],
)
def test_damaged_data_accuses_the_node_that_damages_it(
    cluster: Cluster, tmp_path: Path, kinds: dict[int, str], number: str, words: list[str]
) -> None:
    """The rank of the second node runs as on the others; below it, in torch's all_reduce, the data is damaged."""
    node = list(cluster.hosts)[1]
    named = json.dumps({str(size): kind for size, kind in kinds.items()})
    try:
        put(cluster, node, f"{PREFIX}/faulty_rank.py", FAULTY_RANK.read_text(encoding="utf-8"))
        put(cluster, node, f"{PREFIX}/bin/python", WRAPPER.format(real=REAL, prefix=PREFIX, kinds=named))
        ended = cluster.check(*only(cluster, node, tmp_path))
    finally:
        cluster.shell(node, f"rm -rf {PREFIX}")
    assert ended.code != 0, ended.text
    assert set(ended.report["culprits"]) == {node}, ended.text
    causes = [one["cause"] for one in ended.report["findings"] if one["id"] == number]
    assert all(any(word in cause for cause in causes) for word in words), causes
    assert ended.report["unexplained"] == []


def test_latency_and_bandwidth_are_those_of_all_sizes(cluster: Cluster) -> None:
    ended = cluster.check("-e", json.dumps({"cluster_check_sizes_bytes": [4, *SIZES]}))
    assert ended.code == 0, ended.text
    fit = ended.report["fit"]
    sizes = {size["size_bytes"]: size for size in ended.report["sizes"]}
    assert 0 < fit["alpha_seconds"] < 10 * sizes[4]["seconds"]
    assert fit["beta_bytes_per_second"] > 0.3 * sizes[4 * MEBI]["size_bytes"] / sizes[4 * MEBI]["seconds"]
    assert all(size["low_seconds"] <= size["seconds"] <= size["high_seconds"] for size in sizes.values())
