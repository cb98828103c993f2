# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts may be rebuilt."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._rebuild import targets

MEMBERS = ["gpu01", "gpu02", "gpu03"]


@pytest.mark.parametrize("value", ["gpu02", "gpu02,gpu03", " gpu02 , gpu03 ", ["gpu02"], ["gpu03", "gpu02"]])
def test_what_is_accepted(value: Any) -> None:
    assert targets.problems(value, MEMBERS) == []


@pytest.mark.parametrize(
    ("value", "names"),
    [("gpu02, gpu03,", ["gpu02", "gpu03"]), (["gpu02"], ["gpu02"]), ("", []), (None, [])],
)
def test_the_names(value: Any, names: list[str]) -> None:
    assert targets.names_of(value) == names


@pytest.mark.parametrize(
    ("value", "rule", "fix"),
    [
        ("", targets.ERR_MISSING, "-e rebuild_hosts=gpu03"),
        (None, targets.ERR_MISSING, "for example"),
        (True, targets.ERR_TYPE, "for example"),
        ({"gpu02": 1}, targets.ERR_TYPE, "for example"),
        ("gpu2", targets.ERR_NO_MEMBER % "gpu2", "write gpu02"),
        ("gpu13", targets.ERR_NO_MEMBER % "gpu13", "add it to the inventory first"),
        ("elsewhere", targets.ERR_NO_MEMBER % "elsewhere", "gpu01, gpu02, gpu03"),
        ("gpu02,gpu02", targets.ERR_TWICE % "gpu02", "once"),
        ("gpu01,gpu02,gpu03", targets.ERR_ALL % 3, "baremetal.gpu_cluster.site"),
    ],
)
def test_what_is_refused(value: Any, rule: str, fix: str) -> None:
    (problem,) = targets.problems(value, MEMBERS)
    assert (problem.variable, problem.rule) == ("rebuild_hosts", rule)
    assert fix in problem.fix


def test_all_problems_come_at_once() -> None:
    found = targets.problems("gpu9,gpu02,gpu02", MEMBERS, limit="gpu02")
    assert [problem.variable for problem in found] == ["--limit", "rebuild_hosts", "rebuild_hosts"]


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ("gpu01 gpu02", "write gpu01,gpu02"),
        ("gpu01;gpu02", "write gpu01,gpu02"),
        ("gpu01:gpu02", "write gpu01,gpu02"),
        ("gpu01\ngpu02", "write gpu01,gpu02"),
        ("gpu*", targets.FIX_PATTERN),
        ("gpu[01:02]", targets.FIX_PATTERN),
        ("~gpu.*", targets.FIX_PATTERN),
        ("!gpu01", targets.FIX_PATTERN),
        ("all", targets.FIX_PATTERN),
        ("@file", targets.FIX_PATTERN),
    ],
)
def test_what_only_a_limit_takes_is_not_called_a_new_host(value: str, fix: str) -> None:
    (problem,) = targets.problems(value, ["gpu01", "gpu02", "gpu03"])
    assert problem.fix == fix


def test_a_thousand_members_are_not_all_named() -> None:
    (problem,) = targets.problems("other", [f"gpu{number:04}" for number in range(1000)])
    assert len(problem.sentence()) < 400
