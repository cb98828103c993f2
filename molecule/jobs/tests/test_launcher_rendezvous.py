# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Elastic jobs whose rendezvous is on the last member: any node with ranks may die, the first one included.

The command is typed on the last member too. It has no ranks, and is the one node that must live.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import lab_launcher
import lab_rendezvous
import pytest
from lab_cluster import Cluster
from lab_launcher import Job, left
from lab_rendezvous import BEGIN, KILL, Training, survivors

KILLS = 20


@pytest.fixture(scope="module", autouse=True)
def scripts(cluster: Cluster) -> Iterator[None]:
    lab_rendezvous.prepare(cluster)
    yield
    lab_launcher.clean(cluster)


@pytest.fixture
def elsewhere(cluster: Cluster) -> tuple[str, ...]:
    return ("--rendezvous-host", list(cluster.hosts)[-1])


def test_the_first_node_is_killed_and_training_goes_on(cluster: Cluster, elsewhere: tuple[str, ...]) -> None:
    first = next(iter(cluster.hosts))
    job = Training(cluster, *elsewhere, epochs=6)
    job.seen("epoch 2 loss")
    cluster.shell(first, KILL)
    assert job.end() == 0, job.text
    assert f"gpu-cluster-run: {first} was lost: the connection has ended" in job.text
    assert f" on {job.node}, logs" in job.text
    assert job.resumed() and all(epoch >= 2 for _ranks, epoch in job.resumed()), job.text
    assert job.trained()
    assert not left(cluster)


@pytest.mark.long
def test_the_first_node_stands_still_and_comes_back(cluster: Cluster, elsewhere: tuple[str, ...]) -> None:
    first, *others, _host = cluster.hosts
    job = Training(cluster, *elsewhere, epochs=60, name="still")
    job.seen("epoch 2 loss")
    cluster.lab("pause", first)
    try:
        fewer = job.seen(f"rank 0 of {len(others)} begins", deadline=120)
    finally:
        cluster.lab("unpause", first)
    job.seen(f"rank 0 of {len(others) + 1} begins", after=fewer, deadline=120)
    assert job.end(240) == 0, job.text
    assert f"{first} was lost: it did not answer for" in job.text and f"gpu-cluster-run: {first} is back" in job.text
    assert all(epoch >= 2 for _ranks, epoch in job.resumed()), job.text
    assert job.trained() == {first, *others}
    assert not left(cluster)


@pytest.mark.long
@pytest.mark.parametrize("how", ["node", "store"])
def test_the_host_of_the_rendezvous_is_lost(cluster: Cluster, elsewhere: tuple[str, ...], how: str) -> None:
    """Typed elsewhere, so that the launcher can still say it."""
    first, *_others, host = cluster.hosts
    options = ("--nodes", first, *elsewhere, "--env", "OMP_NUM_THREADS=1")
    job = Job(cluster, "--mode", "elastic", *options, "train.py", "--epochs", "600", "--pause", "0.5")
    job.seen("epoch 2 loss")
    cluster.shell(host, KILL if how == "node" else "pkill -KILL -u train -f '[T]CPStore'")
    assert job.end() == 75, job.text
    words = f"{host} was lost: " if how == "node" else f"the rendezvous on {host} ended with signal 9 (SIGKILL)"
    assert f"gpu-cluster-run: {words}" in job.text and "the job can't go on" in job.text
    assert not left(cluster)


@pytest.mark.long
def test_torchrun_itself_is_killed(cluster: Cluster, elsewhere: tuple[str, ...]) -> None:
    """Its ranks live on without it: everything starts again under another name."""
    first, *_others = cluster.hosts
    job = Training(cluster, *elsewhere, epochs=8, name="torchrun")
    job.seen("epoch 2 loss")
    cluster.shell(first, "pkill -KILL -u train -f '[t]orch.distributed.run'")
    assert job.end() == 0, job.text
    assert re.search(r"gpu-cluster-run: torchrun on \S+ ended with ", job.text)
    assert "; all nodes start again (1 of 3 times)" in job.text
    assert all(epoch >= 2 for _ranks, epoch in job.resumed()), job.text
    assert job.trained() == {*job.with_ranks}
    assert not left(cluster)


@pytest.mark.long
def test_a_spare_steps_in_for_the_first_node(cluster: Cluster, elsewhere: tuple[str, ...]) -> None:
    first, *_others, _host = cluster.hosts
    spare = list(cluster.hosts)[-2]
    job = Training(cluster, *elsewhere, "--spares", "1", epochs=8, name="spare")
    job.seen("epoch 2 loss")
    assert f", spare {spare}, rendezvous" in job.text and f"[{spare}:" not in job.text
    cluster.shell(first, KILL)
    assert job.end() == 0, job.text
    assert re.search(rf"gpu-cluster-run: {first} was lost: .*; {spare} steps in for it", job.text)
    assert f"gpu-cluster-run: {first} is back, as a spare" in job.text
    # The newest checkpoint was on the disk of another node, or went with the node that was lost.
    assert job.trained() == {*job.with_ranks} - {first}
    assert not left(cluster)


@pytest.mark.long
def test_the_loss_of_a_spare_is_not_that_of_the_job(cluster: Cluster, elsewhere: tuple[str, ...]) -> None:
    spare = list(cluster.hosts)[-2]
    job = Training(cluster, *elsewhere, "--spares", "1", epochs=20, name="unused")
    job.seen("epoch 1 loss")
    cluster.shell(spare, KILL)
    job.seen(f"{spare} was lost: the connection has ended")
    assert job.end() == 0, job.text
    assert "it was a spare, so the job goes on as before" in job.text
    assert job.resumed() == [] or len(job.with_ranks) > len(BEGIN.findall(job.text)), job.text
    assert spare not in job.trained()
    assert not left(cluster)


@pytest.mark.long
def test_random_kills(cluster: Cluster, elsewhere: tuple[str, ...]) -> None:
    survivors(cluster, KILLS, elsewhere)


def test_without_etcd_its_rendezvous_is_refused(cluster: Cluster) -> None:
    host = list(cluster.hosts)[-1]
    assert "etcd" not in json.loads(cluster.shell(host, "cat /etc/gpu-cluster/cluster.json"))
    job = Job(cluster, "--mode", "elastic", "--rendezvous", "etcd", "train.py", node=host)
    assert job.end() == 64 and "this cluster has no etcd (no key `etcd` in" in job.text, job.text
