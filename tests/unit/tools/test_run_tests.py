# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the checks: nothing is left out, the machine is compared, and what takes too long is named."""

from __future__ import annotations

from pathlib import Path

import checks
import pytest
import run_tests
import scenarios
from scheduler import Outcome, Part

LAB = frozenset({"lab"})


def test_a_change_of_this_machine_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    before = {"sysctl net/ipv4/ip_forward": "0", "nftables": ""}
    assert run_tests.left_alone(before, {**before, "sysctl net/new": "1"}) == checks.PASSED
    assert run_tests.left_alone(before, {"sysctl net/ipv4/ip_forward": "1", "nftables": ""}) == checks.FAILED
    assert "sysctl net/ipv4/ip_forward: was '0', is '1'" in capsys.readouterr().out
    assert run_tests.left_alone(before, {"nftables": ""}) == checks.FAILED


def folders() -> dict[str, Path]:
    """Every scenario."""
    return {path.parent.name: path.parent for path in (run_tests.project.ROOT / "molecule").glob("*/molecule.yml")}


def test_every_scenario_and_every_long_test_is_in_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, str]] = []

    def scenario(name: str, chosen: str) -> checks.Tally:
        ran.append((name, chosen))
        return checks.PASSED

    monkeypatch.setattr(scenarios, "run", scenario)
    for part in [*run_tests.PARTS, *run_tests.LONG_PARTS]:
        if part.about.startswith("molecule/"):
            part.run()
    assert sorted(name for name, chosen in ran if chosen == scenarios.SHORT) == sorted(folders())
    # What one run leaves out, the other one has.
    marked = {name for name, folder in folders().items() if "pytest.mark.long" in texts(folder)}
    assert {name for name, chosen in ran if chosen == scenarios.LONG} == marked
    assert not {part.name for part in run_tests.PARTS} & set(run_tests.GROUPS["faults"])
    assert set(run_tests.GROUPS["faults"]) == {part.name for part in run_tests.LONG_PARTS}


def test_long_tests_without_nodes_are_in_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `unit` and `parity` leave out, `unit-long` has."""
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(checks, "pytest", lambda *arguments, **_more: ran.append(arguments) or checks.PASSED)
    for part in run_tests.named(["unit", "parity", "unit-long"]):
        part.run()
    left_out = {folder for _option, mark, *folders in ran for folder in folders if mark == scenarios.SHORT}
    taken = {folder for _option, mark, *folders in ran for folder in folders if mark == scenarios.LONG}
    assert taken == left_out - {"tests/gpu"} and "mark.long" not in texts(run_tests.project.ROOT / "tests" / "gpu")


def texts(folder: Path) -> str:
    """The tests of a scenario."""
    return "".join(path.read_text() for path in (folder / "tests").glob("test_*.py"))


def test_a_scenario_has_its_nodes_to_itself() -> None:
    needs = {part.name: part.needs for part in run_tests.PARTS}
    assert needs["canary"] == needs["cluster"] and not needs["cluster"] & (needs["jobs"] | needs["vm"])
    assert needs["jobs"] and needs["vm"] and not needs["jobs"] & needs["vm"] and not needs["unit"]


@pytest.fixture
def machine_at_rest(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nothing is run and nothing is there; returns what was done."""
    did: list[str] = []
    monkeypatch.setattr(run_tests, "take_labs_down", lambda: did.append("labs down"))
    monkeypatch.setattr(run_tests.machine, "settings", lambda: did.append("settings") or {})
    monkeypatch.setattr(run_tests.scenarios, "run", lambda name, chosen: did.append(name) or checks.PASSED)
    return did


