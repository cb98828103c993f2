# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs inside containers, with what podman makes of the kernel: namespaces of their own, and the network of the host.

There is no podman on the nodes. docs/containers.md says what this shows and what it does not.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from lab_cluster import EL, PROJECT, Cluster
from lab_launcher import left

PROGRAM = PROJECT / "docs" / "examples" / "mpi_allreduce.py"
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
#: One rank of gpu-cluster-run in its own namespaces, without any right: what a wrapper around podman run does.
WRAPPER = """\
#!/bin/sh
exec unshare --user --map-root-user --mount --ipc --pid --fork --kill-child "$@"
"""
RANK = """\
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
print("sum", int(total.item()), "pid", os.getpid(), "uid", os.getuid(), flush=True)
dist.destroy_process_group()
"""


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


def test_a_wrapper_puts_each_rank_into_a_container(cluster: Cluster) -> None:
    nodes = list(cluster.hosts)[:2]
    # /tmp runs no programs.
    folder = "/var/tmp/lab-wrapper"
    put = f"mkdir -p {folder}; echo {encoded(WRAPPER)} | base64 -d > {folder}/inside; chmod 0755 {folder}/inside; "
    put += f"echo {encoded(RANK)} | base64 -d > {folder}/rank.py; chown -R train {folder}"
    for name in nodes:
        cluster.shell(name, put)
    python = "/opt/gpu-cluster/torch/bin/python"
    run = f"gpu-cluster-run --nodes {','.join(nodes)} --nproc-per-node 1 --mode env --log-dir {folder}/logs"
    try:
        said = cluster.shell(nodes[0], f"su - train -c '{run} {folder}/inside {python} {folder}/rank.py' 2>&1")
    finally:
        for name in nodes:
            cluster.shell(name, f"rm -rf {folder}")
    for name in nodes:
        # The first process of its own tree, and root of nothing but its own namespace.
        assert any(f"{name}:" in line and "sum 3 pid 1 uid 0" in line for line in said.splitlines()), said
    assert left(cluster) == []
