# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which rows `make compat` runs, with what, and what it says of them."""

from __future__ import annotations

import configparser

import compat
import project
import pytest
import yaml


def test_all_rows_or_those_that_are_named() -> None:
    assert len(compat.rows([])) == len(compat.CORES) * len(compat.WAYS)
    assert [row.name for row in compat.rows(["2.16"])] == [f"2.16/{way.name}" for way in compat.WAYS]
    assert [row.name for row in compat.rows(["2.19/sudo", "2.16/empty"])] == ["2.16/empty", "2.19/sudo"]
    assert {row.core for row in compat.rows(["password"])} == set(compat.CORES)


def test_a_row_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(compat.CompatError, match=r"--only 2\.15: there is no such row; write one of 2\.16, "):
        compat.rows(["2.15"])


def test_the_oldest_release_is_the_one_that_the_collection_promises() -> None:
    promised = yaml.safe_load((project.ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))["requires_ansible"]
    assert promised.startswith(f">={next(iter(compat.CORES))}.")


def test_a_release_gets_the_oldest_python_that_it_runs_on() -> None:
    pythons = {(3, 9): "/a", (3, 11): "/b", (3, 12): "/c"}
    assert compat.python_for("2.16", pythons) == "/b" == compat.python_for("2.19", pythons)
    assert compat.python_for(compat.NEWEST, pythons) == "/c"
    assert compat.python_for("2.18", {(3, 10): "/b"}) == ""


def test_every_configuration_can_be_read_and_has_the_setting_without_which_nothing_runs() -> None:
    pipelining = {}
    for way in compat.WAYS:
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string(way.settings)
        assert parser.getboolean("defaults", "inject_facts_as_vars") is False
        pipelining[way.name] = parser.get("ssh_connection", "pipelining", fallback="")
    assert pipelining["no-pipelining"] == "False" and pipelining["root"] == "True" and pipelining["empty"] == ""


@pytest.mark.parametrize(
    ("returncode", "text", "said"),
    [
        (0, "ok\nPASSED: world 3\n\nPLAY RECAP", "passed"),
        (0, "FAILED: n1\nPASSED: world 3\n", "passed"),
        (2, "PASSED: world 3\n", "FAILED: PASSED, exit code 2"),
        (2, "x\nNOT VALIDATED, 2 of 3 members\n", "FAILED: NOT VALIDATED, exit code 2"),
        (0, "nothing ran", "FAILED: no verdict, exit code 0"),
    ],
)
def test_a_run_has_passed_with_a_verdict_and_a_good_end_only(returncode: int, text: str, said: str) -> None:
    assert compat.outcome(returncode, text) == said


def test_the_table_names_exact_versions() -> None:
    row = compat.rows(["2.16/root"])[0]
    text = compat.table([compat.Result(row, "2.16.19", "3.11.2", "passed", 61.4)], "2026-01-31")
    wanted = "| 2.16.19 | 3.11.2 | root, this collection's ansible.cfg | passed | 61 | 2026-01-31 |"
    assert text.splitlines()[-1] == wanted


def test_a_newest_release_that_is_one_of_the_others_does_not_run_again() -> None:
    older, newest = compat.rows(["2.19/root", f"{compat.NEWEST}/root"])
    (sudo,) = compat.rows([f"{compat.NEWEST}/sudo"])
    ran = [compat.Result(older, "2.19.14", "3.11.2", "passed", 61.4)]
    assert compat.same(ran, newest, "2.19.14", "3.11.2") == ran[0]
    assert compat.same(ran, newest, "2.20.1", "3.12.3") is None and compat.same(ran, sudo, "2.19.14", "3.11.2") is None
