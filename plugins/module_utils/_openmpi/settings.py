# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each version of Open MPI is to read, in which of its files, and in the environment. Pure.

What both do with our settings was tried with 4.1.4 and 5.0.11:

* Version 4.1 reads one file. Version 5 has a launcher of its own, PRRTE, with a file and with names of its own; what
  stands in Open MPI's file does not reach it.
* ``btl_tcp_if_include`` decides only while ob1 is the pml. ucx and cm carry data past it, so the pml is named.
* btl tcp listens also below ucx: its ports are set for both.
* A CIDR network chooses an interface, and then all addresses of that interface count, also those of the other family.
  So a cluster whose networks are of one family turns the other one off. Networks of IPv6 are not understood at all;
  the node's interface is written instead.
* The daemons' listeners are the kernel's choice. ``oob_tcp_dynamic_ipv4_ports`` would make mpirun listen on every port
  of its list, so net.ipv4.ip_local_port_range keeps them inside the plan, and nothing else.
* PRRTE 3.0.14 hands the launch agent on to further daemons and cuts it at a ``=``. So it is a plain path, with no
  variables before it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi.installation import Installation
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi.spec import Spec

#: The pml of each transport.
PMLS = {"tcp": "ob1", "ucx": "ucx"}
#: btl of shared memory: vader until 4.1, sm since 5.0 (docs.open-mpi.org, "Changes in v5.0").
SHARED_MEMORY = {"4.1": "vader", "5": "sm"}
#: pml ucx otherwise declines where there is no RDMA device, and the job fails.
UCX_ANYWHERE = {"pml_ucx_tls": "any", "pml_ucx_devices": "any"}
#: Parameters that only a build with IPv6 has.
OF_IPV6 = ("btl_tcp_port_min_v6", "btl_tcp_port_range_v6")
SSH_PORT = 22

ERR_GENERATION = "it is Open MPI %s, and 4.1 and 5 are supported"
ERR_PML = "this Open MPI was built without pml %s"
ERR_NO_PRTE = "its launcher PRRTE was not found beside it or in /usr/bin"
ERR_VALUE = "%s is %s in force instead of %s%s"


class Parameters(NamedTuple):
    """Names and values for each place."""

    mpi: dict[str, str]
    prte: dict[str, str]
    environment: dict[str, str]


def unusable(params: Spec, installation: Installation) -> list[Problem]:
    """Why this installation cannot do what is asked."""
    if not installation.generation or not installation.mpi_file:
        rule = ERR_GENERATION % (installation.version or "of an unknown version")
        return [Problem("openmpi_prefix", params.prefix, rule, "install a supported one, or name its folder")]
    problems = []
    pml = PMLS[params.transport]
    if pml not in installation.pmls:
        fix = "choose the other transport, or another build"
        problems.append(Problem("openmpi_transport", params.transport, ERR_PML % pml, fix))
    if installation.generation == "5" and not installation.prte_file:
        problems.append(Problem("openmpi_prefix", params.prefix, ERR_NO_PRTE, "install prrte with it"))
    return problems


def parameters(
    params: Spec, installation: Installation, daemon: str, interface: Callable[[str], str], devices: list[str]
) -> Parameters:
    """What the node is to have.

    ``daemon`` is the program that mpirun starts on other members, ``interface`` tells the node's interface in a
    network, ``devices`` are what UCX may use.
    """
    networks = [net if ipaddress.ip_network(net).version == 4 else interface(net) for net in params.networks]
    include = ",".join(dict.fromkeys(networks))
    mpi = {"pml": PMLS[params.transport], "btl": f"self,{SHARED_MEMORY[installation.generation]},tcp"}
    mpi.update(_include("btl_tcp_if_include", include))
    versions = {ipaddress.ip_network(net).version for net in params.networks}
    if len(versions) == 1:
        mpi["btl_tcp_disable_family"] = "6" if versions == {4} else "4"
    mpi.update(
        {
            name: str(number)
            for name, number in params.ports.items()
            if name in installation.values or name not in OF_IPV6
        }
    )
    if params.transport == "ucx":
        mpi.update(UCX_ANYWHERE)
    ssh = f"-p {params.ssh_port}" if params.ssh_port != SSH_PORT else ""
    environment = _environment(params, devices)
    if installation.generation == "5":
        prte = {**_include("prte_if_include", include), "prte_launch_agent": daemon, **_include("plm_ssh_args", ssh)}
        return Parameters(mpi, prte, environment)
    mpi.update(
        {**_include("oob_tcp_if_include", include), "orte_launch_agent": daemon, **_include("plm_rsh_args", ssh)}
    )
    return Parameters(mpi, {}, environment)


def _include(name: str, value: str) -> dict[str, str]:
    """One parameter, unless there is nothing to set."""
    return {name: value} if value else {}


def _environment(params: Spec, devices: list[str]) -> dict[str, str]:
    """What libraries read from the environment of every session."""
    threads = {"OMP_NUM_THREADS": params.omp_num_threads, "OPENBLAS_NUM_THREADS": params.openblas_num_threads}
    environment = {name: str(number) for name, number in threads.items() if number}
    if params.transport == "ucx":
        if devices:
            environment["UCX_NET_DEVICES"] = ",".join(devices)
        first, count = params.ports["btl_tcp_port_min_v4"], params.ports["btl_tcp_port_range_v4"]
        environment["UCX_TCP_PORT_RANGE"] = f"{first}-{first + count - 1}"
    return environment


def differences(wanted: Mapping[str, str], values: Mapping[str, str], sources: Mapping[str, str]) -> list[str]:
    """What is not in force, one sentence each."""
    found = []
    for name, value in wanted.items():
        if values.get(name) != value:
            source = sources.get(name, "")
            there = repr(values[name]) if name in values else "unknown"
            found.append(ERR_VALUE % (name, there, repr(value), f", says {source}" if source else ""))
    return found
