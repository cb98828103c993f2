# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Equal texts of many hosts are told once."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._run_output import grouping
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._run_output.grouping import Told

HOSTS = [f"gpu{number:02d}" for number in range(1, 13)]
SSH = "Failed to connect to the host via ssh: {address}: connect to {address} port 22: No route to host"


def unreachable(address: str = "10.1.1.{number}") -> list[Told]:
    found = enumerate(HOSTS, 1)
    return [Told(host, "look", SSH.format(address=address.format(number=number))) for number, host in found]


@pytest.mark.parametrize("address", ["10.1.1.{number}", "fd00:21::{number}", "fe80::{number}%eth0", "10.1.1.7"])
def test_one_fact_of_twelve_hosts_is_told_once(address: str) -> None:
    lines = list(grouping.table(unreachable(address)))
    assert lines[0] == "  gpu[01-12]  look" and len(lines) == 2
    assert lines[1].endswith(" port 22: No route to host")
    assert ("10.1.1.7" in lines[1]) == (address == "10.1.1.7") != ("<address>" in lines[1])


def test_the_name_of_the_host_is_its_own_and_others_are_not() -> None:
    told = [Told(host, "", f"{host}: is not rebooted, as gpu1 and gpu01x are") for host in HOSTS]
    (group,) = grouping.grouped(told, alike=True)
    assert group.text == "<host>: is not rebooted, as gpu1 and gpu01x are" and group.hosts == HOSTS
    assert len(grouping.grouped(told)) == 12


def test_times_and_versions_are_no_addresses() -> None:
    for text in ("at 12:34:5{}", "driver 580.95.0{}", "torch 2.13.{}+cu130", "1.2.3.4.{}", "10.0.0.1.{}", "a.b::c{}"):
        assert len(grouping.grouped([Told("a", "", text.format(one)) for one in "12"], alike=True)) == 2, text


def test_the_same_text_of_another_task_is_another_problem() -> None:
    assert len(grouping.grouped([Told("a", "one", "x"), Told("a", "two", "x")], alike=True)) == 2


def test_the_rows_of_our_own_tables_are_folded_too() -> None:
    text = "\n".join(
        ["3 problem(s)", *(f"{one.host}  {one.text}" for one in unreachable()), "gpu01  too few GPUs", "Fix: x  y"]
    )
    assert list(grouping.rows(text)) == [
        "3 problem(s)",
        f"gpu[01-12]  {SSH.format(address='<address>')}",
        "gpu01       too few GPUs",
        "Fix: x  y",
    ]
    for text in ("pid  user\n12    train\n1234  root", "all 3 hosts  x\nall 4 hosts  x", ""):
        assert list(grouping.rows(text)) == text.splitlines()


def test_many_different_problems_are_counted() -> None:
    told = [Told(f"n{number}", "task", f"problem {chr(97 + number % 26) * (number + 1)}") for number in range(1000)]
    lines = list(grouping.table(told))
    assert len(lines) == 2 * grouping.TOLD + 1 and lines[-1] == "  and 960 more problems on n[40-999]; -v shows all"


def test_a_text_with_more_lines_stands_below_its_hosts() -> None:
    assert list(grouping.lines(grouping.Group(["a"], "", "x"), "a")) == ["a: x"]
    assert list(grouping.lines(grouping.Group(["a"], "", "x\ny"), "a")) == ["a:", "    x", "    y"]
    assert list(grouping.lines(grouping.Group([], "", "x\ny"), "")) == ["x", "y"]
