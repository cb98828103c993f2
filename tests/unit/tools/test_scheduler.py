# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts that run side by side: which may, in which order, and that the result of none is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import checks
import pytest
import scheduler
from scheduler import Outcome, Part

LAB, JOBS, MACHINE = (frozenset({name}) for name in ("lab", "jobs", "machine"))


def part(name: str, budget: int = 10, needs: frozenset[str] = frozenset()) -> Part:
    return Part(name, "", lambda: checks.PASSED, budget, needs)


def order(parts: list[Part]) -> list[list[str]]:
    """What runs at once when the part with the smallest budget always ends first."""
    waiting, running, seen = list(parts), [], []
    while waiting or running:
        while begins := scheduler.next_part(waiting, running):
            waiting.remove(begins)
            running.append(begins)
        seen.append(sorted(one.name for one in running))
        running.remove(min(running, key=lambda one: one.budget))
    return seen


def test_two_parts_with_nodes_run_at_once_before_one_without() -> None:
    parts = [
        part("lint", 60),
        part("cluster", 90, LAB),
        part("jobs", 70, JOBS),
        part("vm", 80, MACHINE),
        part("unit", 40),
    ]
    assert order(parts)[:3] == [["cluster", "jobs", "lint"], ["cluster", "jobs", "unit"], ["cluster", "jobs"]]
    assert order(parts)[3:] == [["cluster", "vm"], ["cluster"]]


def test_two_parts_never_have_the_same_nodes() -> None:
    everything = part("alone", 200, LAB | JOBS | MACHINE)
    parts = [part("cluster", 100, LAB), part("canary", 5, LAB), part("jobs", 90, JOBS), everything]
    for together in order(parts):
        assert not {"cluster", "canary"} <= set(together)
        assert together == ["alone"] or "alone" not in together


def test_parts_without_nodes_alone_take_both_processors() -> None:
    assert [len(together) for together in order([part("lint", 3), part("unit", 2), part("sanity", 1)])] == [2, 2, 1]


#: In place of run_tests.py: one part passes, one fails, one dies without a result.
PROGRAM = """
import json, os, sys
name, outcome = sys.argv[1], sys.argv[3]
print(f"output of {name}, nice {os.nice(0)}", flush=True)
if name == "dies":
    sys.exit(3)
slowest = [[1.5, f"{name}::test"]]
tally = {"passed": 3, "failed": int(name == "fails"), "skipped": 0, "slowest": slowest}
json.dump({"tally": tally, "seconds": 4.0}, open(outcome, "w"))
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(scheduler, "POLL_SECONDS", 0.01)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_the_results_of_all_parts_come_back_in_their_order(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    parts = [part("fails"), part("dies", 30, JOBS), part("good", 20, LAB)]
    outcomes = scheduler.run_side_by_side(parts, program)
    assert [outcome.name for outcome in outcomes] == ["fails", "dies", "good"]
    assert [outcome.tally for outcome in outcomes] == [checks.Tally(3, 1), checks.FAILED, checks.Tally(3)]
    assert outcomes[2].tally.slowest == (checks.Timed(1.5, "good::test"),)
    assert [outcome.budget for outcome in outcomes] == [10, 30, 20]
    shown = capfd.readouterr().out
    assert "dies FAILED: it ended with exit code 3 and without a result" in shown
    # The part without nodes steps back, from wherever this test itself is.
    own = os.nice(0)
    assert f"output of fails, nice {min(own + 19, 19)}\n" in shown and f"output of good, nice {own}\n" in shown


@pytest.mark.skipif(os.geteuid() != 0, reason="only root goes before others")
def test_a_part_can_go_before_others(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scheduler.run_side_by_side([Part("good", "", lambda: checks.PASSED, 10, JOBS, -5)], program)
    assert f"output of good, nice {max(os.nice(0) - 5, -20)}\n" in capfd.readouterr().out


@pytest.mark.parametrize("text", ["", '{"tally": ', '{"tally": {"passed": 1}}', "[]"])
def test_half_a_result_is_a_failure(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import sys; open(sys.argv[3], 'w').write({text!r})")
    (outcome,) = scheduler.run_side_by_side([part("one")], program)
    assert outcome.tally == checks.FAILED


def test_parts_that_run_are_waited_for_when_the_others_break_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, ended = tmp_path / "program.py", tmp_path / "ended"
    program.write_text(f"import time, pathlib; time.sleep(0.5); pathlib.Path({str(ended)!r}).touch()")

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(scheduler.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scheduler.run_side_by_side([part("one", needs=LAB)], program)
    assert ended.exists()


def test_a_part_that_checks_nothing_or_raises_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> checks.Tally:
        raise ValueError("why")

    assert scheduler.run_part(Part("broken", "", broken, 1)).tally == checks.FAILED
    assert scheduler.run_part(Part("empty", "", checks.Tally, 1)).tally == checks.FAILED
    shown = capsys.readouterr().out
    assert "broken FAILED: ValueError: why" in shown and "empty FAILED: it checked nothing" in shown


def test_an_outcome_survives_the_way_between_two_processes(tmp_path: Path) -> None:
    tally = checks.Tally(5, 1, 2, (checks.Timed(9.0, "a::b"),), ("a::b FAILED: why",))
    scheduler.write_outcome(Outcome("one", tally, 12.5), tmp_path / "outcome.json")
    found = json.loads((tmp_path / "outcome.json").read_text())
    assert checks.tally_of(found["tally"]) == tally and found["seconds"] == 12.5
    assert checks.tally_of(found["tally"]).slowest == tally.slowest
