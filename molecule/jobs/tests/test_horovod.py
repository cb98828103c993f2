# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Horovod on real nodes: built on one, the same wheel on all, and trainings with both controllers.

The build takes many minutes. Its test builds in any case; the others take a wheel that was built from the same inputs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lab_horovod
import lab_launcher
import pytest
from lab_cluster import PROJECT, Cluster, Ended, patience
from lab_launcher import FOLDER, Job, left

pytestmark = pytest.mark.long

ROOT = "/opt/lab-horovod-env"
PREFIX = f"{ROOT}/torch"
PYTHON = f"{PREFIX}/bin/python"
PLAYBOOK = """\
- name: Set up the runtime
  hosts: gpu_cluster
  gather_facts: false
  roles: [baremetal.gpu_cluster.torch_runtime]
"""
CONTROLLERS = ("mpi", "gloo")
END = re.compile(r"\[(\S+):(\d+)\] rank (\d+) weights (\w+) same on (\d+) ranks, loss ([\d.]+) to ([\d.]+)", re.M)
#: Read at every start of the interpreter; with this number the first ports by lot are below 29000, where none is open.
CLOSED_PORT_SEED = 39
LOG = "build.log"
SEED = f"{PREFIX}/lib/python3.11/site-packages/lab_seed.pth"


def applied(cluster: Cluster, folder: Path, wheels: Path, *arguments: str, **more: Any) -> Ended:
    """A run of the role on all nodes."""
    settings: dict[str, Any] = {
        "prefix": PREFIX,
        "find_links": lab_horovod.WHEELS,
        "python": "/usr/bin/python3.11",
        "packages": [],
        "lock_file": str(folder / "torch-lock.txt"),
        "horovod": True,
        "horovod_wheels": str(wheels),
        "horovod_packages": ["openmpi-devel"],
        "horovod_mpi_prefix": "/usr",
        **more,
    }
    file = folder / "variables.json"
    file.write_text(json.dumps({f"torch_runtime_{name}": value for name, value in settings.items()}))
    playbook = folder / "torch.yml"
    playbook.write_text(PLAYBOOK)
    return cluster.play(str(playbook), "-e", f"@{file}", *arguments, deadline=3600)


def kept_wheels() -> Path:
    """A folder of the cache for what decides about the wheel, beside torch and Open MPI, which are in its name."""
    inputs = ("plugins/module_utils/_torch/horovod.py", "roles/torch_runtime/vars/main.yml")
    digest = hashlib.sha256(b"".join((PROJECT / path).read_bytes() for path in inputs)).hexdigest()[:16]
    return lab_horovod.cache() / f"wheels-{digest}"


@pytest.fixture(scope="module", autouse=True)
def nodes(cluster: Cluster) -> Iterator[list[str]]:
    names = list(cluster.hosts)
    lab_launcher.prepare(cluster)
    for name in names:
        for script in ("train_horovod.py", "train.py"):
            text = (PROJECT / "docs" / "examples" / script).read_text(encoding="utf-8")
            lab_launcher.write(cluster, name, f"{FOLDER}/{script}", text)
    lab_horovod.give_wheels(cluster, names)
    yield names
    lab_horovod.take_compiler(cluster, names[0])
    cluster.on_all(f"rm -rf {lab_horovod.WHEELS} {ROOT}")
    lab_launcher.clean(cluster)


