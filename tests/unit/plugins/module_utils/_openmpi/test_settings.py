# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each version is to read."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import settings, spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi.installation import Installation
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import make_port_plan

PORTS = {name: str(number) for name, number in make_port_plan().openmpi().items()}
V6 = dict.fromkeys(settings.OF_IPV6, "1024")
OLD = Installation("4.1.4", "/etc/openmpi.conf", frozenset({"ob1", "ucx"}), V6, {})
NEW = OLD._replace(version="5.0.11", prte_file="/etc/prte.conf")


def wanted(**changes: Any) -> spec.Spec:
    ports = make_port_plan().openmpi()
    found, problems = spec.read({"prefix": "/usr", "networks": ["192.0.2.17/24"], "ports": ports, **changes})
    assert problems == []
    return found


def parameters(installation: Installation, devices: list[str] | None = None, **changes: Any) -> settings.Parameters:
    return settings.parameters(wanted(**changes), installation, "/usr/bin/daemon", lambda net: "fab0", devices or [])


def test_4_1_has_one_file() -> None:
    assert parameters(OLD, ssh_port=2222) == (
        {
            "pml": "ob1",
            "btl": "self,vader,tcp",
            "btl_tcp_if_include": "192.0.2.0/24",
            "btl_tcp_disable_family": "6",
            **PORTS,
            "oob_tcp_if_include": "192.0.2.0/24",
            "orte_launch_agent": "/usr/bin/daemon",
            "plm_rsh_args": "-p 2222",
        },
        {},
        {},
    )


def test_5_has_two() -> None:
    found = parameters(NEW, ssh_port=2222)
    assert found.prte == {
        "prte_if_include": "192.0.2.0/24",
        "prte_launch_agent": "/usr/bin/daemon",
        "plm_ssh_args": "-p 2222",
    }
    assert found.mpi["btl"] == "self,sm,tcp" and not found.mpi.keys() & {"oob_tcp_if_include", "plm_rsh_args"}


def test_nothing_is_said_that_nobody_has_asked_for() -> None:
    old, new = parameters(OLD, networks=[]), parameters(NEW, networks=[])
    assert set(old.mpi) == {"pml", "btl", *PORTS, "orte_launch_agent"}
    assert set(new.prte) == {"prte_launch_agent"} and set(new.mpi) == {"pml", "btl", *PORTS}


def test_a_build_without_ipv6_has_no_ports_for_it() -> None:
    assert not parameters(OLD._replace(values={})).mpi.keys() & set(settings.OF_IPV6)


@pytest.mark.parametrize(
    ("networks", "include", "family"),
    [
        (["2001:db8::17/64"], "fab0", "4"),
        (["192.0.2.17/24", "2001:db8::17/64"], "192.0.2.0/24,fab0", None),
        (["192.0.2.17/24", "198.51.100.1/24"], "192.0.2.0/24,198.51.100.0/24", "6"),
        (["2001:db8::17/64", "2001:db8:1::17/64"], "fab0", "4"),
    ],
)
def test_families(networks: list[str], include: str, family: str | None) -> None:
    found = parameters(OLD, networks=networks).mpi
    assert found["btl_tcp_if_include"] == found["oob_tcp_if_include"] == include
    assert found.get("btl_tcp_disable_family") == family


def test_ucx_and_threads_are_in_the_environment() -> None:
    found = parameters(NEW, ["mlx5_0:1", "fab0"], transport="ucx", omp_num_threads=4, openblas_num_threads=1)
    assert found.environment == {
        "OMP_NUM_THREADS": "4",
        "OPENBLAS_NUM_THREADS": "1",
        "UCX_NET_DEVICES": "mlx5_0:1,fab0",
        "UCX_TCP_PORT_RANGE": "61000-64999",
    }
    assert found.mpi["pml"] == "ucx" and found.mpi["pml_ucx_tls"] == "any"
    assert found.mpi["btl_tcp_port_min_v4"] == "61000", "btl tcp listens below ucx too"
    assert "UCX_NET_DEVICES" not in parameters(NEW, transport="ucx").environment


@pytest.mark.parametrize(
    ("changes", "transport", "rules"),
    [
        ({}, "tcp", []),
        ({"version": "4.0.7"}, "tcp", [settings.ERR_GENERATION % "4.0.7"]),
        ({"version": ""}, "tcp", [settings.ERR_GENERATION % "of an unknown version"]),
        ({"pmls": frozenset({"ob1"})}, "ucx", [settings.ERR_PML % "ucx"]),
        ({"version": "5.0.2"}, "tcp", [settings.ERR_NO_PRTE]),
    ],
)
def test_unusable_installations(changes: dict[str, Any], transport: str, rules: list[str]) -> None:
    found = settings.unusable(wanted(transport=transport), OLD._replace(**changes))
    assert [problem.rule for problem in found] == rules


def test_what_is_not_in_force_is_named_with_what_decides() -> None:
    values, sources = {"pml": "cm", "btl": "self"}, {"pml": "file (/etc/x:1)"}
    assert settings.differences({"pml": "ob1", "btl": "self", "more": "1"}, values, sources) == [
        "pml is 'cm' in force instead of 'ob1', says file (/etc/x:1)",
        "more is unknown in force instead of '1'",
    ]
