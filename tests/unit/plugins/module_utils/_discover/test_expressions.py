# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expressions for addresses, ranges of names, and free networks."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.expressions import (
    by_management,
    by_number,
    free_subnet,
    ranges,
)


def addresses(names: list[str], first: int) -> dict[str, str]:
    return {name: f"10.1.1.{first + index}" for index, name in enumerate(names)}


@pytest.mark.parametrize(
    ("names", "first", "text"),
    [
        (["gpu01", "gpu02"], 11, "10.1.1.{{ inventory_hostname[-2:] | int + 10 }}"),
        (["gpu11", "gpu12"], 11, "10.1.1.{{ inventory_hostname[-2:] | int }}"),
        (["n101", "n102"], 1, "10.1.1.{{ inventory_hostname[-3:] | int - 100 }}"),
        (["n9", "n10"], 9, "10.1.1.{{ inventory_hostname | regex_search('[0-9]+$') | int }}"),
    ],
)
def test_by_the_number_of_the_name(names: list[str], first: int, text: str) -> None:
    found = by_number(addresses(names, first))
    assert found is not None and found.text == text and list(found.values) == names


def test_a_host_that_does_not_follow_is_left_to_itself() -> None:
    found = by_number({**addresses(["gpu01", "gpu02", "gpu03"], 1), "gpu04": "10.1.1.40", "head": "10.1.1.4"})
    assert found is not None and list(found.values) == ["gpu01", "gpu02", "gpu03"]
    assert by_number({"head": "10.1.1.1"}) is None and by_number({"gpu01": "fd00::1"}) is None


def test_by_the_end_of_the_address_of_ssh() -> None:
    managed = {"a": "10.1.1.7", "b": "10.1.2.9", "c": "head"}
    one = by_management({"a": "10.9.0.7", "b": "10.9.0.9"}, managed, "/24")
    assert one is not None and one.text == "10.9.0.{{ ansible_host.split('.')[3] }}/24" and len(one.values) == 2
    two = by_management({"a": "10.9.1.7", "b": "10.9.2.9", "c": "10.9.2.1"}, managed, "/16")
    assert two is not None and two.text == "10.9.{{ ansible_host.split('.')[2:] | join('.') }}/16"
    assert list(two.values) == ["a", "b"] and by_management({"a": "10.9.0.8"}, managed) is None


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        (["gpu01", "gpu02", "gpu03", "gpu05", "head"], ["gpu[01:03]", "gpu05", "head"]),
        (["n8", "n9", "n10", "n11"], ["n[8:11]"]),
        (["n08", "n9", "n10"], ["n08", "n9", "n10"]),
        (["n098", "n099", "n100"], ["n[098:100]"]),
        (["a1", "a2"], ["a1", "a2"]),
        ([], []),
    ],
)
def test_ranges(hosts: list[str], expected: list[str]) -> None:
    assert list(ranges(hosts)) == expected


def test_a_free_network_ends_as_the_address_of_ssh_does() -> None:
    managed = {"a": "10.1.1.7", "b": "10.1.2.9"}
    assert free_subnet(["10.1.0.0/16", "0.0.0.0/0"], 2, managed) == (
        "10.20.0.0/24",
        {"a": "10.20.0.7", "b": "10.20.0.9"},
    )
    assert free_subnet(["10.0.0.0/8"], 2, managed)[0] == "172.20.0.0/24"
    assert free_subnet(["10.0.0.0/8", "172.16.0.0/12"], 2, managed) == ("", {})
    # The last part is that of both.
    assert free_subnet([], 2, {"a": "10.1.1.7", "b": "10.1.2.7"}) == (
        "10.20.0.0/16",
        {"a": "10.20.1.7", "b": "10.20.2.7"},
    )
    # Names, and an address that no host can have there.
    assert free_subnet([], 2, {"a": "a", "b": "b"}) == ("10.20.0.0/24", {"a": "10.20.0.11", "b": "10.20.0.12"})
    assert free_subnet([], 2, {"a": "10.1.1.255", "b": "10.1.2.7"})[1] == {"a": "10.20.1.255", "b": "10.20.2.7"}
