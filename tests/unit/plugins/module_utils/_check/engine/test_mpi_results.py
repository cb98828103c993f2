# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which host the names and addresses mean that mpirun, ssh and the ranks tell of."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import mpi_results
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mpi_results import Results


def read(
    nodes: dict[str, str], launch: dict[str, Any] | None = None, ssh: list[dict[str, Any]] | None = None
) -> Results:
    """nodes: host to its address on the data network."""
    job = {"nodes": [{"host": host, "address": address} for host, address in nodes.items()]}
    given = {"state": "deadline", "code": -15, "seconds": 20.0, "events": [], "text": "", "ssh": ssh or []}
    return mpi_results.read(job, given, launch or {})


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("gpu03.cluster.lan", "gpu03.cluster.lan"),
        ("gpu03", "gpu03.cluster.lan"),
        ("node7", "gpu04.cluster.lan"),
        ("node7.other.lan", "gpu04.cluster.lan"),
        # Two hosts are called so, each in its own domain.
        ("gpu05", ""),
        ("gpu05.b.lan", "gpu05.b.lan"),
        # A full name is nobody else's short one.
        ("login", "login"),
        ("login.cluster.lan", "login.cluster.lan"),
        ("", ""),
    ],
)
def test_a_name_without_its_domain_is_that_host_where_no_other_is_called_so(name: str, host: str) -> None:
    hosts = ["gpu03.cluster.lan", "gpu04.cluster.lan", "gpu05.a.lan", "gpu05.b.lan", "login", "login.cluster.lan"]
    nodes = {host: f"198.18.30.{number}" for number, host in enumerate(hosts, 1)}
    assert read(nodes, {"gpu04.cluster.lan": {"hostname": "node7.cluster.lan"}}).place(name) == host


def test_the_first_number_of_an_address_is_no_name() -> None:
    found = read({"10.0.0.1": "198.18.30.1", "172.gpu.lan": "198.18.30.2"})
    assert found.place("10") == "" and found.place("172.16.0.9") == ""
    assert found.place("10.0.0.1") == "10.0.0.1" and found.place("172") == "172.gpu.lan"


def test_an_address_in_another_spelling_is_the_same() -> None:
    hosts = ["n1", "n2", "n3"]
    nodes = {host: f"fd00:10:0:0::{number}" for number, host in enumerate(hosts, 1)}
    launch = {"n2": {"hostname": "n2", "rails": [{"address": "FD00:11::2"}]}}
    calling = [["fd00:10::1", 61000], ["fd00:11::2", 61001]]
    found = read(nodes, launch, [{"host": "n3", "code": 0, "text": "", "calling": calling}])
    assert found.calls() == [("n3", "n1", 61000), ("n3", "n2", 61001)]
