# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What members give to jobs, against the inventory and among themselves."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import static_findings, static_view
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding

OF_JOBS, OF_SESSIONS = "/etc/gpu-cluster/environment", "/etc/environment"


def says(sample: Any, name: str, source: str = OF_JOBS, **variables: str) -> None:
    """What a node gives to jobs, beside what it gives already."""
    given = {key: {"value": value, "source": source} for key, value in variables.items()}
    sample.static[name]["environment"] = {**sample.static[name]["environment"], **given}


@pytest.fixture(name="cluster")
def fixture_cluster(sample: Any) -> Any:
    """Role launcher has run everywhere."""
    for name in sample.names:
        says(sample, name, NCCL_IB_DISABLE="0", NCCL_IB_TIMEOUT="22")
    return sample


def found(sample: Any, pins: dict[str, dict[str, Any]] | None = None) -> list[Finding]:
    return static_findings.findings(sample.static, sample.members, sample.plan, sample.user, "", (), pins)


def test_members_that_are_alike_are_fine(cluster: Any) -> None:
    assert found(cluster) == []


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (OF_JOBS, " --tags launcher --limit n2"),
        # Somebody has to say what it should be there.
        (OF_SESSIONS, ""),
    ],
)
def test_the_minority_is_named_with_both_values(cluster: Any, source: str, command: str) -> None:
    """Role launcher does not change what stands in the file of PAM."""
    says(cluster, "n2", source, NCCL_IB_TIMEOUT="14")
    (one,) = found(cluster)
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-017", "warning", ("n2",))
    assert one.cause == (
        f"jobs on n2 get other variables than they should: NCCL_IB_TIMEOUT is 14 in {source}, 2 of 3 nodes have 22"
    )
    assert one.command.endswith(command) and bool(one.command) == bool(command)
    assert "grep -n -e NCCL_IB_TIMEOUT /etc/" in one.look
    assert one.variables == {} and one.reproduce.endswith("--check --limit n2,n1,n3")


def test_all_that_differs_on_a_node_is_one_finding(cluster: Any) -> None:
    """A node on which role launcher has not run, and one on which somebody has set something."""
    cluster.static["n1"]["environment"] = {}
    says(cluster, "n3", OF_SESSIONS, TORCH_NCCL_BLOCKING_WAIT="1")
    first, third = found(cluster)
    assert (first.hosts, third.hosts) == (("n1",), ("n3",))
    assert first.cause.endswith(
        "NCCL_IB_DISABLE is not set, 2 of 3 nodes have 0; NCCL_IB_TIMEOUT is not set, 2 of 3 nodes have 22"
    )
    assert "--tags launcher --limit n1" in first.command
    assert "ansible n3 " in third.command and "TORCH_NCCL_BLOCKING_WAIT[[:space:]]*=/d' /etc/env" in third.command
    assert third.cause.endswith(f"TORCH_NCCL_BLOCKING_WAIT is 1 in {OF_SESSIONS}, 2 of 3 nodes have none")


def test_without_a_majority_nobody_is_accused(cluster: Any) -> None:
    says(cluster, "n2", NCCL_IB_TIMEOUT="14")
    says(cluster, "n3", NCCL_IB_TIMEOUT="18")
    assert found(cluster) == []
    says(cluster, "n3", NCCL_IB_TIMEOUT="22")
    del cluster.static["n1"]
    assert found(cluster) == []


@pytest.mark.parametrize(
    "name",
    [
        *("NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_IB_HCA", "NCCL_COMM_ID", "NCCL_HOSTID", "NCCL_TOPO_FILE"),
        *("NCCL_DEBUG", "NCCL_DEBUG_FILE", "GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"),
    ],
)
def test_what_a_node_may_have_for_itself(cluster: Any, name: str) -> None:
    says(cluster, "n2", **{name: "mine"})
    assert found(cluster) == []


def test_the_inventory_comes_first(cluster: Any) -> None:
    """What it gives one node is meant; what it gives and a node does not have is not."""
    pins = {
        "n2": {"launcher_environment": {"NCCL_IB_TIMEOUT": 22}, "launcher_host_environment": {"NCCL_IB_TIMEOUT": 14}}
    }
    says(cluster, "n2", NCCL_IB_TIMEOUT="14")
    assert found(cluster, pins) == []
    says(cluster, "n2", NCCL_IB_TIMEOUT="22")
    (one,) = found(cluster, pins)
    assert one.hosts == ("n2",) and one.cause.endswith(f"NCCL_IB_TIMEOUT is 22 in {OF_JOBS}, the inventory says 14")
    assert "--tags launcher --limit n2" in one.command and one.reproduce.endswith("--limit n2")


def test_the_inventory_of_a_run_reaches_the_judge(cluster: Any) -> None:
    pins = {name: {"launcher_environment": {"NCCL_IB_TIMEOUT": 14}} for name in cluster.names}
    (one,) = [one for one in cluster.diagnose(pins=pins).findings if one.id == "GC-NODE-017"]
    assert one.hosts == ("n1", "n2", "n3")


@pytest.mark.parametrize(
    ("values", "few", "many"),
    [
        ("", "", ""),
        ("11", "", "01"),
        ("12", "", "0"),
        ("112", "2", "01"),
        ("1122", "", "01"),
        ("11123", "34", "012"),
        ("11234", "", "01"),
    ],
)
def test_who_is_in_the_minority(values: str, few: str, many: str) -> None:
    assert static_view.minority({str(place): value for place, value in enumerate(values)}) == (list(few), list(many))
