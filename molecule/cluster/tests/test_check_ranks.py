# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks that compute wrong sums, die or stop, on nodes whose network is in order."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from lab_cluster import PROJECT, Cluster, environment

FAULTY_RANK = PROJECT / "tests/unit/plugins/module_utils/_collective/faulty_rank.py"
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
LONG = ["-e", json.dumps({"cluster_check_iterations": 4000, "cluster_check_deadline_seconds": 10})]
RANK = "ps -eo pid,args | awk '/[_]collective.rank/ {print $1}'"


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
        (
            {KIBI: "shifted", 4 * MEBI: "chunk"},
            "GC-DATA-001",
            ["the contribution of rank 1 is misplaced by 5 elements", "chunk 1 of 3"],
        ),
        ({MEBI: "bit"}, "GC-DATA-001", ["bit 12 of element 7"]),
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


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s in vain for {what}"
        time.sleep(0.2)


@pytest.mark.parametrize("signal", ["KILL", "STOP"])
def test_a_rank_that_dies_or_stops_is_told_from_its_victims(cluster: Cluster, signal: str) -> None:
    """In the middle of the collective: its neighbours break with texts of their own."""
    node = list(cluster.hosts)[2]
    process = subprocess.Popen(
        cluster.command("baremetal.gpu_cluster.check", *LONG),
        cwd=PROJECT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        joined = 'grep -l \'"event": "joined"\' /run/gpu-cluster-check/*/out/state.json 2>/dev/null | wc -l'
        wait_for(lambda: cluster.shell(node, joined).strip() == "1", 60, f"the rank of {node}")
        time.sleep(1)
        assert cluster.shell(node, f"{RANK} | tee /dev/stderr | xargs kill -{signal}; {RANK} | wc -l")
        text = process.communicate(timeout=120)[0]
    finally:
        process.kill()
    report = json.loads((cluster.reports / "report.json").read_text())
    assert process.returncode != 0 and set(report["culprits"]) == {node}, text
    assert report["unexplained"] == [], text
    others = [rank for rank in report["ranks"] if rank["host"] != node]
    assert len(others) == 2 and all(rank["explained_by"] == "GC-RUN-001" for rank in others), others
    assert cluster.left_over() == []


def test_latency_and_bandwidth_are_those_of_all_sizes(cluster: Cluster) -> None:
    ended = cluster.check("-e", json.dumps({"cluster_check_sizes_bytes": [4, *SIZES]}))
    assert ended.code == 0, ended.text
    fit = ended.report["fit"]
    sizes = {size["size_bytes"]: size for size in ended.report["sizes"]}
    assert 0 < fit["alpha_seconds"] < 10 * sizes[4]["seconds"]
    assert fit["beta_bytes_per_second"] > 0.3 * sizes[4 * MEBI]["size_bytes"] / sizes[4 * MEBI]["seconds"]
    assert all(size["low_seconds"] <= size["seconds"] <= size["high_seconds"] for size in sizes.values())
