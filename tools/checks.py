# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running checks and counting them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import project

#: How many of the slowest tests a tally remembers.
SLOWEST = 5
#: How much of the message of a failed test the end of a run repeats. The first lines say what was expected.
MESSAGE_CHARACTERS = 800


class Timed(NamedTuple):
    """A test and how long it took."""

    seconds: float
    name: str


@dataclass(frozen=True)
class Tally:
    """How many checks passed, failed and were skipped, which tests took longest, and what each failure says."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    slowest: tuple[Timed, ...] = field(default=(), compare=False)
    failures: tuple[str, ...] = field(default=(), compare=False)

    def __add__(self, other: Tally) -> Tally:
        """Both together."""
        slowest = tuple(sorted((*self.slowest, *other.slowest), reverse=True)[:SLOWEST])
        failures = (*self.failures, *other.failures)
        counts = (self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)
        return Tally(*counts, slowest, failures)

    def __str__(self) -> str:
        """As the closing line says it."""
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"

    @property
    def checked(self) -> int:
        """How many checks there were at all."""
        return self.passed + self.failed + self.skipped


def tally_of(found: Mapping[str, Any]) -> Tally:
    """A tally that was written as JSON."""
    slowest = tuple(Timed(*one) for one in found.get("slowest", ()))
    return Tally(**{**found, "slowest": slowest, "failures": tuple(found.get("failures", ()))})


PASSED = Tally(passed=1)
FAILED = Tally(failed=1)
SKIPPED = Tally(skipped=1)


def say(text: str) -> None:
    """Print a line of our own between the output of the tools."""
    print(f"--- {text}", flush=True)


def failure(text: str) -> Tally:
    """One check that failed: said here, and again at the end of the run."""
    say(text)
    return Tally(failed=1, failures=(text,))


def command(name: str, *argv: str, cwd: Path = project.ROOT, env: dict[str, str] | None = None) -> Tally:
    """One check: a command that must end well. Its output goes to the user."""
    say(f"{name}: {' '.join(argv)}")
    returncode = subprocess.run(argv, cwd=cwd, env=env or project.tool_environment(), check=False).returncode
    if returncode == 0:
        return PASSED
    return failure(f"{name} FAILED: exit code {returncode}")


def pytest(*arguments: str, python: str = sys.executable, **variables: str) -> Tally:
    """Run pytest and count its tests.  variables: of its environment."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        argv = [python, "-m", "pytest", "-q", f"--junitxml={results}", *arguments]
        say(f"pytest: {' '.join(arguments)}")
        environment = project.tool_environment(**variables)
        returncode = subprocess.run(argv, cwd=project.ROOT, env=environment, check=False).returncode
        return with_exit_code(read_junit(results), returncode)


def with_exit_code(tally: Tally, returncode: int) -> Tally:
    """A run that ended badly although no test of it failed (nothing collected, killed) is a failure of its own."""
    if returncode != 0 and tally.failed == 0:
        return tally + failure(f"FAILED: exit code {returncode} after {tally}")
    return tally


def read_junit(path: Path) -> Tally:
    """Count the tests in a JUnit file; none where there is no file."""
    if not path.is_file():
        return Tally()
    total = Tally()
    for case in ElementTree.parse(path).iter("testcase"):
        # The class of a test function is its file, by dots.
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name', '')}"
        total += replace(judge(case, name), slowest=(Timed(float(case.get("time", 0)), name),))
    return total


def judge(case: ElementTree.Element, name: str) -> Tally:
    """What became of one test."""
    outcomes = {child.tag: child for child in case}
    for tag in ("failure", "error"):
        if tag in outcomes:
            message = outcomes[tag].get("message", "")
            return Tally(failed=1, failures=(f"{name} FAILED: {message[:MESSAGE_CHARACTERS]}",))
    return SKIPPED if "skipped" in outcomes else PASSED


def total(tallies: Sequence[Tally]) -> Tally:
    """All together."""
    return sum(tallies, Tally())
