# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members of the cluster as the inventory describes them, and the rules for one member's own entries.

Pure: variables by host in, ``Member`` or ``Problem`` lists out. Nothing here looks at facts or at a play's hosts, so
that ``--limit`` never changes the list.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    Address,
    Interface,
    address_of,
    interface_of,
    is_interface_name,
    not_a_host,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

FABRIC_ADDRESS = "gpu_cluster_fabric_address"
FABRIC_INTERFACE = "gpu_cluster_fabric_interface"
FURTHER_ADDRESSES = "gpu_cluster_further_addresses"
INTERFACES = "static_network_interfaces"
#: The networks reserved for documentation (RFC 5737, RFC 3849): whoever sees them reads a sample, not a cluster.
SAMPLE_NETWORKS = tuple(
    ipaddress.ip_network(text) for text in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
)

ERR_MISSING = "not set, every member needs it"
FIX_DISCOVER = "run baremetal.gpu_cluster.discover, which asks the machines"
ERR_NOT_CIDR = "expected an address with its prefix length"
ERR_NETWORK = "is the address of the network %s itself"
ERR_BROADCAST = "is the broadcast address of the network %s"
ERR_NOT_A_HOST = "is not the address of a network card (%s)"
ERR_SAMPLE = "still holds the sample value"
ERR_INTERFACE = "expected the name of a network card: 1 to 15 letters, digits and signs of _.+@~-"
ERR_UNREADABLE = "cannot be evaluated: %s"
FIX_UNDEFINED = "define what the expression refers to"
ERR_EXPRESSION = "is no expression that can be read: %s"
FIX_EXPRESSION = "write {{ and }} in pairs, and close every quote and bracket"
#: An error in the syntax of an expression, as ansible-core from 2.19 on and before tell it.
_SYNTAX = re.compile(r"Syntax error in template: (.*)|template error while templating string: (.*?)\. String: ")
FIX_VAULT = "add --ask-vault-pass or --vault-password-file FILE to the command, with the right password"
#: What an expression cannot use in a variable that is read out of hostvars before any node was asked.
NOT_YET = ("hostvars", "ansible_facts")
FIX_NOT_YET = "write the value, or name a variable of this host: there is no {} when the inventory is read"
ERR_NOT_ADDRESSES = "expected a list of addresses without prefix length"
ERR_NOT_ADDRESS = "expected an IPv4 or IPv6 address of this host, without prefix length"


@dataclass(frozen=True)
class Unreadable:
    """Stands for the value of a variable that could not be templated or decrypted."""

    reason: str

    def problem(self, variable: str) -> Problem:
        """What is wrong with the variable that has this value."""
        early = [name for name in NOT_YET if name in self.reason]
        fix = FIX_NOT_YET.format(" and ".join(early)) if early else FIX_UNDEFINED
        syntax = _SYNTAX.search(self.reason)
        if syntax:
            return Problem(variable, "", ERR_EXPRESSION % (syntax.group(1) or syntax.group(2)), FIX_EXPRESSION)
        fix = FIX_VAULT if "vault" in self.reason.lower() else fix
        return Problem(variable, "", ERR_UNREADABLE % self.reason, fix)


