# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm with the files of the playbook ``slurm``: Debian's slurmctld and slurmd on the nodes, behind their firewall.

The image has the packages with all services off, and no key of munge. Afterwards it is so again.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator

import pytest
from lab_cluster import PROJECT, Cluster, calm, patience
from lab_launcher import write

pytestmark = pytest.mark.long

FOLDER = "/var/tmp/lab-slurm"
PORTS = ("-e", json.dumps({"gpu_cluster_ports": {"extra_ports": [6817, 6818]}}))
#: The nodes are containers: no GPUs, and no cgroups that slurmd may divide.
OPTIONS = ("-e", "gpu_cluster_gpus=0", "-e", "slurm_cgroups_enabled=false")
EXAMPLES = PROJECT / "docs" / "examples"
KEY = "/etc/munge/munge.key"
MAKE_KEY = f"umask 077; head -c 1024 /dev/urandom > {KEY}; base64 -w0 {KEY}"
FOLDERS = (
    "install -d /etc/slurm /var/spool/slurm; install -d -o slurm /var/spool/slurm/ctld; install -d /var/spool/slurm/d"
)
CLEAN = (
    "systemctl stop slurmd slurmctld munge; systemctl reset-failed slurmd slurmctld munge; "
    f"rm -rf {KEY} {FOLDER} /var/spool/slurm; "
    "cd /etc/slurm && rm -f slurm.conf gres.conf cgroup.conf topology.conf; true"
)
#: An address of the data network that no member has.
OUTSIDER = "198.18.20.250/24"


