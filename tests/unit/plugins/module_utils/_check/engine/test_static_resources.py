# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports, limits, disk and SELinux against what the plan needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import static_resources
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding

DEFAULTS = Path(__file__).parents[6] / "roles" / "kernel_tuning" / "defaults" / "main.yml"


def test_ports_outside_of_the_plan(sample: Any) -> None:
    for name in ("n1", "n2"):
        sample.static[name]["ephemeral_range"] = [20000, 65000]
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-010", "error", ("n1", "n2"))
    assert "20000-32767, 61000-65000 are open in no firewall" in one.cause
    assert one.command.endswith("--tags kernel_tuning --limit n1,n2")
    assert one.variables == {} and "kernel_tuning_ephemeral_range, remove that" in one.fix


def test_fewer_ports_than_the_plan_is_a_warning(sample: Any) -> None:
    sample.static["n1"]["ephemeral_range"] = [32768, 50000]
    assert sample.found() == [("GC-NODE-010", "warning", ("n1",))]


@pytest.mark.parametrize(
    ("has", "missing"),
    [([], "40000-40009, 50000"), ([[40000, 40004], [50000, 50000]], "40005-40009"), ([[40000, 50000]], "")],
)
def test_reserved_ports(sample: Any, has: list[list[int]], missing: str) -> None:
    sample.plan["reserved"] = ["40000-40009", "50000"]
    for name in sample.names:
        sample.static[name]["reserved_ports"] = [[40000, 50000]]
    sample.static["n2"]["reserved_ports"] = has
    found = sample.findings()
    assert [(one.id, one.severity, one.hosts) for one in found] == (
        [("GC-NODE-011", "warning", ("n2",))] if missing else []
    )
    assert all(missing in one.cause for one in found)


def test_what_listens_on_ports_of_the_rendezvous_is_a_warning_with_its_program_and_user(sample: Any) -> None:
    held = {"address": "*", "program": "python3", "user": "train"}
    sample.static["n1"]["listeners"] = [dict(held, port=29500, pid=7), dict(held, port=29501, pid=8)]
    sample.static["n3"]["listeners"] = [dict(held, port=29500, pid=9)]
    unknown_one = {"address": "[::]", "port": 29511, "program": "", "user": "", "pid": 0}
    sample.static["n1"]["listeners"].append(unknown_one)
    sample.static["n2"]["listeners"] = [unknown_one]
    job, unknown = sample.findings()
    assert (job.id, job.severity, job.hosts) == ("GC-NODE-015", "warning", ("n1", "n3"))
    assert job.cause == "python3 of user train listens on n1, n3 on ports of the rendezvous: 29500-29501"
    assert job.evidence[0] == "n1: *:29500, process 7" and len(job.evidence) == 3
    assert job.look == "ss -ltnp 'sport >= :29500 and sport <= :29501'" and job.variables == {} and job.command == ""
    assert unknown.cause == "something listens on n1, n2 on ports of the rendezvous: 29511"
    assert unknown.evidence[1] == "n2: [::]:29511, process unknown"


def test_the_formulas() -> None:
    # 64 nodes of 8 GPUs: 256 + 32 x (4 + 511), and 8 x (128 + 4 x 32).
    assert static_resources.needed_files(512, 32) == 16736
    assert static_resources.needed_processes(8, 128, 32) == 2048


@pytest.mark.parametrize(
    ("nofile", "severity"),
    # 24 ranks: one process group needs 256 + 27, the plan's 32 need 256 + 32 x 27.
    [(-1, ""), (1120, ""), (1119, "warning"), (283, "warning"), (282, "error")],
)
def test_open_files(sample: Any, nofile: int, severity: str) -> None:
    sample.static["n2"]["limits"]["nofile"] = nofile
    found = sample.findings()
    assert [(one.id, one.severity, one.hosts) for one in found] == (
        [("GC-NODE-012", severity, ("n2",))] if severity else []
    )
    for one in found:
        assert one.cause == f"limits of train on n2: nofile is {nofile}, the port plan needs 1120"
        # The role's default is enough: a list of its own would lower it.
        assert one.variables == {} and "--tags kernel_tuning --limit n2" in one.command