@dataclass(frozen=True)
class Member:
    """One member, as roles get it in ``common_members``.

    ``addresses`` are all addresses from which the others may be spoken to: the fabric address first, then those of the
    interfaces that the inventory declares, then the further ones.  ``rail_addresses`` are the same without the first,
    with what the inventory says of each: ``address``, ``prefix`` (its length, 0 where unknown), ``interface`` (empty
    where unknown) and ``listed`` (whether it is one of the further addresses).
    """

    name: str
    fabric_address: str
    fabric_prefix: int
    fabric_interface: str
    management_address: str
    addresses: tuple[str, ...]
    rail_addresses: tuple[Mapping[str, Any], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The form that the filter returns."""
        return {
            "name": self.name,
            "fabric_address": self.fabric_address,
            "fabric_prefix": self.fabric_prefix,
            "fabric_interface": self.fabric_interface,
            "management_address": self.management_address,
            "addresses": list(self.addresses),
            "rail_addresses": [dict(one) for one in self.rail_addresses],
        }


class MembersError(Exception):
    """The list of members cannot be made; ``problems`` holds every reason."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(f"{problem.host}: {problem.sentence()}" for problem in problems))
        self.problems = list(problems)


def is_sample(address: Address) -> bool:
    """Whether the address belongs to a network that is reserved for documentation."""
    return any(address in network for network in SAMPLE_NETWORKS)


def management_address(host: str, variables: Mapping[str, Any]) -> str:
    """Where Ansible reaches the host: ``ansible_host``, or its name in the inventory."""
    value = variables.get("ansible_host")
    return str(value) if isinstance(value, str) and value else host


def fabric_address_problems(value: Any) -> list[Problem]:
    """Every rule for one fabric address taken alone."""

    def problem(rule: str, fix: str) -> list[Problem]:
        return [Problem(FABRIC_ADDRESS, "" if value is None else shown(value), rule, fix)]

    example = 'write it like "198.18.20.11/24"'
    if value is None:
        return problem(ERR_MISSING, f"{example} in the host's entry of the inventory, or {FIX_DISCOVER}")
    if isinstance(value, Unreadable):
        return [value.problem(FABRIC_ADDRESS)]
    interface = interface_of(value)
    if interface is None:
        return problem(ERR_NOT_CIDR, example)
    address, network = interface.ip, interface.network
    kind = not_a_host(address)
    if kind:
        return problem(ERR_NOT_A_HOST % kind, example)
    if is_sample(address):
        return problem(ERR_SAMPLE, "write the node's own address on the data network")
    if network.num_addresses > 2:
        fix = "choose an address between the first and the last one of the network"
        if address == network.network_address:
            return problem(ERR_NETWORK % network, fix)
        if network.version == 4 and address == network.broadcast_address:
            return problem(ERR_BROADCAST % network, fix)
    return []


def fabric_interface_problems(value: Any) -> list[Problem]:
    """Every rule for the name of the fabric's network card."""
    if value is None:
        fix = f'write it like "ens1f0" (`ip -br link` on the node lists the names), or {FIX_DISCOVER}'
        return [Problem(FABRIC_INTERFACE, "", ERR_MISSING, fix)]
    if isinstance(value, Unreadable):
        return [value.problem(FABRIC_INTERFACE)]
    if not is_interface_name(value):
        return [Problem(FABRIC_INTERFACE, shown(value), ERR_INTERFACE, "`ip -br link` on the node lists the names")]
    return []


def further_address_problems(value: Any) -> list[Problem]:
    """Every rule for the list of a member's further addresses."""
    example = 'write it like ["198.18.21.11", "fd00:21::11"]'
    if value is None:
        return []
    if isinstance(value, Unreadable):
        return [value.problem(FURTHER_ADDRESSES)]
    if not isinstance(value, (list, tuple)):
        return [Problem(FURTHER_ADDRESSES, shown(value), ERR_NOT_ADDRESSES, example)]
    problems = []
    for index, text in enumerate(value):
        place = f"{FURTHER_ADDRESSES}[{index}]"
        address = address_of(text)
        if address is None or not_a_host(address):
            problems.append(Problem(place, shown(text), ERR_NOT_ADDRESS, example))
        elif is_sample(address):
            problems.append(Problem(place, shown(text), ERR_SAMPLE, "write an address of this host, or remove it"))
    return problems


@dataclass(frozen=True)
class Entry:
    """One entry of a list, as far as it can be read: its addresses with their paths."""

    variable: str
    name: str
    label: str
    addresses: tuple[tuple[str, Interface], ...]


def entries_of(value: Any) -> list[Entry]:
    """The readable entries of a host's list; none where it has no list."""
    result = []
    for number, entry in enumerate(value if isinstance(value, (list, tuple)) else ()):
        if not isinstance(entry, Mapping):
            continue
        path = f"{INTERFACES}[{number}]"
        texts = entry.get("addresses")
        texts = texts.split(",") if isinstance(texts, str) else texts
        found = []
        for position, text in enumerate(texts if isinstance(texts, (list, tuple)) else ()):
            address = interface_of(text.strip() if isinstance(text, str) else text)
            if address is not None:
                found.append((f"{path}.addresses[{position}]", address))
        name = str(entry.get("name") or "")
        result.append(Entry(path, name, name or str(entry.get("mac") or path), tuple(found)))
    return result


def further_addresses(value: Any) -> list[tuple[str, Address]]:
    """Place and address of every readable entry of the list of further addresses."""
    found = []
    for index, text in enumerate(value if isinstance(value, (list, tuple)) else ()):
        address = address_of(text)
        if address is not None:
            found.append((f"{FURTHER_ADDRESSES}[{index}]", address))
    return found


def peer_addresses(own: Mapping[str, Any], fabric: Interface) -> tuple[str, ...]:
    """All addresses of one member, each once, the fabric address first."""
    declared = [found.ip for entry in entries_of(own.get(INTERFACES)) for _place, found in entry.addresses]
    further = [found for _place, found in further_addresses(own.get(FURTHER_ADDRESSES))]
    return tuple(dict.fromkeys(str(address) for address in (fabric.ip, *declared, *further)))


def rail_addresses(own: Mapping[str, Any], fabric: Interface) -> tuple[dict[str, Any], ...]:
    """What is known of each of ``peer_addresses`` but the fabric address, in that order."""
    listed = {found for _place, found in further_addresses(own.get(FURTHER_ADDRESSES))}
    known: dict[Address, tuple[int, str]] = {}
    for entry in entries_of(own.get(INTERFACES)):
        for _place, found in entry.addresses:
            known.setdefault(found.ip, (found.network.prefixlen, entry.name))
    addresses = [ipaddress.ip_address(text) for text in peer_addresses(own, fabric)[1:]]
    return tuple(
        {"address": str(one), "prefix": prefix, "interface": interface, "listed": one in listed}
        for one in addresses
        for prefix, interface in [known.get(one, (0, ""))]
    )


def make_members(variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> list[Member]:
    """The members in inventory order; raise ``MembersError`` naming every entry that is missing or wrong.

    Sample addresses pass: the list can be looked at before the inventory is real, ``inventory_problems`` refuses them.
    """
    members: list[Member] = []
    problems: list[Problem] = []
    for host in hosts:
        own = variables[host]
        wrong = [
            problem.on(host)
            for problem in fabric_address_problems(own.get(FABRIC_ADDRESS))
            + fabric_interface_problems(own.get(FABRIC_INTERFACE))
            + further_address_problems(own.get(FURTHER_ADDRESSES))
            if problem.rule != ERR_SAMPLE
        ]
        problems.extend(wrong)
        interface = interface_of(own.get(FABRIC_ADDRESS))
        if wrong or interface is None:
            continue
        members.append(
            Member(
                name=str(host),
                fabric_address=str(interface.ip),
                fabric_prefix=interface.network.prefixlen,
                fabric_interface=str(own[FABRIC_INTERFACE]),
                management_address=management_address(str(host), own),
                addresses=peer_addresses(own, interface),
                rail_addresses=rail_addresses(own, interface),
            )
        )
    if problems:
        raise MembersError(problems)
    return members
