# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of torch on real nodes: one lock for all, tampering, SIGKILL, adoption, and no index at all.

Most of it uses a torch that computes nothing, under a prefix of its own; the real one is adopted from where it is.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lab_wheels
import pytest
from lab_cluster import PROJECT, Cluster, Ended, environment

ROOT = "/opt/lab-torch"
PREFIX = f"{ROOT}/torch"
WHEELS = f"{ROOT}/wheels"
PYTHON = "/usr/bin/python3.11"
OLD, NEW = "2.13.0+lab", "2.13.1+lab"
#: So many files of a package take pip long enough to be killed in the middle.
FILES = 1000
PLAYBOOK = """\
- name: Set up the runtime
  hosts: gpu_cluster
  gather_facts: false
  roles: [baremetal.gpu_cluster.torch_runtime]
"""
VERSION = "-I -c 'import torch; print(torch.__version__)'"
#: A web server that answers from its folder or with 404, and writes down every request.
LISTENER = (
    f"mkdir -p {ROOT}/web; systemd-run --quiet --unit=lab-index --working-directory={ROOT}/web "
    f"--property=StandardError=append:{ROOT}/requests python3 -u -m http.server 18080 --bind 127.0.0.1; "
    "for i in $(seq 50); do python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 18080))' 2>/dev/null "
    "&& exit 0; sleep 0.1; done; exit 1"
)
#: Kills the process that holds the guard when what the first argument describes is so: argv, or a path's pattern.
KILL = r"""
import glob, os, signal, sys, time
prefix, kind, what = sys.argv[1:4]
guard = os.stat(prefix + ".lock")

def processes():
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            argv = open(f"/proc/{entry}/cmdline").read().split("\0")
            parent = int(open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()[1])
            holds = False
            for fd in os.listdir(f"/proc/{entry}/fd"):
                found = os.stat(f"/proc/{entry}/fd/{fd}")
                holds = holds or (found.st_dev, found.st_ino) == (guard.st_dev, guard.st_ino)
            yield int(entry), parent, holds, argv
        except OSError:
            pass

deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    seen = list(processes())
    holders = {pid for pid, _parent, holds, _argv in seen if holds}
    modules = [pid for pid, parent, holds, _argv in seen if holds and parent not in holders]
    if kind == "path":
        reached = bool(glob.glob(what))
    else:
        reached = any(argv[0].startswith(prefix + "-") and any(what in part for part in argv) for *_more, argv in seen)
    if modules and reached:
        os.kill(modules[0], signal.SIGKILL)
        print("killed")
        break
    time.sleep(0.01)
"""

#: Holds the guard until another process has had it open for a second, which is a run that waits for it.
HOLD = """
import fcntl, os, sys, time
guard = open(sys.argv[1], "w")
fcntl.flock(guard, fcntl.LOCK_EX)
mine = os.fstat(guard.fileno())

def waiting():
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            for fd in os.listdir(f"/proc/{entry}/fd"):
                found = os.stat(f"/proc/{entry}/fd/{fd}")
                if int(entry) != os.getpid() and (found.st_dev, found.st_ino) == (mine.st_dev, mine.st_ino):
                    return True
        except OSError:
            pass
    return False

deadline = time.monotonic() + 240
seen = 0
while seen < 10 and time.monotonic() < deadline:
    seen = seen + 1 if waiting() else 0
    time.sleep(0.1)
"""


