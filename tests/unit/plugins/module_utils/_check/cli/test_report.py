# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command report, and what all commands have in common."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import report_samples

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import check, main, report
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import files

SAMPLES = report_samples.all_samples()


def as_json(name: str) -> str:
    return files.contents(SAMPLES[name])[files.JSON]


@pytest.mark.parametrize("name", SAMPLES)
def test_it_renders_what_the_check_wrote(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = files.contents(SAMPLES[name])
    path = tmp_path / "report.json"
    path.write_text(as_json(name))
    for form, file in report.FORMATS.items():
        assert main.main(["report", str(path), "--format", form], "1") == 0
        assert capsys.readouterr().out == wanted[file]
    assert main.main(["report", str(path)], "1") == 0 and capsys.readouterr().out == wanted["report.txt"]
    assert main.main(["report", str(path), "--json"], "1") == 0 and capsys.readouterr().out == wanted["report.json"]
    assert main.main(["report", str(path), "--output", str(tmp_path / "out")], "1") == 0
    assert {one.name: one.read_text() for one in (tmp_path / "out").iterdir()} == wanted
    assert main.main(["report", str(path), "--format", "junit", "--output", str(tmp_path / "one")], "1") == 0
    assert [one.name for one in (tmp_path / "one").iterdir()] == ["junit.xml"]


def test_a_report_from_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(as_json("healthy")))
    assert main.main(["report", "-"], "1") == 0
    assert capsys.readouterr().out == files.contents(SAMPLES["healthy"])["report.txt"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        ("{", "cannot be read: "),
        ("[" * 100000, "cannot be read: "),
        ("[]", "is no report of this version: report is list, expected object"),
        ("{}", "is no report of this version: report has no "),
        ('{"schema_version": 99, "x\\u001b[31m": 1}', "is no report of this version: "),
    ],
)
def test_what_is_no_report(text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.json"
    if text is not None:
        path.write_text(text)
    assert main.main(["report", str(path)], "1") == 2
    err = capsys.readouterr().err
    assert f"gpu-cluster-check: {path} {said}" in err and "\x1b" not in err and len(err.splitlines()) <= 10
    assert main.main(["report", str(path), "--json"], "1") == 2
    assert said in json.loads(capsys.readouterr().out)["problems"][0]


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "report.json").write_text(as_json("healthy"))
    (tmp_path / "file").touch()
    assert main.main(["report", str(tmp_path / "report.json"), "--output", str(tmp_path / "file")], "1") == 2
    assert len(capsys.readouterr().err.splitlines()) == len(report.FORMATS)


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["check", "--help"], ["report", "--help"], ["explain", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as caught:
            main.main(words, "1.2.3")
        assert caught.value.code == 0
    out = capsys.readouterr().out
    assert out.endswith("gpu-cluster-check 1.2.3\n") and out.count("\nexit codes:") == 4


@pytest.mark.parametrize("words", [[], ["repair"], ["check", "--host", "n1"], ["check", "extra"], ["report"]])
def test_a_wrong_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is guessed of an option."""
    assert main.main(words, "1") == 2
    caught = capsys.readouterr()
    assert caught.out == "" and caught.err.startswith("gpu-cluster-check: ") and "--help" in caught.err
    assert main.main([*words, "--json"], "1") == 2 and json.loads(capsys.readouterr().out)["problems"]


def test_a_program_that_breaks_gives_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_given: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(check.options, "read", broken)
    assert main.main(["check"], "1") == 3 and "RuntimeError: broken" in capsys.readouterr().err
