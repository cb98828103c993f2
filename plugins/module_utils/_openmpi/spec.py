# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role openmpi is asked for: its variables, checked. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    LAST_PORT,
    interface_of,
    not_a_host,
    whole_number,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

TRANSPORTS = ("tcp", "ucx")
#: The data ports of btl tcp: the first one, and how many. IPv6 has parameters of its own.
PORTS = ("btl_tcp_port_min_v4", "btl_tcp_port_range_v4", "btl_tcp_port_min_v6", "btl_tcp_port_range_v6")
#: btl tcp itself starts here (ompi_info --param btl tcp, 4.1.4 and 5.0.11); below are the privileged ports.
FIRST_PORT = 1024
#: Catches slips of the pen.
MOST_THREADS = 4096
PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
#: A network device, or DEVICE:PORT of RDMA, as UCX_NET_DEVICES takes them (ucx_info -d lists them).
DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(:[0-9]+)?")

ERR_LIST = "a list is expected"
ERR_NETWORK = "no network in CIDR form"
ERR_NO_HOSTS = "no other member can be reached in it (%s)"
ERR_TWICE = "it is in the list twice"
ERR_PORTS = "expected the keys {}".format(", ".join(PORTS))
ERR_PORT = (
    f"the ports must be whole numbers from {FIRST_PORT} to {LAST_PORT}, and the range counts them from the first one"
)
ERR_EPHEMERAL = "expected {first: PORT, last: PORT}, or {} for no check"
ERR_SSH_PORT = f"expected one port from 1 to {LAST_PORT}"
ERR_PREFIX = "expected an absolute path without blanks"
ERR_TRANSPORT = "expected {}".format(" or ".join(TRANSPORTS))
ERR_THREADS = f"expected a whole number from 0 to {MOST_THREADS}; 0 sets nothing"
ERR_PACKAGE = "no name of a package"
ERR_VERSION = "a version is given, and no package that could have it"
ERR_DEVICE = "no name of a device"
ERR_DEVICES = "they are for UCX, and openmpi_transport is tcp"


class Spec(NamedTuple):
    """What a node is to have. Networks are without host bits; 0 threads and an empty range set and check nothing."""

    networks: tuple[str, ...]
    ports: dict[str, int]
    ephemeral: tuple[int, int] | None
    ssh_port: int
    prefix: str
    transport: str
    ucx_devices: tuple[str, ...]
    omp_num_threads: int
    openblas_num_threads: int

    def as_dict(self) -> dict[str, Any]:
        """The options of the module."""
        span = dict(zip(("first", "last"), self.ephemeral)) if self.ephemeral else {}
        return {
            **self._asdict(),
            "networks": list(self.networks),
            "ephemeral": span,
            "ucx_devices": list(self.ucx_devices),
        }


