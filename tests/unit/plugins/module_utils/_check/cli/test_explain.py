# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command explain, as a person calls it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import payload
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import explain, main

FULL = "[gpu02:1] OSError: [Errno 28] No space left on device\n"
MEMBERS = [{"name": "gpu01", "address": "192.0.2.11"}, {"name": "gpu02", "address": "192.0.2.12"}]
FIELDS = {"cause", "title", "about", "host", "rank", "file", "line", "text", "severity", "confidence", "fix"}


@pytest.fixture(autouse=True)
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that is no member, until the file is written."""
    path = tmp_path / "cluster.json"
    monkeypatch.setattr(explain, "CLUSTER_FILE", str(path))
    return path


def run(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    code = main.main(["explain", *arguments], "0")
    said = capsys.readouterr()
    return code, said.out, said.err


def entries(capsys: Any, *arguments: str) -> list[dict[str, Any]]:
    code, out, _err = run(capsys, "--json", *arguments)
    found: list[dict[str, Any]] = json.loads(out)
    assert code == (0 if any(one["cause"] != "UNKNOWN" for one in found) else 1)
    return found


def test_a_log(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "job.log").write_text(FULL)
    (one,) = entries(capsys, str(tmp_path / "job.log"))
    assert one.keys() >= FIELDS and (one["cause"], one["about"], one["line"]) == ("RESOURCES", ["gpu02"], 1)
    assert one["finding"] == "GC-TEXT-007" and "df -h" in one["fix"]


def test_for_a_person_it_is_short_and_the_suspect_comes_first(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "job.log").write_text(FULL + "".join(f"[gpu0{number}:{number}] {line}\n" for number, line in enumerate((
        "OSError: [Errno 24] Too many open files",
        "No module named 'torch'",
        "RuntimeError: Found no NVIDIA driver on your system",
        "Duplicate GPU detected : rank 1 and rank 2 both on CUDA device 1b000",
        "CUDA error: system not yet initialized (Error 802)",
        "Host key verification failed.",
    ), 3)))  # fmt: skip
    code, out, err = run(capsys, str(tmp_path / "job.log"))
    lines = out.splitlines()
    assert code == 0 and err == "" and len(lines) == explain.MOST_LINES
    assert lines[0].startswith("RESOURCES: gpu02: ") and lines[1].startswith(f"  seen: {tmp_path}/job.log:1: OSError")
    assert "docs/findings/GC-TEXT-007.md" in out and lines[-1].endswith("more; --json lists all")


def test_a_folder_with_a_file_for_each_rank(tmp_path: Path, capsys: Any) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "gpu01-rank0.log").write_text("RuntimeError: [pair.cc:554] Connection closed by peer [192.0.2.12]:56325\n")
    (logs / "gpu02-rank1.log").write_text("Traceback (most recent call last):\nZeroDivisionError: division by zero\n")
    (first, second) = entries(capsys, str(logs), "--hosts", "gpu02=192.0.2.12")
    assert (first["cause"], first["about"], first["rank"]) == ("UNKNOWN", ["gpu02"], 1)
    assert (second["cause"], second["about"]) == ("STOPPED", ["gpu02"])


def test_standard_input(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FULL.encode() + b"\xff\xfe\n")))
    (one,) = entries(capsys, "-")
    assert one["cause"] == "RESOURCES"


def test_the_last_job_of_this_user(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "no LOG is given, and ~/gpu-cluster-logs cannot be used: No such file" in run(capsys)[2]
    (tmp_path / "gpu-cluster-logs").mkdir()
    assert "it holds no job" in run(capsys)[2]
    for at, (name, line) in enumerate((("b", "No module named 'torch'\n"), ("a", FULL))):
        folder = tmp_path / "gpu-cluster-logs" / name
        folder.mkdir()
        (folder / "gpu02-rank1.log").write_text(line)
        os.utime(folder, (at, at))
    (one,) = entries(capsys)
    assert one["cause"] == "RESOURCES"


def test_nothing_that_is_known(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "log").write_text("all is well\n")
    assert run(capsys, str(tmp_path / "log"))[:2] == (1, "no line of these logs looks like an error\n")
    (tmp_path / "log").write_text("[gpu01:0] ZeroDivisionError: division by zero\n")
    code, out, _err = run(capsys, str(tmp_path / "log"))
    assert code == 1 and out.startswith("UNKNOWN: gpu01: an error that is not known: ZeroDivisionError")


def test_members_of_this_machines_cluster(tmp_path: Path, capsys: Any, cluster: Path) -> None:
    cluster.write_text(json.dumps({"members": MEMBERS}))
    (tmp_path / "log").write_text(
        "OSError: connect 192.0.2.12<4000> NCCL WARN Connect to 192.0.2.12<4000> returned 113(No route to host)\n"
    )
    assert entries(capsys, str(tmp_path / "log"))[0]["about"] == ["gpu02"]
    cluster.write_text("[]")
    code, _out, err = run(capsys, str(tmp_path / "log"))
    assert code == 64 and "is not what role launcher writes" in err


def test_members_of_a_file(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "members").write_text("gpu02 192.0.2.12\n")
    (tmp_path / "log").write_text("NCCL WARN Connect to 192.0.2.12<4000> returned 113(No route to host)\n")
    found = entries(capsys, str(tmp_path / "log"), "--address-file", str(tmp_path / "members"))
    assert found[0]["about"] == ["gpu02"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["/no/such/file"], "/no/such/file cannot be read: No such file or directory"),
        (["empty"], "empty holds no file with text"),
        (["--hosts", "gpu01=x", "log"], "is not the address of a host"),
        (["--address-file", "/no/file", "log"], "/no/file cannot be read"),
        (["--wrong"], "unrecognized arguments: --wrong"),
    ],
)
def test_wrong_input(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "log").write_text(FULL)
    code, out, err = run(capsys, *arguments)
    assert code == 64 and out == "" and words in err
    assert words in json.loads(run(capsys, "--json", *arguments)[1])["problems"][0]


def test_the_program_of_a_member(tmp_path: Path) -> None:
    """One file, which needs no collection."""
    path = tmp_path / "gpu-cluster-explain"
    path.write_text(payload.script(explain, "a title"))
    command = [sys.executable, "-I", str(path)]
    found = subprocess.run([*command, "--json", "-"], input=FULL, capture_output=True, text=True, check=False)
    assert found.returncode == 0 and json.loads(found.stdout)[0]["cause"] == "RESOURCES", found.stderr
    wrong = subprocess.run([*command, "/no/file"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 64 and wrong.stderr.startswith("gpu-cluster-explain: /no/file cannot be read")
    assert subprocess.run([*command, "--wrong"], capture_output=True, check=False).returncode == 64
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
    assert shown.returncode == 0 and "usage: gpu-cluster-explain" in shown.stdout


def test_the_files_of_the_flight_recorder_are_no_logs(tmp_path: Path, capsys: Any) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "gpu02-rank1.log").write_text("all is well\n")
    (logs / "flight-recorder-rank1").write_text(FULL)
    assert run(capsys, str(logs))[:2] == (1, "no line of these logs looks like an error\n")
