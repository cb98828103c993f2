# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the manifests for Kubernetes start, under podman. There is no Kubernetes here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lab_kubernetes
import pytest
import yaml
from lab_cluster import Cluster, calm
from lab_kubernetes import Pod
from lab_launcher import left

PORTS = "does not have 10250/tcp, 2022/tcp"
NAMES = ("train-master", "train-worker", "train-node", "train-launcher")
#: Three containers with PyTorch at once, three times, and two runs of the firewall's role.
pytestmark = pytest.mark.long


@pytest.fixture(scope="module", name="nodes")
def nodes_with_the_image(cluster: Cluster) -> Iterator[list[str]]:
    nodes = list(cluster.hosts)
    try:
        lab_kubernetes.load(cluster, nodes)
        yield nodes
    finally:
        lab_kubernetes.remove(cluster, nodes, NAMES)
    assert left(cluster) == []


@pytest.fixture(scope="module", name="written")
def manifests(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the playbook writes for these nodes."""
    folder = tmp_path_factory.mktemp("kubernetes")
    options = (f"kubernetes_image={lab_kubernetes.IMAGE}", "gpu_cluster_gpus=0", f"kubernetes_dest={folder}")
    done = cluster.play("baremetal.gpu_cluster.kubernetes", *(word for one in options for word in ("-e", one)))
    assert done.code == 0 and PORTS in done.text, done.text
    return folder


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((folder / name).read_text(encoding="utf-8")))


def start(cluster: Cluster, pod: Pod, folder: Path, names: dict[str, str], *options: str) -> str:
    """Run a pod to its end; what it printed."""
    hosts = {name: cluster.fabric_address(node) for name, node in names.items()}
    command = lab_kubernetes.command(pod, read(folder, "files.yml")[0]["data"], hosts, *options)
    try:
        return cluster.lab("exec", pod.node, "sh", "-c", command, deadline=240)
    except subprocess.CalledProcessError as error:
        return f"ended with {error.returncode}: {error.stdout}"


def trained(text: str, ranks: int) -> None:
    """Every rank has told the same hash of its weights, and that a comparison found them equal."""
    found = dict(re.findall(rf"rank (\d+) weights (\w+) same on {ranks} ranks", text))
    assert sorted(found) == [str(rank) for rank in range(ranks)], text
    assert len(set(found.values())) == 1, text


def run(cluster: Cluster, pods: list[Pod], folder: Path, names: dict[str, str]) -> None:
    with ThreadPoolExecutor(len(pods)) as pool:
        told = list(pool.map(lambda pod: start(cluster, pod, folder, names), pods))
    assert [text for text in told if text.startswith("ended with")] == []
    trained("\n".join(told), len(pods))


def test_the_pods_of_a_pytorch_job_train(cluster: Cluster, nodes: list[str], written: Path) -> None:
    (job,) = read(written, "pytorchjob.yml")
    run(cluster, *_with(lab_kubernetes.of_pytorch_job(job, nodes), written))


def test_the_pods_of_a_train_job_train(cluster: Cluster, nodes: list[str], written: Path) -> None:
    runtime, job = read(written, "trainjob.yml")
    run(cluster, *_with(lab_kubernetes.of_train_job(runtime, job, nodes), written))


def _with(made: tuple[list[Pod], dict[str, str]], folder: Path) -> tuple[list[Pod], Path, dict[str, str]]:
    return made[0], folder, made[1]


@pytest.fixture(name="opened")
def ports_of_kubernetes(cluster: Cluster, written: Path) -> Iterator[None]:
    """The file of ports does what it is for: sshd of the pods is reached through the firewall."""
    argv = ("baremetal.gpu_cluster.base", "--tags", "cluster_firewall", *calm())
    try:
        done = cluster.play(*argv, "-e", f"@{written}/ports.yml")
        assert done.code == 0, done.text
        yield
    finally:
        done = cluster.play(*argv)
    assert done.code == 0, done.text


@pytest.mark.usefixtures("opened")
def test_the_pods_of_an_mpi_job_train(cluster: Cluster, nodes: list[str], written: Path, tmp_path: Path) -> None:
    """Over an sshd on the port of the manifest, whose host key is verified."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-N", "", "-f", tmp_path / "id_rsa"], check=True)
    public = (tmp_path / "id_rsa.pub").read_text(encoding="utf-8")
    private = (tmp_path / "id_rsa").read_text(encoding="utf-8")
    keys = {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}
    (job,) = read(written, "mpijob.yml")
    workers, launcher, names = lab_kubernetes.of_mpi_job(job, nodes, keys)
    try:
        for worker in workers:
            start(cluster, worker, written, names, "--detach")
        ready = "timeout 60 sh -c 'until [ -n \"$(ss -Hltn sport = :2022)\" ]; do sleep 0.2; done'"
        cluster.on_each([worker.node for worker in workers], ready)
        told = start(cluster, launcher, written, names)
    finally:
        lab_kubernetes.remove(cluster, nodes, NAMES)
    trained(told, len(nodes))
