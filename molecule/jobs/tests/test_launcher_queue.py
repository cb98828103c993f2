# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The queue view: who runs what where, ended and read from any member, and GPUs that others use.

No lab node has a GPU.  A stand-in for nvidia-smi prints what the real one prints of two cards, with the processes that
have put themselves on its list and still run.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from typing import Any

import lab_launcher
import pytest
from lab_cluster import Cluster, patience
from lab_launcher import Job, left, write

SMI = """\
#!/bin/sh
case "$1" in
--query-gpu=*)
  echo '0, GPU-6b7d4c1e-0000-0000-0000-000000000000, NVIDIA H100 80GB HBM3, 81559, 4096, 0'
  echo '1, GPU-6b7d4c1e-0000-0000-0000-000000000001, NVIDIA H100 80GB HBM3, 81559, 0, 0';;
--query-compute-apps=*)
  cat /run/lab-gpus 2>/dev/null | while read card pid; do
    [ -e "/proc/$pid" ] && echo "GPU-6b7d4c1e-0000-0000-0000-00000000000$card, $pid, python, 4096"
  done; true;;
*) exit 2;;
esac
"""
#: An agent of another user, with a job of one rank, fed by hand: that user has no way over ssh to other members.
STRANGER = """\
import hashlib, json, os, subprocess, sys, time
program, job, address = "/usr/local/bin/gpu-cluster-run", sys.argv[1], sys.argv[2]
digest = hashlib.sha256(open(program, "rb").read()).hexdigest()
given = {"id": job, "mode": "env", "cwd": "/", "script": "", "python": "/bin/sh", "mpirun": "/bin/sh", "grace": 1,
         "command": ["sleep", "600"], "variables": {}, "logs": "/tmp/stranger", "ports": [29400, 29599, 29500],
         "master": address, "hosts": [[address, 1]], "world_size": 1, "lost_after": 600, "name": "x", "share": False,
         "address": address, "node": 0, "ranks": 1, "first": 0}
about = json.dumps({"by": "me\\x1b[2J", "command": "theirs.py", "ranks": 1, "nodes": 1, "surplus": 1})
agent = subprocess.Popen(["python3", "-I", program, "--agent", job, about], stdin=subprocess.PIPE,
                         stdout=subprocess.DEVNULL, text=True)
for order in ({"do": "job", "job": given, "digest": digest}, {"do": "start", "port": 29500}):
    print(json.dumps(order), file=agent.stdin, flush=True)
time.sleep(600)
"""
THEIRS = "20260301-101500-0badc0"


@pytest.fixture(scope="module", autouse=True)
def scripts(cluster: Cluster) -> Iterator[None]:
    lab_launcher.prepare(cluster)
    yield
    lab_launcher.clean(cluster)


@pytest.fixture
def gpus(cluster: Cluster) -> Iterator[None]:
    """Every node shows two cards."""
    for name in cluster.hosts:
        write(cluster, name, "/usr/local/bin/nvidia-smi", SMI)
        cluster.shell(name, "chmod 755 /usr/local/bin/nvidia-smi; : > /run/lab-gpus; chmod 666 /run/lab-gpus")
    yield
    cluster.everywhere("rm -f /usr/local/bin/nvidia-smi /run/lab-gpus")


def ran(cluster: Cluster, node: str, *arguments: str, user: str = "train") -> tuple[int, str]:
    """Exit code and output of gpu-cluster-run on a node."""
    command = shlex.join(["/usr/local/bin/gpu-cluster-run", *arguments])
    if user != "root":
        command = f"su {user} -s /bin/sh -c {shlex.quote(command)}"
    text = cluster.shell(node, f"{command} 2>&1; echo $?")
    *lines, code = text.splitlines()
    return int(code), "\n".join(lines)


def queue(cluster: Cluster, node: str) -> dict[str, dict[str, Any]]:
    """The jobs by their names."""
    code, text = ran(cluster, node, "ps", "--json")
    assert code == 0, text
    found = json.loads(text)
    assert found["unreachable"] == []
    return {one["job"]: one for one in found["jobs"]}


def started(cluster: Cluster, *arguments: str, ranks: int = 3, **more: str) -> tuple[Job, str]:
    """A job whose ranks have all started, and its name."""
    job = Job(cluster, "--mode", "env", *arguments, **more)
    job.seen("] here", ranks)
    (line,) = [line for line in job.lines if line.startswith("gpu-cluster-run: job ")]
    return job, line.split()[2].rstrip(":")


