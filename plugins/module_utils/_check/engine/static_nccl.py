# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface that NCCL takes by itself on each node, beside the data network.  Pure.

The first rank hands the address of that interface to all others: one that they do not reach, or that another machine
has, such as a loopback address or that of a bridge of containers, makes them wait for longer than an hour.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes, static_network
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR, WARNING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    READ,
    View,
    again,
    site,
    together,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.paths import ENVIRONMENT
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._nccl.settings import (
    CONF_PATH,
    SOCKET_IFNAME,
    exact,
)

#: The backend of a run whose ranks depend on it.
NCCL = "nccl"

FIX_NARROW = (
    f"NCCL takes the first of several interfaces in the order of the kernel, not of the list: name that of the data "
    f"network alone, as {SOCKET_IFNAME} in launcher_host_environment, beside what this variable has already"
)
FIX_FILE = f"let role launcher write {SOCKET_IFNAME} again, from the node's address on the data network"
FIX_CONF = f"name the interface in nccl_socket_interfaces; {SOCKET_IFNAME} of role launcher wins over {CONF_PATH}"
FIX_USER = f"take {SOCKET_IFNAME} out of that file; the one that role launcher gives to jobs wins over it"
FIX_NONE = f"let role launcher give {SOCKET_IFNAME} to jobs: without it NCCL takes the first interface that it likes"
FIX_ADDRESS = (
    "NCCL takes the first address of an interface: let that of the data network be the first one in addresses of "
    "static_network_interfaces, and take off what role static_network did not put there"
)
#: What else decides, in the order in which it is told.
OTHER_SETTINGS = ("NCCL_SOCKET_FAMILY", "NCCL_COMM_ID")


class Repair(NamedTuple):
    """What makes a node's NCCL take the data network.  variables: none where the inventory is right already."""

    fix: str
    tags: str
    variables: Mapping[str, Any]


def findings(view: View, backend: str = "", gpus: Collection[str] = ()) -> list[Finding]:
    """Nodes whose NCCL can't begin, then those on which it takes another network, then members that take several.

    backend: of the run.  gpus: the hosts with an NVIDIA GPU.  Where jobs do not use NCCL, a finding is a warning.
    """
    hosts = [
        host
        for host, said in view.static.items()
        if said.get("nccl", {}).get("library") and not static_network.broken(view, host)
    ]
    found = [*_failed(view, hosts), *_elsewhere(view, hosts), *_apart(view, hosts)]
    return [_weighed(one, backend, gpus) for one in found]


