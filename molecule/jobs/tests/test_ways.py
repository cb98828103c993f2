# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/examples/train.py in those ways of docs/ways-to-run.md that need nothing further."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import lab_launcher
import pytest
from lab_cluster import PROJECT, Cluster
from lab_launcher import FOLDER, Job, left

PYTHON = "/opt/gpu-cluster/torch/bin/python"
END = re.compile(r"rank (\d+) weights ([0-9a-f]{16}) same on (\d+) ranks, loss ([\d.]+) to ([\d.]+)$", re.M)
#: What a user types on every member; docs/launching.md has the same two lines.
BY_HAND = {
    "run": f"{PYTHON} -m torch.distributed.run",
    "launch": f"{PYTHON} -m torch.distributed.launch --use-env",
}
OPTIONS = "--nnodes %d --node-rank %d --nproc-per-node 1 --master-addr $MASTER_ADDR --master-port %s"


@pytest.fixture(scope="module", autouse=True)
def script(cluster: Cluster) -> Iterator[None]:
    lab_launcher.prepare(cluster)
    for name in cluster.hosts:
        lab_launcher.write(
            cluster, name, f"{FOLDER}/train.py", (PROJECT / "docs" / "examples" / "train.py").read_text()
        )
    yield
    lab_launcher.clean(cluster)


def trained(text: str, world: int) -> None:
    """All ranks have said that they have the same weights, and they do."""
    found = END.findall(text)
    assert sorted(int(rank) for rank, *_others in found) == list(range(world)), text
    assert {int(size) for _rank, _hash, size, *_losses in found} == {world}, text
    assert len({weights for _rank, weights, *_others in found}) == 1, text
    assert all(float(last) < float(first) for *_others, first, last in found), text


@pytest.mark.parametrize(
    "mode", ["env", *(pytest.param(mode, marks=pytest.mark.long) for mode in ("torchrun", "elastic", "mpirun"))]
)
def test_every_mode_of_the_launcher(cluster: Cluster, mode: str) -> None:
    job = Job(cluster, "--mode", mode, "train.py")
    assert job.end() == 0, job.text
    trained(job.text, len(cluster.hosts))
    assert not left(cluster)


def by_hand(cluster: Cluster, way: str, port: str = "$MASTER_PORT", more: str = "") -> list[str]:
    """The same line on all members at once, in a login shell: what each has printed."""

    def on_one(number: int, name: str) -> str:
        options = OPTIONS % (len(cluster.hosts), number, port)
        line = f"cd {FOLDER}; timeout 100 {BY_HAND[way]} {options} {more} train.py > by-hand.log 2>&1; echo rc=$?"
        return cluster.shell(name, f"su - train -c {shlex.quote(line)}; cat {FOLDER}/by-hand.log")

    with ThreadPoolExecutor(len(cluster.hosts)) as pool:
        return list(pool.map(on_one, range(len(cluster.hosts)), cluster.hosts))


@pytest.mark.parametrize("way", ["run", pytest.param("launch", marks=pytest.mark.long)])
def test_by_hand(cluster: Cluster, way: str) -> None:
    """torch's own modules, with the environment of a login shell."""
    said = by_hand(cluster, way)
    assert all("rc=0\n" in one for one in said), said
    trained("\n".join(said), len(cluster.hosts))
    page = (PROJECT / "docs" / "launching.md").read_text()
    for typed in BY_HAND.values():
        assert f"{typed} {(OPTIONS % (3, 0, '$MASTER_PORT')).replace('0 --nproc', 'N --nproc')} train.py" in page
    assert not left(cluster)


@pytest.mark.long
def test_by_hand_at_a_port_that_the_firewall_drops(cluster: Cluster) -> None:
    """Outside the port plan the nodes never meet; the logs of the ranks say which port it was."""
    said = by_hand(cluster, "run", "20001", "--rdzv-conf timeout=20")
    assert all("rc=0\n" not in one for one in said), said
    last = list(cluster.hosts)[-1]
    explained = cluster.shell(last, f"su - train -c 'gpu-cluster-run explain {FOLDER}/by-hand.log' 2>&1; true")
    assert "20001" in explained, (explained, said)