def test_two_jobs_of_two_people(cluster: Cluster) -> None:
    """Listed and ended from a member on which neither was typed."""
    first, second, third = cluster.hosts
    one, name = started(cluster, "worker.py", "save")
    two, other = started(
        cluster, "--nodes", f"{second},{third}", "worker.py", "of", "root", ranks=2, user="root", node=second
    )
    code, text = ran(cluster, third, "ps")
    rows = {line.split()[0]: line for line in text.splitlines()}
    assert code == 0 and list(rows) == ["JOB", name, other], text
    assert rows[name].endswith("3      3      worker.py save") and " train " in rows[name]
    assert rows[other].endswith("2      2      worker.py of root")
    found = queue(cluster, third)
    assert found[name]["launcher"] == first and found[other]["launcher"] == second
    assert list(found[other]["nodes"]) == [second, third] and found[name]["ranks"] == found[name]["ranks_planned"] == 3
    assert abs(found[name]["started"] - time.time()) < 300
    code, text = ran(cluster, third, "stop", name)
    assert code == 0, text
    assert f"SIGTERM to the launcher on {first}, which ends the ranks" in text
    assert all(f"gpu-cluster-run: {node}: " in text for node in cluster.hosts)
    assert f"job {name}: no process is left on 3 members; exit code 0" in text
    assert one.end() == 143 and one.text.count("] saved") == 3, one.text
    assert list(queue(cluster, first)) == [other]
    code, text = ran(cluster, first, "stop", other, user="root")
    assert code == 0 and two.end() == 143, text
    assert not left(cluster)
    code, text = ran(cluster, first, "stop", other)
    assert (code, text.count("none has a process of it")) == (0, 1), text


@pytest.mark.long
def test_strangers_neither_list_nor_end(cluster: Cluster) -> None:
    for arguments in (["ps"], ["stop", THEIRS]):
        code, text = ran(cluster, next(iter(cluster.hosts)), *arguments, user="nobody")
        assert code == 64 and "jobs run as train, and this is nobody" in text


@pytest.mark.long
def test_a_job_of_another_user_is_shown_and_not_ended(cluster: Cluster) -> None:
    first, second = list(cluster.hosts)[:2]
    write(cluster, second, "/run/stranger.py", STRANGER)
    words = f"{THEIRS} {cluster.fabric_address(second)}"
    start = f"HOME=/tmp setpriv --reuid=nobody --regid=65534 --clear-groups python3 /run/stranger.py {words}"
    cluster.shell(second, f"{start} > /run/stranger.log 2>&1 & sleep 2")
    try:
        theirs = queue(cluster, first)[THEIRS]
        assert (theirs["user"], theirs["by"], theirs["command"]) == ("nobody", "me\ufffd[2J", "theirs.py")
        assert theirs["ranks"] == 1 and list(theirs["nodes"]) == [second]
        code, text = ran(cluster, first, "stop", THEIRS)
        assert code == 1 and f"job {THEIRS} is one of nobody" in text, text
        assert THEIRS in queue(cluster, first)
    finally:
        cluster.shell(second, "pkill -KILL -u nobody; rm -rf /run/stranger.* /tmp/stranger /tmp/gpu-cluster-run-65534*")


def test_ranks_that_are_left_behind(cluster: Cluster) -> None:
    """Launcher, agents and the parents of all ranks are killed at once: only what the scripts have started is left."""
    second, third = list(cluster.hosts)[1:]
    job, name = started(cluster, "worker.py")
    # Agents and ranks stand still first, so that none cleans up because another one has ended.
    program = "/usr/local/bin/gpu-cluster-run"
    cluster.everywhere(f"pkill -STOP -u train -f '^[^ ]*python3? -I {program} --(agent|rank)'; true")
    cluster.everywhere(f"pkill -KILL -u train -f '^[^ ]*python3? (-I )?{program}'; true")
    job.end()
    code, text = ran(cluster, third, "ps")
    assert code == 0 and f"processes without an agent; `gpu-cluster-run stop {name}` ends them" in text, text
    assert all(part["left_behind"] for part in queue(cluster, second)[name]["nodes"].values())
    code, text = ran(cluster, third, "stop", name)
    assert code == 0 and f"{second}: 1 processes ended" in text, text
    assert not left(cluster)


def test_a_member_that_does_not_answer_is_a_line(cluster: Cluster) -> None:
    first, _second, third = cluster.hosts
    cluster.lab("pause", third)
    try:
        begin = time.monotonic()
        code, text = ran(cluster, first, "ps")
        assert time.monotonic() - begin < 30 * patience()
        assert code == 69 and f"\n{third}: no answer: " in text, text
        code, text = ran(cluster, first, "nodes", "--json")
        assert [one["reachable"] for one in json.loads(text)["nodes"]] == [True, True, False] and code == 69
        code, text = ran(cluster, first, "stop", THEIRS)
        assert code == 69 and f"{third}: no answer" in text
        assert ran(cluster, first, "ps", "--hosts", f"{first[:-1]}[{first[-1]}]")[0] == 0
    finally:
        cluster.lab("unpause", third)


