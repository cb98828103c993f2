# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role itself, with members that are folders of this machine and one that lies about everything it is asked."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lab_wheels
import pytest

PROJECT = Path(__file__).parents[4]
PYTHON = os.path.realpath(sys.executable)
PLAYBOOK = """\
- name: Set up the runtime
  hosts: gpu_cluster
  gather_facts: false
  roles: [baremetal.gpu_cluster.torch_runtime]
"""
#: Makes an environment by copying one: making a dozen takes a minute of a processor. The lab's nodes make theirs.
COPIES = """\
#!/bin/sh
[ "$1 $2" = "-m venv" ] && exec cp -a {template} "$3"
exec {python} "$@"
"""
#: In place of the interpreter of a node: answers every module with a lock of its own that has one package more.
LIAR = """\
#!/bin/sh
cat << 'END'
{"changed": false, "in_use": true, "key": "aaaaaaaaaaaa", "busy_with": "", "lock": "LOCK", "packages": {}}
END
"""


class Members:
    """Members that are folders, their inventory, and the wheels that each can see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inventory = folder / "inventory"
        self.inventory.mkdir()
        self.lock = self.inventory / "torch-lock.txt"
        self.hosts: dict[str, dict[str, Any]] = {}
        template = folder / "template"
        subprocess.run([PYTHON, "-m", "venv", template], check=True)
        self.python = folder / "copies"
        self.python.write_text(COPIES.format(template=template, python=PYTHON))
        self.python.chmod(0o755)

    def add(self, name: str, **variables: Any) -> Path:
        """A member with the same wheels as all others."""
        home = self.folder / name
        wheels = home / "wheels"
        torch = {"name": "torch", "version": "2.13.0+lab", "requires": ("labdep",)}
        for wheel in (torch, {"name": "labdep", "version": "1.0"}):
            lab_wheels.write(wheels, **wheel)
        self.hosts[name] = {"torch_runtime_prefix": str(home / "torch"), **variables}
        # One path for all, as on real nodes: what a member is to have is the same text in the inventory.
        (self.folder / "wheels").exists() or (self.folder / "wheels").symlink_to(wheels)
        return home

    def play(self, *options: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        shared = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "torch_runtime_python": str(self.python),
            "torch_runtime_packages": [],
            "torch_runtime_find_links": str(self.folder / "wheels"),
        }
        group = {"hosts": self.hosts, "vars": {**shared, **variables}}
        (self.inventory / "hosts.yml").write_text(json.dumps({"gpu_cluster": group}))
        playbook = self.folder / "torch.yml"
        playbook.write_text(PLAYBOOK)
        program = Path(sys.executable).parent / "ansible-playbook"
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"),
            "ANSIBLE_STDOUT_CALLBACK": "default",
        }
        return subprocess.run(
            [program, "-i", self.inventory, *options, playbook],
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def installed(self, name: str) -> set[str]:
        """The packages of a member that are not pip's own."""
        found = (self.folder / name / "torch" / "lib").glob("python3*/site-packages/*.dist-info")
        return {path.name.split("-")[0] for path in found} - {"pip", "setuptools"}


@pytest.fixture
def members() -> Iterator[Members]:
    folder = Path(tempfile.mkdtemp(prefix="gpu-cluster-test-"))
    folder.chmod(0o755)
    yield Members(folder)
    shutil.rmtree(folder)