def test_several_limits_of_a_node_are_one_finding_with_the_whole_list(sample: Any) -> None:
    sample.static["n2"]["limits"] = {"nofile": 1024, "memlock": 4 << 20, "nproc": 100}
    (one,) = sample.findings()
    # 100 is below what one process group needs: 8 x (64 + 4).
    assert one.severity == "error" and "nofile is 1024" in one.cause and "nproc is 100" in one.cause
    # The role has no default for nproc: the list that brings it replaces the role's, so it brings these along.
    assert wanted_of(one) == {"memlock": "unlimited", "nofile": "524288", "nproc": "1536"}


def wanted_of(one: Finding) -> dict[str, str]:
    return {entry["item"]: entry["value"] for entry in one.variables["n2"]["kernel_tuning_limits"]}


def test_the_defaults_of_the_role_are_those_of_the_role() -> None:
    defaults = yaml.safe_load(DEFAULTS.read_text(encoding="utf-8"))["kernel_tuning_limits"]
    assert {entry["item"]: entry["value"] for entry in defaults} == {"memlock": "unlimited", "nofile": "524288"}
    assert static_resources.ROLE_LIMITS == {"memlock": -1, "nofile": 524288}


def test_the_variables_of_limits_lower_nothing(sample: Any) -> None:
    """200 nodes, soft limits as systemd has them, no RDMA: the list would bring 13080 files and 8 MiB."""
    large = type(sample)(200)
    large.plan["process_groups"] = 8
    large.static = {"n2": dict(large.static["n2"], limits={"nofile": 1024, "memlock": 8 << 20, "nproc": -1})}
    (one,) = large.findings()
    assert one.cause == "limits of train on n2: nofile is 1024, the port plan needs 13080"
    assert one.variables == {} and "run role kernel_tuning, whose defaults are enough" in one.fix


def test_what_is_more_than_the_defaults_of_the_role_is_kept(sample: Any) -> None:
    sample.static["n2"]["limits"] = {"nofile": 1 << 20, "memlock": 8 << 20, "nproc": 100}
    (one,) = sample.findings()
    assert wanted_of(one) == {"memlock": "unlimited", "nofile": "1048576", "nproc": "1536"}
    # 8 x 3 ranks in 30000 groups each: 256 + 30000 x 27.
    sample.plan["process_groups"] = 30000
    sample.static = {"n2": dict(sample.static["n2"], limits={"nofile": 524288, "nproc": -1})}
    (one,) = sample.findings()
    assert wanted_of(one) == {"memlock": "unlimited", "nofile": "810256"}


def test_processes(sample: Any) -> None:
    sample.static["n2"]["limits"]["nproc"] = 1535
    (one,) = sample.findings()
    assert one.id == "GC-NODE-012" and "needs 1536" in one.cause


@pytest.mark.parametrize(("devices", "told"), [([], False), (["mlx5_0"], True)])
def test_locked_memory_counts_where_there_is_rdma(sample: Any, devices: list[str], told: bool) -> None:
    sample.static["n2"]["limits"]["memlock"] = 8 << 20
    sample.static["n2"]["rdma"] = devices
    assert sample.found() == ([("GC-NODE-012", "warning", ("n2",))] if told else [])


def test_a_full_disk(sample: Any) -> None:
    sample.static["n1"]["disk"][0]["free_bytes"] = 3 << 20
    (one,) = sample.findings()
    assert (one.id, one.severity, one.hosts) == ("GC-NODE-013", "error", ("n1",))
    assert "has 3 MiB free" in one.cause


@pytest.mark.parametrize(("count", "told"), [(None, False), (0, False), (2, True)])
def test_denials(sample: Any, count: int | None, told: bool) -> None:
    sample.static["n3"]["denials"] = count
    assert sample.found() == ([("GC-NODE-014", "warning", ("n3",))] if told else [])
