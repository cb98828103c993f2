# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of environments on a real file system: the link, the record, the guard, what was left running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch import store as io
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.environment import RECORD, Wanted
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch.lock import text_digest

NAME = "torch-0123456789ab"
LOCK = "torch==2.13.0+cpu --hash=sha256:" + "1" * 64
INPUTS: dict[str, Any] = {"requirements": ["torch==2.13.0"], "python": "/p", "python_version": "3.12"}


def make(tmp_path: Path, name: str = NAME, complete: bool = True) -> io.Store:
    """A store with one environment in it."""
    store = io.Store(str(tmp_path / "torch"))
    packages = tmp_path / name / "lib" / "python3.11" / "site-packages" / "torch-2.13.0+cpu.dist-info"
    packages.mkdir(parents=True)
    (tmp_path / name / "bin").mkdir()
    (tmp_path / name / "bin" / "python").touch(mode=0o755)
    if complete:
        store.record(name, {"inputs": INPUTS, "lock": LOCK, "packages": {"torch": "2.13.0+cpu"}, "verified": {}})
    return store


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    (environment,) = make(tmp_path).environments()
    assert environment.intact(Wanted(INPUTS, text_digest(LOCK)))
    assert environment.installed == {"torch": "2.13.0+cpu"}


def test_an_environment_without_a_record_is_not_complete(tmp_path: Path) -> None:
    (environment,) = make(tmp_path, complete=False).environments()
    assert environment.inputs is None
    assert not environment.intact(Wanted(INPUTS))


@pytest.mark.parametrize("text", ['{"inputs": ', "[]"])
def test_a_torn_record_is_no_record(tmp_path: Path, text: str) -> None:
    store = make(tmp_path)
    (tmp_path / NAME / RECORD).write_text(text, encoding="utf-8")
    assert store.environment(NAME).inputs is None


def test_the_link(tmp_path: Path) -> None:
    store = make(tmp_path)
    assert store.linked() == store.target() == ""
    store.switch(NAME)
    store.switch(NAME)
    assert store.linked() == NAME
    assert store.target() == str(tmp_path / NAME)
    assert (tmp_path / "torch" / "bin" / "python").exists()


def test_a_link_left_by_an_interrupted_switch_does_not_stand_in_the_way(tmp_path: Path) -> None:
    store = make(tmp_path)
    (tmp_path / "torch.new").symlink_to("nowhere")
    store.switch(NAME)
    assert store.linked() == NAME


def test_a_link_to_somewhere_else_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "torch").symlink_to("/usr")
    store = io.Store(str(tmp_path / "torch"))
    assert store.linked() == ""
    assert store.target() == "/usr"


def test_folders_of_others_and_links_are_not_environments(tmp_path: Path) -> None:
    store = make(tmp_path)
    (tmp_path / "torch-notes").mkdir()
    (tmp_path / "torch-aaaaaaaaaaaa").symlink_to(NAME)
    assert [environment.name for environment in store.environments()] == [NAME]


def test_a_store_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert io.Store(str(tmp_path / "none" / "torch")).environments() == []


def test_another_run_is_waited_for_with_an_end(tmp_path: Path) -> None:
    store = make(tmp_path)
    said: list[str] = []
    argv = ["flock", "--no-fork", store.lock_path, "sh", "-c", "echo; exec cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.read(1) == b"\n"
        expected = f"torch.lock is held by process {process.pid} .* after 0 s"
        with pytest.raises(io.BuildError, match=expected), store.locked(0, said.append):
            pass

        def free(who: str) -> None:
            said.append(who)
            process.kill()

        with store.locked(60, free):
            pass
    assert len(said) == 2 and all(f"process {process.pid} (" in who for who in said)


def test_a_parent_that_users_cannot_enter(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert io.closed_parent(str(closed / "sub" / "torch")) == str(closed)
    assert io.closed_parent("/usr/torch") == ""


def test_what_works_below_a_killed_build_is_ended_too(tmp_path: Path) -> None:
    """As make and a compiler do, whose programs are the system's."""
    started = []
    for name in (NAME, f"{NAME}.2"):
        (tmp_path / name / "source").mkdir(parents=True)
        started.append(subprocess.Popen(["sleep", "60"], cwd=tmp_path / name / "source"))
    try:
        path = str(tmp_path / NAME)
        assert io.end_processes_of(path) == 0
        assert io.end_processes_of(path, inside=True) == 1
        assert started[0].wait(timeout=120) == -9
        assert io.end_processes_of(path, inside=True) == 0 and started[1].poll() is None
    finally:
        for process in started:
            process.kill()
            process.communicate()


def test_what_a_killed_build_left_running_is_ended_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / NAME / "bin").mkdir(parents=True)
    (tmp_path / f"{NAME}.2" / "bin").mkdir(parents=True)
    started = []
    for name in (NAME, f"{NAME}.2"):
        python = tmp_path / name / "bin" / "python"
        python.symlink_to(os.path.realpath(sys.executable))
        program = [str(python), "-S", "-c", "import time; print(1, flush=True); time.sleep(60)"]
        started.append(subprocess.Popen(program, stdout=subprocess.PIPE))
        stream = started[-1].stdout
        assert stream is not None
        stream.read(1)
    try:
        io.end_processes_of(str(tmp_path / NAME))
        assert started[0].wait(timeout=60) == -9
        assert started[1].poll() is None
    finally:
        for process in started:
            process.kill()
            process.communicate()
