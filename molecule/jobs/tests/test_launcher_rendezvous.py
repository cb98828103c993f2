# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Elastic jobs without a special node: the rendezvous is on the last member or in etcd, and any node with ranks dies.

The last member is where the command is typed. It has no ranks, and is the one node that must live.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Iterator

import lab_launcher
import pytest
from lab_cluster import PROJECT, Cluster, patience
from lab_launcher import FOLDER, Job, left

END = re.compile(
    r"^\[(\S+):(\d+)\] rank (\d+) weights ([0-9a-f]{16}) same on (\d+) ranks, loss [\d.]+ to [\d.]+$", re.M
)
BEGIN = re.compile(r"rank \d+ of (\d+) begins at epoch (\d+)$", re.M)
#: Seconds of silence that mean lost.
LOST_AFTER = 10
KILLS = 20
ETCD_CLUSTER = "/etc/gpu-cluster/cluster.json"
#: Everything of the user at once, as far as the node's network is concerned the node itself.
KILL = "pkill -KILL -u train; true"


@pytest.fixture(scope="module", autouse=True)
def scripts(cluster: Cluster) -> Iterator[None]:
    lab_launcher.prepare(cluster)
    text = (PROJECT / "docs" / "examples" / "train.py").read_text(encoding="utf-8")
    for name in cluster.hosts:
        lab_launcher.write(cluster, name, f"{FOLDER}/train.py", text)
    yield
    lab_launcher.clean(cluster)


@pytest.fixture
def elsewhere(cluster: Cluster) -> tuple[str, ...]:
    return ("--rendezvous-host", list(cluster.hosts)[-1])


@pytest.fixture
def etcd(cluster: Cluster) -> tuple[str, ...]:
    """The role etcd has run on the members; all of them start it again afterwards."""
    text = cluster.shell(next(iter(cluster.hosts)), f"cat {ETCD_CLUSTER}")
    if "etcd" not in json.loads(text):
        pytest.skip("the members have no etcd: run site.yml with the role etcd on them")
    return ("--rendezvous", "etcd")


class Training(Job):
    """The example of the documentation as an elastic job, typed on the last member, with ranks on the others."""

    def __init__(self, cluster: Cluster, *options: str, epochs: int, pause: float = 0.5, name: str = "it") -> None:
        *self.with_ranks, host = cluster.hosts
        super().__init__(
            cluster,
            *("--mode", "elastic", "--nodes", ",".join(self.with_ranks), *options),
            *("--lost-after", str(round(LOST_AFTER * patience())), "--env", "OMP_NUM_THREADS=1", "train.py"),
            *("--epochs", str(epochs), "--pause", str(pause), "--checkpoint", f"{FOLDER}/{name}.pt"),
            node=host,
        )

    def trained(self) -> set[str]:
        """The nodes whose ranks have compared their weights, all of the same training."""
        found = END.findall(self.text)
        assert found and len({weights for _node, _rank, _same, weights, _ranks in found}) == 1, self.text
        assert {int(ranks) for *_others, ranks in found} == {len(found)}, self.text
        return {node for node, *_others in found}

    def resumed(self) -> list[tuple[int, int]]:
        """How many ranks there were, and where they began, since the first start."""
        found = [(int(ranks), int(epoch)) for ranks, epoch in BEGIN.findall(self.text)]
        return found[len(self.with_ranks) :]


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


def survive(cluster: Cluster, number: int, chance: random.Random, options: tuple[str, ...], more: str = "") -> str:
    """One job of which a node is lost at some moment, and comes back; what went wrong."""
    name = f"kill{number}-{os.getpid()}"
    job = Training(cluster, *options, epochs=20, name=name)
    victim, how, wait = chance.choice(job.with_ranks), chance.choice(["kill", "pause"]), chance.uniform(0, 6)
    print(f"kill {number}: {how} {victim} {wait:.1f} s after the first epoch", flush=True)
    try:
        job.seen("epoch 1 loss", deadline=240)
        time.sleep(wait)
        if how == "kill":
            cluster.shell(victim, f"{KILL}{more}")
        else:
            cluster.lab("pause", victim)
            try:
                job.seen(f"{victim} was lost", deadline=120)
                time.sleep(chance.uniform(0, 10))
            finally:
                cluster.lab("unpause", victim)
        assert job.end(480) == 0 and f"{victim} was lost" in job.text
        job.trained()
        assert not left(cluster, 20)
    except AssertionError as error:
        job.signal("INT")
        return f"kill {number}, {how} {victim}: {error}\n{job.text}"
    return ""


@pytest.mark.long
def test_random_kills(cluster: Cluster, elsewhere: tuple[str, ...]) -> None:
    """Any node with ranks, the first included, killed or paused for longer than --lost-after."""
    seed = time.time_ns() % 10**9
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)
    failed = [text for number in range(KILLS) if (text := survive(cluster, number, chance, elsewhere))]
    assert not failed, f"seed {seed}, {len(failed)} of {KILLS} jobs:\n" + "\n\n".join(failed)


@pytest.mark.long
def test_random_kills_with_etcd(cluster: Cluster, etcd: tuple[str, ...]) -> None:
    """The node's etcd is killed with it; systemd starts it again."""
    seed = time.time_ns() % 10**9
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)
    more = "; pkill -KILL -x etcd; true"
    failed = [text for number in range(KILLS) if (text := survive(cluster, number, chance, etcd, more))]
    assert not failed, f"seed {seed}, {len(failed)} of {KILLS} jobs:\n" + "\n\n".join(failed)


@pytest.mark.long
def test_the_first_node_is_lost_with_its_etcd(cluster: Cluster, etcd: tuple[str, ...]) -> None:
    first, *others, _host = cluster.hosts
    job = Training(cluster, *etcd, epochs=60, name="etcd")
    job.seen("epoch 2 loss")
    assert "rendezvous etcd " in job.text
    cluster.lab("pause", first)
    try:
        job.seen(f"rank 0 of {len(others)} begins", deadline=120)
    finally:
        cluster.lab("unpause", first)
    assert job.end(240) == 0, job.text
    assert all(epoch >= 2 for _ranks, epoch in job.resumed()), job.text
    assert job.trained()
    assert not left(cluster)


@pytest.mark.long
def test_etcd_without_a_majority_ends_the_job(cluster: Cluster, etcd: tuple[str, ...]) -> None:
    job = Training(cluster, *etcd, epochs=600, name="quorum")
    job.seen("epoch 2 loss")
    for name in list(cluster.hosts)[:2]:
        cluster.shell(name, "systemctl stop gpu-cluster-etcd")
    try:
        assert job.end(120) == 75, job.text
        refused = Training(cluster, *etcd, epochs=1, name="refused")
        assert refused.end() == 69, refused.text
    finally:
        for name in list(cluster.hosts)[:2]:
            cluster.shell(name, "systemctl start --no-block gpu-cluster-etcd")
    assert "gpu-cluster-run: the rendezvous in etcd is lost, the job can't go on: " in job.text
    assert "no member of etcd answers for a majority: " in refused.text
    assert not left(cluster)


def test_without_etcd_its_rendezvous_is_refused(cluster: Cluster) -> None:
    host = list(cluster.hosts)[-1]
    text = cluster.shell(host, f"cat {ETCD_CLUSTER}")
    if "etcd" in json.loads(text):
        pytest.skip("the members have etcd")
    job = Job(cluster, "--mode", "elastic", "--rendezvous", "etcd", "train.py", node=host)
    assert job.end() == 64 and "this cluster has no etcd (no key `etcd` in" in job.text, job.text
