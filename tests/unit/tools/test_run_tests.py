# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine cannot run is skipped with its reason and never counted as passed; what runs beside is not lost."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar

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
    #: The parts that ran in processes of their own, those that were waited for, and who was when each began.
    started: ClassVar[list[str]] = []
    awaited: ClassVar[list[str]] = []
    awaited_before: ClassVar[dict[str, list[str]]] = {}

    def __init__(self, argv: list[str], stdout: BinaryIO, **others: object) -> None:
        self.name = argv[2]
        self.started.append(self.name)
        self.awaited_before[self.name] = list(self.awaited)
        stdout.write(f"output of {self.name}\n".encode())
        if self.result is not None:
            Path(argv[-1]).write_text(self.result)

    def wait(self) -> int:
        self.awaited.append(self.name)
        return self.returncode


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> type[Child]:
    monkeypatch.setattr(Child, "started", [])
    monkeypatch.setattr(Child, "awaited", [])
    monkeypatch.setattr(Child, "awaited_before", {})
    monkeypatch.setattr(run_tests.subprocess, "Popen", Child)
    return Child


def test_the_parts_beside_are_awaited_and_counted(monkeypatch: pytest.MonkeyPatch, child: type[Child]) -> None:
    without_nodes: dict[str, list[str]] = {}
    began: dict[str, list[str]] = {}
    awaited: dict[str, list[str]] = {}

    def scenario(name: str, _chosen: str) -> checks.Tally:
        began[name], awaited[name] = list(child.started), list(child.awaited)
        return checks.PASSED

    def without(part: Part) -> Part:
        def run() -> checks.Tally:
            without_nodes[part.name] = list(child.started)
            return checks.PASSED

        return part if part.has_nodes else part._replace(run=run)

    monkeypatch.setattr(run_tests, "PARTS", [without(part) for part in run_tests.PARTS])
    monkeypatch.setattr(run_tests, "scenario", scenario)
    outcomes = run_tests.run_all()
    assert sorted(outcome.name for outcome in outcomes) == sorted(part.name for part in run_tests.PARTS)
    # On two cores three parts with nodes would be too slow: the scenario with its own nodes takes the free core, and
    # the others begin when the virtual machine has ended.
    assert child.awaited_before == {run_tests.BESIDE: [], "scenario jobs": []}
    assert len(without_nodes) > 1 and set(map(tuple, without_nodes.values())) == {(run_tests.BESIDE,)}
    assert list(began) == run_tests.of_the_lab() and "jobs" not in began
    assert set(map(tuple, began.values())) == {(run_tests.BESIDE, "scenario jobs")}
    assert set(map(tuple, awaited.values())) == {(run_tests.BESIDE,)}
    # What the children found is counted: three passed and one failed in each.
    tallies = {outcome.name: outcome.tally for outcome in outcomes}
    assert tallies[run_tests.BESIDE] == checks.Tally(passed=3, failed=1)
    assert tallies["molecule"] == checks.Tally(passed=3 + len(began), failed=1)


@pytest.mark.parametrize("result", [None, "", '{"tally": '])
def test_a_part_beside_that_dies_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    child: type[Child],
    result: str | None,
) -> None:
    monkeypatch.setattr(Child, "result", result)
    with run_tests.Beside(Part("molecule-vm", "", lambda: checks.PASSED)) as beside:
        assert beside.ended().tally == checks.FAILED
    assert "without a result" in capsys.readouterr().out


def test_the_scenarios_are_all_in_a_part(monkeypatch: pytest.MonkeyPatch, child: type[Child]) -> None:
    ran: list[str] = []
    long: list[str] = []

    def scenarios(names: Sequence[str], _beside: object = None, chosen: str = run_tests.SHORT) -> checks.Tally:
        (long if chosen == run_tests.LONG else ran).extend(names)
        return checks.PASSED

    monkeypatch.setattr(run_tests, "scenarios", scenarios)
    run_tests.molecule()
    ran.extend(name.removeprefix(run_tests.SCENARIO) for name in child.started)
    run_tests.molecule_vm()
    assert run_tests.FAULTS not in ran, "it takes too long for every run"
    assert long == [], "they take too long for every run"
    monkeypatch.setattr(checks, "pytest", lambda *_arguments: checks.PASSED)
    run_tests.faults()
    folders = {path.parent.name: path.parent for path in (run_tests.project.ROOT / "molecule").glob("*/molecule.yml")}
    assert sorted(ran) == sorted(folders)
    assert run_tests.VM in ran
    # What one run leaves out, the other one has.
    marked = {name for name, folder in folders.items() if "@pytest.mark.long" in texts(folder)}
    assert sorted(long) == sorted(marked)


def texts(folder: Path) -> str:
    """The tests of a scenario."""
    return "".join(path.read_text() for path in (folder / "tests").glob("test_*.py"))


