# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs in containers: what docs/containers.md shows, run as it stands there with podman, and an sshd in namespaces."""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import shlex
from collections.abc import Iterator

import pytest
from lab_cluster import EL, PROJECT, Cluster, calm
from lab_containers import IMAGE, MAKE_TINY, TINY, TRAIN, adapted, archive, as_train, block, clear, put_script, remains
from lab_launcher import Job, left, write

PROGRAM = PROJECT / "docs" / "examples" / "mpi_allreduce.py"
TRAINING = PROJECT / "docs" / "examples" / "train.py"
WEIGHTS = re.compile(r"rank (\d+) weights (\w+) same on 2 ranks")
#: Inside the rendezvous range of the port plan, so it is open to members.
PORT = 29598
UNIT = "lab-inner"
FOLDER = "/run/lab-inner"
#: The program is only there inside, so a rank outside fails. sshd has the host's configuration, keys and certificate.
INNER = f"""\
#!/bin/sh
hostname "inner-$(hostname)"
mount -t tmpfs tmpfs /mnt
cp {FOLDER}/program.py /mnt/
exec /usr/sbin/sshd -D -p {PORT} -o PidFile=none
"""
START = f"""
mkdir -p {FOLDER} /run/sshd
echo %s | base64 -d > {FOLDER}/program.py
echo %s | base64 -d > {FOLDER}/inner
systemd-run --quiet --collect --unit {UNIT} unshare --mount --uts --ipc --pid --fork --mount-proc sh {FOLDER}/inner
timeout 30 sh -c 'until [ -n "$(ss -Hltn sport = :{PORT})" ]; do sleep 0.1; done'
"""
STOP = f"systemctl stop {UNIT}; rm -rf {FOLDER}"
#: What runs inside, started from outside.
ENTER = f"nsenter -t $(cat /proc/$(systemctl show -P MainPID {UNIT})/task/*/children) -m -u -i -p su train -c"


def encoded(text: str) -> str:
    """For a shell's echo."""
    return base64.b64encode(text.encode()).decode()


@pytest.fixture(name="nodes")
def fixture_nodes(cluster: Cluster) -> Iterator[list[str]]:
    """Two nodes with an sshd inside."""
    nodes = list(cluster.hosts)[:2]
    try:
        for name in nodes:
            cluster.shell(name, START % (encoded(PROGRAM.read_text()), encoded(INNER)))
        yield nodes
    finally:
        for name in nodes:
            cluster.shell(name, STOP)
    assert left(cluster) == []


def test_mpirun_goes_through_the_inner_sshd(cluster: Cluster, nodes: list[str]) -> None:
    hosts = ",".join(f"{name}:1" for name in nodes)
    port = f'--mca plm_{"rsh" if EL == 9 else "ssh"}_args "-p {PORT}"'
    rank = "/usr/bin/python3 /mnt/program.py --library libmpi.so.40"
    job = f"cd /; mpirun --host {hosts} {port} {rank}"
    said = cluster.shell(nodes[0], f"{ENTER} '{job}' 2>&1")
    ranks = {one["rank"]: one for one in (json.loads(line) for line in said.splitlines() if line.startswith('{"rank"'))}
    assert sorted(ranks) == [0, 1], said
    assert [ranks[rank]["host"] for rank in (0, 1)] == [f"inner-{name}" for name in nodes]
    assert str(ranks[1]["SSH_CONNECTION"]).endswith(f" {cluster.fabric_address(nodes[1])} {PORT}")


@pytest.fixture(name="members", scope="module")
def fixture_members(cluster: Cluster) -> Iterator[list[str]]:
    """Two nodes with the page's wrapper, and an image that has a few of the node's own programs."""
    nodes = list(cluster.hosts)[:2]
    try:
        put_script(cluster, nodes, "/data/bin/in-container")
        cluster.on_each(nodes, MAKE_TINY)
        yield nodes
    finally:
        # On all: whoever was asked for containers has a process of podman since.
        clear(cluster, cluster.hosts)


def in_containers(members: list[str], script: str, *options: str) -> list[str]:
    """The page's command, with an image and a program of our own."""
    line = block("gpu-cluster-run --mode env /data/bin/in-container").strip().splitlines()[-1]
    launcher, mode, env, wrapper, image, *_program = shlex.split(line)
    assert (launcher, image) == ("gpu-cluster-run", IMAGE)
    where = ["--nodes", ",".join(members), "--nproc-per-node", "1", *options]
    return [mode, env, *where, wrapper, TINY, "sh", "-c", script]


WHO = """\
test -e /run/.containerenv && echo rank $RANK of $WORLD_SIZE process $$ user $(id -u) at $PWD over $GLOO_SOCKET_IFNAME
"""
#: It leaves a daemon behind and does not end by SIGTERM.
DEAF = 'trap "" TERM; setsid sleep 600 & echo here; sleep 601; sleep 602'


def test_each_rank_is_in_a_container_of_its_own(cluster: Cluster, members: list[str]) -> None:
    job = Job(cluster, *in_containers(members, WHO), folder="/data")
    assert job.end() == 0, job.text
    for rank, name in enumerate(members):
        # The user's own number: what it writes to /data belongs to it. Process 1 is podman's.
        line = f"[{name}:{rank}] rank {rank} of 2 process 2 user 4000 at /data over fab0"
        assert line in job.lines, job.text
    assert remains(cluster) == []


