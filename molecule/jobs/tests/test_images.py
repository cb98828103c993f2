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
    """The parent of each rank is inside, and ends all that is with it."""
    job = Job(cluster, "--mode", "env", "--image", PLAIN, "worker.py", "deaf")
    job.seen("] here", len(members))
    for name in members:
        cluster.shell(name, "pkill -KILL -u train -f 'gpu-cluster-run --agent' || true")
    assert job.end() == 75, job.text
    assert remains(cluster, 60) == []


@pytest.mark.long
@pytest.mark.parametrize("mode", ["torchrun", "env", "elastic"])
def test_the_training_script_runs_in_containers(cluster: Cluster, members: list[str], mode: str) -> None:
    load = as_train(f"podman load --quiet --input {archive(cluster)}")
    for name in members:
        cluster.shell(name, f"{as_train(f'podman image exists {TRAIN}')} || {load}")
        write(cluster, name, f"{FOLDER}/train.py", (PROJECT / "docs/examples/train.py").read_text(encoding="utf-8"))
    job = Job(cluster, "--mode", mode, "--image", TRAIN, "train.py", "--epochs", "2")
    assert job.end(300) == 0, job.text
    found = {rank: weights for line in job.lines for rank, weights in WEIGHTS.findall(line)}
    assert sorted(found) == ["0", "1", "2"] and len(set(found.values())) == 1, job.text
    assert remains(cluster, 60) == []
