# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Elastic jobs of gpu-cluster-run whose rendezvous is in etcd on all members: nodes die, also with their etcd."""

from __future__ import annotations

from collections.abc import Iterator

import lab_etcd
import lab_launcher
import lab_rendezvous
import pytest
from lab_cluster import Cluster, calm
from lab_containers import TRAIN, archive, as_train, remains
from lab_etcd import UNIT
from lab_launcher import left
from lab_rendezvous import KILL, Training, survivors

KILLS = 20
TAGS = "cluster_firewall,etcd,launcher"
#: systemd starts it again.
WITH_ETCD = "; pkill -KILL -x etcd; true"
pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def scripts(cluster: Cluster) -> Iterator[None]:
    ended = cluster.play("site.yml", "--tags", TAGS, *calm(), "-e", lab_etcd.settings(cluster), deadline=600)
    assert ended.code == 0, ended.text
    lab_rendezvous.prepare(cluster)
    yield
    lab_launcher.clean(cluster)
    lab_etcd.clean(cluster)
    assert cluster.play("site.yml", "--tags", "cluster_firewall,launcher", *calm(), deadline=600).code == 0


@pytest.fixture
def etcd() -> tuple[str, ...]:
    return ("--rendezvous", "etcd")


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


def test_etcd_without_a_majority_ends_the_job(cluster: Cluster, etcd: tuple[str, ...]) -> None:
    job = Training(cluster, *etcd, epochs=600, name="quorum")
    job.seen("epoch 2 loss")
    for name in list(cluster.hosts)[:2]:
        cluster.shell(name, f"systemctl stop {UNIT}")
    try:
        assert job.end(120) == 75, job.text
        refused = Training(cluster, *etcd, epochs=1, name="refused")
        assert refused.end() == 69, refused.text
    finally:
        for name in list(cluster.hosts)[:2]:
            cluster.shell(name, f"systemctl start --no-block {UNIT}")
    assert "gpu-cluster-run: the rendezvous in etcd is lost, the job can't go on: " in job.text
    # Not a port that is closed: the explanation names etcd.
    why = job.text.partition("why, by what all ranks have written:")[2]
    assert "members of etcd" in why and "BLOCKED" not in why, job.text
    assert "no member of etcd answers for a majority: " in refused.text
    assert not left(cluster)


def test_the_first_node_is_killed_with_its_etcd(cluster: Cluster, etcd: tuple[str, ...]) -> None:
    job = Training(cluster, *etcd, epochs=6, name="both")
    job.seen("epoch 2 loss")
    cluster.shell(job.with_ranks[0], f"{KILL}{WITH_ETCD}")
    assert job.end(240) == 0, job.text
    assert job.resumed() and all(epoch >= 2 for _ranks, epoch in job.resumed()), job.text
    assert job.trained()
    assert not left(cluster)


@pytest.fixture
def image(cluster: Cluster) -> Iterator[str]:
    """The image with torch on the nodes with ranks."""
    *with_ranks, _host = cluster.hosts
    cluster.on_each(with_ranks, as_train(f"podman load --quiet --input {archive(cluster)}"))
    yield TRAIN
    wipe = f"podman rm --all --force --time 0; podman rmi --force {TRAIN}; podman system migrate"
    cluster.on_each(with_ranks, as_train(f"({wipe}) > /dev/null 2>&1; true"))


def test_the_first_node_is_killed_with_its_etcd_and_ranks_in_containers(
    cluster: Cluster, etcd: tuple[str, ...], image: str
) -> None:
    """torchrun of the image uses the plugin of the node."""
    job = Training(cluster, *etcd, "--image", image, epochs=40, name="image")
    job.seen("epoch 2 loss")
    cluster.shell(job.with_ranks[0], f"{KILL}{WITH_ETCD}")
    assert job.end(300) == 0, job.text
    assert job.resumed() and all(epoch >= 2 for _ranks, epoch in job.resumed()), job.text
    assert job.trained()
    assert remains(cluster, 60) == []


def test_random_kills_with_etcd(cluster: Cluster, etcd: tuple[str, ...]) -> None:
    survivors(cluster, KILLS, etcd, WITH_ETCD)
