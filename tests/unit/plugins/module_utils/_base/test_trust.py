# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root runs no environment that a user of jobs could change: each way to change it is tried."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import trust
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    begin,
    facts_nccl,
    launch,
    mpi_job,
    run_state,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import answers
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import gather

#: A user without rights; needs no entry in /etc/passwd.
SOMEBODY = 4711

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.fixture
def python(tmp_path: Path) -> str:
    """The interpreter of an environment that belongs to root."""
    packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages" / "torch"
    packages.mkdir(parents=True)
    (packages / "__init__.py").touch()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "env" / "bin").mkdir()
    real = tmp_path / "python3.11"
    real.write_text("#!/bin/sh\n")
    real.chmod(0o755)
    (tmp_path / "env" / "bin" / "python").symlink_to(real)
    return str(tmp_path / "env" / "bin" / "python")


def give(*parts: str) -> Callable[[Path], None]:
    return lambda folder: os.chown(folder.joinpath(*parts), SOMEBODY, SOMEBODY, follow_symlinks=False)


def open_to_all(*parts: str) -> Callable[[Path], None]:
    return lambda folder: folder.joinpath(*parts).chmod(0o777)


def open_to_group(folder: Path) -> None:
    os.chown(folder / "env", 0, SOMEBODY)
    (folder / "env").chmod(0o775)


WAYS: dict[str, Callable[[Path], None]] = {
    "the environment": give("env"),
    "the folder above it": give(),
    "the link": give("env", "bin", "python"),
    "what the link leads to": give("python3.11"),
    "the packages": give("env", "lib", "python3.11", "site-packages"),
    "one package": give("env", "lib", "python3.11", "site-packages", "torch"),
    "its configuration": give("env", "pyvenv.cfg"),
    "a folder for all": open_to_all("env", "bin"),
    "a program for all": open_to_all("python3.11"),
    "a folder for a group": open_to_group,
}


@needs_root
@pytest.mark.parametrize("way", WAYS)
def test_root_runs_nothing_that_others_can_change(python: str, tmp_path: Path, way: str) -> None:
    assert trust.refusal(python, {}) == ""
    WAYS[way](tmp_path)
    said = trust.refusal(python, {})
    assert said.startswith("root would run what others can change: ") and str(tmp_path) in said, said
    assert str(SOMEBODY) in said or "everybody can write" in said
    assert "cluster_check_user" in said and "chown -R root:" in said


@needs_root
@pytest.mark.parametrize("name", trust.LOADED_FROM)
def test_nor_what_a_variable_of_jobs_has_it_load(python: str, tmp_path: Path, name: str) -> None:
    own = tmp_path / "own"
    own.mkdir()
    os.chown(own, SOMEBODY, SOMEBODY)
    assert f"{own} belongs to uid {SOMEBODY}" in trust.refusal(python, {name: f"/usr/lib:{own}"})
    assert trust.refusal(python, {"OTHER": str(own), name: "/usr/lib"}) == ""


@needs_root
def test_nor_a_library_of_nccl(python: str, tmp_path: Path) -> None:
    library = tmp_path / "env" / "lib" / "libnccl.so.2"
    library.touch()
    for user in ("", "root"):
        assert facts_nccl.Question(python, user, "").process is not None
    os.chown(library, SOMEBODY, SOMEBODY)
    for user in ("", "root"):
        question = facts_nccl.Question(python, user, "")
        assert question.process is None and f"{library} belongs to uid {SOMEBODY}" in question.answer()["why"]
    assert "root would run" not in facts_nccl.Question(python, "nobody", "").why


@needs_root
def test_nor_mpirun(tmp_path: Path) -> None:
    given = {"run_id": "run-1", "prefix": str(tmp_path), "nodes": [], "user": ""}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mpirun").touch(0o755)
    os.chown(tmp_path / "bin" / "mpirun", SOMEBODY, SOMEBODY)
    with pytest.raises(mpi_job.StartError, match=f"bin/mpirun belongs to uid {SOMEBODY}"):
        mpi_job.run(given)


@needs_root
def test_what_others_can_change_is_asked_by_nobody(tmp_path: Path) -> None:
    """Also for the facts, to which Open MPI and the environment of torch belong."""
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(0o755)
    program = tmp_path / "bin" / "ompi_info"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho Open MPI v4.1.$(id -u)\n")
    program.chmod(0o755)
    assert gather.openmpi(gather.Node("/"), str(tmp_path)) == "4.1.0"
    os.chown(program, SOMEBODY, SOMEBODY)
    assert gather.openmpi(gather.Node("/"), str(tmp_path)) == f"4.1.{trust.NOBODY}"
    assert trust.harmless(["/usr/bin/env", "-i", str(program)], str(program))[0] == trust.AS_NOBODY[0]
    assert trust.harmless(["/usr/bin/env"]) == ["/usr/bin/env"]


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert isinstance(trust.refusal(str(tmp_path / "a" / "bin" / "python"), {}), str)


@needs_root
def test_the_launch_is_refused_for_root_only(python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_state, "BASE_DIR", str(tmp_path / "runs"))
    monkeypatch.setattr(launch, "clear_earlier_runs", lambda _run: launch.Earlier([], []))
    started: list[str] = []

    def start(_run: Any, _run_id: str, _job: Any, _python: str, user: str, _wait: float) -> dict[str, Any]:
        started.append(user)
        ports = [{"range": "rendezvous", "port": 29500}]
        return {"state": "waiting", "hostname": "n1", "ports": ports, "rails": [], "taken": []}

    monkeypatch.setattr(launch, "start", start)
    given: dict[str, Any] = {
        **{name: option.get("default") for name, option in begin.SPEC.items()},
        "run_id": "run-1",
        "nonce": "0" * 32,
        "address": "127.0.0.1",
        "interface": "lo",
        "torch_python": python,
    }
    os.chown(tmp_path / "env", SOMEBODY, SOMEBODY)
    for user in ("", "root"):
        refused = begin.run_step(lambda _argv: (0, "", ""), {**given, "user": user})
        assert refused["state"] == "failed" and f"{tmp_path}/env belongs to uid {SOMEBODY}" in refused["error"]
    assert started == []
    assert begin.run_step(lambda _argv: (0, "", ""), {**given, "user": "nobody"})["state"] == "waiting"
    os.chown(tmp_path / "env", 0, 0)
    made = begin.run_step(lambda _argv: (0, "", ""), given)
    assert made["state"] == "waiting"
    # Both are what the controller takes for the answer of a launch.
    assert answers.checked("launch", made) == made and answers.checked("launch", refused) == refused
    assert started == ["nobody", ""]
