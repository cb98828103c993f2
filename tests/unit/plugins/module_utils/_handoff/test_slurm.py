# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of Slurm: what is written for which members, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff import slurm
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import PortPlan, make_port_plan

PORTS: dict[str, Any] = {"extra_ports": [6817, 6818]}


def plan(**overrides: Any) -> PortPlan:
    return make_port_plan({**PORTS, **overrides})


def members(count: int = 3, **changed: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": f"gpu{number:02}",
            "fabric_address": f"10.9.0.{10 + number}",
            "sockets": 2,
            "cores_per_socket": 32,
            "threads_per_core": 2,
            "cpus": 128,
            "memory_mb": 1031800 + number,
            "gpus": 8,
            **changed,
        }
        for number in range(1, count + 1)
    ]


def rendered(given: list[dict[str, Any]], labels: dict[str, Any] | None = None, **options: Any) -> dict[str, list[str]]:
    """The lines of every file that are no comments."""
    texts, problems = slurm.files(given, labels or {}, plan(), options)
    assert problems == []
    return {
        name: [line for line in text.splitlines() if line and not line.startswith("#")] for name, text in texts.items()
    }


def refused(given: list[dict[str, Any]], ports: PortPlan | None = None, **options: Any) -> dict[str, str]:
    """The rule by variable."""
    texts, problems = slurm.files(given, options.pop("labels", {}), ports or plan(), options)
    assert texts == {}
    assert all(problem.fix for problem in problems)
    return {f"{problem.host}{problem.variable}": problem.rule for problem in problems}


def test_equal_nodes_are_one_line() -> None:
    found = rendered(members(12))
    (line,) = [line for line in found["slurm.conf"] if line.startswith("NodeName")]
    assert line == (
        "NodeName=gpu[01-12] NodeAddr=10.9.0.[11-22] CPUs=128 Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 "
        "RealMemory=1010688 Gres=gpu:8 State=UNKNOWN"
    )
    assert found["gres.conf"] == ["NodeName=gpu[01-12] Name=gpu File=/dev/nvidia[0-7]"]
    assert found["cgroup.conf"] == ["ConstrainCores=yes", "ConstrainDevices=yes", "ConstrainRAMSpace=yes"]
    assert found["topology.conf"] == []


def test_what_a_gpu_cluster_needs_of_slurm() -> None:
    found = rendered(members())["slurm.conf"]
    for line in (
        "ClusterName=gpu-cluster",
        "SlurmctldHost=gpu01(10.9.0.11)",
        "SlurmctldPort=6817",
        "SlurmdPort=6818",
        "GresTypes=gpu",
        "SelectType=select/cons_tres",
        "DefMemPerCPU=7896",
        "ProctrackType=proctrack/cgroup",
        "TaskPlugin=task/affinity,task/cgroup",
        "PropagateResourceLimits=NONE",
        "MpiDefault=none",
        "PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
    ):
        assert line in found
    assert not [line for line in found if "SrunPortRange" in line or "Topology" in line or "IPv6" in line]


def test_other_hardware_is_another_line() -> None:
    given = [*members(2), *members(3, gpus=4, cpus=64, memory_mb=515000)[2:]]
    found = rendered(given)
    lines = [line.split()[0] for line in found["slurm.conf"] if line.startswith("NodeName")]
    assert lines == ["NodeName=gpu[01-02]", "NodeName=gpu03"]
    assert found["gres.conf"][1] == "NodeName=gpu03 Name=gpu File=/dev/nvidia[0-3]"
    # 2 x 32 x 2 is not 64: only the number of CPUs is sure.
    assert "CPUs=64 RealMemory" in found["slurm.conf"][-2]


def test_nodes_without_gpus() -> None:
    found = rendered(members(gpus=0))
    assert found["gres.conf"] == [] and not [line for line in found["slurm.conf"] if "gpu:" in line or "Gres" in line]
    assert rendered(members(gpus=1))["gres.conf"] == ["NodeName=gpu[01-03] Name=gpu File=/dev/nvidia0"]


def test_a_thousand_nodes_with_addresses_in_disorder_have_short_lines() -> None:
    given = members(1000)
    for number, one in enumerate(given):
        one["fabric_address"] = f"10.9.{number * 7 % 250}.{number % 250 + 1}"
    lines = rendered(given)["slurm.conf"]
    assert max(map(len, lines)) <= slurm.LINE
    names = [line.split()[0] for line in lines if line.startswith("NodeName")]
    assert names[0].startswith("NodeName=gpu[01-") and names[-1].endswith("1000]")