def plan(params: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Read the role's variables by their names without the prefix: packages, and options of the module."""
    packages, version = params.get("packages", []), params.get("version", "")
    names, problems = _list(packages, "openmpi_packages", _package)
    if version and not packages:
        problems.append(
            Problem("openmpi_version", shown(version), ERR_VERSION, "name the package, or empty the version")
        )
    found, further = read(params)
    pins = [
        {"name": name, "version": version, "family": "openmpi" if version else "", "variable": "openmpi_version"}
        for name in names
    ]
    return {"packages": pins, "settings": found.as_dict()}, problems + further


def read(params: Mapping[str, Any]) -> tuple[Spec, list[Problem]]:
    """The same without packages. With problems, the params must not be used."""
    networks, problems = _list(params.get("networks", []), "openmpi_networks", _network)
    devices, found = _list(params.get("ucx_devices", []), "openmpi_ucx_devices", _device)
    problems += found
    transport = params.get("transport", "tcp")
    if transport not in TRANSPORTS:
        problems.append(Problem("openmpi_transport", shown(transport), ERR_TRANSPORT, f"write {TRANSPORTS[0]}"))
    elif devices and transport != "ucx":
        problems.append(
            Problem("openmpi_ucx_devices", shown(list(devices)), ERR_DEVICES, "empty the list, or choose ucx")
        )
    ports = params.get("ports", {})
    if not isinstance(ports, Mapping) or set(ports) != set(PORTS):
        problems.append(Problem("openmpi_ports", shown(ports), ERR_PORTS, "hand over common_port_plan.openmpi"))
        ports = {}
    numbers = {name: _number(ports[name]) for name in PORTS if name in ports}
    problems += _ranges(numbers)
    ephemeral = params.get("ephemeral") or {}
    ends = tuple(_number(ephemeral.get(key)) for key in ("first", "last")) if isinstance(ephemeral, Mapping) else (0, 0)
    if ephemeral and not 0 < ends[0] <= ends[1] <= LAST_PORT:
        fix = "hand over common_port_plan.ephemeral"
        problems.append(Problem("openmpi_ephemeral", shown(ephemeral), ERR_EPHEMERAL, fix))
    ssh_port = _number(params.get("ssh_port", 22))
    if not 0 < ssh_port <= LAST_PORT:
        problems.append(
            Problem("openmpi_ssh_port", shown(params["ssh_port"]), ERR_SSH_PORT, "write 22, or sshd's port")
        )
    prefix = params.get("prefix", "")
    if not isinstance(prefix, str) or not prefix.startswith("/") or prefix.split() != [prefix]:
        problems.append(Problem("openmpi_prefix", shown(prefix), ERR_PREFIX, "write the folder above bin/mpirun"))
        prefix = "/"
    threads = {}
    for name in ("omp_num_threads", "openblas_num_threads"):
        threads[name] = _number(params.get(name, 0))
        if not 0 <= threads[name] <= MOST_THREADS:
            problems.append(
                Problem(f"openmpi_{name}", shown(params[name]), ERR_THREADS, "write a number of cores, or 0")
            )
    span = (ends[0], ends[1]) if ephemeral else None
    prefix = posixpath.normpath(prefix)
    return Spec(networks, numbers, span, ssh_port, prefix, transport, devices, **threads), problems


def _number(value: Any) -> int:
    """A whole number, also as text, as templates write it; -1 for what is none."""
    number = whole_number(value)
    return -1 if number is None else number


def _list(
    values: Any, variable: str, check: Callable[[Any], tuple[str, str, str]]
) -> tuple[tuple[str, ...], list[Problem]]:
    """Every item in its normal form, each once; ``check`` returns the form, or a rule and a fix."""
    if not isinstance(values, list):
        return (), [Problem(variable, shown(values), ERR_LIST, "write [] or a list")]
    found: list[str] = []
    problems = []
    for number, value in enumerate(values):
        text, rule, fix = check(value)
        if not rule and text in found:
            rule, fix = ERR_TWICE, "remove it"
        if rule:
            problems.append(Problem(f"{variable}[{number}]", shown(value), rule, fix))
        else:
            found.append(text)
    return tuple(found), problems


def _network(value: Any) -> tuple[str, str, str]:
    """An address with a prefix, without its host bits."""
    found = interface_of(value)
    if found is None:
        return "", ERR_NETWORK, "write it like 192.0.2.0/24"
    kind = not_a_host(found.ip) or not_a_host(found.network.network_address)
    if kind:
        return "", ERR_NO_HOSTS % kind, "write the data network of the cluster"
    return str(found.network), "", ""


def _package(value: Any) -> tuple[str, str, str]:
    good = isinstance(value, str) and PACKAGE.fullmatch(value)
    return (value, "", "") if good else ("", ERR_PACKAGE, "write one such as openmpi")


def _device(value: Any) -> tuple[str, str, str]:
    good = isinstance(value, str) and DEVICE.fullmatch(value)
    return (value, "", "") if good else ("", ERR_DEVICE, "write one such as mlx5_0:1 or fab0")


def _ranges(numbers: Mapping[str, int]) -> list[Problem]:
    """Both families of data ports."""
    problems = []
    for family in ("v4", "v6"):
        first, count = (numbers.get(f"btl_tcp_port_{name}_{family}", 0) for name in ("min", "range"))
        if numbers and not (first >= FIRST_PORT and count > 0 and first + count - 1 <= LAST_PORT):
            variable = f"openmpi_ports.btl_tcp_port_min_{family} with its range"
            problems.append(Problem(variable, f"{first}, {count}", ERR_PORT, "hand over common_port_plan.openmpi"))
    return problems