@pytest.fixture(scope="module", name="texts")
def configured(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Slurm runs on all nodes, the first one is the controller; the files as they were written."""
    folder = tmp_path_factory.mktemp("slurm") / "files"
    made = cluster.play("baremetal.gpu_cluster.slurm", *PORTS, *OPTIONS, "-e", f"slurm_dest={folder}")
    assert made.code == 0, made.text
    opened = cluster.play("site.yml", "--tags", "cluster_firewall", *calm(), *PORTS)
    assert opened.code == 0, opened.text
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    first, *others = cluster.hosts
    try:
        key = cluster.shell(first, MAKE_KEY)
        cluster.on_each(others, f"umask 077; echo {key} | base64 -d > {KEY}")
        cluster.everywhere(f"chown munge:munge {KEY}; {FOLDERS}; install -d -o train {FOLDER}")
        for name in cluster.hosts:
            for file, text in found.items():
                write(cluster, name, f"/etc/slurm/{file}", text)
            for path in (EXAMPLES / "train.py", EXAMPLES / "slurm" / "train.sbatch"):
                write(cluster, name, f"{FOLDER}/{path.name}", path.read_text(encoding="utf-8"))
        cluster.everywhere("systemctl start munge")
        cluster.shell(first, "systemctl start slurmctld")
        cluster.everywhere("systemctl start slurmd")
        idle(cluster)
        yield found
    finally:
        cluster.everywhere(CLEAN)
        closed = cluster.play("site.yml", "--tags", "cluster_firewall", *calm())
    assert closed.code == 0, closed.text


def idle(cluster: Cluster, deadline: float = 60) -> None:
    """Wait until all nodes can have a job."""
    first = next(iter(cluster.hosts))
    end = time.monotonic() + deadline * patience()
    while True:
        seen = cluster.shell(first, "sinfo --noheader --Node --format '%N %T' 2>&1; true")
        if seen.split("\n")[:-1] == [f"{name} idle" for name in sorted(cluster.hosts)]:
            return
        assert time.monotonic() < end, seen + cluster.shell(first, "sinfo -R; journalctl -u slurmctld -n 30 --no-pager")
        time.sleep(0.5)


def as_user(cluster: Cluster, command: str) -> str:
    """What the cluster's user sees of a command on the first node, with its exit code."""
    first = next(iter(cluster.hosts))
    return cluster.shell(first, f"su train -s /bin/sh -c 'cd {FOLDER} && {command} 2>&1; echo code $?'")


def reaches(cluster: Cluster, port: int, *via: str) -> bool:
    """Whether a connection to the first member is accepted, from a member or from an outsider."""
    address = cluster.fabric_address(next(iter(cluster.hosts)))
    try:
        cluster.lab(*via, "timeout", "3", "bash", "-c", f"exec 3<>/dev/tcp/{address}/{port}")
    except subprocess.CalledProcessError:
        return False
    return True


def test_the_example_is_trained_over_all_nodes(cluster: Cluster, texts: dict[str, str]) -> None:
    assert texts
    nodes = len(cluster.hosts)
    seen = as_user(
        cluster, f"sbatch --wait --nodes={nodes} --output=out train.sbatch {FOLDER}/train.py --epochs 2; cat out"
    )
    ranks = re.findall(rf"^rank (\d) weights (\w+) same on {nodes} ranks, loss", seen, re.M)
    assert sorted(rank for rank, _weights in ranks) == [str(rank) for rank in range(nodes)], seen
    assert len({weights for _rank, weights in ranks}) == 1
    # Each rank was on a node of its own, and all firewalls were on.
    assert sorted(as_user(cluster, f"srun -N{nodes} hostname").split()[:nodes]) == sorted(cluster.hosts)
    assert set(cluster.everywhere("firewall-cmd --state").values()) == {"running\n"}


def test_only_members_reach_slurm(cluster: Cluster, texts: dict[str, str]) -> None:
    assert texts
    second = list(cluster.hosts)[1]
    for port in (6817, 6818):
        assert reaches(cluster, port, "exec", second)
        assert not reaches(cluster, port, "outsider", "--address", OUTSIDER, "--")


def test_the_files_are_what_slurm_reads(cluster: Cluster, texts: dict[str, str]) -> None:
    first = next(iter(cluster.hosts))
    shown = dict(re.findall(r"^(\w+) += (.*)$", cluster.shell(first, "scontrol show config"), re.M))
    written = dict(re.findall(r"^(\w+)=(\S+)$", texts["slurm.conf"], re.M))
    for name in (
        "ClusterName",
        "SlurmctldPort",
        "SlurmdPort",
        "SelectType",
        "PropagateResourceLimits",
        "ProctrackType",
    ):
        assert shown[name] == written[name], name
    assert shown["MpiDefault"] == "none" and shown["TaskPlugin"] == "task/none"
    (line,) = re.findall(r"^NodeName=.*$", texts["slurm.conf"], re.M)
    given = dict(re.findall(r"(\w+)=(\S+)", line))
    for name, printed in cluster.everywhere("slurmd -C").items():
        own = dict(re.findall(r"(\w+)=(\S+)", printed))
        names = {"CPUs": "CPUs", "SocketsPerBoard": "Sockets", "CoresPerSocket": "CoresPerSocket"}
        assert {key: own[key] for key in names} == {key: given[other] for key, other in names.items()}, name
        assert int(own["RealMemory"]) >= int(given["RealMemory"])


def test_a_wrong_key_ends_slurmctld(cluster: Cluster, texts: dict[str, str]) -> None:
    first = next(iter(cluster.hosts))
    write(cluster, first, f"{FOLDER}/slurm.conf", texts["slurm.conf"].replace("SelectType=", "SlectType="))
    seen = cluster.shell(first, f"timeout 10 slurmctld -D -f {FOLDER}/slurm.conf 2>&1; echo code $?")
    assert "Parsing error at unrecognized key: SlectType" in seen and seen.endswith("code 1\n")


def test_a_node_without_slurmd_is_named(cluster: Cluster, texts: dict[str, str]) -> None:
    assert texts
    *_rest, last = cluster.hosts
    cluster.shell(last, "systemctl stop slurmd")
    try:
        seen = as_user(cluster, f"srun -N{len(cluster.hosts)} hostname")
        assert re.search(
            rf"Task launch for StepId=\S+ failed on node {last}: Communication connection failure", seen
        ), seen
        assert not seen.endswith("code 0\n")
    finally:
        cluster.shell(last, "systemctl start slurmd")
    idle(cluster)
    assert as_user(cluster, f"srun -N{len(cluster.hosts)} true") == "code 0\n"
