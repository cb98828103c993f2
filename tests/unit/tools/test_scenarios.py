# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scenario: where it cannot run, which of its tests run, and when it begins with saved nodes."""

from __future__ import annotations

import shlex
from pathlib import Path

import checks
import pytest
import scenarios


def test_the_virtual_machine_needs_its_network_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios.platform, "machine", lambda: "x86_64")
    tun = tmp_path / "tun"
    assert f"has no {tun}" in scenarios.obstacle("vm", tun)
    tun.touch()
    assert scenarios.obstacle("vm", tun) == ""


def test_another_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios.platform, "machine", lambda: "aarch64")
    assert "this machine is aarch64" in scenarios.obstacle("vm")
    assert scenarios.obstacle("cluster") == ""


def test_what_cannot_run_is_skipped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(scenarios, "obstacle", lambda name: "no reason")
    assert scenarios.run("vm") == checks.SKIPPED
    assert "molecule vm SKIPPED: no reason" in capsys.readouterr().out


@pytest.mark.parametrize(("chosen", "marks"), [((), "not long"), ((scenarios.LONG,), "long")])
def test_the_tests_of_a_scenario_are_chosen_by_their_mark(
    monkeypatch: pytest.MonkeyPatch, chosen: tuple[str, ...], marks: str
) -> None:
    environments: list[dict[str, str]] = []

    def command(*_arguments: str, env: dict[str, str]) -> checks.Tally:
        environments.append(env)
        return checks.PASSED

    monkeypatch.setenv("PYTEST_ADDOPTS", "--durations=5")
    monkeypatch.setattr(checks, "command", command)
    scenarios.run("canary", *chosen)
    (environment,) = environments
    assert shlex.split(environment["PYTEST_ADDOPTS"])[:3] == ["--durations=5", "-m", marks]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands of a scenario; none is run. One that contains a word of ``broken`` fails."""
    commands: list[str] = []

    def command(_name: str, *argv: str, env: dict[str, str]) -> checks.Tally:
        commands.append(" ".join(word for word in argv if not word.endswith("python")))
        return checks.FAILED if any(word in argv for word in broken) else checks.PASSED

    broken.clear()
    monkeypatch.setattr(scenarios, "obstacle", lambda name: "")
    monkeypatch.setattr(checks, "command", command)
    return commands


broken: list[str] = []


def saved(monkeypatch: pytest.MonkeyPatch, found: bool) -> None:
    monkeypatch.setattr(scenarios.Keeper, "has_saved", lambda keeper: found)


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("vm", "tools/lab/vm.py {}"),
        ("cluster", "tools/lab/lab.py {} --inventory lab"),
        ("jobs", "tools/lab/lab.py {} --inventory jobs"),
    ],
)
def test_nodes_are_made_once_for_a_tree_and_kept(
    monkeypatch: pytest.MonkeyPatch, ran: list[str], name: str, program: str
) -> None:
    saved(monkeypatch, False)
    assert scenarios.run(name) == checks.PASSED
    *before, save, verify, destroy = ran
    assert f"molecule converge -s {name}" in before
    assert save.endswith(program.format("save"))
    assert (verify, destroy) == (f"molecule verify -s {name}", f"molecule destroy -s {name}")
    ran.clear()
    saved(monkeypatch, True)
    assert scenarios.run(name) == checks.PASSED
    assert [ran[0], *ran[2:]] == [f"molecule {step} -s {name}" for step in ("destroy", "verify", "destroy")]
    assert ran[1].endswith(f"{program.format('up')} --saved")


def test_what_did_not_converge_is_neither_kept_nor_tested(monkeypatch: pytest.MonkeyPatch, ran: list[str]) -> None:
    saved(monkeypatch, False)
    broken.append("idempotence")
    assert scenarios.run("cluster") == checks.FAILED
    assert ran[-2:] == ["molecule idempotence -s cluster", "molecule destroy -s cluster"]


def test_canary_always_begins_on_bare_nodes(monkeypatch: pytest.MonkeyPatch, ran: list[str]) -> None:
    saved(monkeypatch, True)
    assert scenarios.run("canary") == checks.PASSED
    assert ran == ["molecule test -s canary"]
    assert "converge" not in scenarios.test_sequence("canary")
