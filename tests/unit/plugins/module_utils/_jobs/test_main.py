# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program as one file, as a node has it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from queue_samples import JOB, look

from ansible_collections.baremetal.gpu_cluster.plugins.action import launcher_files
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import answers, main, members
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.answers import Answer


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "gpu-cluster-jobs"
    path.write_text(payload.script(main, "gpu-cluster-jobs, of the collection baremetal.gpu_cluster"))
    path.chmod(0o755)
    return path


def run(program: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", **more},
        timeout=60,
    )


def test_a_node_answers_in_one_line(program: Path) -> None:
    for arguments in (["here", "look"], ["here", "look", "--gpus"]):
        done = run(program, *arguments)
        assert done.returncode == 0 and answers.last(done.stdout, answers.LOOK), done.stderr
    assert json.loads(run(program, "here", "busy", JOB).stdout) == {"problems": [], "notes": []}
    assert answers.last(run(program, "here", "clean", JOB, "0").stdout, answers.CLEAN)
    assert answers.last(run(program, "here", "end", JOB, "0").stdout, answers.END)


def test_logs_of_a_node(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "gpu-cluster-logs" / JOB
    folder.mkdir(parents=True)
    (folder / "n1-rank3.log").write_text("one\ntwo\n")
    assert answers.last(run(program, "here", "logged", JOB, "n1", "3", HOME=str(tmp_path)).stdout, answers.LOGGED) == {
        "logs": 1
    }
    done = run(program, "here", "log", JOB, "n1", "-", "1", "once", HOME=str(tmp_path))
    assert done.stdout == '{"rank": 3, "text": "two"}\n'


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["stop", "x; reboot"], "'x; reboot' is no job"),
        (["logs", JOB, "--lines", "-1"], "--lines: give 0 to"),
        (["logs", JOB, "--rank", "-2"], "--rank: give 0 to"),
        (["ps", "--hosts", "n9"], "'n9' is no member"),
        (["stop"], "required: JOB"),
        ([], "required: COMMAND"),
    ],
)
def test_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    cluster = members.Cluster((members.Member("n1", "192.0.2.11"),), 22)
    monkeypatch.setattr(main.members, "read", lambda: cluster)
    assert main.main(arguments) == 64
    assert words in capsys.readouterr().err


def test_a_machine_that_is_no_member(program: Path) -> None:
    if os.path.exists(members.CLUSTER_FILE):
        pytest.skip("this machine is a member")
    done = run(program, "ps")
    assert done.returncode == 64 and "is this a member?" in done.stderr


@pytest.mark.parametrize("command", ["ps", "nodes"])
def test_a_list_that_is_not_whole_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    cluster = members.Cluster((members.Member("n1", "192.0.2.11"), members.Member("n2", "192.0.2.12")), 22)
    monkeypatch.setattr(main.members, "read", lambda: cluster)
    given = [Answer("n1", look()), Answer("n2", {}, "away")]
    monkeypatch.setattr(main, "ask", lambda *_more: given)
    monkeypatch.setattr(main, "write", print)
    assert main.main([command, "--json"]) == 69 and '"away"' in capsys.readouterr().out
    assert main.main([command]) == 69 and "no answer: away" in capsys.readouterr().out
    given[1:] = []
    assert main.main([command]) == 0


def test_the_role_installs_all_programs() -> None:
    made = launcher_files.ActionModule.added(object())  # type: ignore[arg-type]
    for name, text in made.items():
        assert text.startswith("#!/usr/bin/python3 -I\n") and "baremetal.gpu_cluster" in text.splitlines()[1], name
    assert sorted(made) == ["explainer", "program", "queue"]