@pytest.mark.parametrize(("chosen", "marks"), [((), "not long"), ((run_tests.LONG,), "long")])
def test_the_tests_of_a_scenario_are_chosen_by_their_mark(
    monkeypatch: pytest.MonkeyPatch, chosen: tuple[str, ...], marks: str
) -> None:
    environments: list[dict[str, str]] = []

    def command(*_arguments: str, env: dict[str, str]) -> checks.Tally:
        environments.append(env)
        return checks.PASSED

    monkeypatch.setenv("PYTEST_ADDOPTS", "--durations=5")
    monkeypatch.setattr(checks, "command", command)
    run_tests.scenario("cluster", *chosen)
    (environment,) = environments
    assert shlex.split(environment["PYTEST_ADDOPTS"])[:3] == ["--durations=5", "-m", marks]


@pytest.fixture
def machine_at_rest(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nothing is run and nothing is there; returns the steps that a part takes."""
    steps: list[str] = []

    def scenario(name: str, chosen: str) -> checks.Tally:
        steps.append(name if chosen == run_tests.SHORT else f"{name}, {chosen}")
        return checks.PASSED

    monkeypatch.setattr(run_tests, "take_labs_down", lambda: steps.append("labs down"))
    monkeypatch.setattr(run_tests.machine, "settings", lambda: steps.append("settings") or {})
    monkeypatch.setattr(run_tests, "scenario", scenario)
    return steps


def test_a_scenario_on_nodes_of_its_own_runs_beside_the_others(
    machine_at_rest: list[str], capsys: pytest.CaptureFixture[str], child: type[Child]
) -> None:
    assert run_tests.molecule() == checks.Tally(passed=5, failed=1)
    assert machine_at_rest == ["canary", "cluster"]
    assert child.started == ["scenario jobs"] and set(child.awaited) == {"scenario jobs"}
    shown = capsys.readouterr().out
    assert shown.index("=== scenario cluster") < shown.index("output of scenario jobs")
    assert "--- scenario jobs: 3 passed, 1 failed in 4 s" in shown and "--- scenario cluster: 1 passed, 0 fail" in shown


@pytest.mark.parametrize(
    ("failed", "has_nodes", "steps"),
    [
        (0, True, ["labs down", "settings", "part", "settings"]),
        # It may have left its nodes for whoever looks into it: the machine is compared after good ones only.
        (1, True, ["labs down", "settings", "part"]),
        (0, False, ["part"]),
    ],
)
def test_the_machine_is_compared_once_around_the_parts_with_nodes(
    machine_at_rest: list[str], failed: int, has_nodes: bool, steps: list[str]
) -> None:
    part = Part("one", "", lambda: machine_at_rest.append("part") or checks.Tally(1, failed), has_nodes)
    # A part without nodes that fails leaves nothing behind.
    lint = Outcome("lint", checks.FAILED, 1.0)
    outcomes = run_tests.watched([part], lambda: [run_tests.run_part(part), lint])
    assert machine_at_rest == steps
    assert [one.name for one in outcomes] == ["one", "lint", *(["machine"] if len(steps) == 4 else [])]


@pytest.mark.parametrize("name", ["molecule", "molecule-vm", "faults", "scenario jobs"])
def test_the_parts_that_bring_up_nodes_say_so(name: str) -> None:
    assert run_tests.named([name])[0].has_nodes


@pytest.mark.parametrize(
    ("more", "steps"), [([], ["labs down", "settings", "vm", "settings"]), (["--outcome"], ["vm"])]
)
def test_a_part_beside_leaves_the_machine_to_the_run_that_started_it(
    machine_at_rest: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: list[str], steps: list[str]
) -> None:
    outcome = tmp_path / "outcome.json"
    monkeypatch.setattr(run_tests.sys, "argv", ["run_tests", "molecule-vm", *more, *([str(outcome)] if more else [])])
    assert run_tests.main() == 0
    assert machine_at_rest == steps and outcome.exists() == bool(more)


def test_a_scenario_beside_is_waited_for_when_the_others_break_off(
    machine_at_rest: list[str], monkeypatch: pytest.MonkeyPatch, child: type[Child]
) -> None:
    def interrupted(part: Part) -> Outcome:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_tests, "run_part", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_tests.molecule()
    assert child.awaited == ["scenario jobs"]


def test_parts_are_called_by_name(machine_at_rest: list[str]) -> None:
    assert [part.name for part in run_tests.named(["unit", "lint"])] == ["lint", "unit"]
    (part,) = run_tests.named(["scenario jobs"])
    assert part.run() == checks.PASSED
    run_tests.scenarios(["cluster"], chosen=run_tests.LONG)
    assert machine_at_rest == ["jobs", "cluster, long"]
    with pytest.raises(SystemExit, match="there is no part molecules; there are lint, unit"):
        run_tests.named(["lint", "molecules"])
