# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How tests run a command on a node, tried with a process in namespaces of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import lab_enter
import pytest
from lab.settings import Paths
from lab_enter import Init

PATHS = Paths(checkout=Path("/a checkout"), cache=Path("/cache"))
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and capabilities are root's")


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Init]:
    """One that cannot set the clock, as the lab's nodes cannot."""
    inside = ["env", "-i", f"PATH={os.environ['PATH']}", "HOME=/root", "container=podman", "container_uuid=1"]
    namespaces = ["unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    program = ["sh", "-c", "hostname inside; echo up; exec sleep 60"]
    argv = ["setpriv", "--bounding-set=-sys_time", *namespaces, *inside, *program]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "up\n"
        init = Init(children(process.pid)[0], "")
        monkeypatch.setattr(lab_enter, "_seen", {})
        monkeypatch.setattr(lab_enter, "_init_of", lambda _paths, _name: init)
        yield init
        process.kill()


def run(*command: str) -> subprocess.CompletedProcess[str]:
    argv = lab_enter.argv(PATHS, "n1", command)
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def test_a_command_has_what_the_node_has(node: Init) -> None:
    done = run(
        "sh", "-c", "hostname; pwd; tr '\\0' ' ' < /proc/1/cmdline; echo; env | sort; grep CapBnd /proc/self/status"
    )
    host, folder, first, *variables, bounding = done.stdout.splitlines()
    assert (host, folder, first.strip()) == ("inside", "/", "sleep 60"), done
    assert "container=podman" in variables and "HOME=" in variables
    assert not any(one.startswith("container_uuid=") for one in variables)
    assert bounding in Path(f"/proc/{node.pid}/status").read_text().splitlines()
    assert bounding not in Path("/proc/self/status").read_text().splitlines()


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
)
def test_the_exit_code_is_podmans(node: Init, script: str, code: int) -> None:
    assert run("sh", "-c", script).returncode == code


def test_a_node_that_was_made_anew_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def find(_paths: Paths, name: str) -> Init:
        asked.append(name)
        return Init(os.getpid(), "")

    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    monkeypatch.setattr(lab_enter, "_seen", {"n1": Init(gone.pid, "")})
    monkeypatch.setattr(lab_enter, "_init_of", find)
    for _turn in range(2):
        lab_enter.argv(PATHS, "n1", ["true"])
    assert asked == ["n1"]
