# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine cannot run is skipped with its reason and never counted as passed; what runs beside is not lost."""

from __future__ import annotations

from pathlib import Path

import checks
import pytest
import run_tests
from run_tests import Outcome, Part


def test_the_virtual_machine_needs_its_network_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests.platform, "machine", lambda: "x86_64")
    tun = tmp_path / "tun"
    assert f"has no {tun}" in run_tests.obstacle("vm", tun)
    tun.touch()
    assert run_tests.obstacle("vm", tun) == ""


def test_another_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests.platform, "machine", lambda: "aarch64")
    assert "this machine is aarch64" in run_tests.obstacle("vm")
    assert run_tests.obstacle("cluster") == ""


def test_what_cannot_run_is_skipped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(run_tests, "obstacle", lambda name: "no reason")
    assert run_tests.scenario("vm") == checks.SKIPPED
    assert "molecule vm SKIPPED: no reason" in capsys.readouterr().out


def test_a_change_of_this_machine_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    before = {"sysctl net/ipv4/ip_forward": "0", "nftables": ""}
    assert run_tests.left_alone(before, {**before, "sysctl net/new": "1"}) == checks.PASSED
    assert run_tests.left_alone(before, {"sysctl net/ipv4/ip_forward": "1", "nftables": ""}) == checks.FAILED
    assert "sysctl net/ipv4/ip_forward: was '0', is '1'" in capsys.readouterr().out
    assert run_tests.left_alone(before, {"nftables": ""}) == checks.FAILED


class Child:
    """Instead of a process: what one would leave behind."""

    returncode = 0
    result: str | None = '{"tally": {"passed": 3, "failed": 1, "skipped": 0}, "seconds": 4.0}'

    def __init__(self, argv: list[str], **others: object) -> None:
        assert argv[2] == run_tests.BESIDE
        if self.result is not None:
            Path(argv[-1]).write_text(self.result)

    def wait(self) -> int:
        return self.returncode


def test_the_part_beside_is_awaited_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests.subprocess, "Popen", Child)
    ran = []

    def one(part: Part) -> Outcome:
        ran.append(part.name)
        return Outcome(part.name, checks.PASSED, 1.0)

    monkeypatch.setattr(run_tests, "run_part", one)
    outcomes = run_tests.run_all(tmp_path)
    assert run_tests.BESIDE not in ran
    names = [outcome.name for outcome in outcomes]
    assert sorted(names) == sorted(part.name for part in run_tests.PARTS)
    assert names.index(run_tests.BESIDE) == names.index(run_tests.UP_TO) - 1
    assert outcomes[names.index(run_tests.BESIDE)].tally == checks.Tally(passed=3, failed=1)


@pytest.mark.parametrize("result", [None, "", '{"tally": '])
def test_a_part_beside_that_dies_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], result: str | None
) -> None:
    monkeypatch.setattr(Child, "result", result)
    monkeypatch.setattr(run_tests.subprocess, "Popen", Child)
    beside = run_tests.Beside(Part("molecule-vm", "", lambda: checks.PASSED), tmp_path)
    assert beside.ended().tally == checks.FAILED
    assert "without a result" in capsys.readouterr().out


def test_the_scenarios_are_all_in_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(run_tests, "scenarios", lambda names: ran.extend(names) or checks.PASSED)
    run_tests.molecule()
    run_tests.molecule_vm()
    assert sorted(ran) == sorted(
        path.parent.name for path in (run_tests.project.ROOT / "molecule").glob("*/molecule.yml")
    )
    assert run_tests.VM in ran