def test_a_killed_launcher_leaves_neither_processes_nor_containers(cluster: Cluster, members: list[str]) -> None:
    job = Job(cluster, *in_containers(members, DEAF, "--grace", "1"), folder="/data")
    job.seen("here", 2)
    assert len([line for line in remains(cluster, 0) if ": container " in line]) == 2
    job.signal("KILL")
    job.end()
    assert remains(cluster, 30) == []


@pytest.mark.parametrize(
    ("spoil", "mend", "words"),
    [
        (as_train(f"podman tag {TINY} localhost/kept && podman untag {TINY} {TINY}"),
         as_train(f"podman tag localhost/kept {TINY} && podman untag localhost/kept localhost/kept"),
         f"{TINY}: image not known"),
        ("mv /usr/bin/podman /usr/bin/podman.away", "mv /usr/bin/podman.away /usr/bin/podman", "exec: podman: "),
    ],
    ids=["image", "podman"],
)  # fmt: skip
def test_a_node_that_lacks_a_part_is_named(
    cluster: Cluster, members: list[str], spoil: str, mend: str, words: str
) -> None:
    lacking = members[1]
    cluster.shell(lacking, spoil)
    try:
        job = Job(cluster, *in_containers(members, "sleep 600", "--grace", "1"), folder="/data")
        assert job.end() in (125, 127), job.text
    finally:
        cluster.shell(lacking, mend)
    assert f"rank 1 on {lacking} ended with exit code" in job.text and words in job.text
    # The other rank can end while podman still creates its container, as the page says, with the command for that.
    cluster.shell(members[0], as_train("podman container prune --force"))
    assert remains(cluster) == []


@pytest.fixture(name="trainers")
def fixture_trainers(cluster: Cluster, members: list[str]) -> list[str]:
    """The nodes with the image of the page for the cluster's user, and the training script."""
    load = as_train(f"podman load --quiet --input {archive(cluster)}")
    cluster.on_each(members, f"{as_train(f'podman image exists {TRAIN}')} || {load}")
    for name in members:
        write(cluster, name, "/data/train.py", TRAINING.read_text(encoding="utf-8"))
    return members


def same_weights(lines: list[str], ranks: int) -> None:
    """Every rank has said that it has the weights of all others, and all have said the same."""
    found = {rank: weights for line in lines for rank, weights in WEIGHTS.findall(line)}
    assert sorted(found) == [str(rank) for rank in range(ranks)] and len(set(found.values())) == 1, "\n".join(lines)


@pytest.mark.long
def test_the_training_script_runs_in_containers(cluster: Cluster, trainers: list[str]) -> None:
    # It takes minutes to make the image, and half a minute to load it on a node.
    line = adapted(block("gpu-cluster-run --mode env /data/bin/in-container"), {IMAGE: TRAIN}).strip().splitlines()[-1]
    job = Job(cluster, "--nodes", ",".join(trainers), *shlex.split(line)[1:], folder="/data")
    assert job.end(300) == 0, job.text
    same_weights(job.lines, 2)
    assert remains(cluster) == []


@pytest.fixture(name="servers")
def fixture_servers(cluster: Cluster, trainers: list[str]) -> Iterator[list[str]]:
    """The nodes with the container that has an sshd, and its port open to members."""
    opened = json.dumps({"gpu_cluster_ports": {"extra_ports": [2022]}})
    firewall = ("site.yml", "--tags", "cluster_firewall", *calm())
    start = adapted(block("/usr/sbin/sshd -D -p 2022"), {IMAGE: TRAIN})
    source = archive(cluster)
    try:
        ended = cluster.play(*firewall, "-e", opened)
        assert ended.code == 0, ended.text
        put_script(cluster, trainers, "/data/bin/from-mpirun")
        cluster.on_each(trainers, f"podman image exists {TRAIN} || podman load --quiet --input {source}")
        for name in trainers:
            cluster.shell(name, start)
            cluster.shell(name, "timeout 60 sh -c 'until [ -n \"$(ss -Hltn sport = :2022)\" ]; do sleep 0.2; done'")
        yield trainers
    finally:
        cluster.on_each(trainers, f"podman rm --all --force --time 0; podman rmi --force {TRAIN}; rm -rf /data/bin")
        put_script(cluster, trainers, "/data/bin/in-container")
        assert cluster.play(*firewall).code == 0


@pytest.mark.long
def test_mpirun_inside_trains_through_the_sshd_of_the_containers(cluster: Cluster, servers: list[str]) -> None:
    network = str(ipaddress.ip_interface(cluster.hosts[servers[0]]["gpu_cluster_fabric_address"]).network)
    names = {"192.0.2.0/24": network, "gpu01,gpu02": ",".join(servers)}
    said = cluster.lab("exec", servers[0], "sh", "-c", adapted(block("mpirun --host"), names) + " 2>&1", deadline=200)
    same_weights(said.splitlines(), 2)
    # As the page says, and as nothing else does.
    inside = "podman exec train cat /proc/1/comm /run/.containerenv"
    assert all(text.startswith("sshd") for text in cluster.on_each(servers, inside).values())
    cluster.on_each(servers, "podman rm --force --time 0 train")
    assert remains(cluster) == []
