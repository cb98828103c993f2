# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machines of a new cluster out of one word of a command line."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import host_list
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.host_list import Machine, read_hosts


def names(value: Any) -> list[str]:
    machines, problems = read_hosts(value)
    assert problems == []
    return [machine.name for machine in machines]


def addresses(value: Any) -> list[str]:
    machines, problems = read_hosts(value)
    assert problems == []
    return [machine.address for machine in machines]


@pytest.mark.parametrize("text", ["10.1.1.[11:22]", "10.1.1.[11-22]", "10.1.1.[11:14,15-22]", "10.1.1.[11 : 22]"])
def test_addresses_get_names(text: str) -> None:
    assert addresses(text) == [f"10.1.1.{number}" for number in range(11, 23)]
    assert names(text) == [f"gpu{number:02}" for number in range(1, 13)]


def test_the_names_of_a_thousand_have_four_digits() -> None:
    found = names("10.[1:4].1.[1:250]")
    assert (found[0], found[-1], len(found)) == ("gpu0001", "gpu1000", 1000)


def test_names_stay_with_their_digits() -> None:
    assert names("gpu[08:11]") == ["gpu08", "gpu09", "gpu10", "gpu11"]
    assert names("gpu[8:11]") == ["gpu8", "gpu9", "gpu10", "gpu11"]
    assert names("rack[1:2]-n[1,3].site") == ["rack1-n1.site", "rack1-n3.site", "rack2-n1.site", "rack2-n3.site"]


@pytest.mark.parametrize("value", ["a1,b2,10.1.1.5", "a1, b2\n10.1.1.5", ["a1", "b2,10.1.1.5"]])
def test_lists_with_commas_blanks_and_lists(value: Any) -> None:
    assert read_hosts(value) == ([Machine("a1", ""), Machine("b2", ""), Machine("gpu01", "10.1.1.5")], [])


def test_ipv6() -> None:
    assert addresses("fd00::11,FD00::0:12,fd00::[15:16]") == ["fd00::11", "fd00::12", "fd00::15", "fd00::16"]


def test_a_name_that_is_taken_is_given_to_no_address() -> None:
    assert names("10.1.1.5,gpu01,10.1.1.6") == ["gpu02", "gpu01", "gpu03"]


@pytest.mark.parametrize(
    ("value", "quoted", "rule"),
    [
        ("10.1.1.[22:11]", "'10.1.1.[22:11]'", host_list.ERR_BACKWARDS % "22:11"),
        ("gpu[01:100]", "'gpu[01:100]'", host_list.ERR_WIDTH % "01:100"),
        ("gpu[1:012]", "'gpu[1:012]'", host_list.ERR_WIDTH % "1:012"),
        ("gpu[a:c]", "'gpu[a:c]'", host_list.ERR_RANGE),
        ("gpu[1:9:2]", "'gpu[1:9:2]'", host_list.ERR_RANGE),
        ("gpu[]", "'gpu[]'", host_list.ERR_RANGE),
        ("gpu[\u0661:\u0669]", "'gpu[\u0661:\u0669]'", host_list.ERR_RANGE),
        ("[fd00::11],fd00::12", "'[fd00::11]'", host_list.ERR_RANGE),
        ("gpu[01:12", "'gpu[01:12'", host_list.ERR_BRACKETS),
        ("gpu01:12],gpu2", "'gpu01:12]'", host_list.ERR_BRACKETS),
        ("gpu[[1:2]]", "'gpu[[1:2]]'", host_list.ERR_BRACKETS),
        ("10.1.1.[254:259]", "'10.1.1.256', '10.1.1.257', '10.1.1.258' and 1 more", host_list.ERR_HOST),
        ("10.1.1.[01:02]", "'10.1.1.01', '10.1.1.02'", host_list.ERR_HOST),
        ("10.1.1,gpu2", "'10.1.1'", host_list.ERR_HOST),
        ("gpu/1,gpu2", "'gpu/1'", host_list.ERR_HOST),
        ("{{x}},gpu2", "'{{x}}'", host_list.ERR_HOST),
        ("localhost,gpu2", "'localhost'", host_list.ERR_LOOPBACK),
        ("127.0.0.1,gpu2", "'127.0.0.1'", host_list.ERR_NOT_A_HOST % "loopback"),
        ("192.0.2.[11:12]", "'192.0.2.11', '192.0.2.12'", host_list.ERR_SAMPLE),
        ("2001:db8::1,gpu2", "'2001:db8::1'", host_list.ERR_SAMPLE),
        ("n[1:2].example.com", "'n1.example.com', 'n2.example.com'", host_list.ERR_SAMPLE),
        ("gpu1,gpu2,GPU1", "'gpu1', 'GPU1'", host_list.ERR_TWICE),
        ("fd00::1,fd00:0::1", "'fd00::1', 'fd00:0::1'", host_list.ERR_TWICE),
        ("10.1.1.[1:9],10.1.1.[5:7]", "'10.1.1.5', '10.1.1.6', '10.1.1.7'", host_list.ERR_TWICE),
        ("10.[0:3].1.[0:250]", "'10.[0:3].1.[0:250]'", host_list.ERR_COUNT % 1004),
        ("10.1.1.1", "'10.1.1.1'", host_list.ERR_COUNT % 1),
        ("", "''", host_list.ERR_COUNT % 0),
        (12, "12", host_list.ERR_TYPE),
        (["gpu1", 2], "['gpu1', 2]", host_list.ERR_TYPE),
    ],
)
def test_refused(value: Any, quoted: str, rule: str) -> None:
    machines, problems = read_hosts(value)
    assert machines == []
    assert [(problem.variable, problem.value, problem.rule) for problem in problems] == [("hosts", quoted, rule)]
    assert problems[0].fix


def test_all_mistakes_at_once() -> None:
    _machines, problems = read_hosts("gpu[9:1],10.1.1.300,192.0.2.1,a1,a1")
    rules = [problem.rule for problem in problems]
    assert rules == [host_list.ERR_BACKWARDS % "9:1", host_list.ERR_HOST, host_list.ERR_SAMPLE, host_list.ERR_TWICE]


def test_a_huge_range_is_counted_and_not_made() -> None:
    _machines, problems = read_hosts("gpu[1:999999999]-[1:999999999]")
    assert [problem.rule for problem in problems] == [host_list.ERR_COUNT % 1001**2]
