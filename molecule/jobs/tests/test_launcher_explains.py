# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job that fails ends with the cause and the node, although nobody asks."""

from __future__ import annotations

import json
from collections.abc import Iterator

import lab_launcher
import pytest
from lab_cluster import Cluster
from lab_launcher import FOLDER, Job, left

WHY = "gpu-cluster-run: why, by what all ranks have written:"
DROP = """\
nft -f - <<'RULES'
table inet lab_explains {
  chain input { type filter hook input priority -10; tcp flags & (syn|ack) == syn tcp dport 32768-60999 drop; }
}
RULES
"""
ADMIT = "nft delete table inet lab_explains"


@pytest.fixture(scope="module", autouse=True)
def scripts(cluster: Cluster) -> Iterator[None]:
    lab_launcher.prepare(cluster)
    yield
    lab_launcher.clean(cluster)


def explanation(job: Job) -> list[str]:
    """The lines below the one that says why."""
    assert job.end() != 0, job.text
    assert WHY in job.lines, job.text
    after = job.lines[job.lines.index(WHY) + 1 :]
    return [line.strip() for line in after if line.startswith("    ")]


#: The fault, the number of the node at fault, and how the first line begins; no number where it is nobody's own.
FAULTS = [
    ("module", 1, "FILES: {node}: "),
    ("interface", 1, "INTERFACE: {node}: "),
    ("port", 0, "PORT: {node}: "),
    ("world", 2, "DISAGREE: "),
    ("memory", 1, "RESOURCES: {node}: "),
    ("disk", 2, "RESOURCES: {node}: "),
    ("own", 1, "UNKNOWN: {node}: an error that is not known: ValueError: the frobnicator is out of cheese"),
    ("hang", 1, "STOPPED: {node}: "),
    ("shapes", 1, "DISAGREE: "),
]


@pytest.mark.parametrize(("fault", "number", "words"), FAULTS, ids=[one[0] for one in FAULTS])
def test_a_failed_job_says_why(cluster: Cluster, fault: str, number: int, words: str) -> None:
    lines = explanation(Job(cluster, "--mode", "env", "failing.py", fault))
    assert lines[0].startswith(words.format(node=list(cluster.hosts)[number])), lines
    assert len(lines) <= 8
    assert not left(cluster)


def test_a_killed_rank_says_why(cluster: Cluster) -> None:
    lines = explanation(Job(cluster, "--mode", "env", "worker.py", "kill2"))
    assert lines[0].startswith(f"RESOURCES: {list(cluster.hosts)[2]}: ") and "killed from outside" in lines[0]


#: A node whose environment says that its PyTorch is another one; all else of it is the same.
OTHER_TORCH = """\
version=$(ls -d /opt/gpu-cluster/torch/lib/python3*/site-packages/torch/version.py)
sed "s/^__version__ = .*/__version__ = '2.6.0'/" $version > /run/lab-version.py
mount --bind /run/lab-version.py $version
"""
SAME_TORCH = "umount /opt/gpu-cluster/torch/lib/python3*/site-packages/torch/version.py; rm -f /run/lab-version.py"


def test_another_torch_on_one_node_says_why(cluster: Cluster) -> None:
    """It lacks what the script uses; the versions of all nodes stand beside that."""
    first, second, third = cluster.hosts
    cluster.shell(second, OTHER_TORCH)
    try:
        lines = explanation(Job(cluster, "--mode", "env", "failing.py", "release"))
    finally:
        cluster.shell(second, SAME_TORCH)
    assert lines[0].startswith(f"VERSIONS: {second}: ") and "PyTorch 2.6.0 on " in lines[0], lines
    assert f" on {first}, {third}" in lines[0] and not left(cluster)


def test_a_full_dev_shm_says_why(cluster: Cluster) -> None:
    """256 MiB of tensors that are shared, where 64 MiB are."""
    node = list(cluster.hosts)[2]
    before = cluster.shell(node, "findmnt -no OPTIONS /dev/shm | grep -o 'size=[^,]*' || true").strip() or "size=50%"
    cluster.shell(node, "mount -o remount,size=64m /dev/shm")
    try:
        lines = explanation(Job(cluster, "--mode", "env", "failing.py", "shared"))
    finally:
        cluster.shell(node, f"mount -o remount,{before} /dev/shm")
    assert lines[0].startswith(f"RESOURCES: {node}: "), lines
    assert "/dev/shm has 64 MiB" in lines[0] or "without room there: /dev/shm" in lines[0], lines
    assert not left(cluster)


@pytest.mark.long
def test_blocked_ports_say_why(cluster: Cluster) -> None:
    """The node that drops connections is not the one that prints the error."""
    node = next(iter(cluster.hosts))
    cluster.shell(node, DROP)
    try:
        lines = explanation(Job(cluster, "--mode", "env", "failing.py", "none"))
    finally:
        cluster.shell(node, ADMIT)
    assert lines[0].startswith("BLOCKED: "), lines


def test_the_logs_of_a_job_say_why_afterwards(cluster: Cluster) -> None:
    node = list(cluster.hosts)[1]
    job = Job(cluster, "--mode", "env", "failing.py", "disk")
    job.end()
    name = list(cluster.hosts)[2]
    said = cluster.shell(name, f"su train -c 'gpu-cluster-run explain --json {FOLDER}/logs'")
    first = json.loads(said)[0]
    assert (first["cause"], first["about"], first["rank"]) == ("RESOURCES", [name], 2)
    nothing = cluster.shell(node, "echo all is well | su train -c 'gpu-cluster-run explain -'; echo $?")
    assert nothing == "no line of these logs looks like an error\n1\n"
