# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface that NCCL takes, against the data network."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import facts_nccl
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import static_findings, static_nccl
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding

OF_JOBS, CONF = "/etc/gpu-cluster/environment", "/etc/nccl.conf"
NONE = "Bootstrap : no socket interface found"


def says(sample: Any, name: str, interface: str, address: str, **more: Any) -> None:
    """What NCCL of a node answered; ``value`` and ``source`` are those of NCCL_SOCKET_IFNAME."""
    value, source = more.pop("value", ""), more.pop("source", OF_JOBS)
    settings = {"NCCL_SOCKET_IFNAME": {"value": value, "source": source}} if value else {}
    said = {"library": "/opt/x/libnccl.so.2", "version": "2.28.9", "interface": interface, "address": address}
    sample.static[name]["nccl"] = {**said, "error": "", "why": "", "settings": settings, **more}


@pytest.fixture(name="cluster")
def fixture_cluster(sample: Any) -> Any:
    """Role launcher has run everywhere."""
    for number, name in enumerate(sample.names, 1):
        says(sample, name, "fab0", f"192.0.2.{number}", value="=fab0")
    return sample


def found(sample: Any, backend: str = "nccl", gpus: tuple[str, ...] = ()) -> list[Finding]:
    return static_findings.findings(sample.static, sample.members, sample.plan, sample.user, backend, gpus)


def test_the_data_network_is_fine(cluster: Any) -> None:
    assert found(cluster) == []


def test_nodes_without_nccl_are_fine(sample: Any) -> None:
    sample.static["n1"]["nccl"] = facts_nccl.nothing([], "")
    assert found(sample) == [] and static_nccl.notes(sample.static) == []


def test_the_first_of_several_interfaces_is_that_of_the_kernel(cluster: Any) -> None:
    says(cluster, "n2", "eth0", "198.51.100.2", value="=eth0,fab0")
    (one,) = found(cluster)
    assert (one.id, one.severity, one.hosts) == ("GC-NCCL-001", "error", ("n2",))
    assert one.cause == (
        "NCCL on n2 takes eth0 (198.51.100.2) and not fab0, the data network: "
        "NCCL_SOCKET_IFNAME is =eth0,fab0 in /etc/gpu-cluster/environment"
    )
    assert one.variables == {"n2": {"launcher_host_environment": {"NCCL_SOCKET_IFNAME": "=fab0"}}}
    assert one.command.endswith("--tags launcher --limit n2") and one.reproduce.endswith("--check --limit n2")
    assert one.evidence == (
        "ncclGetUniqueId() of NCCL 2.28.9 (/opt/x/libnccl.so.2) on n2",
        "NCCL takes the data network on n1, n3",
    )


@pytest.mark.parametrize(
    ("value", "source", "tags", "variables"),
    [
        # Somebody has written over the file of the role: its variables are right already.
        ("=eth0", OF_JOBS, "launcher", {}),
        ("^docker0", OF_JOBS, "launcher", {}),
        ("=eth0", CONF, "nccl,launcher", {"nccl_socket_interfaces": ["fab0"]}),
        ("eth", "/home/train/.nccl.conf", "launcher", {}),
        ("", "", "launcher", {}),
    ],
)
def test_who_mends_it_depends_on_where_it_stands(
    cluster: Any, value: str, source: str, tags: str, variables: dict[str, Any]
) -> None:
    says(cluster, "n1", "eth0", "198.51.100.1", value=value, source=source)
    (one,) = found(cluster)
    assert f" --tags {tags} --limit n1" in one.command
    assert one.variables == ({"n1": variables} if variables else {})
    assert one.cause.endswith(f"{value} in {source}" if value else "nothing sets NCCL_SOCKET_IFNAME")


@pytest.mark.parametrize(
    ("backend", "gpus", "severity"), [("gloo", (), "warning"), ("gloo", ("n1",), "error"), ("nccl", (), "error")]
)
def test_it_is_an_error_where_jobs_use_nccl(cluster: Any, backend: str, gpus: tuple[str, ...], severity: str) -> None:
    says(cluster, "n1", "lo", "127.0.0.1", value="=lo")
    (one,) = found(cluster, backend, gpus)
    assert (one.id, one.severity) == ("GC-NCCL-001", severity)
    assert "takes lo (127.0.0.1, which nobody else reaches)" in one.cause


def test_nodes_that_are_alike_are_one_finding(cluster: Any) -> None:
    for number, name in enumerate(cluster.names, 1):
        says(cluster, name, "eth0", f"198.51.100.{number}")
    (one,) = found(cluster)
    assert (one.id, one.hosts) == ("GC-NCCL-001", ("n1", "n2", "n3"))
    assert "takes eth0 (198.51.100.0/24)" in one.cause and len(one.evidence) == 1


def test_another_address_of_the_card(cluster: Any) -> None:
    links = cluster.static["n1"]["interfaces"]["fab0"]["addresses"]
    links[:0] = ["203.0.113.7/24"]
    says(cluster, "n1", "fab0", "203.0.113.7", value="=fab0")
    (one,) = found(cluster)
    assert "takes fab0 (203.0.113.7) and not the address of the data network on fab0" in one.cause
    assert one.variables == {} and one.command.endswith('"ip address del 203.0.113.7/24 dev fab0"')
    # Another one of the same network reaches everybody.
    links[:0] = ["192.0.2.77/24"]
    says(cluster, "n1", "fab0:1", "192.0.2.77", value="=fab0")
    assert found(cluster) == []


