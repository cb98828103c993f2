# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How problems are quoted and printed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import (
    Problem,
    nearest,
    nearest_host,
    shown,
    table_lines,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        ("a", "'a'"),
        ("two\n lines", "'two\\n lines'"),
        (["a", {"b": False}], "['a', {b: false}]"),
        ("x" * 100, "'" + "x" * 76 + "..."),
    ],
)
def test_shown(value: Any, text: str) -> None:
    assert shown(value) == text


def test_a_problem_without_a_value_shows_none() -> None:
    assert Problem("ansible_host", "", "cannot be reached", "start it").sentence() == (
        "ansible_host: cannot be reached. Fix: start it."
    )


def test_nearest() -> None:
    assert nearest("kernel_tuning_extras", ["kernel_tuning_extra", "cluster_firewall_ports"]) == "kernel_tuning_extra"
    assert nearest("zzz", ["kernel_tuning_extra"]) is None


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpu1", "gpu01"),
        ("gpu001", "gpu01"),
        ("GPU-01", "gpu01"),
        ("gpu_12", "gpu12"),
        ("gpu12.cluster.example", "gpu12"),
        ("node-1-2", "node-01-02"),
        ("gpu13", None),
        ("gpu2", None),
        ("cpu01", None),
        ("gpu", None),
        ("gpu1-2", None),
        ("node12", None),
        ("login.other.example", None),
    ],
)
def test_a_host_is_suggested_only_by_its_own_number(name: str, meant: str | None) -> None:
    hosts = ["gpu01", "gpu12", "node-01-02", "node-11", "login.cluster.example"]
    assert nearest_host(name, hosts) == meant


def test_no_host_is_suggested_where_two_are_spelled_so() -> None:
    assert nearest_host("gpu1", ["gpu01", "gpu001"]) is None


def test_hosts_with_the_same_problem_share_a_line() -> None:
    same = Problem("a", "1", "is odd", "make it even")
    other = Problem("b", "", "is missing", "set it")
    problems = [same.on("n1"), other.on("node10"), same.on("n2"), same.on("n1")]
    assert table_lines([problem.as_dict() for problem in problems]) == [
        "n1, n2  a = 1: is odd. Fix: make it even.",
        "node10  b: is missing. Fix: set it.",
    ]


def test_many_hosts_are_counted_and_all_of_them_are_called_all() -> None:
    same = Problem("a", "1", "is odd", "make it even")
    problems = [same.on(f"n{number}").as_dict() for number in range(1, 7)]
    assert table_lines(problems)[0].startswith("n1, n2, n3 and 3 more  a = 1")
    assert table_lines(problems, everybody=6)[0].startswith("all 6 hosts  a = 1")
    assert table_lines([]) == []


def test_a_place_for_each_host_makes_no_line_for_each_host() -> None:
    """As in an inventory with a line for each machine, and none of them answers."""
    places = {f"n{number}": f"prod/hosts.yml, line {number}" for number in range(6, 18)}
    problems = [replace(Problem("a", "1", "r", "f", host), place=place).as_dict() for host, place in places.items()]
    (line,) = table_lines(problems, everybody=12)
    assert line == "all 12 hosts  a = 1: r. Fix: f. Set in prod/hosts.yml, line 6, and 11 more."
    (line,) = table_lines([*problems[:1], *problems[:1]])
    assert line.endswith("Set in prod/hosts.yml, line 6.")
    unplaced = [Problem("a", "1", "r", "f", host).as_dict() for host in places]
    assert table_lines([*unplaced[:1], *problems[1:2]])[0].endswith("Set in prod/hosts.yml, line 7.")