@pytest.fixture(scope="module")
def horovod(cluster: Cluster, nodes: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment with Horovod on every node; the folder with its lock."""
    wheels = kept_wheels()
    if not list(wheels.glob("*/*.whl")):
        lab_horovod.give_compiler(cluster, nodes[0])
    folder = tmp_path_factory.mktemp("horovod")
    ended = applied(cluster, folder, wheels)
    assert ended.code == 0, ended.text
    return folder


def set_firewall(cluster: Cluster, mode: str) -> None:
    ended = cluster.play("site.yml", "--tags", "cluster_firewall", "-e", f"cluster_firewall_mode={mode}")
    assert ended.code == 0, ended.text


@pytest.fixture(scope="module")
def trusted(cluster: Cluster) -> Iterator[None]:
    """All ports are open to members."""
    set_firewall(cluster, "trust")
    yield
    set_firewall(cluster, "ports")


def run(cluster: Cluster, controller: str, *arguments: str) -> Job:
    return Job(cluster, "--mode", "horovod", "--controller", controller, "--python", PYTHON, *arguments)


def trained(job: Job) -> dict[str, str]:
    """The rank on every node, when all have the same weights and have learnt."""
    found = END.findall(job.text)
    assert len({weights for *_others, weights, _ranks, _first, _last in found}) == 1, job.text
    assert all(
        rank == own and ranks == "3" and float(last) < float(first) for _n, rank, own, _w, ranks, first, last in found
    )
    return {node: rank for node, rank, *_others in found}


def tried(cluster: Cluster, folder: Path, first: str, *arguments: str) -> str:
    """What a run says in which the build on the first node fails; nothing of it is left."""
    failed = applied(cluster, folder, folder / "wheels", *arguments)
    said = " ".join(failed.text.split())
    assert failed.code == 2 and f"{first} was to build Horovod for all members that are alike, and has failed" in said
    assert not (folder / "wheels").exists() and not (folder / "torch-lock.txt").exists()
    return said


def remains(cluster: Cluster) -> list[str]:
    """The files below the folder of the environment, but for the lock of the runs and the output of the build."""
    return cluster.on_all(f"find {ROOT} -type f ! -name '*.lock' ! -name {LOG} 2>/dev/null || true")


def test_a_build_without_a_compiler_says_so(cluster: Cluster, nodes: list[str], tmp_path: Path) -> None:
    lab_horovod.take_compiler(cluster, nodes[0])
    said = tried(cluster, tmp_path, nodes[0])
    assert "Horovod was not built: setup.py bdist_wheel of Horovod failed (1). All of its output is in" in said
    assert "its last lines that tell of an error:" in said and "'cmake'" in said
    path = re.search(rf"All of its output is in (\S+{LOG}) on this node", said)
    assert path and "bdist_wheel" in cluster.shell(nodes[0], f"cat {path[1]}"), said
    assert not remains(cluster)
    # The first member builds. A limit leaves it out, and then the first one of the run does.
    tried(cluster, tmp_path, nodes[1], "--limit", ",".join(nodes[1:]))
    assert not remains(cluster)


#: Waits in the background until a source of Horovod is compiled, which cmake's first questions are not, and acts then.
COMPILES = 'pgrep -f "[c]c1plus.*/horovod/common/"'
WHILE_IT_COMPILES = f"setsid sh -c 'until {COMPILES}; do sleep 0.2; done; {{}}' > /dev/null 2>&1 < /dev/null &"


def test_a_disk_that_is_full_during_the_build_is_named(cluster: Cluster, nodes: list[str], tmp_path: Path) -> None:
    lab_horovod.give_compiler(cluster, nodes[0])
    fill = f"fallocate -l $(df --output=avail -B1 {ROOT} | tail -n 1) {ROOT}/fill"
    cluster.shell(nodes[0], f"rm -rf {ROOT}; mkdir {ROOT}; mount -t tmpfs -o size=3g,mode=755 lab {ROOT}")
    try:
        cluster.shell(nodes[0], WHILE_IT_COMPILES.format(fill))
        said = tried(cluster, tmp_path, nodes[0])
    finally:
        cluster.shell(nodes[0], f"umount {ROOT}")
    assert re.search(r"setup.py bdist_wheel of Horovod failed .* the disk has \d+ MiB left; its last lines", said), said
    assert "No space left on device" in said


def test_a_killed_build_leaves_no_wheel(cluster: Cluster, nodes: list[str], tmp_path: Path) -> None:
    """The module and setup.py are gone at once; make and the compilers are what the next run ends: the test below."""
    lab_horovod.give_compiler(cluster, nodes[0])
    kill = "kill -9 $(ps -o ppid= -p $(pgrep -of [s]etup.py.bdist_wheel))"
    cluster.shell(nodes[0], WHILE_IT_COMPILES.format(kill))
    tried(cluster, tmp_path, nodes[0])
    assert not cluster.on_all(f"find {PREFIX}-horovod -name '*.whl*' 2>/dev/null || true")
    assert cluster.shell(nodes[0], f"ls -d {PREFIX}-horovod-build; ! pgrep -f [s]etup.py.bdist_wheel")


def test_one_member_builds_and_all_install_the_same_wheel(cluster: Cluster, nodes: list[str], tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    lab_horovod.give_compiler(cluster, nodes[0])
    checked = applied(cluster, tmp_path, wheels, "--check")
    assert checked.code == 0 and not wheels.exists(), checked.text
    ended = applied(cluster, tmp_path, wheels)
    assert ended.code == 0, ended.text
    (wheel,) = wheels.glob("*/*.whl")
    assert wheel.stat().st_size < 5_000_000, "with symbols for a debugger it has 20 MB"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert re.fullmatch(r"horovod-0\.28\.1\+torch2\.13\.0\.openmpi4\.1\.4-cp311-cp311-linux_x86_64\.whl", wheel.name)
    lock = (tmp_path / "torch-lock.txt").read_text()
    assert f"horovod==0.28.1+torch2.13.0.openmpi4.1.4 \\\n    --hash=sha256:{digest}" in lock
    on_nodes = cluster.everywhere(f"cd {PREFIX}-horovod/*/ && sha256sum *.whl")
    assert {text.split()[0] for text in on_nodes.values()} == {digest} and len(on_nodes) == 3
    built = cluster.everywhere(f"{PYTHON} -c 'import horovod.torch as h; print(h.mpi_built(), h.gloo_built())'")
    assert set(built.values()) == {"True True\n"}
    assert not cluster.on_all(f"ls -d {PREFIX}-horovod-build 2>/dev/null || true")

    again = applied(cluster, tmp_path, wheels)
    assert again.code == 0 and len(re.findall(r"changed=0 ", again.text)) == 3, again.text
    kept = kept_wheels() / wheel.parent.name
    kept.mkdir(parents=True, exist_ok=True)
    shutil.copy2(wheel, kept)


def test_a_wheel_that_the_controller_has_lost_comes_from_a_member(
    cluster: Cluster, nodes: list[str], horovod: Path, tmp_path: Path
) -> None:
    """The second node is installed anew, first alone: nobody in that run has the file whose hash is in the lock."""
    _first, second, third = nodes
    wheels = tmp_path / "wheels"
    cluster.shell(second, f"rm -rf {ROOT}")
    refused = applied(cluster, horovod, wheels, "--limit", second)
    said = " ".join(refused.text.split())
    assert refused.code == 2 and "torch-lock.txt has the hash of a wheel of Horovod that is not in" in said, said
    assert not cluster.shell(second, f"find {ROOT} -type f ! -name '*.lock' 2>/dev/null || true")
    ended = applied(cluster, horovod, wheels)
    assert ended.code == 0 and re.search(rf"{third} .*changed=0 ", ended.text), ended.text
    (wheel,) = wheels.glob("*/*.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() in (horovod / "torch-lock.txt").read_text()
    cluster.shell(second, f"{PYTHON} -c 'import horovod.torch'")


@pytest.mark.usefixtures("horovod")
def test_horovodrun_needs_all_ports(cluster: Cluster, nodes: list[str]) -> None:
    """It listens on a port by lot; with this seed on one that is not open in the mode ``ports``, in either run."""
    first = nodes[0]
    lab_launcher.write(cluster, first, SEED, f"import random; random.seed({CLOSED_PORT_SEED})\n")
    try:
        job = run(cluster, "gloo", "train_horovod.py")
        job.seen("rendezvous ")
        time.sleep(20 * patience())
        assert not END.search(job.text), job.text
        with contextlib.suppress(subprocess.CalledProcessError):  # It may have given up by itself meanwhile.
            job.signal("INT")
        assert job.end() != 0, job.text
        assert not left(cluster)
        set_firewall(cluster, "trust")
        job = run(cluster, "gloo", "train_horovod.py")
        assert job.end() == 0, job.text
        assert len(trained(job)) == 3
    finally:
        set_firewall(cluster, "ports")
        cluster.shell(first, f"rm -f {SEED}")


@pytest.mark.usefixtures("horovod")
@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("script", ["train_horovod.py", "train.py"])
def test_training(cluster: Cluster, controller: str, script: str, trusted: None) -> None:
    job = run(cluster, controller, script)
    assert job.end() == 0, job.text
    assert trained(job) == {name: str(rank) for rank, name in enumerate(cluster.hosts)}
    for rank, name in enumerate(cluster.hosts):
        log = cluster.shell(name, f"cat {FOLDER}/logs/*-*/{name}-rank{rank}.log; rm -r {FOLDER}/logs")
        assert f"rank {rank} of 3 begins at epoch 0" in log and " same on 3 ranks" in log
    assert not left(cluster)


@pytest.mark.usefixtures("horovod")
@pytest.mark.parametrize("controller", CONTROLLERS)
def test_a_killed_rank_ends_the_job(cluster: Cluster, controller: str, trusted: None) -> None:
    second = list(cluster.hosts)[1]
    job = run(cluster, controller, "train_horovod.py", "--epochs", "600", "--pause", "0.5")
    job.seen("epoch 2 loss")
    cluster.shell(second, "pkill -KILL -u train -f 'python -u .*train_horovod'")
    assert job.end() == 128 + 9, job.text
    assert f"rank 1 on {second} ended with signal 9 (SIGKILL)" in job.text
    assert "all ranks are stopped, no process is left; exit code 137" in job.text
    assert not left(cluster)


@pytest.mark.usefixtures("horovod")
def test_ctrl_c_ends_what_horovodrun_has_started(cluster: Cluster, trusted: None) -> None:
    job = run(cluster, "gloo", "train_horovod.py", "--epochs", "600", "--pause", "0.5")
    job.seen("epoch 2 loss")
    job.signal("INT")
    assert job.end() == 130, job.text
    assert not left(cluster)


@pytest.mark.usefixtures("horovod")
@pytest.mark.parametrize("controller", CONTROLLERS)
def test_nothing_is_left_when_the_launcher_is_killed(cluster: Cluster, controller: str, trusted: None) -> None:
    job = run(cluster, controller, "train_horovod.py", "--epochs", "600", "--pause", "0.5")
    job.seen("epoch 2 loss")
    job.signal("KILL")
    job.end()
    assert not left(cluster, 15)


@pytest.mark.usefixtures("horovod")
def test_no_secret_is_in_the_command_lines(cluster: Cluster, trusted: None) -> None:
    """horovodrun would write all of its variables into them; the ranks have them all the same."""
    job = run(cluster, "gloo", "--env", "SEEN=lab-secret", "worker.py", "talk")
    job.seen("SEEN=lab-secret", 3)
    shown = cluster.everywhere("ps -eo args= | grep -v lab-launcher | grep lab-secre[t] || true")
    job.signal("INT")
    assert job.end() == 130, job.text
    assert not any(shown.values()), shown
    assert not left(cluster)