def test_without_a_name_the_address_tells_the_interface(cluster: Any) -> None:
    says(cluster, "n1", "", "198.51.100.1")
    (one,) = found(cluster)
    assert "takes eth0 (198.51.100.1)" in one.cause
    # Nothing is known of the loopback's interface.
    says(cluster, "n1", "", "127.0.0.1")
    (one,) = found(cluster)
    assert "takes an interface (127.0.0.1, which nobody else reaches)" in one.cause


def test_no_interface(cluster: Any) -> None:
    says(cluster, "n3", "", "", value="=eth9", error=NONE)
    (one,) = found(cluster)
    assert (one.id, one.severity, one.hosts) == ("GC-NCCL-002", "error", ("n3",))
    assert one.cause == (
        f"NCCL can't begin on n3: {NONE}; NCCL_SOCKET_IFNAME is =eth9 in /etc/gpu-cluster/environment, "
        "and the interfaces with addresses are eth0, fab0"
    )
    assert "--tags launcher --limit n3" in one.command


def test_what_the_card_explains_is_not_said_again(cluster: Any) -> None:
    cluster.static["n3"]["interfaces"]["fab0"]["state"] = "down"
    says(cluster, "n3", "", "", value="=fab0", error=NONE)
    assert [one.id for one in found(cluster)] == ["GC-NODE-003"]


def rail(sample: Any, number: int, name: str, subnet: int, value: str) -> None:
    """A second rail, whose address the inventory knows, and NCCL that takes it."""
    address = f"192.0.{subnet}.{number}"
    card = sample.static[name]["interfaces"]["fab0"]
    sample.static[name]["interfaces"]["fab1"] = dict(card, addresses=[f"{address}/24"])
    sample.members[number - 1]["addresses"] = [f"192.0.2.{number}", address, f"198.51.100.{number}"]
    says(sample, name, "fab1", address, value=value)


def test_rails_that_need_not_meet(cluster: Any) -> None:
    for number, name in enumerate(cluster.names, 1):
        rail(cluster, number, name, 3, "=fab0,fab1")
    # All on the same rail: the site wants it.
    assert found(cluster) == []
    says(cluster, "n1", "fab0", "192.0.2.1", value="=fab0,fab1")
    (one,) = found(cluster)
    assert (one.id, one.severity, one.hosts) == ("GC-NCCL-003", "error", ("n2", "n3"))
    assert "NCCL on n2, n3 takes fab1 (192.0.3.0/24), on n1 another network" in one.cause
    assert one.variables["n2"] == {"launcher_host_environment": {"NCCL_SOCKET_IFNAME": "=fab0"}}
    assert "--limit" not in one.reproduce


def test_two_rails_and_nobody_on_the_data_network(cluster: Any) -> None:
    for number, name in enumerate(cluster.names, 1):
        rail(cluster, number, name, 3 if number == 1 else 4, "=fab0,fab1")
    assert [(one.id, one.hosts) for one in found(cluster)] == [("GC-NCCL-003", ("n1",)), ("GC-NCCL-003", ("n2", "n3"))]


def test_a_further_address_by_chance_or_of_the_management_is_no_rail(cluster: Any) -> None:
    for number, name in enumerate(cluster.names, 1):
        rail(cluster, number, name, 3, "")
    assert [one.id for one in found(cluster)] == ["GC-NCCL-001"]
    for number, name in enumerate(cluster.names, 1):
        says(cluster, name, "eth0", f"198.51.100.{number}", value="=eth0,fab0")
    assert [one.id for one in found(cluster)] == ["GC-NCCL-001"]


def test_why_it_was_not_asked_is_a_note(cluster: Any) -> None:
    for name in ("n1", "n3"):
        cluster.static[name]["nccl"] = facts_nccl.nothing(["/opt/x/libnccl.so.2"], "no answer within 3 s")
    assert found(cluster) == []
    assert static_nccl.notes(cluster.static) == [
        "NCCL on n1, n3 was not asked which interface it takes: no answer within 3 s"
    ]


GPU = {
    "kernel": {"running": "5.14.0-503.el9.x86_64"},
    "pci": {"gpus": [{"address": "0000:1b:00.0", "driver": "nvidia"}], "nvswitches": []},
    "driver": {"loaded": "580.95.05", "user_space": "580.95.05"},
    "gpus": [{"model": "NVIDIA H200", "mig": False, "ecc": True, "xids": [], "pci_address": "0000:1b:00.0"}],
    "fabric_manager": {"version": "", "active": None},
    "cuda": {"default": "13.0"},
    "nccl": {"system": "", "torch": "2.28.9"},
    "torch": {"version": "2.13.0"},
    "nics": [],
}


def test_the_facts_of_a_run_tell_where_the_gpus_are(cluster: Any) -> None:
    says(cluster, "n1", "eth0", "198.51.100.1", value="=eth0")
    says(cluster, "n2", "lo", "127.0.0.1", value="=lo")
    cluster.static["n3"]["nccl"] = facts_nccl.nothing(["/x"], "no answer within 3 s")
    report = cluster.diagnose(facts={"n2": GPU})
    weights = {one.hosts: one.severity for one in report.findings if one.id == "GC-NCCL-001"}
    assert weights == {("n1",): "warning", ("n2",): "error"}
    assert "NCCL on n3 was not asked which interface it takes: no answer within 3 s" in report.notes