class Node:
    """One node, the module on it, and what it finds there."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name

    def run(self, command: str) -> str:
        return self.cluster.shell(self.name, command).strip()

    def program(self, source: str, *arguments: str) -> str:
        return self.cluster.lab("exec", self.name, "python3", "-c", source, *arguments)

    def wheels(self, *wheels: dict[str, Any], folder: str = WHEELS) -> str:
        """Make wheels in a folder of the node; the lock of all of them."""
        source = Path(lab_wheels.__file__).read_text(encoding="utf-8")
        return self.program(source, folder, json.dumps(wheels))

    def argv(self, module: str, arguments: dict[str, Any]) -> list[str]:
        name = f"baremetal.gpu_cluster.{module}"
        return ["ansible", self.name, "-i", self.cluster.inventory, "-m", name, "-a", json.dumps(arguments)]

    def apply(self, module: str = "torch_environment", **changes: Any) -> dict[str, Any]:
        """What the module answers, with ``failed``."""
        arguments = {"requirements": ["torch==2.13.0"], "python": PYTHON, "find_links": WHEELS, **changes}
        if module == "torch_environment":
            arguments = {"prefix": PREFIX, **arguments}
        json_output = {"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
        ended = self.cluster.run(self.argv(module, arguments), variables=json_output)
        found = re.search(rf"^{self.name} \| (\w+)!? => (.*)", ended.text, re.MULTILINE | re.DOTALL)
        assert found, ended.text
        return {"failed": found.group(1) == "FAILED", **json.JSONDecoder().raw_decode(found.group(2))[0]}

    def built(self, **changes: Any) -> dict[str, Any]:
        """The same when it must end well."""
        answer = self.apply(**changes)
        assert not answer["failed"], answer["msg"]
        return answer

    def refused(self, **changes: Any) -> str:
        """What is said by a run that must fail."""
        answer = self.apply(**changes)
        assert answer["failed"], answer
        return str(answer["msg"])

    def killed(self, kind: str, what: str, **changes: Any) -> None:
        """Start the module and kill it with SIGKILL at a point: when a path is there, or a program runs."""
        arguments = {"prefix": PREFIX, "python": PYTHON, "find_links": WHEELS, **changes}
        argv = self.argv("torch_environment", arguments)
        pipe = subprocess.DEVNULL
        with subprocess.Popen(argv, cwd=PROJECT, env=environment(), stdout=pipe, stderr=pipe) as process:
            said = self.program(KILL, PREFIX, kind, what)
            assert process.wait(timeout=240) != 0
        assert said == "killed\n"

    @property
    def version(self) -> str:
        """What jobs of the training user import."""
        return self.run(f"runuser -u train -- {PREFIX}/bin/python {VERSION}")

    @property
    def folders(self) -> set[str]:
        return set(self.run(f"ls -d {PREFIX}-*").split())

    @property
    def requests(self) -> list[str]:
        """What was asked of the web server, without the question whether it is up."""
        return re.findall(r'"GET (\S+) HTTP', self.run(f"cat {ROOT}/requests"))


@pytest.fixture
def node(cluster: Cluster) -> Iterator[Node]:
    """A node whose pip is configured for an index that would answer, were it asked."""
    found = Node(cluster, list(cluster.hosts)[0])  # noqa: RUF015
    index = "http://127.0.0.1:18080/simple"
    settings = f"[global]\nindex-url = {index}\nextra-index-url = {index}\nfind-links = {index}/links\nretries = 0\n"
    found.run(
        f"rm -rf {ROOT}; mkdir -p {ROOT}; test ! -e /etc/pip.conf; printf {shlex.quote(settings)} > /etc/pip.conf"
    )
    found.run(LISTENER)
    yield found
    found.run(f"systemctl stop lab-index; rm -rf {ROOT} /etc/pip.conf {lab_wheels.SLOW}")


@pytest.fixture
def all_nodes(cluster: Cluster) -> Iterator[list[Node]]:
    nodes = [Node(cluster, name) for name in cluster.hosts]
    cluster.on_all(f"rm -rf {ROOT}")
    yield nodes
    cluster.on_all(f"rm -rf {ROOT}")


def applied(cluster: Cluster, folder: Path, *arguments: str, **settings: Any) -> Ended:
    """A run of the role on all nodes."""
    variables: dict[str, Any] = {
        "prefix": PREFIX,
        "find_links": WHEELS,
        "python": PYTHON,
        "packages": [],
        "lock_file": "",
        **settings,
    }
    file = folder / "variables.json"
    file.write_text(json.dumps({f"torch_runtime_{name}": value for name, value in variables.items()}))
    playbook = folder / "torch.yml"
    playbook.write_text(PLAYBOOK)
    return cluster.play(str(playbook), "-e", f"@{file}", *arguments)


def changes(ended: Ended, name: str) -> int:
    """How many tasks have changed something on a node, in a run that must end well."""
    found = re.search(rf"^{name} +: ok=\d+ +changed=(\d+)", ended.text, re.MULTILINE)
    assert ended.code == 0 and found, ended.text
    return int(found.group(1))


@pytest.mark.long
def test_all_nodes_install_the_same_files_from_one_lock(
    cluster: Cluster, all_nodes: list[Node], tmp_path: Path
) -> None:
    """Two nodes resolve the lock; what pip would take by itself later on does not count any more."""
    assert set(cluster.everywhere("test -w /srv/wheels || echo read-only").values()) == {"read-only\n"}
    torch = {"name": "torch", "version": OLD, "requires": ["labdep"]}
    first, *others = all_nodes
    wheels = [torch, {"name": "labdep", "version": "1.0"}, {"name": "labextra", "version": "3.0"}]
    first.wheels(*wheels)
    for other in others:
        other.wheels(*wheels, {"name": "labdep", "version": "1.1"})
    extra = ["labextra==3.0"]
    lock = tmp_path / "torch-lock.txt"
    differing = applied(cluster, tmp_path, lock_file=str(lock), extra_requirements=extra)
    said = " ".join(differing.text.split())
    assert differing.code == 2 and not lock.exists()
    assert f"{first.name} and {others[0].name} have resolved the same requirements differently" in said
    assert "so neither is believed: labdep 1.0 and 1.1." in said

    for other in others:
        other.run(f"rm {WHEELS}/labdep-1.1-*")
    ended = applied(cluster, tmp_path, lock_file=str(lock), extra_requirements=extra)
    assert [changes(ended, node.name) for node in others] == [1] * len(others)
    pins = [("labdep", "1.0"), ("labextra", "3.0"), ("torch", OLD)]
    assert re.findall(r"^(\w+)==(\S+)", lock.read_text(), re.MULTILINE) == pins
    installed = cluster.on_all(f"{PREFIX}/bin/python -m pip list --format=freeze | grep -Ev '^(pip|setuptools)=='")
    assert installed.count(f"{first.name}: labdep==1.0") == 1
    assert {line.split(": ")[1] for line in installed} == {f"{name}=={version}" for name, version in pins}

    again = applied(cluster, tmp_path, lock_file=str(lock), extra_requirements=extra)
    assert [changes(again, node.name) for node in all_nodes] == [0] * len(all_nodes)

    for node in all_nodes:
        node.wheels({"name": "labdep", "version": "1.1"})
    # Without the file, a member that was reinstalled gets what the others have, though its folder has newer ones.
    others[-1].run(f"rm -rf {PREFIX} {PREFIX}-*")
    repaired = applied(cluster, tmp_path, extra_requirements=extra)
    assert [changes(repaired, node.name) for node in all_nodes] == [*[0] * len(others), 1]
    assert others[-1].run(f"{PREFIX}/bin/python -c 'import labdep; print(labdep.__version__)'") == "1.0"

    # Refused before anything changes, with file, line and fix: a version that was raised without the lock.
    refused = applied(cluster, tmp_path, lock_file=str(lock), version="2.13.1", extra_requirements=extra)
    said = " ".join(refused.text.split())
    number = next(index for index, line in enumerate(lock.read_text().splitlines(), 1) if line.startswith("torch"))
    assert refused.code == 2
    assert f"In {lock}: line {number}: it has torch=={OLD}, and wanted is torch==2.13.1. Fix: change the wanted" in said
    assert len(cluster.on_all(f"ls -d {PREFIX}-*")) == len(all_nodes)


@pytest.mark.long
def test_tampering_and_three_kills_leave_the_old_one_in_use(node: Node) -> None:
    """And the run after them repairs; all of it without a question to the index that pip is configured for."""
    old = {"name": "torch", "version": OLD}
    new = {"name": "torch", "version": NEW, "many": FILES}
    old_lock, new_lock = node.wheels(old), node.wheels(new)
    first = node.built(lock=old_lock)
    assert (first["changed"], node.version) == (True, OLD)

    wanted = {"requirements": ["torch==2.13.1"], "lock": new_lock}
    assert node.wheels({**new, "note": "tampered"}) != new_lock
    said = node.refused(**wanted)
    assert re.search(rf"The environment was not built: the file \S+ of torch=={re.escape(NEW)} is not the one in", said)
    assert said.endswith(f"{PREFIX} still names {first['environment']}.")
    assert (node.version, len(node.folders)) == (OLD, 1)

    backdoor = node.wheels({"name": "backdoor", "version": "1.0"})
    said = node.refused(lock=old_lock + backdoor)
    assert "The environment was not built: nothing that is wanted needs backdoor==1.0 of the lock. Fix: " in said
    assert (node.version, len(node.folders)) == (OLD, 1)

    assert node.wheels(new) == new_lock
    node.run(f"touch {lab_wheels.SLOW}")
    points = [
        ("argv", "ensurepip"),
        ("path", f"{PREFIX}-*/lib/python3.11/site-packages/torch/data/9.txt"),
        ("argv", "torch.distributed"),
    ]
    unpacked = []
    for kind, what in points:
        node.killed(kind, what, **wanted)
        assert len(node.folders) == 2, "the interrupted one is still there"
        assert node.run(f"readlink -f {PREFIX}") == first["environment"]
        unpacked.append(int(node.run(f"ls {PREFIX}-*/lib/python3.11/site-packages/torch/data 2>/dev/null | wc -l")))
        node.run(f"rm {lab_wheels.SLOW}")
        assert node.version == OLD
        node.run(f"touch {lab_wheels.SLOW}")
    assert unpacked[0] == 0 < unpacked[1] < unpacked[2] == FILES
    (left,) = node.folders - {first["environment"]}
    node.run(f"rm {lab_wheels.SLOW}")

    repaired = node.built(**wanted)
    assert (repaired["changed"], repaired["removed"], node.version) == (True, [left], NEW)
    assert node.run(f"readlink {PREFIX}") == Path(repaired["environment"]).name
    assert node.folders == {first["environment"], repaired["environment"]}
    assert node.requests == []


def test_an_index_behind_a_proxy(node: Node) -> None:
    """No server listens at the address of the index, so the packages can only come through the proxy.

    It also shows that the questions of pip are written down, which the test before counts on.
    """
    pages = f"{ROOT}/web/http:/127.0.0.1:9/simple/torch"
    lock = node.wheels({"name": "torch", "version": OLD}, folder=pages)
    node.run(f"cd {pages} && for file in *.whl; do echo \"<a href='$file'>$file</a>\"; done > index.html")
    source = {"find_links": "", "index_url": "http://127.0.0.1:9/simple/"}
    proxied = node.built(module="torch_lock", proxy="http://127.0.0.1:18080", **source)
    assert proxied["packages"] == {"torch": OLD}
    assert lock.split("--hash=")[1].strip() in proxied["lock"]
    asked = {"http://127.0.0.1:9/simple/torch/", "http://127.0.0.1:18080/simple/links"}
    assert asked <= set(node.requests), "the settings of the node are in force where no folder is given"


def test_an_adopted_environment_is_verified_and_not_written_to(node: Node) -> None:
    """The real one of the site, and one that everybody may write to and that has no compiled files yet."""
    listing = "find {} -printf '%p %s %T@ %m\\n' | sort | sha256sum"
    real = node.run("readlink -f /opt/gpu-cluster/torch")
    before = node.run(listing.format(real))
    adopted = node.built(adopt=real)
    assert (adopted["changed"], adopted["built"], node.run(f"readlink {PREFIX}")) == (True, False, real)
    assert (adopted["verified"]["torch"], adopted["verified"]["gloo"]) == ("2.13.0+cpu", True)
    assert node.run(listing.format(real)) == before

    own = f"{ROOT}/own"
    lock = node.wheels({"name": "torch", "version": OLD})
    unpack = f"cd {own}/lib/python3.11/site-packages && python3 -m zipfile -e {WHEELS}/torch-*.whl ."
    node.run(f"{PYTHON} -m venv --without-pip {own} && {unpack} && chmod -R a+rwX {own}")
    before = node.run(listing.format(own))
    assert node.built(adopt=own)["verified"]["torch"] == OLD
    assert not node.built(adopt=own)["changed"]
    said = node.refused(adopt=own, requirements=["torch==2.12.0"])
    assert f"torch says that it is {OLD}, and wanted is torch==2.12.0" in said
    assert said.endswith(f"{PREFIX} still names {own}.")
    assert node.run(listing.format(own)) == before

    back = node.built(lock=lock)
    assert (back["changed"], back["built"], node.version) == (True, True, OLD)
    assert node.run(listing.format(own)) == before


def test_a_run_waits_for_what_a_killed_one_has_left_at_work(
    cluster: Cluster, all_nodes: list[Node], tmp_path: Path
) -> None:
    first, other, *_others = all_nodes
    for node in (first, other):
        node.wheels({"name": "torch", "version": OLD})
    hold = f"systemd-run --quiet --collect --unit=lab-held python3 -c {shlex.quote(HOLD)} {PREFIX}.lock"
    first.run(f"mkdir -p {ROOT}; {hold}; while flock --nonblock {PREFIX}.lock true; do sleep 0.1; done")
    ended = applied(cluster, tmp_path, "--limit", f"{first.name},{other.name}")
    assert changes(ended, first.name) > 0 and changes(ended, other.name) > 0
    said = " ".join(ended.text.split())
    assert f"Another run is at work on {first.name}: process " in said
    assert f"Another run is at work on {other.name}" not in said
    assert "for another run that held" in said
    assert first.version == OLD


def test_a_lock_file_that_cannot_be_written_is_refused_first(cluster: Cluster, tmp_path: Path) -> None:
    lock = tmp_path / "missing" / "torch-lock.txt"
    ended = cluster.play("baremetal.gpu_cluster.runtime", "-e", f"torch_runtime_lock_file={lock}")
    said = " ".join(ended.text.split())
    assert ended.code == 2 and f"the controller cannot write to {lock.parent}" in said, ended.text
    assert "Compare the environment" not in ended.text