@pytest.mark.parametrize(("mib", "usable"), [(1031800, 987 * 1024), (24000, 22 * 1024), (3000, 1024), (1500, 750)])
def test_memory_is_less_than_the_node_has(mib: int, usable: int) -> None:
    assert slurm.usable_memory(mib) == usable < mib


def test_the_controller() -> None:
    assert "SlurmctldHost=gpu02(10.9.0.12)" in rendered(members(), slurm_controller="gpu02")["slurm.conf"]
    assert "SlurmctldHost=head01" in rendered(members(), slurm_controller="head01")["slurm.conf"]
    found = rendered(members(), slurm_controller="head01", slurm_controller_address="10.1.1.5")["slurm.conf"]
    assert "SlurmctldHost=head01(10.1.1.5)" in found


def test_ipv6_and_choices() -> None:
    given = members()
    for number, one in enumerate(given, 1):
        one["fabric_address"] = f"fd00::{number}"
    found = rendered(given, slurm_cgroups_enabled="False", slurm_mpi="pmix")
    assert "CommunicationParameters=EnableIPv6" in found["slurm.conf"]
    assert "NodeAddr=fd00::1,fd00::2,fd00::3" in found["slurm.conf"][-2]
    assert {"ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "MpiDefault=pmix"} <= {*found["slurm.conf"]}
    assert found["cgroup.conf"] == []


def test_switches_become_a_tree() -> None:
    labels = {"gpu01": {"switch": "leaf-1"}, "gpu02": {"switch": "leaf-1"}, "gpu03": {"switch": "leaf-2"}}
    found = rendered(members(), labels)
    assert "TopologyPlugin=topology/tree" in found["slurm.conf"]
    assert found["topology.conf"] == [
        "SwitchName=leaf-1 Nodes=gpu[01-02]",
        "SwitchName=leaf-2 Nodes=gpu03",
        "SwitchName=all-switches Switches=leaf-[1-2]",
    ]
    one = rendered(members(2), {"gpu01": {"switch": "s"}, "gpu02": {"switch": "s"}})
    assert one["topology.conf"] == ["SwitchName=s Nodes=gpu[01-02]"]


def test_a_member_without_a_switch_is_refused() -> None:
    labels = {"gpu01": {"switch": "leaf/1"}, "gpu02": {"switch": "leaf-1"}, "gpu03": {"rack": "r1"}}
    found = refused(members(), labels=labels)
    assert found["gpu03gpu_cluster_labels"].startswith("has no switch, but other members have one")
    assert found["gpu01gpu_cluster_labels.switch"] == slurm.ERR_SWITCH_NAME
    assert rendered(members(), labels, slurm_switch_label="room")["topology.conf"] == []


def test_closed_ports_are_refused() -> None:
    found = refused(members(), make_port_plan({}))
    rule = "does not contain 6817 and 6818, so the firewall would reject slurmctld and slurmd"
    assert found == {"gpu_cluster_ports.extra_ports": rule}
    found = refused(members(), make_port_plan({"extra_ports": ["6800-6817", "6818/udp"]}))
    assert "does not contain 6818" in found["gpu_cluster_ports.extra_ports"]


def test_ports_of_srun() -> None:
    wide = make_port_plan({"extra_ports": [6817, 6818, "6900-6999"]})
    texts, problems = slurm.files(members(), {}, wide, {"slurm_srun_ports": "6900-6999"})
    assert problems == [] and "SrunPortRange=6900-6999\n" in texts["slurm.conf"]
    for value, rule in (
        ("6900-7000", slurm.ERR_SPAN_CLOSED),
        ("40000-40100", slurm.ERR_SPAN_CLOSED),
        ("6900-6901", slurm.ERR_FEW % 2),
        ("6999-6900", slurm.ERR_SPAN),
        (6900, slurm.ERR_SPAN),
    ):
        assert refused(members(), wide, slurm_srun_ports=value) == {"slurm_srun_ports": rule}


def test_all_bad_values_at_once() -> None:
    found = refused(
        members(),
        make_port_plan({}),
        slurm_cluster_name="GPU Cluster",
        slurm_partition_name="a,b",
        slurm_controller="head 1",
        slurm_controller_address="10.1.1.5/24",
        slurm_mpi="openmpi",
        slurm_cgroups_enabled="maybe",
        slurm_switch_label="a b",
    )
    assert set(found) == {
        *(name for name in slurm.SETTINGS if name != "slurm_srun_ports"),
        "gpu_cluster_ports.extra_ports",
    }


def test_members_without_an_answer_give_no_files_and_still_all_problems() -> None:
    given = members()
    del given[1]["memory_mb"]
    assert slurm.files(given, {}, plan(), {}) == slurm.Files({}, [])
    assert set(refused(given, slurm_mpi="x")) == {"slurm_mpi"}