def changed(ended: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """How many tasks have changed something on each member, in a run that must end well."""
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return {
        name: int(count) for name, count in re.findall(r"^(\w+) +: ok=\d+ +changed=(\d+)", ended.stdout, re.MULTILINE)
    }


def test_a_member_that_lies_does_not_decide_what_others_install(members: Members) -> None:
    """It is the first, so that every question that goes to one member alone goes to it.

    The first run is one with --limit, before the lock file is there: it installs and writes none. The run for all
    members writes it, and keeps what a member has.
    """
    liar = members.folder / "python"
    backdoor = lab_wheels.write(members.folder / "evil", "backdoor", "1.0")
    for name in ("h1", "h2", "h3"):
        members.add(name)
    lab_wheels.write(members.folder / "h1" / "wheels", "backdoor", "1.0")
    torch = lab_wheels.write(members.folder / "evil", "torch", "2.13.0+lab", ("labdep",))
    liar.write_text(LIAR.replace("LOCK", json.dumps(torch + backdoor)[1:-1]))
    liar.chmod(0o755)
    members.hosts["h1"]["ansible_python_interpreter"] = str(liar)

    alone = members.play("--limit", "h3")
    assert changed(alone)["h3"] > 0 and members.installed("h3") == {"labdep", "torch"}
    assert "Only h3 of its kind is in this run" in " ".join(alone.stdout.split())
    assert not members.lock.exists()

    counts = changed(members.play())
    assert counts["h2"] > 0 and counts["h3"] == 0
    assert re.findall(r"^(\w+)==", members.lock.read_text(), re.MULTILINE) == ["labdep", "torch"]
    assert members.installed("h2") == {"labdep", "torch"}

    # Without the file, the two that agree are more than half.
    shutil.rmtree((members.folder / "h3" / "torch").resolve())
    (members.folder / "h3" / "torch").unlink()
    assert changed(members.play(torch_runtime_lock_file=""))["h3"] > 0
    assert members.installed("h3") == {"labdep", "torch"}


@pytest.mark.long
def test_members_that_resolve_differently_are_named_before_anything_changes(members: Members) -> None:
    members.add("h1")
    home = members.add("h2")
    lab_wheels.write(home / "wheels", "labdep", "1.1")
    # Each member sees its own folder under the same path, as nodes do.
    python = members.folder / "h2" / "python"
    python.write_text(
        f"#!/bin/sh\nmount='mount --bind {home}/wheels {members.folder}/h1/wheels'\n"
        f'exec unshare --user --map-root-user --mount sh -c "$mount && exec {sys.executable} \\"\\$@\\"" sh "$@"\n'
    )
    python.chmod(0o755)
    members.hosts["h2"]["ansible_python_interpreter"] = str(python)
    ended = members.play()
    said = " ".join(ended.stdout.split())
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert (
        "h1 and h2 have resolved the same requirements differently, so neither is believed: labdep 1.0 and 1.1." in said
    )
    assert not members.lock.exists() and members.installed("h1") == members.installed("h2") == set()


# ---- Who builds Horovod, in check mode

MPIRUN = "#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n"
#: An interpreter that is of another kind.
OTHER = f'#!/bin/sh\ncase "$*" in *platform*) echo cp39-x86_64;; *) exec {PYTHON} "$@";; esac\n'


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def builders(output: str) -> list[str]:
    """The members on which the build ran, with what it said."""
    (task,) = re.findall(r"^TASK \[.*: Build Horovod\] \*+\n((?:.+\n)+)", output, re.MULTILINE) or [""]
    return sorted(re.findall(r"^(?:changed|ok): \[\w+\]", task, re.MULTILINE))


HOROVOD = "0.28.1+torch2.13.0.openmpi4.1.4"


def horovod(members: Members) -> dict[str, Any]:
    """The settings with Horovod, whose wheel the second of two members has already."""
    members.add("h1")
    members.add("h2")
    program(members.folder / "mpi" / "bin" / "mpirun", MPIRUN)
    source = hashlib.sha256(f"{members.folder / 'wheels'} ".encode()).hexdigest()[:8]
    tag = f"cp3{sys.version_info.minor}"
    kept = members.folder / "h2" / "torch-horovod" / f"{tag}-x86_64-{source}"
    kept.mkdir(parents=True)
    (kept / f"horovod-{HOROVOD}-{tag}-{tag}-linux_x86_64.whl").touch()
    return {
        "torch_runtime_horovod": True,
        "torch_runtime_horovod_packages": [],
        "torch_runtime_horovod_mpi_prefix": str(members.folder / "mpi"),
    }


def test_the_first_of_each_kind_builds_and_no_other_member_gives_it_a_wheel(members: Members) -> None:
    """Nobody could tell that wheel from one that the member has made up: the lock has no hash of it."""
    variables = horovod(members)
    members.add("h3", torch_runtime_python=str(program(members.folder / "python", OTHER)))
    ended = members.play("--check", **variables)
    assert ended.returncode == 0, ended.stdout
    assert builders(ended.stdout) == ["changed: [h1]", "changed: [h3]"]


@pytest.mark.long
def test_a_wheel_whose_hash_the_lock_has_comes_from_a_member(members: Members) -> None:
    variables = horovod(members)
    versions = {"horovod": HOROVOD, "labdep": "1.0", "torch": "2.13.0+lab"}
    lines = [f"{name}=={version} --hash=sha256:{hashlib.sha256().hexdigest()}" for name, version in versions.items()]
    members.lock.write_text("\n".join([*lines, ""]))
    ended = members.play("--check", **variables)
    assert builders(ended.stdout) == ["ok: [h2]"], ended.stdout
