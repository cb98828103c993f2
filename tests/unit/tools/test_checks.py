# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counting checks."""

from __future__ import annotations

from pathlib import Path

import checks
import pytest
import run_tests
import sanity
from checks import Tally
from scheduler import Outcome

JUNIT = f"""<testsuites><testsuite>
<testcase name="good"/><testcase classname="a.test_a" name="bad"><failure message="1 is not 2"/></testcase>
<testcase name="broken"><error message="{"x" * 9000}"/></testcase><testcase name="absent"><skipped/></testcase>
</testsuite></testsuites>"""


def test_junit_is_counted_case_by_case(tmp_path: Path) -> None:
    """A failure and an error are both failures."""
    (tmp_path / "r.xml").write_text(JUNIT, encoding="utf-8")
    tally = checks.read_junit(tmp_path / "r.xml")
    assert tally == Tally(passed=1, failed=2, skipped=1)
    cut = "x" * checks.MESSAGE_CHARACTERS
    assert tally.failures == ("test_a::bad FAILED: 1 is not 2", f"::broken FAILED: {cut}")


def test_the_slowest_tests_of_several_files_are_remembered(tmp_path: Path) -> None:
    """With the file that each is in, which is what somebody looks for."""
    for number in (1, 2):
        cases = "".join(
            f'<testcase classname="molecule.jobs.tests.test_{number}" name="t{case}" time="{number}.{case}"/>'
            for case in range(4)
        )
        (tmp_path / f"{number}.xml").write_text(f"<testsuites>{cases}</testsuites>", encoding="utf-8")
    tally = checks.read_junit(tmp_path / "1.xml") + checks.read_junit(tmp_path / "2.xml")
    assert [test.name for test in tally.slowest] == [
        "test_2::t3",
        "test_2::t2",
        "test_2::t1",
        "test_2::t0",
        "test_1::t3",
    ]
    assert tally == Tally(passed=8)


def test_no_junit_file_counts_nothing(tmp_path: Path) -> None:
    """What never ran did not pass."""
    assert checks.read_junit(tmp_path / "r.xml") == Tally()


def test_bad_exit_without_a_failed_test_is_a_failure() -> None:
    """As when pytest collects nothing or is killed."""
    assert checks.with_exit_code(Tally(passed=3), 5) == Tally(passed=3, failed=1)
    assert checks.with_exit_code(Tally(passed=3, failed=1), 1) == Tally(passed=3, failed=1)
    assert checks.with_exit_code(Tally(passed=3), 0) == Tally(passed=3)


def test_command_is_judged_by_its_exit_code() -> None:
    """Nothing else."""
    assert checks.command("yes", "true") == checks.PASSED
    assert checks.command("no", "false") == checks.FAILED
    assert checks.command("no", "false").failures == ("no FAILED: exit code 1",)


@pytest.mark.parametrize(
    ("tally", "line"),
    [(Tally(3, 0, 0), "3 passed, 0 failed"), (Tally(3, 1, 2), "3 passed, 1 failed, 2 skipped")],
)
def test_closing_line(tally: Tally, line: str) -> None:
    """The last line stands alone and names skips only where there are any."""
    outcomes = [Outcome("one", tally, 1.0), Outcome("two", Tally(), 2.0)]
    assert run_tests.summary(outcomes, 2.5).splitlines()[-1] == line


def test_every_failure_stands_at_the_end_too() -> None:
    """Who has only the last lines of a long log still learns what failed, in which part, and why."""
    texts = ("test_a::b FAILED: 1 is not 2", "mypy FAILED: exit code 1")
    failed = checks.total([Tally(passed=3), *(checks.failure(text) for text in texts)])
    outcomes = [Outcome("unit", failed, 1.0), Outcome("two", Tally(1), 2.0), Outcome("slow", Tally(1), 2.0, budget=1)]
    lines = run_tests.summary(outcomes, 2.5).splitlines()
    assert lines[-3:-1] == [f"unit: {text}" for text in texts]
    assert lines[-4].startswith("all ")


RAN = 'Running sanity test "a"\nRunning sanity test "compile" on Python 3.11\nRunning sanity test "c"\n'


@pytest.mark.parametrize(
    ("said", "tally"),
    [
        ("", Tally(passed=3)),
        ("FATAL: The 2 sanity test(s) listed below (out of 3) failed. See error output above.\na\nc\n", Tally(1, 2)),
        ('WARNING: Required program "shellcheck" not found.\n', Tally(passed=2, skipped=1)),
    ],
)
def test_sanity_output_is_counted(said: str, tally: Tally) -> None:
    """By what ansible-test says it ran and what failed."""
    assert sanity.count(RAN + said) == tally
