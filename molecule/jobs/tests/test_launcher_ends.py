# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How jobs of gpu-cluster-run end: exit code, message, and no process left on any node."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import lab_launcher
import pytest
from lab_cluster import Cluster, patience
from lab_launcher import FOLDER, Job, left

NOTHING_LEFT = "gpu-cluster-run: all ranks are stopped, no process is left; exit code"


@pytest.fixture(scope="module", autouse=True)
def scripts(cluster: Cluster) -> Iterator[None]:
    lab_launcher.prepare(cluster)
    yield
    lab_launcher.clean(cluster)


@pytest.mark.parametrize("mode", [pytest.param("torchrun", marks=pytest.mark.long), "env", "mpirun"])
def test_one_rank_fails(cluster: Cluster, mode: str) -> None:
    node = list(cluster.hosts)[1]
    job = Job(cluster, "--mode", mode, "worker.py", "exit1")
    assert job.end() == 7, job.text
    assert f"gpu-cluster-run: rank 1 on {node} ended with exit code 7; its log is {FOLDER}/logs/" in job.text
    assert "\n    last words\n" in job.text
    assert f"{NOTHING_LEFT} 7" in job.text
    assert not left(cluster)


def test_one_rank_is_killed(cluster: Cluster) -> None:
    """As the kernel does when memory is out."""
    job = Job(cluster, "--mode", "env", "worker.py", "kill2")
    assert job.end() == 128 + 9, job.text
    assert f"rank 2 on {list(cluster.hosts)[2]} ended with signal 9 (SIGKILL)" in job.text
    assert not left(cluster)


@pytest.mark.parametrize(
    ("name", "mode", "code"), [("INT", "torchrun", 130), ("TERM", "mpirun", 143), ("HUP", "env", 129)]
)
def test_a_signal_stops_every_rank(cluster: Cluster, name: str, mode: str, code: int) -> None:
    """Scripts have time to write a checkpoint, also under mpirun, which would kill them after a second."""
    job = Job(cluster, "--mode", mode, "worker.py", "save")
    job.seen("] here", len(cluster.hosts))
    job.signal(name)
    assert job.end() == code, job.text
    assert job.text.count("] saved") == len(cluster.hosts), job.text
    assert f"gpu-cluster-run: SIG{name}: stopping {len(cluster.hosts)} ranks" in job.text
    assert f"{NOTHING_LEFT} {code}" in job.text
    assert "killed" not in job.text.split("again: at once")[1], "what hears SIGTERM must not need SIGKILL"
    assert not left(cluster)


def test_the_second_ctrl_c_kills(cluster: Cluster) -> None:
    """The scripts don't listen to SIGTERM, and an hour of grace is not waited for."""
    job = Job(cluster, "--mode", "env", "--grace", "600", "worker.py", "deaf")
    job.seen("] here", len(cluster.hosts))
    job.signal("INT")
    job.seen("SIGINT: stopping")
    job.signal("INT")
    assert job.end(60) == 130, job.text
    assert "gpu-cluster-run: SIGINT: killing" in job.text
    assert not left(cluster)


def test_nobody_reads_the_output(cluster: Cluster) -> None:
    """As with `| head -1`: every further line has nowhere to go. One comes for sure after head has ended."""
    run = f"timeout 240 gpu-cluster-run --log-dir {FOLDER}/logs --mode env worker.py talk 2>{FOLDER}/said | head -1"
    text = cluster.shell(next(iter(cluster.hosts)), f"cd {FOLDER}; su train -s /bin/sh -c '{run}'; cat {FOLDER}/said")
    assert text.count("] here") == 1 and f"{NOTHING_LEFT} 141" in text
    assert not left(cluster)


def test_the_launcher_dies(cluster: Cluster) -> None:
    job = Job(cluster, "--mode", "env", "worker.py")
    job.seen("] here", len(cluster.hosts))
    job.signal("KILL")
    job.end()
    assert not left(cluster, deadline=30)


def test_an_agent_dies(cluster: Cluster) -> None:
    """Its ranks notice, and clean up in its place."""
    node = list(cluster.hosts)[1]
    job = Job(cluster, "--mode", "env", "worker.py")
    job.seen("] here", len(cluster.hosts))
    cluster.shell(node, "pkill -KILL -u train -f 'gpu-cluster-run --agent'")
    assert job.end() == 75, job.text
    assert f"gpu-cluster-run: {node} was lost: the connection has ended" in job.text
    assert not left(cluster, deadline=30)


