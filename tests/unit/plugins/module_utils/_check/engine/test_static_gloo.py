# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interfaces that jobs are told to use over gloo, against the data network.

What gloo does with each was seen with PyTorch 2.13.0 on three nodes of namespaces.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import static_findings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding

GLOO = "GLOO_SOCKET_IFNAME"
OF_JOBS, OF_SESSIONS = "/etc/gpu-cluster/environment", "/etc/environment"


def says(sample: Any, name: str, value: str, source: str = OF_JOBS) -> None:
    """What a node gives to jobs."""
    sample.static[name]["environment"] = {GLOO: {"value": value, "source": source}}


@pytest.fixture(name="cluster")
def fixture_cluster(sample: Any) -> Any:
    """Role launcher has run everywhere, and each node has a rail more, and cards that do not do."""
    for number, name in enumerate(sample.names, 1):
        links = sample.static[name]["interfaces"]
        links["fab1"] = dict(links["fab0"], addresses=[f"192.0.3.{number}/24"])
        links["old0"] = dict(links["fab0"], addresses=[f"203.0.113.{number}/24"], state="down")
        links["old1"] = dict(links["old0"], state="no carrier")
        sample.static[name]["present"] = ["eth0", "fab0", "fab1", "none0", "old0", "old1"]
        says(sample, name, "fab0")
    return sample


def found(sample: Any, pins: dict[str, dict[str, Any]] | None = None) -> list[Finding]:
    return static_findings.findings(sample.static, sample.members, sample.plan, sample.user, "", (), pins)


@pytest.mark.parametrize("value", ["fab0", "fab0,", "fab0,fab1", "fab0:1", "", "x"])
def test_what_gloo_can_use_everywhere_is_fine(cluster: Any, value: str) -> None:
    """A rail more, a label, an empty value, and one character, which is the same to PyTorch."""
    for name in cluster.names:
        says(cluster, name, value)
    assert found(cluster) == []


def test_where_nothing_is_set_nothing_is_said(cluster: Any) -> None:
    for name in cluster.names[1:]:
        cluster.static[name]["environment"] = {}
    assert found(cluster) == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("eth9", "there is no interface eth9"),
        ("=fab0", "there is no interface =fab0"),
        ("fab0, fab1", "there is no interface  fab1"),
        ("none0", "none0 has no address that others reach"),
        ("old0", "old0 is down"),
        ("old1", "old1 has no carrier"),
        ("lo", "lo leads every node to itself"),
        ("fab0,lo,eth9", "lo leads every node to itself and there is no interface eth9"),
    ],
)
def test_an_interface_that_gloo_cannot_use_ends_every_job(cluster: Any, value: str, reason: str) -> None:
    says(cluster, "n2", value, OF_SESSIONS)
    (one,) = found(cluster)
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-016", "error", ("n2",))
    assert one.cause == f"jobs over gloo fail with n2: {GLOO} is {value} in {OF_SESSIONS}, and {reason}"
    assert "out of /etc/environment" in one.fix and one.variables == {}
    assert one.command.endswith("--tags launcher --limit n2") and one.reproduce.endswith("--check --limit n2")


def test_an_interface_beside_the_data_network_is_a_warning(cluster: Any) -> None:
    """Others may reach it, over another network."""
    for name in ("n1", "n3"):
        says(cluster, name, "eth0")
    (one,) = found(cluster)
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-016", "warning", ("n1", "n3"))
    assert one.cause == (
        f"jobs over gloo take eth0 on n1, n3 and not fab0, the data network: {GLOO} is eth0 in {OF_JOBS}"
    )
    # Somebody has written over the file: the inventory is right.
    assert "let role launcher write" in one.fix and one.variables == {}


def test_nodes_that_are_alike_are_one_finding_and_a_broken_card_is_told_alone(cluster: Any) -> None:
    for name in cluster.names:
        says(cluster, name, "eth9")
    cluster.static["n3"]["interfaces"]["fab0"]["state"] = "down"
    assert [(one.id, one.hosts) for one in found(cluster)] == [("GC-NODE-003", ("n3",)), ("GC-NODE-016", ("n1", "n2"))]


def test_lists_of_different_lengths_name_the_minority(cluster: Any) -> None:
    """The ranks with two interfaces wait for a second address of the others."""
    says(cluster, "n2", "fab0,fab1")
    (one,) = found(cluster)
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-016", "error", ("n2",))
    assert one.cause == (
        f"jobs over gloo fail with all members: {GLOO} does not name as many interfaces on each, 1 on n1, n3; 2 on n2"
    )
    assert one.evidence[:2] == (f"{GLOO} is fab0 in {OF_JOBS} on n1, n3", f"{GLOO} is fab0,fab1 in {OF_JOBS} on n2")
    assert one.reproduce.endswith("--limit n2,n1,n3") and one.variables == {}
    # Without the variable gloo takes one.
    cluster.static["n1"]["environment"] = {}
    (one,) = found(cluster)
    assert one.hosts == ("n2",) and f"nothing sets {GLOO} on n1" in one.evidence


def test_the_one_with_the_shorter_list_is_to_have_the_longer(cluster: Any) -> None:
    for name in ("n1", "n3"):
        says(cluster, name, "fab0,fab1")
    (one,) = found(cluster)
    assert one.hosts == ("n2",) and "the same rails in the same order" in one.fix and one.variables == {}


def test_of_two_members_nobody_is_in_the_minority(cluster: Any) -> None:
    says(cluster, "n2", "fab0,fab1")
    del cluster.static["n3"]
    (one,) = found(cluster)
    assert (one.severity, one.hosts) == ("error", ()) and one.reproduce.endswith("--limit n1,n2")


@pytest.mark.parametrize("value", ["fab0,fab1", "fab0,old0"])
def test_the_inventory_itself_is_mended_by_its_variable(cluster: Any, value: str) -> None:
    """With what the variable has besides; after it the node is as the others."""
    says(cluster, "n2", value)
    own = {"launcher_host_environment": {GLOO: value, "OMP_NUM_THREADS": 8}}
    (one,) = found(cluster, {"n2": own, "n1": {"launcher_environment": {"OMP_NUM_THREADS": 4}}})
    assert one.hosts == ("n2",) and one.command.endswith("--tags launcher --limit n2")
    assert one.variables == {"n2": {"launcher_host_environment": {GLOO: "fab0", "OMP_NUM_THREADS": 8}}}
    mended = copy.deepcopy(cluster)
    says(mended, "n2", one.variables["n2"]["launcher_host_environment"][GLOO])
    assert found(mended, one.variables) == []


def test_no_variable_where_it_would_not_mend(cluster: Any) -> None:
    """All have two rails, and one of them is down on a node: its list alone cannot be shortened."""
    for name in cluster.names:
        says(cluster, name, "fab0,fab1")
    cluster.static["n2"]["interfaces"]["fab1"]["state"] = "down"
    pins = {name: {"launcher_environment": {GLOO: "fab0,fab1"}} for name in cluster.names}
    (one,) = found(cluster, pins)
    assert one.hosts == ("n2",) and one.cause.endswith("and fab1 is down") and one.variables == {}
    assert one.command == "" and "GLOO_SOCKET_IFNAME" in one.look
