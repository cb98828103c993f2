# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training with DistributedDataParallel through every mode of gpu-cluster-run, and one that loses ranks and nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import lab_launcher
import pytest
from lab_cluster import Cluster
from lab_launcher import FOLDER, Job, left

END = re.compile(r"\[(\S+):(\d+)\] loss ([\d.]+) to ([\d.]+) weights (\[.*\]) same True right True fell True$", re.M)


@pytest.fixture(scope="module", autouse=True)
def scripts(cluster: Cluster) -> Iterator[None]:
    lab_launcher.prepare(cluster)
    yield
    lab_launcher.clean(cluster)


def trained(job: Job, *, begin: float = 1.0) -> dict[str, str]:
    """The rank on every node, when all have learnt the same."""
    found = END.findall(job.text)
    assert len({weights for *_others, weights in found}) == 1, job.text
    assert all(float(last) < 1e-3 and (float(first) > begin or not begin) for _node, _rank, first, last, _w in found)
    return {node: rank for node, rank, *_others in found}


@pytest.mark.parametrize(
    "mode", ["torchrun", *(pytest.param(mode, marks=pytest.mark.long) for mode in ("env", "mpirun"))]
)
def test_training(cluster: Cluster, mode: str) -> None:
    job = Job(cluster, "--mode", mode, "train_ddp.py")
    assert job.end() == 0, job.text
    assert trained(job) == {name: str(rank) for rank, name in enumerate(cluster.hosts)}
    # The log of every rank is where the rank was, and has what was shown.
    for rank, name in enumerate(cluster.hosts):
        log = cluster.shell(name, f"cat {FOLDER}/logs/*-*/{name}-rank{rank}.log; rm -r {FOLDER}/logs")
        assert "begin at step 0 of 3 ranks" in log and " same True right True fell True" in log
    assert not left(cluster)


@pytest.mark.long
def test_elastic_training_survives_a_worker_and_a_node(cluster: Cluster) -> None:
    """A worker is killed, a node goes dark, and comes back; each time training goes on where it was."""
    second, third = list(cluster.hosts)[1:3]
    job = Job(
        cluster,
        *("--mode", "elastic", "--min-nodes", "2", "--max-restarts", "5", "--lost-after", "5"),
        *("train_ddp.py", "--checkpoint", f"{FOLDER}/checkpoint.pt", "--until", f"{FOLDER}/enough", "--pause", "0.05"),
    )
    start = job.seen("three steps done", 3)
    cluster.shell(second, "pkill -KILL -u train -f 'python -u .*train_ddp'")
    resumed = job.seen("three steps done", 3, after=start)
    cluster.lab("pause", third)
    try:
        fewer = job.seen("three steps done", 2, after=resumed, deadline=150)
    finally:
        cluster.lab("unpause", third)
    again = job.seen("three steps done", 3, after=fewer, deadline=150)
    cluster.shell(job.node, f"touch {FOLDER}/enough")
    assert job.end() == 0, job.text
    assert re.search(
        rf"gpu-cluster-run: rank \d on {second} ended with signal 9 \(SIGKILL\); torchrun decides", job.text
    )
    assert (
        f"gpu-cluster-run: {third} was lost: it did not answer for 5 seconds; the job goes on with 2 nodes" in job.text
    )
    assert f"gpu-cluster-run: {third} is back" in job.text
    assert [worlds(job, *part) for part in ((0, start), (start, resumed), (resumed, fewer), (fewer, again))] == [
        {3},
        {3},
        {2},
        {3},
    ]
    begins = [step for step, _ranks in begun(job)]
    assert begins[0] == 0 and all(step > 0 for step in begins[3:]), begins
    assert sorted(trained(job, begin=0)) == sorted(cluster.hosts)
    assert not left(cluster)


def begun(job: Job, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Where ranks have begun, and of how many."""
    found = re.findall(r"begin at step (\d+) of (\d) ranks", "\n".join(job.lines[start:end]))
    return [(int(step), int(ranks)) for step, ranks in found]


def worlds(job: Job, start: int, end: int) -> set[int]:
    return {ranks for _step, ranks in begun(job, start, end)}
