# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes that answered, beside what the inventory says of them, and words that several topics share.  Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Member
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.names import canonical

Key = TypeVar("Key", bound=Hashable)
#: How sure a cause is that was read on the node, and one that is concluded from several readings.
READ, CONCLUDED = 1.0, 0.9


@dataclass(frozen=True)
class View:
    """members: all of them, by name.  static: what those that answered said, in the order of the members."""

    members: Mapping[str, Member]
    static: Mapping[str, Mapping[str, Any]]

    def link(self, host: str) -> Mapping[str, Any] | None:
        """The interface of the data network on a node, None where there is none."""
        found: Mapping[str, Any] | None = self.static[host]["interfaces"].get(self.members[host].fabric_interface)
        return found

    def holders(self, host: str, address: str) -> list[str]:
        """The interfaces of a node that hold an address."""
        return [name for name, link in self.static[host]["interfaces"].items() if address in bare(link["addresses"])]

    def macs(self, host: str) -> set[str]:
        """The hardware addresses of a node."""
        return set(self.static[host]["macs"])


def make_view(static: Mapping[str, Mapping[str, Any]], members: Sequence[Mapping[str, Any]]) -> View:
    """Members with their addresses in one spelling, whatever the inventory writes."""
    known = {}
    for one in members:
        addresses = [one["fabric_address"], *one["addresses"]]
        known[str(one["name"])] = Member(
            name=str(one["name"]),
            fabric_address=canonical(str(one["fabric_address"])),
            fabric_prefix=int(one["fabric_prefix"]),
            fabric_interface=str(one["fabric_interface"]),
            management_address=str(one["management_address"]),
            addresses=tuple(dict.fromkeys(canonical(str(address)) for address in addresses)),
        )
    return View(known, {name: static[name] for name in known if static.get(name)})


def bare(cidrs: Iterable[str]) -> list[str]:
    """Addresses without their prefix lengths."""
    return [one.partition("/")[0] for one in cidrs]


def together(pairs: Iterable[tuple[Key, str]]) -> dict[Key, list[str]]:
    """Hosts by what they have in common."""
    found: dict[Key, list[str]] = {}
    for key, host in pairs:
        found.setdefault(key, []).append(host)
    return found


def minority(values: Mapping[str, Key]) -> tuple[list[str], list[str]]:
    """The hosts with another value than most, and those with that one.

    Nobody is in the minority where no value is that of more than half of all, as among two hosts.
    """
    many = max(together((value, host) for host, value in values.items()).values(), key=len, default=[])
    few = [host for host, value in values.items() if value != values[many[0]]]
    return (few, many) if 2 * len(many) > len(values) else ([], many)


def site(tag: str, hosts: Sequence[str]) -> str:
    """The command that lets a role bring these hosts into the state of the inventory."""
    return fixes.site(tag, hosts)


def again(hosts: Sequence[str]) -> str:
    """The smallest command that shows the same: check mode runs the static stage and nothing else."""
    return fixes.check(hosts, only_look=True)
