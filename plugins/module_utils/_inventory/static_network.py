# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts' own lists of interfaces against each other, and against what the members say of themselves.

Pure. The rules for one list alone are those of ``_network/spec.py``; what is malformed there is passed over here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    address_of,
    interface_of,
    whole_number,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import (
    FABRIC_ADDRESS,
    FABRIC_INTERFACE,
    FURTHER_ADDRESSES,
    INTERFACES,
    Address,
    Entry,
    entries_of,
    further_addresses,
    management_address,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

ERR_FABRIC_OF = "is also the fabric address of %s"
ERR_SSH_OF = "is the ssh address of another member, %s"
ERR_ADDRESS_OF = "is also an address of %s"
ERR_NOT_LISTED = f"{INTERFACES} of this host has no entry for it; it has %s"
ERR_ELSEWHERE = f"{INTERFACES} of this host gives {FABRIC_ADDRESS} (%s) to %s"
ERR_WITHOUT = f"does not hold {FABRIC_ADDRESS}, %s"

NOTE_MTU = "other members have %s in the network %s, and large packets between them may vanish"
FIX_MTU = "write one MTU for all members of a network"

FIX_DUPLICATE = "give each machine an address of its own"

Variables = Mapping[str, Mapping[str, Any]]


def _duplicates(variables: Variables, lists: Mapping[str, Sequence[Entry]], hosts: Sequence[str]) -> list[Problem]:
    """Declared and further addresses that other members have too, in whatever role."""
    fabric: dict[Address, list[str]] = {}
    ssh: dict[Address, list[str]] = {}
    static: dict[Address, list[str]] = {}
    for host in hosts:
        own = interface_of(variables[host].get(FABRIC_ADDRESS))
        if own is not None:
            fabric.setdefault(own.ip, []).append(host)
        reached = address_of(management_address(host, variables[host]))
        if reached is not None:
            ssh.setdefault(reached, []).append(host)
        for _path, _text, address in _listed(variables[host], lists[host]):
            static.setdefault(address, []).append(host)
    problems = []
    for host in hosts:
        own = interface_of(variables[host].get(FABRIC_ADDRESS))
        for path, spelled, address in _listed(variables[host], lists[host]):
            if own is not None and address == own.ip:
                # The rules for fabric addresses say it.
                continue
            named = {host}
            for holders, rule in ((fabric, ERR_FABRIC_OF), (ssh, ERR_SSH_OF), (static, ERR_ADDRESS_OF)):
                others = [other for other in dict.fromkeys(holders.get(address, ())) if other not in named]
                if others:
                    named.update(others)
                    problems.append(Problem(path, shown(spelled), rule % ", ".join(others), FIX_DUPLICATE, host))
    return problems


def _listed(own: Mapping[str, Any], entries: Sequence[Entry]) -> list[tuple[str, str, Address]]:
    """Place, text and address of everything that a host says it has beside its fabric address."""
    declared = [(path, str(found), found.ip) for entry in entries for path, found in entry.addresses]
    return declared + [(path, str(found), found) for path, found in further_addresses(own.get(FURTHER_ADDRESSES))]


def _contradiction(own: Mapping[str, Any], entries: Sequence[Entry]) -> Problem | None:
    """A list that leaves out the fabric's card, or gives it other addresses."""
    name, fabric = own.get(FABRIC_INTERFACE), interface_of(own.get(FABRIC_ADDRESS))
    if not entries or not isinstance(name, str) or fabric is None:
        return None
    having = [entry for entry in entries if any(address == fabric for _path, address in entry.addresses)]
    # An entry with a hardware address only may be the card of any name.
    if any(entry.name in (name, "") for entry in having):
        return None
    if having:
        rule = ERR_ELSEWHERE % (fabric, having[0].label)
        return Problem(FABRIC_INTERFACE, shown(name), rule, "name the same card in both")
    named = [entry for entry in entries if entry.name == name]
    if named:
        value = shown([str(address) for _path, address in named[0].addresses])
        fix = f"add it there, or correct {FABRIC_ADDRESS}"
        return Problem(f"{named[0].variable}.addresses", value, ERR_WITHOUT % fabric, fix)
    rule = ERR_NOT_LISTED % ", ".join(entry.label for entry in entries)
    fix = f'add an entry with name: {name} and addresses: ["{fabric}"], or name the card that has this address'
    return Problem(FABRIC_INTERFACE, shown(name), rule, fix)


def static_network_problems(variables: Variables, hosts: Sequence[str]) -> list[Problem]:
    """What is wrong between the hosts' lists, and between a host's list and its fabric address."""
    lists = {host: entries_of(variables[host].get(INTERFACES)) for host in hosts}
    problems = _duplicates(variables, lists, hosts)
    for host in hosts:
        found = _contradiction(variables[host], lists[host])
        if found is not None:
            problems.append(found.on(host))
    return problems


def mtu_notes(variables: Variables, hosts: Sequence[str]) -> list[Problem]:
    """Members that declare another MTU than most others with an address in the same network."""
    found: dict[str, list[tuple[str, str, int]]] = {}
    for host in hosts:
        value = variables[host].get(INTERFACES)
        given = [one for one in value if isinstance(one, Mapping)] if isinstance(value, (list, tuple)) else []
        for entry, own in zip(entries_of(value), given):
            mtu = whole_number(own.get("mtu"))
            for network in dict.fromkeys(str(address.network) for _path, address in entry.addresses):
                if mtu is not None:
                    found.setdefault(network, []).append((host, f"{entry.variable}.mtu", mtu))
    notes = []
    for network, entries in found.items():
        counted = Counter(mtu for _host, _path, mtu in entries).most_common()
        usual = counted[0][0] if len(counted) == 1 or counted[0][1] > counted[1][1] else None
        for host, path, mtu in entries:
            others = ", ".join(str(one) for one, _times in counted if one != mtu)
            if others and mtu != usual:
                notes.append(Problem(path, str(mtu), NOTE_MTU % (others, network), FIX_MTU, host))
    return notes
