# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command why, with nodes that answer through a program in place of ssh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import explain, why

MEMBERS = [{"name": f"gpu0{number}", "address": f"192.0.2.1{number}"} for number in (1, 2)]
NOTHING = {"jobs": [], "ranks": [], "interfaces": [], "ras": []}
RANK = {
    "rank": 0,
    "world_size": 2,
    "pid": 7,
    "command": "python train.py",
    "state": "S",
    "kernel": "",
    "cpu": 0.0,
    "stacks": [],
    "records": [{"group": "0", "number": 4, "name": "all_reduce", "sizes": [[8]], "types": ["Float"], "done": False}],
    "moved": False,
    "groups": {},
    "unanswered": [],
}


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what each address answers; without a file it does not."""
    (tmp_path / "cluster.json").write_text(json.dumps({"members": MEMBERS, "ssh_port": 2222}))
    monkeypatch.setattr(why, "CLUSTER_FILE", str(tmp_path / "cluster.json"))
    ssh = tmp_path / "ssh"
    ssh.write_text(
        f'#!/bin/sh\ncd {tmp_path}\necho "$@" >> asked\nfor one; do [ -e $one ] && exec cat $one; done\n'
        "echo banner >&2; echo no route to host >&2; exit 255\n"
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def answers(nodes: Path, number: int, **more: Any) -> None:
    (nodes / f"192.0.2.1{number}").write_text("a banner of the shell\n" + json.dumps({**NOTHING, **more}) + "\n")


def run(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    code = explain.main(["why", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_node_that_does_not_answer_is_named_with_its_reason(nodes: Path, capsys: Any) -> None:
    answers(nodes, 1, jobs=["j"], ranks=[RANK])
    code, said, _errors = run(capsys, "j")
    assert code == 0
    assert said.splitlines()[:2] == [
        "INTERFACE: gpu02 does not answer on the data network: rank 1 runs there",
        "  seen: no route to host",
    ]
    code, said, _errors = run(capsys, "--json")
    first = json.loads(said)["suspects"][0]
    assert (code, first["cause"], first["about"], first["rank"]) == (0, "INTERFACE", ["gpu02"], 1)
    assert first["collective"] == "all_reduce number 4"
    asked = (nodes / "asked").read_text().splitlines()
    assert all("BatchMode=yes" in line and "-p 2222" in line for line in asked)
    assert {line.split()[-1] for line in asked} == {"j", "stacks"}


def test_nothing_known(nodes: Path, capsys: Any) -> None:
    for number in (1, 2):
        answers(nodes, number, jobs=["j"], ranks=[{**RANK, "rank": number - 1}])
    assert run(capsys, "j")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a b"], "'a b' is no name of a job"),
        (["$(reboot)"], "is no name of a job"),
        (["--nodes", "gpu09"], "'gpu09' is no member, these are: gpu01, gpu02"),
        (["gone"], "job gone has no rank on the nodes that answer; without an answer: gpu02 (no route to host)"),
        ([], "several jobs run, give one of them: i, j"),
    ],
)
def test_bad_input(nodes: Path, capsys: Any, arguments: list[str], words: str) -> None:
    answers(nodes, 1, jobs=["i", "j"])
    code, said, errors = run(capsys, *arguments)
    assert (code, said) == (64, "") and words in errors


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 100_000, json.dumps({**NOTHING, "ranks": [{**RANK, "pid": "7"}]})]
)
def test_an_answer_without_its_shape_is_none(nodes: Path, capsys: Any, text: str) -> None:
    (nodes / "192.0.2.11").write_text(text)
    code, _said, errors = run(capsys, "j")
    assert code == 64 and "gpu01 (exit code 0 without a word)" in errors


def test_the_program_that_is_installed_writes_the_help_and_answers(tmp_path: Path) -> None:
    """It is one file, and imports nothing of what the machine has."""
    program = tmp_path / "gpu-cluster-explain"
    program.write_text(payload.script(explain, "it"))
    folder = tmp_path / "help"
    folder.mkdir(0o700)
    start = [sys.executable, "-I", str(program)]
    assert subprocess.run([*start, "hang-help", str(folder)], check=False).returncode == 0
    assert 'if __name__ == "sitecustomize":' in (folder / "sitecustomize.py").read_text()
    folder.chmod(0o755)
    refused = subprocess.run([*start, "hang-help", str(folder)], check=False, capture_output=True, text=True)
    assert refused.returncode != 0 and "is no private folder" in refused.stderr
    found = subprocess.run([*start, "stacks", "no-such-job"], check=True, capture_output=True, text=True)
    answer = json.loads(found.stdout)
    assert answer["ranks"] == [] and why.answer_of(found.stdout.encode()) == answer
