# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the machines are called in the inventory.  Pure.

A machine has its own host name where that is one, and nobody else's.  A name that a person has written stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    address_of,
    is_host_name,
    is_loopback_name,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.machine import Machine

#: Names with a meaning of their own in an inventory.
_TAKEN = ("all", "ungrouped")


def fits(name: str, groups: Sequence[str] = ()) -> bool:
    """Whether a machine can be called so."""
    # What Ansible takes for a variable, a pattern or a range is no host name anyway.
    return is_host_name(name) and not is_loopback_name(name) and name.lower() not in (*_TAKEN, *groups)


def of_address(machine: Machine) -> str:
    """A name made of the address; that of the inventory where ssh reaches the machine by a name."""
    if address_of(machine.where) is None and fits(machine.host):
        return machine.host
    return named_by_address(machine.host, machine.where)


def named_by_address(host: str, where: str) -> str:
    """``node-10-1-1-11``."""
    return "node-" + re.sub(r"[^0-9a-z]+", "-", str(address_of(where) or where or host).lower()).strip("-")


def own_name(machine: Machine, full: bool) -> str:
    """What the machine calls itself, with or without its domain."""
    name = machine.hostname.rstrip(".").lower()
    return name if full else name.split(".")[0]


def names(machines: Sequence[Machine], groups: Sequence[str], written: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Host to its new name, and why a machine could not have its own one.

    groups: names that a group has.  written: a person has written the names of the inventory.
    """
    found = {one.host: one.host for one in machines if written and fits(one.host, groups)}
    others = [one for one in machines if one.host not in found]
    short = [own_name(one, full=False) for one in others]
    full = len(set(short)) < len(short) and len({own_name(one, full=True) for one in others}) == len(short)
    wanted = {one.host: own_name(one, full) for one in others}
    reserved = {one.host: of_address(one).lower() for one in others}
    alike = Counter([*wanted.values(), *(name.lower() for name in found.values())])
    holders = Counter(reserved.values())
    reasons = {}
    for one in others:
        name, instead = wanted[one.host], of_address(one)
        # A machine that is reached by its own name, with or without the domain, stays there.
        is_listed = name in (instead.lower(), instead.lower().split(".")[0])
        reason = _reason(one, name, alike[name], holders[name] - (reserved[one.host] == name), groups)
        found[one.host] = instead if reason or is_listed else name
        if reason:
            reasons[one.host] = reason
    if len(reasons) == len(machines) and all(fits(one.host, groups) for one in machines):
        # Nobody has a name: those of the inventory are as good, and shorter.
        found = {one.host: one.host for one in machines}
    return found, reasons


def _reason(machine: Machine, name: str, alike: int, others: int, groups: Sequence[str]) -> str:
    """Why it cannot be called by its own name, empty where it can."""
    if not name:
        return "no host name"
    if not fits(name, groups):
        return f"the host name {machine.hostname!r} is no name of a machine"
    if alike > 1:
        return f"the host name {name} is that of {alike} machines"
    return f"the host name {name} is made of the address of another machine" if others else ""
