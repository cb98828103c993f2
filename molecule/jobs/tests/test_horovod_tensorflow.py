# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TensorFlow with Horovod on real nodes: the commands of docs/launching.md, and the training of the example."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import lab_horovod
import lab_launcher
import pytest
from lab_cluster import PROJECT, Cluster
from lab_launcher import FOLDER, Job, left

pytestmark = pytest.mark.long

ENVIRONMENT = "/opt/lab-tensorflow"
WHEELS = "/opt/lab-tensorflow-wheels"
SCRIPT = "train_horovod_tensorflow.py"
END = re.compile(r"\[(\S+):(\d+)\] rank (\d+) weights (\w+) same on 3 ranks, loss ([\d.]+) to ([\d.]+)", re.M)


def page_commands() -> str:
    """Those that the page gives, with the paths of the lab."""
    page = (PROJECT / "docs" / "launching.md").read_text(encoding="utf-8")
    block = page.split("### TensorFlow\n", 1)[1].split("```sh\n", 1)[1].split("```", 1)[0]
    for theirs, ours in {
        "python3.12": "python3.11",
        "/shared/tensorflow": ENVIRONMENT,
        "/usr/lib64/openmpi/bin": "/usr/bin",
    }.items():
        assert theirs in block
        block = block.replace(theirs, ours)
    return block


def copy(cluster: Cluster, first: str, other: str) -> None:
    """The environment of one node to another: a shared folder of the lab's."""
    cluster.shell(other, f"rm -rf {ENVIRONMENT}; mkdir {ENVIRONMENT}")
    pack = cluster.lab_argv("exec", first, "tar", "-C", ENVIRONMENT, "-cf", "-", ".")
    unpack = cluster.lab_argv("exec", other, "tar", "-C", ENVIRONMENT, "-xf", "-")
    with subprocess.Popen(pack, cwd=PROJECT, stdout=subprocess.PIPE) as packed:
        assert subprocess.run(unpack, cwd=PROJECT, stdin=packed.stdout, check=False).returncode == 0


@pytest.fixture(scope="module", autouse=True)
def tensorflow(cluster: Cluster) -> Iterator[None]:
    """The environment on every node, built on the first one."""
    names = list(cluster.hosts)
    first = names[0]
    lab_launcher.prepare(cluster)
    commands = page_commands()
    script = (PROJECT / "docs" / "examples" / SCRIPT).read_text(encoding="utf-8")
    for name in names:
        lab_launcher.write(cluster, name, f"{FOLDER}/{SCRIPT}", script)
    try:
        cluster.shell(first, f"rm -rf {ENVIRONMENT} {WHEELS}; mkdir {WHEELS}")
        for path in lab_horovod.tensorflow_packages(commands):
            lab_horovod.put(cluster, first, path, f"{WHEELS}/{path.name}")
        lab_horovod.give_compiler(cluster, first)
        settings = f"export PIP_NO_INDEX=1 PIP_FIND_LINKS={WHEELS}"
        cluster.lab("exec", first, "bash", "-ec", f"{settings}\n{commands}", deadline=7200)
        for name in names[1:]:
            copy(cluster, first, name)
        yield
    finally:
        lab_horovod.take_compiler(cluster, first)
        cluster.on_all(f"rm -rf {ENVIRONMENT} {WHEELS}")
        lab_launcher.clean(cluster)


@pytest.fixture(scope="module")
def trusted(cluster: Cluster) -> Iterator[None]:
    """All ports are open to members."""
    for mode in ("trust", "ports"):
        ended = cluster.play("site.yml", "--tags", "cluster_firewall", "-e", f"cluster_firewall_mode={mode}")
        assert ended.code == 0, ended.text
        if mode == "trust":
            yield


@pytest.mark.parametrize("controller", ["mpi", "gloo"])
def test_training(cluster: Cluster, controller: str, trusted: None) -> None:
    job = Job(cluster, "--mode", "horovod", "--controller", controller, "--python", f"{ENVIRONMENT}/bin/python", SCRIPT)
    assert job.end() == 0, job.text
    found = END.findall(job.text)
    assert {node: rank for node, _own, rank, *_rest in found} == {
        name: str(rank) for rank, name in enumerate(cluster.hosts)
    }, job.text
    assert len({weights for *_others, weights, _first, _last in found}) == 1
    assert all(float(last) < float(first) / 2 for *_others, first, last in found)
    assert not left(cluster)
