# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo's verdict is the one that this run wrote, or none."""

from __future__ import annotations

import sys
from pathlib import Path

import demo
import pytest


@pytest.fixture(name="report")
def report_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for the report, and no step that takes time."""
    report = tmp_path / "report.txt"
    monkeypatch.setattr(demo, "REPORT", report)
    return report


def steps_end_with(monkeypatch: pytest.MonkeyPatch, returncode: int, verdict: str = "") -> None:
    """Replace the steps; the last one may write a report."""

    def run_steps(_steps: object) -> tuple[int, str]:
        if verdict:
            demo.REPORT.write_text(f"{verdict}\nmore\n", encoding="utf-8")
        return returncode, "site.yml" if returncode else ""

    monkeypatch.setattr(demo, "run_steps", run_steps)


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    """What the user sees last."""
    return capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("returncode", "verdict", "shown"),
    [
        (0, "PASSED: 3 nodes", "PASSED: 3 nodes"),
        (2, "FAILED: node n2", "FAILED: node n2"),
        (2, "NOT VALIDATED, 2 of 3 members", "NOT VALIDATED, 2 of 3 members"),
        (2, "PASSED: 3 nodes", "FAILED: the check passed, but site.yml ended with exit code 2"),
        (2, "", "FAILED: no verdict was written; site.yml ended with exit code 2"),
    ],
)
@pytest.mark.usefixtures("report")
def test_last_line_is_the_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], returncode: int, verdict: str, shown: str
) -> None:
    """And the exit code is the playbook's; no run that failed ends with PASSED."""
    steps_end_with(monkeypatch, returncode, verdict)
    assert demo.main([]) == returncode
    assert last_line(capsys) == shown


@pytest.mark.parametrize("returncode", [0, 2])
def test_old_report_is_no_verdict(
    report: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], returncode: int
) -> None:
    """Yesterday's success says nothing about this run."""
    report.write_text("PASSED: 3 nodes\n", encoding="utf-8")
    steps_end_with(monkeypatch, returncode)
    assert demo.main([]) != 0
    assert last_line(capsys).startswith("FAILED: no verdict was written")


def test_no_step_runs_after_a_failed_one(tmp_path: Path) -> None:
    """The name of the step and its exit code come back."""
    touch = [sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')"]
    assert demo.run_steps((("bad", [sys.executable, "-c", "exit(7)"]), ("later", touch))) == (7, "bad")
    assert not (tmp_path / "ran").exists()


def test_arguments_reach_the_playbook() -> None:
    """After the demo's own, so that they win."""
    assert demo.playbook(["--tags", "check"])[-2:] == ["--tags", "check"]
