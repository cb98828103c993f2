# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role etcd is asked for: checked, all problems at once. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Unreadable
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest_host, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import ETCD, VARIABLE

MEMBERS = "etcd_members"
#: More members do not survive more in practice, and make every write slower.
COUNTS = (3, 5)

ERR_LIST = "expected a list of names of hosts"
ERR_COUNT = (
    "expected 3 or 5 members, found %d: etcd works while more than half of its members are alive, so an even number "
    "survives no more than one member fewer"
)
ERR_TWICE = "the list has this host twice"
ERR_STRANGER = "no member of the cluster has this name"
ERR_DIFFERS = "differs from that of %s"
ERR_NO_PORTS = f"{VARIABLE}.etcd is not set, so no ports are planned and opened for etcd"


def problems(value: Any) -> list[Problem]:
    """What is wrong with the list alone. An empty one means that there is no etcd."""
    if not isinstance(value, (list, tuple)):
        return [Problem(MEMBERS, shown(value), ERR_LIST, "write it like [gpu01, gpu02, gpu03]")]
    names = [str(name) for name in value]
    found = [
        Problem(MEMBERS, shown(name), ERR_TWICE, "remove one of them")
        for name in sorted(set(names))
        if names.count(name) > 1
    ]
    if names and not found and len(names) not in COUNTS:
        found.append(Problem(MEMBERS, shown(list(value)), ERR_COUNT % len(names), "name 3 or 5 members"))
    return found


def inventory_problems(variables: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> list[Problem]:
    """The list against the members, against those of the other hosts, and against the port plan."""
    found = []
    first = ""
    for host in hosts:
        value = variables[host].get(MEMBERS, [])
        if isinstance(value, Unreadable) or not isinstance(value, (list, tuple)):
            continue
        first = first or host
        if list(value) != list(variables[first].get(MEMBERS, [])):
            rule, fix = ERR_DIFFERS % first, f"set {MEMBERS} once, for the whole group"
            found.append(Problem(MEMBERS, shown(value), rule, fix).on(host))
            continue
        if host != first or not value:
            continue
        for name in (name for name in value if name not in hosts):
            near = nearest_host(str(name), set(hosts))
            fix = f"write {near}" if near else "name hosts of the members' group"
            found.append(Problem(MEMBERS, shown(name), ERR_STRANGER, fix).on(host))
        ports = variables[host].get(VARIABLE, {})
        if not (isinstance(ports, Unreadable) or (isinstance(ports, Mapping) and ports.get("etcd"))):
            fix = f'set {VARIABLE}: {{etcd: "{ETCD}"}}, beside its other keys'
            found.append(Problem(MEMBERS, shown(list(value)), ERR_NO_PORTS, fix).on(host))
    return found