def notes(static: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One sentence for each reason why an NCCL that is there was not asked."""
    reasons = together((said["nccl"]["why"], host) for host, said in static.items() if said.get("nccl", {}).get("why"))
    return [f"NCCL on {listed(hosts)} was not asked which interface it takes: {why}" for why, hosts in reasons.items()]


def _weighed(one: Finding, backend: str, gpus: Collection[str]) -> Finding:
    """An error where ranks depend on it."""
    used = backend == NCCL or any(host in gpus for host in one.hosts)
    return replace(one, severity=ERROR if used else WARNING)


def _failed(view: View, hosts: list[str]) -> list[Finding]:
    """Nodes on which NCCL finds no interface, or otherwise can't begin."""
    pairs = []
    for host in hosts:
        error = view.static[host]["nccl"]["error"]
        if error:
            has = ", ".join(name for name, link in view.static[host]["interfaces"].items() if link["addresses"])
            pairs.append(((error, has, *_reason(view, host)), host))
    return [
        _finding(
            "GC-NCCL-002",
            view,
            alike,
            f"NCCL can't begin on {listed(alike)}: {error}; {settings}, and the interfaces with addresses are {has}",
        )
        for (error, has, settings, _wanted), alike in together(pairs).items()
    ]


def _elsewhere(view: View, hosts: list[str]) -> list[Finding]:
    """Nodes on which NCCL takes an interface or an address that is not of the data network."""
    right = [host for host in hosts if _is_data(view, host)]
    wrong = [host for host in hosts if host not in right and view.static[host]["nccl"]["address"]]
    alike = together(((_interface(view, host), _network(view, host), *_reason(view, host)), host) for host in wrong)
    others = (f"NCCL takes the data network on {listed(right)}",) if right else ()
    found = []
    for (interface, network, settings, wanted), some in alike.items():
        address = view.static[some[0]]["nccl"]["address"] if len(some) == 1 else network
        instead = (
            f"the address of the data network on {wanted}" if interface == wanted else f"{wanted}, the data network"
        )
        loopback = ipaddress.ip_address(view.static[some[0]]["nccl"]["address"]).is_loopback
        alone = ", which nobody else reaches" if loopback else ""
        taken = f"{interface or 'an interface'} ({address}{alone})"
        cause = f"NCCL on {listed(some)} takes {taken} and not {instead}: {settings}"
        found.append(_finding("GC-NCCL-001", view, some, cause, others))
    return found


def _apart(view: View, hosts: list[str]) -> list[Finding]:
    """Members whose NCCL takes another of their own networks than the rest: rails that need not meet."""
    data = [host for host in hosts if _is_data(view, host)]
    fabric = [host for host in data if _is_fabric(view, host)]
    rails = together((_network(view, host), host) for host in data if host not in fabric)
    if len(rails) + bool(fabric) < 2:
        return []
    found = []
    for network, on_rail in rails.items():
        rest = listed([host for host in data if host not in on_rail])
        alike = together(((_interface(view, host), *_reason(view, host)), host) for host in on_rail)
        for (interface, settings, _wanted), some in alike.items():
            cause = f"NCCL on {listed(some)} takes {interface} ({network}), on {rest} another network: {settings}"
            found.append(replace(_finding("GC-NCCL-003", view, some, cause), reproduce=again(())))
    return found


def _finding(number: str, view: View, hosts: list[str], cause: str, evidence: tuple[str, ...] = ()) -> Finding:
    """hosts: they have all in common that the repair depends on."""
    asked = together(
        (f"ncclGetUniqueId() of NCCL {said['version']} ({said['library']})", host)
        for host in hosts
        for said in [view.static[host]["nccl"]]
    )
    repair = _repair(view, hosts[0])
    command = site(repair.tags, hosts) if repair.tags else ""
    if repair.fix == FIX_ADDRESS:
        steps = [_first_address(view, host) for host in hosts]
        command = " && ".join(steps) if all(steps) else ""
    return Finding(
        number,
        tuple(hosts),
        cause,
        repair.fix,
        (*(f"{who} on {listed(some)}" for who, some in asked.items()), *evidence),
        confidence=READ,
        ruled_out=("the interface of the data network is up and has its address",),
        variables=dict.fromkeys(hosts, repair.variables) if repair.variables else {},
        command=command,
        look=fixes.look(hosts, "ip -br address"),
        reproduce=again(hosts),
    )


def _first_address(view: View, host: str) -> str:
    """What takes off the address before that of the data network; empty where the inventory declares it."""
    member, address = view.members[host], str(view.static[host]["nccl"]["address"])
    if not address or address in (*member.addresses, member.management_address):
        return ""
    return static_network.taken_off(view, host, member.fabric_interface, address)


def _reason(view: View, host: str) -> tuple[str, str]:
    """What sets NCCL's interface on a node, in words, and the interface that it should be."""
    return _settings(view.static[host]["nccl"]), view.members[host].fabric_interface


def _settings(said: Mapping[str, Any]) -> str:
    """What decides about the interface, and where that stands."""
    words = [
        f"{name} is {said['settings'][name]['value']} in {said['settings'][name]['source'] or 'a file of NCCL'}"
        for name in (SOCKET_IFNAME, *OTHER_SETTINGS)
        if name in said["settings"]
    ]
    return " and ".join(words) or f"nothing sets {SOCKET_IFNAME}"


def _repair(view: View, host: str) -> Repair:
    said, wanted = view.static[host]["nccl"], view.members[host].fabric_interface
    setting = said["settings"].get(SOCKET_IFNAME)
    if said["interface"] == wanted:
        return Repair(FIX_ADDRESS, "", {})
    if setting is None:
        return Repair(FIX_NONE, "launcher", {})
    names = exact(setting["value"])
    if setting["source"] == ENVIRONMENT and wanted in names and len(names) > 1:
        # Role launcher writes one name by itself, so the site has made it several.
        return Repair(FIX_NARROW, "launcher", {"launcher_host_environment": {SOCKET_IFNAME: f"={wanted}"}})
    if setting["source"] == ENVIRONMENT:
        return Repair(FIX_FILE, "launcher", {})
    if setting["source"] == CONF_PATH:
        return Repair(FIX_CONF, "nccl,launcher", {"nccl_socket_interfaces": [wanted]})
    return Repair(FIX_USER, "launcher", {})


def _is_fabric(view: View, host: str) -> bool:
    """Whether NCCL takes the address of the data network, or another one of the same network on the same interface."""
    member, address = view.members[host], view.static[host]["nccl"]["address"]
    if address == member.fabric_address:
        return True
    if not address or _interface(view, host) != member.fabric_interface:
        return False
    network = ipaddress.ip_interface(f"{member.fabric_address}/{member.fabric_prefix}").network
    return ipaddress.ip_address(address) in network


def _is_data(view: View, host: str) -> bool:
    """Whether it takes the data network, or a further address of this member on an interface that the site names.

    Further addresses may be those of the management, which the inventory declares too: so a choice by chance is none.
    """
    if _is_fabric(view, host):
        return True
    said, member, interface = view.static[host]["nccl"], view.members[host], _interface(view, host)
    named = exact(said["settings"].get(SOCKET_IFNAME, {}).get("value", ""))
    management = interface in view.holders(host, member.management_address)
    return said["address"] in member.addresses and interface in named and not management


def _interface(view: View, host: str) -> str:
    """The interface that NCCL names; where it names none, the one that holds the address."""
    said = view.static[host]["nccl"]
    # An address with a label: "eth0:1".
    return str(said["interface"]).partition(":")[0] or "".join(view.holders(host, said["address"])[:1])


def _network(view: View, host: str) -> str:
    """The network of the address that NCCL takes; the address itself where no interface is known to hold it."""
    address = view.static[host]["nccl"]["address"]
    for link in view.static[host]["interfaces"].values():
        for one in link["addresses"]:
            if one.partition("/")[0] == address:
                return str(ipaddress.ip_interface(one).network)
    return str(address)
