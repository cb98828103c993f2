# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gpu-cluster-run does for the queue view: how it names its jobs, and whom it asks before it starts on GPUs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import launcher_program
import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import processes

JOB = "20260301-101500-3fa9c2"


@pytest.fixture(scope="module")
def program() -> Any:
    return launcher_program.Whole()


@pytest.fixture(autouse=True)
def installed(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "own_path", lambda: "/usr/local/bin/gpu-cluster-run")


def planned(program: Any, *arguments: str, environ: dict[str, str] | None = None) -> dict[str, Any]:
    members = tuple(program.Member(f"n{number}", f"192.0.2.1{number}", 2) for number in (1, 2))
    cluster = program.Cluster("train", "/opt/python", "/usr/bin/mpirun", 22, (29400, 29599, 29500), members)
    options = program.make_parser().parse_args(arguments)
    job: dict[str, Any] = program.plan(cluster, options, environ or {}, "/data")[0]
    return job


def test_an_agent_says_which_job_it_has(program: Any) -> None:
    """In the words of its command line, which the shell of the node takes apart."""
    job = planned(program, "--grace", "7", "train.py", "a b", "it's")
    words = program.shlex.split(program.ssh_command(job, 22)[-1])
    assert words[0] == "exec" and processes.of_agent(words[1:]) == job["id"]
    about = processes.read_about(words[-1])
    assert about.pop("by") == job["by"] != ""
    assert about == {"command": "train.py 'a b' 'it'\"'\"'s'", "mode": "torchrun", "nodes": 2, "ranks": 4, "grace": 7}


def test_a_launcher_is_known_by_its_ssh(program: Any) -> None:
    job = planned(program, "-m", "trainer.main")
    assert processes.of_child(program.ssh_command(job, 22)) == job["id"]
    assert json.loads(program.about(job))["command"] == "-m trainer.main"


def test_a_long_command_is_cut_and_moves_no_cursor(program: Any) -> None:
    shown = json.loads(program.about(planned(program, "train.py", "\x1b[2J", "x" * 200_000)))["command"]
    assert len(shown) == 200 and "\x1b" not in shown


def test_who_has_typed_it(program: Any, tmp_path: Path) -> None:
    login = tmp_path / "loginuid"
    for text, environ, name in (
        ("0", {"SUDO_USER": "ada"}, "root"),
        ("4294967295", {"SUDO_USER": "ada", "LOGNAME": "train"}, "ada"),
        ("4294967295", {"LOGNAME": "train"}, "train"),
        ("", {}, program.user_name()),
    ):
        login.write_text(text)
        assert program.typed_by(environ, str(login)) == name
    assert program.typed_by({"LOGNAME": "train"}, str(tmp_path / "away")) == "train"


@pytest.fixture
def queue(program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for gpu-cluster-jobs that prints the text of a file, on a node with nvidia-smi."""
    for name, text in (("jobs", f'echo "$@" > {tmp_path}/words; cat {tmp_path}/answer'), ("nvidia-smi", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(program, "QUEUE", str(tmp_path / "jobs"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_gpus_are_asked_about_unless_they_may_be_shared(program: Any, queue: Path) -> None:
    (queue / "answer").write_text('{"problems": ["GPU 1 in use"], "notes": ["n"]}')
    assert program.others_on_gpus({"id": JOB, "share": False}) == (["GPU 1 in use"], ["n"])
    assert (queue / "words").read_text() == f"here busy {JOB}\n"
    assert program.others_on_gpus({"id": JOB, "share": True}) == ([], [])
    (queue / "nvidia-smi").unlink()
    assert program.others_on_gpus({"id": JOB, "share": False}) == ([], [])


@pytest.mark.parametrize("text", ["", "[]", "{}", "exit"])
def test_what_is_not_known_of_gpus_is_a_note_and_no_reason_to_refuse(program: Any, queue: Path, text: str) -> None:
    (queue / "answer").write_text(text)
    problems, notes = program.others_on_gpus({"id": JOB, "share": False})
    assert problems == [] and notes[0].startswith("whether its GPUs are in use is not known: ")


def test_logs_elsewhere_have_a_link(program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    agent = object.__new__(program.Agent)
    agent.disk = program.Disk()
    for logs in (str(tmp_path / "elsewhere"), ""):
        agent.job = {"id": f"{JOB}{len(logs)}", "logs": logs, "name": "n1"}
        assert agent.open_logs() == []
        place = tmp_path / "gpu-cluster-logs" / agent.job["id"]
        assert (place / "n1.log").is_file() and place.is_symlink() == bool(logs)
    again = object.__new__(program.Agent)
    again.job = {**agent.job, "logs": ""}
    assert again.open_logs() == []


@pytest.mark.parametrize("command", ["ps", "nodes", "stop", "logs"])
def test_the_queue_view_runs_as_the_clusters_user(program: Any, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    became: list[str] = []
    ran: list[Any] = []
    monkeypatch.setattr(program, "read_cluster", lambda: program.Cluster("train", "", "", 22, (1, 2, 1), ()))
    monkeypatch.setattr(program, "become", became.append)
    monkeypatch.setattr(program.os, "execv", lambda path, argv: ran.append((path, argv)))
    monkeypatch.setattr(program.sys, "argv", ["gpu-cluster-run", command, "x"])
    program.main()
    assert became == ["train"] and ran == [(program.QUEUE, [program.QUEUE, command, "x"])]


def test_a_node_without_the_queue_view_says_so(
    program: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "read_cluster", lambda: program.Cluster("train", "", "", 22, (1, 2, 1), ()))
    monkeypatch.setattr(program, "become", lambda _user: None)
    monkeypatch.setattr(program, "QUEUE", "/no/such/program")
    assert program.as_user(program.QUEUE, ["ps"]) == 69 and "run role launcher again" in capsys.readouterr().err


def test_a_script_of_such_a_name_is_given_by_its_path(program: Any) -> None:
    assert os.path.basename(planned(program, "./stop")["command"][0]) == "stop"