@pytest.mark.parametrize(
    ("failed", "needs", "did"),
    [
        (0, LAB, ["labs down", "settings", "part", "settings"]),
        # It may have left its nodes for whoever looks into it: the machine is compared after good ones only.
        (1, LAB, ["labs down", "settings", "part"]),
        (0, frozenset(), ["part"]),
    ],
)
def test_the_machine_is_compared_once_around_the_parts_with_nodes(
    machine_at_rest: list[str],
    monkeypatch: pytest.MonkeyPatch,
    failed: int,
    needs: frozenset[str],
    did: list[str],
) -> None:
    parts = [Part("lint", "", lambda: checks.FAILED, 1), Part("one", "", lambda: checks.PASSED, 1, needs)]

    def side_by_side(ran: list[Part], program: Path) -> list[Outcome]:
        assert ran == parts and program == Path(run_tests.__file__)
        machine_at_rest.append("part")
        # A part without nodes that fails leaves nothing behind.
        return [Outcome("lint", checks.FAILED, 1.0), Outcome("one", checks.Tally(1, failed), 1.0)]

    monkeypatch.setattr(run_tests.scheduler, "run_side_by_side", side_by_side)
    outcomes = run_tests.run(parts)
    assert machine_at_rest == did
    assert [one.name for one in outcomes] == ["lint", "one", *(["machine"] if len(did) == 4 else [])]


@pytest.mark.parametrize(("more", "did"), [([], ["labs down", "settings", "vm", "settings"]), (["--outcome"], ["vm"])])
def test_a_part_beside_others_leaves_the_machine_to_the_run_that_started_it(
    machine_at_rest: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: list[str], did: list[str]
) -> None:
    outcome = tmp_path / "outcome.json"
    monkeypatch.setattr(run_tests.sys, "argv", ["run_tests", "molecule-vm", *more, *([str(outcome)] if more else [])])
    assert run_tests.main() == 0
    assert machine_at_rest == did and outcome.exists() == bool(more)


@pytest.mark.parametrize("has_saved", [True, False])
def test_a_virtual_machine_that_has_to_be_set_up_begins(monkeypatch: pytest.MonkeyPatch, has_saved: bool) -> None:
    monkeypatch.setattr(scenarios.Keeper, "has_saved", lambda keeper: has_saved)
    names = [part.name for part in run_tests.ordered(run_tests.named(["unit", "cluster", "vm"]))]
    assert names == (["cluster", "vm", "unit"] if has_saved else ["vm", "cluster", "unit"])
    assert run_tests.ordered(run_tests.named(["unit"])) == run_tests.named(["unit"])


def test_parts_and_groups_are_called_by_name() -> None:
    def names(*words: str) -> list[str]:
        return [part.name for part in run_tests.named(words)]

    # A part that is started beside others is called by its name.
    for part in [*run_tests.PARTS, *run_tests.LONG_PARTS]:
        assert names(part.name) == [part.name]
    assert names("lint", "unit") == ["unit", "lint"]
    assert names("molecule") == ["cluster", "jobs", "canary"]
    assert names("vm", "molecule-vm") == ["vm"]
    with pytest.raises(SystemExit, match="there is no part molecules; there are cluster, jobs"):
        names("lint", "molecules")


def test_every_part_of_the_makefile_has_its_name() -> None:
    makefile = (run_tests.project.ROOT / "Makefile").read_text()
    (line,) = [line for line in makefile.splitlines() if line.startswith("lint unit ") and line.endswith(":")]
    assert run_tests.named(line.rstrip(":").split())


def test_a_part_over_its_budget_is_a_warning_with_its_slowest_tests() -> None:
    slow = tuple(checks.Timed(float(seconds), f"test_file::test_{seconds}") for seconds in (9, 7))
    outcomes = [
        Outcome("quick", checks.Tally(3, slowest=slow), 10.0, budget=10),
        Outcome("slow", checks.Tally(2, 1, 1, slow), 10.4, budget=10),
    ]
    lines = run_tests.summary(outcomes, 12.0).splitlines()
    assert lines[0] == "WARNING: slow took 10 s, its budget is 10 s"
    assert [line.split() for line in lines[1:3]] == [["9.0", "s", slow[0].name], ["7.0", "s", slow[1].name]]
    assert lines[3].split() == ["quick", "10.0", "s", "of", "10", "s", "3", "passed,", "0", "failed"]
    assert lines[6:] == ["5 passed, 1 failed, 1 skipped"]
