# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members of a check by what their nodes answered: who has which address on the data network.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    Interface,
    interface_of,
    not_a_host,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Member
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.rails import USUAL_PREFIX
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.answers import ERR_ANSWER

ERR_NO_ADDRESS = "no address on the interface %s; interfaces with one: %s"

Answers = Mapping[str, Mapping[str, Any]]


class Found(NamedTuple):
    """known: as role common gives the members, of those that have an address.

    addresses: host to its address.  lost: host to what it answers to everything, where it could not be asked or has no
    address.
    """

    known: list[dict[str, Any]]
    addresses: dict[str, str]
    lost: dict[str, dict[str, Any]]


def find(interface: str, given: Mapping[str, str], answers: Answers) -> Found:
    """given: host to its address, where the user named one.  answers: of all hosts, to the program addresses."""
    found = Found([], {}, {})
    held = {host: _held(answer) for host, answer in answers.items()}
    # As the bridge of a container engine, which has the same one everywhere.
    count = Counter(one.ip for interfaces in held.values() for one in _all_of(interfaces or {}))
    for host, answer in answers.items():
        interfaces = held[host]
        if interfaces is None:
            found.lost[host] = dict(answer) if _is_failure(answer) else _failed(ERR_ANSWER % "addresses")
            continue
        own = interfaces.get(interface, [])
        first = next(iter(sorted(own, key=lambda one: one.version)), None)
        address = given.get(host) or (str(first.ip) if first else "")
        if not address:
            others = [f"{name} {one}" for name, all_of in interfaces.items() for one in all_of]
            found.lost[host] = _failed(ERR_NO_ADDRESS % (interface, listed(others) if others else "none"))
            continue
        found.addresses[host] = address
        own_alone = [one for one in _all_of(interfaces) if count[one.ip] == 1 or str(one.ip) == address]
        found.known.append(_member(host, address, interface, own_alone).as_dict())
    return found


def _member(host: str, address: str, interface: str, held: list[Interface]) -> Member:
    """held: the addresses of its node that no other one has."""
    prefix = next((one.network.prefixlen for one in held if str(one.ip) == address), 0)
    prefix = prefix or USUAL_PREFIX[6 if ":" in address else 4]
    addresses = tuple(dict.fromkeys([address, *(str(one.ip) for one in held)]))
    return Member(host, address, prefix, interface, host, addresses)


def _all_of(interfaces: Mapping[str, list[Interface]]) -> list[Interface]:
    return [one for addresses in interfaces.values() for one in addresses]


def _held(answer: Mapping[str, Any]) -> dict[str, list[Interface]] | None:
    """Interface to its addresses, without those that no other machine can reach; None for what is no answer."""
    interfaces = answer.get("interfaces")
    if _is_failure(answer) or not isinstance(interfaces, dict):
        return None
    found = {}
    for name, texts in interfaces.items():
        addresses = [interface_of(text) for text in texts] if isinstance(texts, list) else [None]
        if None in addresses:
            return None
        found[str(name)] = [one for one in addresses if one and not not_a_host(one.ip)]
    return found


def _is_failure(answer: Mapping[str, Any]) -> bool:
    return bool(answer.get("failed") or answer.get("unreachable"))


def _failed(text: str) -> dict[str, Any]:
    return {"failed": True, "msg": text}
