# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's tables of neighbours against the members in the own subnets of a node."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import matrix, static_findings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding


def tables(second: int, third: int, full: int = 0) -> dict[str, int]:
    return {"gc_thresh2": second, "gc_thresh3": third, "table_fulls": full}


def grown(sample: Any, others: int, prefix: int = 20) -> Any:
    """The nodes n1 to n3 in a network of 10.0.0.0, with so many other members that gave no answer."""
    first = sample.members[0]
    for number in range(1, others + 1):
        address = f"10.0.{number // 256}.{number % 256}"
        sample.members.append(dict(first, name=f"m{number}", fabric_address=address, addresses=[address]))
    for number, name in enumerate(sample.names, 1):
        sample.static[name]["interfaces"]["fab0"]["addresses"].append(f"10.0.15.{number}/{prefix}")
    return sample


def found(sample: Any, pins: dict[str, dict[str, Any]] | None = None) -> list[Finding]:
    every = static_findings.findings(sample.static, sample.members, sample.plan, sample.user, pins=pins)
    return [one for one in every if one.id == "GC-NODE-018"]


@pytest.mark.parametrize(
    ("others", "severity"), [(510, ""), (511, "warning"), (1022, "warning"), (1023, "error"), (1500, "error")]
)
def test_so_many_members_in_a_subnet_as_the_kernel_has_places(sample: Any, others: int, severity: str) -> None:
    """Two of the three nodes are neighbours as well."""
    every = found(grown(sample, others))
    assert [(one.severity, one.hosts) for one in every] == ([(severity, ("n1", "n2", "n3"))] if severity else [])
    for one in every:
        limit = "takes 1024 (net.ipv4.neigh.default.gc_thresh3): new ones are refused"
        kept = "throws some out above 512 (net.ipv4.neigh.default.gc_thresh2)"
        assert f"n1, n2, n3: {others + 2} IPv4 neighbours, the kernel" in one.cause
        assert (limit if severity == "error" else kept) in one.cause
        # The role counts the members by itself.
        assert one.variables == {} and one.command.endswith("--tags kernel_tuning --limit n1,n2,n3")
        assert one.evidence == ()


def test_members_behind_a_router_need_no_entry(sample: Any) -> None:
    assert found(grown(sample, 1500, prefix=29)) == []


def test_a_node_whose_tables_are_large_enough_is_not_named(sample: Any) -> None:
    grown(sample, 1500)
    for name in ("n1", "n3"):
        sample.static[name]["neighbour_tables"]["ipv4"] = tables(8192, 16384)
    sample.static["n2"]["neighbour_tables"]["ipv4"] = tables(512, 1024, 412)
    (one,) = found(sample)
    assert one.hosts == ("n2",)
    assert one.evidence == ("n2: the table of IPv4 was too full for a new neighbour 412 times since boot",)


def test_where_the_kernel_shows_no_table_nothing_is_said(sample: Any) -> None:
    """In a container."""
    grown(sample, 1500)
    for name in sample.names:
        sample.static[name]["neighbour_tables"] = {}
    assert found(sample) == []


def test_each_family_has_a_table_of_its_own(sample: Any) -> None:
    for number, member in enumerate(sample.members, 1):
        member["addresses"] = [member["fabric_address"], f"2001:db8::{number}"]
        sample.static[member["name"]]["interfaces"]["fab0"]["addresses"].append(f"2001:db8::{number}/64")
    sample.static["n1"]["neighbour_tables"] = {"ipv4": tables(2, 4), "ipv6": tables(1, 1)}
    (one,) = found(sample)
    assert (one.severity, one.hosts) == ("error", ("n1",))
    assert "n1: 2 IPv6 neighbours, the kernel takes 1 (net.ipv6.neigh.default.gc_thresh3)" in one.cause


def test_tables_that_the_role_would_leave_alone_have_a_variable(sample: Any) -> None:
    """Up to 64 machines it sets none, and somebody else has made them smaller than the kernel does."""
    sample.static["n1"]["neighbour_tables"]["ipv4"] = tables(1, 4)
    (one,) = found(sample)
    assert (one.severity, one.variables) == ("warning", {"n1": {"kernel_tuning_neighbours": 65}})


@pytest.mark.parametrize(
    ("pinned", "named"), [(10, True), ("10", True), ("many", True), (100, True), (129, False), (1503, False)]
)
def test_an_inventory_that_counts_too_few_is_told_the_number(sample: Any, pinned: Any, named: bool) -> None:
    grown(sample, 597)
    sample.static = {"n2": sample.static["n2"]}
    (one,) = found(sample, {"n2": {"kernel_tuning_neighbours": pinned}})
    # 100 gives 512 as gc_thresh2, which 599 do not fit, and 129 gives 1024.
    assert one.variables == ({"n2": {"kernel_tuning_neighbours": 600}} if named else {})


def test_the_check_asks_the_inventory(sample: Any) -> None:
    assert "kernel_tuning_neighbours" in matrix.VARIABLES
    grown(sample, 597)
    pins = {"n1": {"kernel_tuning_neighbours": 10}}
    (one,) = [one for one in sample.diagnose(pins=pins).findings if one.id == "GC-NODE-018"]
    assert one.variables == {"n1": {"kernel_tuning_neighbours": 600}}