@pytest.mark.long
def test_logs_from_another_member(cluster: Cluster) -> None:
    first, second, third = cluster.hosts
    job, name = started(cluster, "worker.py", "talk")
    code, text = ran(cluster, third, "logs", name, "--lines", "0", "--rank", "1")
    assert code == 0 and f"[{second}:1] here WORLD_SIZE=3" in text and f"\n[{second}:1] more" in text
    assert "here MASTER" not in text and not any(line.startswith(f"[{first}") for line in text.splitlines())
    code, text = ran(cluster, third, "logs", name, "--lines", "1")
    assert [line for line in text.splitlines() if "more" in line] == [
        f"[{node}:{rank}] more" for rank, node in enumerate(cluster.hosts)
    ]
    follower = cluster.lab_argv(
        "exec", third, "su", "train", "-s", "/bin/sh", "-c", f"gpu-cluster-run logs --follow {name}"
    )
    with lab_launcher.subprocess.Popen(follower, stdout=-1, stderr=-2, text=True, cwd=lab_launcher.PROJECT) as process:
        time.sleep(3)
        assert ran(cluster, second, "stop", name)[0] == 0
        said, _errors = process.communicate(timeout=60 * patience())
    assert process.returncode == 0 and all(f"[{node}:{rank}] more" in said for rank, node in enumerate(cluster.hosts))
    job.end()
    assert ran(cluster, first, "logs", THEIRS) == (
        66,
        f"gpu-cluster-run: no member has a log of job {THEIRS}; exit code 66",
    )
    assert not left(cluster)


def test_nodes_without_gpus(cluster: Cluster) -> None:
    """Jobs share them as ever."""
    job, name = started(cluster, "worker.py")
    code, text = ran(cluster, next(iter(cluster.hosts)), "nodes", "--json")
    nodes = json.loads(text)["nodes"]
    assert code == 0 and [one["node"] for one in nodes] == list(cluster.hosts)
    assert all(one["jobs"] == [name] and one["gpus"] == [] and one["cores"] > 0 for one in nodes)
    assert all(0 < one["free_mib"] <= one["memory_mib"] for one in nodes)
    second = Job(cluster, "--mode", "env", "worker.py", "end")
    assert second.end() == 0, second.text
    assert ran(cluster, next(iter(cluster.hosts)), "stop", name)[0] == 0
    job.end()


@pytest.mark.usefixtures("gpus")
def test_gpus_that_somebody_else_uses(cluster: Cluster) -> None:
    first, second, _third = cluster.hosts
    cluster.shell(
        second,
        "setpriv --reuid=nobody --regid=65534 --clear-groups sleep 612 > /dev/null 2>&1 & echo 1 $! >> /run/lab-gpus",
    )
    try:
        job = Job(cluster, "--mode", "env", "worker.py", "end")
        assert job.end() == 69, job.text
        assert f"gpu-cluster-run: {second}: GPU 1 in use by nobody, pid " in job.text, job.text
        assert "or start beside it with --share" in job.text and f"{first}:" not in job.text
        assert "gpu-cluster-run: nothing was started; exit code 69" in job.text
        code, text = ran(cluster, first, "nodes")
        assert code == 0 and "\n  GPU 1: nobody, pid " in text, text
        shared = Job(cluster, "--mode", "env", "--share", "worker.py", "end")
        assert shared.end() == 0, shared.text
    finally:
        cluster.shell(second, "pkill -KILL -u nobody -x sleep")
    assert Job(cluster, "--mode", "env", "worker.py", "end").end() == 0


@pytest.mark.usefixtures("gpus")
@pytest.mark.long
def test_gpus_of_another_job(cluster: Cluster) -> None:
    """Also before that job has put anything on a GPU; and its process is known by its job when it has."""
    first, second, third = cluster.hosts
    job, name = started(cluster, "--nodes", f"{second},{third}", "worker.py", ranks=2)
    other = Job(cluster, "--mode", "env", "worker.py", "end")
    assert other.end() == 69, other.text
    for node in (second, third):
        assert f"{node}: its GPUs belong to job {name} of train: wait, end it with" in other.text, other.text
    cluster.shell(third, "pgrep -u train -f 'python -u .*worker.py' | sed 's/^/0 /' >> /run/lab-gpus")
    again = Job(cluster, "--mode", "env", "worker.py", "end")
    assert again.end() == 69 and f"{third}: GPU 0 in use by job {name} of train" in again.text, again.text
    (app,) = json.loads(ran(cluster, first, "nodes", "--json")[1])["nodes"][2]["gpus"][0]["processes"]
    assert (app["user"], app["job"]) == ("train", name)
    free = Job(cluster, "--mode", "env", "--nodes", first, "worker.py", "end")
    assert free.end() == 0, free.text
    assert ran(cluster, first, "stop", name)[0] == 0
    job.end()
    assert not left(cluster)
