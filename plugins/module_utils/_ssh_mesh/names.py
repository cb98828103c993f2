# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names and addresses of the members: what a host certificate is for, and where a user may come from. Pure.

The names are those that the role cluster_hosts gives the members in /etc/hosts; a unit test holds the two together.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import address_of, not_a_host
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._hosts_file import MANAGEMENT_SUFFIX

Members = Sequence[Mapping[str, Any]]


def _address(text: str) -> str:
    """An address in its usual form, empty for what is none, or means every machine."""
    address = address_of(text)
    return "" if address is None or not_a_host(address) else str(address)


def addresses(member: Mapping[str, Any]) -> tuple[str, ...]:
    """The addresses of a member, each once."""
    texts = [member["fabric_address"], *member.get("addresses", ()), member.get("management_address", "")]
    return tuple(dict.fromkeys(found for found in (_address(str(text)) for text in texts) if found))


def _shared(members: Members) -> set[str]:
    """Management addresses that several members have: they mean none of them."""
    counted = Counter(_address(str(member.get("management_address", ""))) for member in members)
    return {address for address, times in counted.items() if address and times > 1}


def all_names(members: Members, extra: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Every name and address of every member, in the order of the members, the inventory's name first."""
    names = [str(member["name"]) for member in members]
    taken = {name.lower() for name in names}
    shorts = Counter(name.split(".")[0].lower() for name in names)
    shared = _shared(members)
    result = {}
    for member, name in zip(members, names):
        short = name.split(".")[0]
        unique = shorts[short.lower()] == 1
        own = [name, *([short] if unique else [])]
        alias = (short if unique else name) + MANAGEMENT_SUFFIX
        management = _address(str(member.get("management_address", "")))
        if management and management not in shared and management != _address(str(member["fabric_address"])):
            own += [alias] if alias.lower() not in taken else []
        own += [str(one) for one in extra.get(name, ())]
        own += [address for address in addresses(member) if address not in shared]
        result[name] = tuple(dict.fromkeys(one.lower() for one in own))
    return result


def sources(member: Mapping[str, Any]) -> str:
    """The value of the critical option source-address: where the holder may come from. A list of prefixes."""
    return ",".join(f"{one}/{ipaddress.ip_address(one).max_prefixlen}" for one in addresses(member))


def networks(members: Members) -> tuple[str, ...]:
    """The data networks of the members, each once."""
    found = (
        ipaddress.ip_interface(f"{member['fabric_address']}/{member['fabric_prefix']}").network for member in members
    )
    return tuple(dict.fromkeys(str(network) for network in found))
