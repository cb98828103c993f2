# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job that hangs: its rank, node and collective are named, when it is asked and by itself."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from typing import Any

import lab_launcher
import pytest
from lab_cluster import Cluster
from lab_launcher import FOLDER, Job, left

SEED = int(os.environ.get("GC_HANGS_SEED", "37"))
SILENT = "gpu-cluster-run: all ranks have been silent for "
GAVE_UP = "gpu-cluster-run: a rank has waited too long; where the ranks stand:"
GO = f"{FOLDER}/go"
#: The fault, the cause, what the title has, and the collective in which the others are.
HANGS = [
    ("sleep", "STOPPED", "it stands in stuck (hanging.py:21)", "all_reduce number 4"),
    ("skip", "DISAGREE", "has another collective", "barrier number 5"),
    ("size", "DISAGREE", "has another size", "all_reduce number 4"),
]


@pytest.fixture(scope="module", autouse=True)
def scripts(cluster: Cluster) -> Iterator[None]:
    lab_launcher.prepare(cluster)
    yield
    lab_launcher.clean(cluster)


@pytest.fixture
def odd(cluster: Cluster, request: pytest.FixtureRequest) -> int:
    """The number of the node whose rank differs, another one for each test."""
    return random.Random(f"{SEED} {request.node.name}").randrange(len(cluster.hosts))


def why(cluster: Cluster, node: str) -> list[dict[str, Any]]:
    """The suspects, as the job's user asks for them."""
    said = cluster.shell(node, "su train -c 'gpu-cluster-run why --json' || test $? = 1")
    return list(json.loads(said)["suspects"])


@pytest.mark.parametrize("mode", ["env", pytest.param("torchrun", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("how", "cause", "words", "collective"),
    # Half a minute each: one of them runs every time.
    [pytest.param(*one, id=one[0], marks=[pytest.mark.long] if one is not HANGS[0] else []) for one in HANGS],
)
def test_a_rank_that_differs_is_named(
    cluster: Cluster, odd: int, mode: str, how: str, cause: str, words: str, collective: str
) -> None:
    nodes = list(cluster.hosts)
    job = Job(cluster, "--mode", mode, "--silence", "6", "hanging.py", how, str(odd))
    job.seen("step 2", len(nodes))
    start = job.seen(SILENT)
    first = why(cluster, nodes[(odd + 1) % len(nodes)])[0]
    assert (first["cause"], first["host"], first["rank"]) == (cause, nodes[odd], odd), first
    assert words in first["title"] and first["collective"] == collective, first
    job.seen(f"    {cause}: rank {odd} on {nodes[odd]} ", after=start)
    assert not any("Interrupted system call" in line for line in job.lines), job.text
    job.signal("INT")
    assert job.end() == 130
    assert not left(cluster)
    assert cluster.on_all("ls -d /tmp/gpu-cluster-run-*/*.hang 2> /dev/null || true") == []


def test_a_node_that_loses_its_link_is_named(cluster: Cluster, odd: int) -> None:
    """Asked on a node that has one, and on that node itself."""
    nodes = list(cluster.hosts)
    lost, other = nodes[odd], nodes[(odd + 1) % len(nodes)]
    # The launcher's own node can't lose its link: then every other node is lost.
    job = Job(cluster, "--mode", "env", "--lost-after", "100", "hanging.py", "link", "0", GO, node=other)
    job.seen("step 3", len(nodes))
    cluster.shell(lost, "ip link set fab0 down")
    try:
        cluster.on_all(f"touch {GO}")
        for asked in (other, lost):
            first = why(cluster, asked)[0]
            assert (first["cause"], first["host"], first["rank"]) == ("INTERFACE", lost, odd), first
        assert why(cluster, other)[0]["collective"] == "all_reduce number 5"
    finally:
        cluster.shell(lost, "ip link set fab0 up")
    job.signal("INT")
    job.end()
    assert not left(cluster, deadline=30)


@pytest.mark.long
def test_ranks_that_give_up_have_the_rank_named_for_which_they_waited(cluster: Cluster, odd: int) -> None:
    nodes = list(cluster.hosts)
    job = Job(cluster, "--mode", "env", "--env", "SECONDS_TO_WAIT=6", "hanging.py", "sleep", str(odd))
    assert job.end() == 1, job.text
    after = job.lines[job.lines.index(GAVE_UP) + 1 :]
    assert after[0].startswith(f"    STOPPED: rank {odd} on {nodes[odd]} is in no collective"), job.text
    assert not left(cluster)


@pytest.mark.long
def test_without_help_a_rank_is_left_alone(cluster: Cluster, odd: int) -> None:
    nodes = list(cluster.hosts)
    job = Job(cluster, "--mode", "env", "--no-hang-help", "--silence", "2", "hanging.py", "sleep", str(odd))
    job.seen("step 2", len(nodes))
    assert why(cluster, nodes[odd]) == []
    text = "tr '\\0' '\\n' < /proc/$(pgrep -u train -f hanging.py | tail -n 1)/environ | grep -c GPU_CLUSTER_RUN_HANG"
    assert cluster.shell(nodes[odd], f"{text} || true").strip() == "0"
    job.signal("INT")
    job.end()
    assert not any(SILENT in line for line in job.lines), job.text