@pytest.mark.parametrize("mode", ["env", pytest.param("mpirun", marks=pytest.mark.long)])
def test_a_node_is_lost(cluster: Cluster, mode: str) -> None:
    """It answers nothing, as without power; what it still runs ends when it gets its power back."""
    *_others, node = cluster.hosts
    job = Job(cluster, "--mode", mode, "--lost-after", "5", "--grace", "2", "worker.py")
    job.seen("] here", len(cluster.hosts))
    cluster.lab("pause", node)
    try:
        start = time.monotonic()
        assert job.end() == 75, job.text
        assert time.monotonic() - start < 45 * patience()
        assert f"gpu-cluster-run: {node} was lost: it did not answer for 5 seconds" in job.text
    finally:
        cluster.lab("unpause", node)
    assert not left(cluster, deadline=30)


def test_two_jobs_at_once(cluster: Cluster) -> None:
    """Each has a rendezvous port of its own, inside the plan. Any member will do to type it."""
    first = Job(cluster, "--mode", "env", "--env", "SEEN=yes", "worker.py")
    first.seen("] here", len(cluster.hosts))
    second = Job(cluster, "--mode", "env", "worker.py", "end", node=list(cluster.hosts)[-1])
    assert second.end() == 0, second.text
    assert "gpu-cluster-run: all ranks have ended well" in second.text
    ports = [set(re.findall(r"MASTER_PORT=(\d+)", job.text)) for job in (first, second)]
    assert [len(found) for found in ports] == [1, 1] and not ports[0] & ports[1]
    assert all(29400 <= int(port) <= 29599 for found in ports for port in found)
    cluster.shell(first.node, "pkill -INT -u train -xf '.*gpu-cluster-run --log-dir .*SEEN.*'")
    assert first.end() == 130, first.text
    assert first.text.count("SEEN=yes") == len(cluster.hosts) and "SEEN=yes" not in second.text
    assert not left(cluster)


def test_root_starts_as_the_user_and_strangers_not_at_all(cluster: Cluster) -> None:
    job = Job(cluster, "--mode", "env", "worker.py", "end", user="root")
    assert job.end() == 0, job.text
    owners = cluster.on_all(f"stat -c %U {FOLDER}/logs/*/*rank*")
    assert owners and all(line.endswith(": train") for line in owners)
    cluster.shell(job.node, f"chmod 777 {FOLDER}")
    stranger = Job(cluster, "--mode", "env", "worker.py", user="nobody")
    assert stranger.end() == 64, stranger.text
    assert "jobs run as train, and this is nobody: use `sudo -u train gpu-cluster-run ...`" in stranger.text


def test_nothing_starts_where_something_is_missing(cluster: Cluster) -> None:
    """All reasons at once; then the nodes can't be used."""
    first, second, third = list(cluster.hosts)[:3]
    cluster.shell(second, f"mv {FOLDER}/worker.py {FOLDER}/away.py")
    cluster.shell(third, "mv /etc/gpu-cluster/environment /etc/gpu-cluster/environment.away")
    try:
        job = Job(cluster, "--mode", "env", "worker.py", "end")
        assert job.end() == 69, job.text
    finally:
        cluster.shell(second, f"mv {FOLDER}/away.py {FOLDER}/worker.py")
        cluster.shell(third, "mv /etc/gpu-cluster/environment.away /etc/gpu-cluster/environment")
    assert f"gpu-cluster-run: {second}: there is no file {FOLDER}/worker.py" in job.text
    assert f"gpu-cluster-run: {third}: /etc/gpu-cluster/environment can't be read" in job.text
    assert "gpu-cluster-run: nothing was started; exit code 69" in job.text
    assert f"[{first}:0]" not in job.text
    assert not left(cluster)


def test_horovod_is_refused_where_it_is_missing(cluster: Cluster) -> None:
    job = Job(cluster, "--mode", "horovod", "worker.py", "end")
    assert job.end() == 78, job.text
    assert "No module named 'horovod'" in job.text
    assert not left(cluster)
