# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu-cluster-run --image: ranks in containers of one image, members whose image is not the same, and how jobs end."""

from __future__ import annotations

import re
from collections.abc import Iterator

import lab_launcher
import pytest
from lab_cluster import PROJECT, Cluster
from lab_containers import TRAIN, archive, as_train, remains
from lab_launcher import FOLDER, Job, write
from lab_rendezvous import BEGIN, KILL, Training

#: Python of the node and what it needs, without torch: loading the real image takes half a minute on a node.
PLAIN = "localhost/lab-plain:1"
MAKE_PLAIN = f"""
set -e
files=$({{ for program in /bin/sh /usr/bin/env /usr/bin/sleep /usr/bin/setsid /usr/bin/python3; do
    echo $program
    ldd $program | grep -o '/[^ ]*'
done
find /usr/lib/python3.[0-9]* '(' -name '*.py' -o -name '*.so' ')' -not -path '*/test/*' -not -path '*-packages/*'
ls /usr/lib/*/libffi.so* /usr/lib/*/libcrypto.so*; }} | sort -u)
tar --create --dereference --hard-dereference --file - $files 2> /dev/null |
    su - train -c 'cd /; podman import --quiet - {PLAIN} 2>&1'
"""
WEIGHTS = re.compile(r"rank (\d+) weights (\w+) same on 3 ranks")
WHO = """\
import os
where = "inside" if os.path.exists("/run/.containerenv") else "outside"
print(where, "user", os.getuid(), "at", os.getcwd(), flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def members(cluster: Cluster) -> Iterator[list[str]]:
    """All nodes with the same small image: IDs are equal where one archive was loaded."""
    lab_launcher.prepare(cluster)
    first, *others = cluster.hosts
    cluster.shell(first, MAKE_PLAIN)
    for name in others:
        cluster.shell(first, as_train(f"podman save --quiet {PLAIN} | ssh {name} podman load --quiet 2>&1"))
    for name in cluster.hosts:
        write(cluster, name, f"{FOLDER}/who.py", WHO)
    yield list(cluster.hosts)
    for name in cluster.hosts:
        wipe = f"podman rm --all --force --time 0; podman rmi --force {PLAIN}; podman system migrate"
        cluster.shell(name, f"{as_train(f'({wipe}) > /dev/null 2>&1; true')}")
    lab_launcher.clean(cluster)


def test_each_rank_is_in_a_container(cluster: Cluster, members: list[str]) -> None:
    job = Job(cluster, "--mode", "env", "--image", PLAIN, "who.py")
    assert job.end() == 0, job.text
    for rank, name in enumerate(members):
        assert f"[{name}:{rank}] inside user 4000 at {FOLDER}" in job.lines, job.text
    assert remains(cluster) == []


def test_a_member_that_lacks_a_part_is_named(cluster: Cluster, members: list[str]) -> None:
    """Nothing starts: another image, none, and no podman."""
    first, second, *_others = members
    other = f"podman import --quiet --change ENV=OTHER=1 /run/lab-empty.tar {PLAIN}"
    run = ("--mode", "env", "--image", PLAIN, "who.py")
    keep = as_train(f"podman tag {PLAIN} localhost/lab-kept:1")
    cluster.shell(second, f"tar --create --file /run/lab-empty.tar --files-from /dev/null; {keep}")
    try:
        cluster.shell(second, as_train(f"{other} 2>&1"))
        job = Job(cluster, *run)
        assert job.end() == 69, job.text
        ids = re.search(rf"{second}: the image {PLAIN} has the ID (\w+) here, and (\w+) on {first}", job.text)
        assert ids and ids[1] != ids[2] and "nothing was started; exit code 69" in job.text, job.text

        cluster.shell(second, as_train(f"podman rmi {PLAIN} 2>&1"))
        job = Job(cluster, *run)
        assert job.end() == 69, job.text
        assert f"{second}: there is no image {PLAIN} for train here: load it as train on this node" in job.text

        cluster.shell(second, "mv /usr/bin/podman /usr/bin/podman.away")
        try:
            job = Job(cluster, *run)
            assert job.end() == 69, job.text
        finally:
            cluster.shell(second, "mv /usr/bin/podman.away /usr/bin/podman")
        assert f"{second}: --image needs podman, which can't be started here" in job.text
    finally:
        back = f"podman tag localhost/lab-kept:1 {PLAIN} && podman untag localhost/lab-kept:1 localhost/lab-kept:1"
        cluster.shell(second, f"rm -f /run/lab-empty.tar; {as_train(back)}")
    assert remains(cluster) == []


def test_a_killed_launcher_leaves_nothing(cluster: Cluster, members: list[str]) -> None:
    """Its ranks do not listen to SIGTERM, and have left a daemon behind."""
    job = Job(cluster, "--mode", "env", "--image", PLAIN, "--grace", "1", "worker.py", "deaf")
    job.seen("] here", len(members))
    assert len([line for line in remains(cluster, 0) if ": container " in line]) == len(members)
    job.signal("KILL")
    job.end()
    assert remains(cluster, 60) == []


@pytest.mark.long
def test_a_signal_lets_ranks_save(cluster: Cluster, members: list[str]) -> None:
    job = Job(cluster, "--mode", "env", "--image", PLAIN, "worker.py", "save")
    job.seen("] here", len(members))
    job.signal("TERM")
    assert job.end() == 143, job.text
    assert job.text.count("] saved") == len(members), job.text
    assert remains(cluster, 60) == []


@pytest.mark.long
def test_killed_agents_leave_nothing(cluster: Cluster, members: list[str]) -> None:
    """The parent of each rank is inside, and ends all that is with it. The launcher and its ssh live on."""
    job = Job(cluster, "--mode", "env", "--image", PLAIN, "worker.py", "deaf")
    job.seen("] here", len(members))
    for name in members:
        cluster.shell(name, "pkill -KILL -u train -f '^[^ ]*python3? -I [^ ]*gpu-cluster-run --agent'")
    assert job.end() == 75, job.text
    assert remains(cluster, 60) == []


@pytest.fixture(scope="module")
def trainers(cluster: Cluster, members: list[str]) -> list[str]:
    """All nodes with the image that has torch, and with the example of the documentation."""
    load = as_train(f"podman load --quiet --input {archive(cluster)}")
    cluster.on_each(members, f"{as_train(f'podman image exists {TRAIN}')} || {load}")
    for name in members:
        write(cluster, name, f"{FOLDER}/train.py", (PROJECT / "docs/examples/train.py").read_text(encoding="utf-8"))
    return members


@pytest.mark.long
@pytest.mark.parametrize("mode", ["torchrun", "env", "elastic"])
@pytest.mark.usefixtures("trainers")
def test_the_training_script_runs_in_containers(cluster: Cluster, mode: str) -> None:
    job = Job(cluster, "--mode", mode, "--image", TRAIN, "train.py", "--epochs", "2")
    assert job.end(300) == 0, job.text
    found = {rank: weights for line in job.lines for rank, weights in WEIGHTS.findall(line)}
    assert sorted(found) == ["0", "1", "2"] and len(set(found.values())) == 1, job.text
    assert remains(cluster, 60) == []


@pytest.mark.long
@pytest.mark.parametrize("how", ["kill", "pause"])
def test_an_elastic_job_loses_a_node(cluster: Cluster, trainers: list[str], how: str) -> None:
    """It goes on from its checkpoint; the node comes back into the job, and nothing stays there."""
    *_others, lost = trainers
    every = ("--nodes", ",".join(trainers), "--rendezvous", "c10d")
    job = Training(cluster, "--image", TRAIN, *every, epochs=60, name=how, node=trainers[0])
    began = job.seen("epoch 2 loss")
    if how == "kill":
        cluster.shell(lost, KILL)
    else:
        cluster.lab("pause", lost)
        try:
            job.seen(f"rank 0 of {len(trainers) - 1} begins", after=began)
        finally:
            cluster.lab("unpause", lost)
    assert job.end(300) == 0, job.text
    assert f"gpu-cluster-run: {lost} was lost: " in job.text and f"gpu-cluster-run: {lost} is back" in job.text
    resumed = BEGIN.findall("\n".join(job.lines[began:]))
    assert resumed and all(int(epoch) >= 2 for _ranks, epoch in resumed), job.text
    assert job.trained() == {*trainers}
    assert remains(cluster, 60) == []


@pytest.mark.long
def test_the_first_node_is_killed_with_the_rendezvous_in_a_container_elsewhere(
    cluster: Cluster, trainers: list[str]
) -> None:
    """The host has no torch but that of the image."""
    first, *_others, host = trainers
    torch = "/opt/gpu-cluster/torch"
    cluster.shell(host, f"mv {torch} {torch}.away")
    try:
        job = Training(cluster, "--image", TRAIN, "--rendezvous-host", host, epochs=40, name="elsewhere")
        began = job.seen("epoch 2 loss")
        cluster.shell(first, KILL)
        assert job.end(300) == 0, job.text
    finally:
        cluster.shell(host, f"mv {torch}.away {torch}")
    assert f"gpu-cluster-run: {first} was lost: " in job.text and f" on {host}, logs" in job.text
    resumed = BEGIN.findall("\n".join(job.lines[began:]))
    assert resumed and all(int(epoch) >= 2 for _ranks, epoch in resumed), job.text
    assert job.trained()
    assert remains(cluster, 60) == []


@pytest.mark.long
def test_the_store_of_the_rendezvous_ends_with_its_agent(cluster: Cluster, trainers: list[str]) -> None:
    """podman run is killed before the agent, so that only the connection of the store to its agent can tell it."""
    *_others, host = trainers
    job = Training(cluster, "--image", TRAIN, "--rendezvous-host", host, epochs=600, name="store")
    job.seen("epoch 1 loss")
    agent = "-u train -f '^[^ ]*python[^ ]* -I [^ ]*gpu-cluster-run --agent'"  # Not the ssh of the launcher.
    cluster.shell(host, f"pkill -STOP {agent}; pkill -KILL -u train -f '^podman run '; pkill -KILL {agent}; true")
    # No agent comes after it: the job can't go on.
    assert job.end() == 75, job.text
    assert f"{host} was lost: " in job.text and "the job can't go on: it holds the rendezvous" in job.text
    assert remains(cluster, 60) == []
