# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role's variables may say, and what the filter makes of them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.gpu_cluster.plugins.filter import openmpi_plan as documented
from ansible_collections.baremetal.gpu_cluster.plugins.filter.openmpi_plan import openmpi_plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import make_port_plan

GOOD: dict[str, Any] = {
    "packages": ["openmpi"],
    "version": "",
    "prefix": "/usr/lib64/openmpi/",
    "transport": "tcp",
    "networks": ["192.0.2.17/24", "2001:db8::17/64"],
    "ports": make_port_plan().openmpi(),
    "ephemeral": {"first": 32768, "last": 60999},
    "ssh_port": "2222",
    "ucx_devices": [],
    "omp_num_threads": 4,
    "openblas_num_threads": 0,
}


def test_normal_forms() -> None:
    found, problems = spec.read(GOOD)
    assert problems == []
    assert found.networks == ("192.0.2.0/24", "2001:db8::/64")
    assert found.ports == {
        "btl_tcp_port_min_v4": 61000,
        "btl_tcp_port_range_v4": 4000,
        "btl_tcp_port_min_v6": 61000,
        "btl_tcp_port_range_v6": 4000,
    }
    assert (found.ephemeral, found.ssh_port, found.prefix) == ((32768, 60999), 2222, "/usr/lib64/openmpi")
    assert spec.read({**GOOD, "ephemeral": {}})[0].ephemeral is None


def test_the_module_reads_what_the_filter_writes() -> None:
    plan = openmpi_plan(GOOD)
    assert plan["packages"] == [{"name": "openmpi", "version": "", "family": "", "variable": "openmpi_version"}]
    assert spec.read(plan["settings"])[0] == spec.read(GOOD)[0]
    pinned = openmpi_plan({**GOOD, "packages": ["openmpi", "openmpi-devel"], "version": "4.1"})["packages"]
    assert [(pin["version"], pin["family"]) for pin in pinned] == [("4.1", "openmpi")] * 2
    assert openmpi_plan({**GOOD, "packages": []})["packages"] == []


@pytest.mark.parametrize(
    ("changes", "variable", "rule"),
    [
        ({"networks": "192.0.2.0/24"}, "openmpi_networks", spec.ERR_LIST),
        ({"networks": ["192.0.2.17"]}, "openmpi_networks[0]", spec.ERR_NETWORK),
        ({"networks": ["fab0"]}, "openmpi_networks[0]", spec.ERR_NETWORK),
        ({"networks": ["192.0.2.0/24", "192.0.2.17/24"]}, "openmpi_networks[1]", spec.ERR_TWICE),
        ({"networks": ["127.0.0.1/8"]}, "openmpi_networks[0]", spec.ERR_NO_HOSTS % "loopback"),
        ({"ports": {"btl_tcp_port_min_v4": 61000}}, "openmpi_ports", spec.ERR_PORTS),
        (
            {"ports": {**GOOD["ports"], "btl_tcp_port_range_v4": 64999}},
            "openmpi_ports.btl_tcp_port_min_v4 with its range",
            spec.ERR_PORT,
        ),
        (
            {"ports": {**GOOD["ports"], "btl_tcp_port_min_v6": 1023}},
            "openmpi_ports.btl_tcp_port_min_v6 with its range",
            spec.ERR_PORT,
        ),
        ({"ephemeral": {"first": 60999, "last": 32768}}, "openmpi_ephemeral", spec.ERR_EPHEMERAL),
        ({"ephemeral": "32768-60999"}, "openmpi_ephemeral", spec.ERR_EPHEMERAL),
        ({"ssh_port": 0}, "openmpi_ssh_port", spec.ERR_SSH_PORT),
        ({"ssh_port": True}, "openmpi_ssh_port", spec.ERR_SSH_PORT),
        ({"prefix": "usr"}, "openmpi_prefix", spec.ERR_PREFIX),
        ({"prefix": "/opt/open mpi"}, "openmpi_prefix", spec.ERR_PREFIX),
        ({"transport": "rdma"}, "openmpi_transport", spec.ERR_TRANSPORT),
        ({"ucx_devices": ["mlx5_0:1"]}, "openmpi_ucx_devices", spec.ERR_DEVICES),
        ({"ucx_devices": ["mlx5_0:x"], "transport": "ucx"}, "openmpi_ucx_devices[0]", spec.ERR_DEVICE),
        ({"omp_num_threads": -1}, "openmpi_omp_num_threads", spec.ERR_THREADS),
        ({"openblas_num_threads": 5000}, "openmpi_openblas_num_threads", spec.ERR_THREADS),
        ({"packages": ["open mpi"]}, "openmpi_packages[0]", spec.ERR_PACKAGE),
        ({"packages": [], "version": "4.1"}, "openmpi_version", spec.ERR_VERSION),
    ],
)
def test_refused(changes: dict[str, Any], variable: str, rule: str) -> None:
    problems = spec.plan({**GOOD, **changes})[1]
    assert [(one.variable, one.rule) for one in problems] == [(variable, rule)]


def test_all_problems_at_once() -> None:
    with pytest.raises(AnsibleFilterError) as raised:
        openmpi_plan({**GOOD, "networks": ["fab0"], "transport": "rdma", "prefix": "usr"})
    assert str(raised.value).count("Fix: ") == 3 and str(raised.value).startswith("Nothing was changed.\n")


def test_the_example_of_the_documentation() -> None:
    (task,) = yaml.safe_load(documented.EXAMPLES)
    given = {**task["vars"]["params"], "ports": make_port_plan({}).as_dict()["openmpi"]}
    assert openmpi_plan(given)["settings"]["networks"] == ["192.0.2.0/24"]
