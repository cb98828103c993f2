# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What libraries read from the environment of jobs, against the inventory first and then among the members.  Pure.

NCCL and gloo ask no rank what another one was told: where the members differ, a job hangs, fails or is slower, and none
of its texts says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.node import job_variables
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    READ,
    View,
    again,
    minority,
    site,
    together,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import OF_SESSIONS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.paths import ENVIRONMENT

#: What each node may have for itself: names of its cards and files, how it is called, and how much it logs.
OF_A_NODE = re.compile(r".*_(IFNAME|FILE|PATH|PKEY|CERT)|NCCL_(IB_HCA|COMM_ID|HOSTID|DEBUG|DEBUG_SUBSYS)")
#: What may stand in a command.
NAME = re.compile(r"[A-Z][A-Z0-9_]{1,63}")
FIX = (
    f"let role launcher write the environment of jobs again, and take out of {OF_SESSIONS} what was set there by hand; "
    "what one node is to have for itself belongs into its launcher_host_environment"
)


class Odd(NamedTuple):
    """A variable of a node that differs.  has, wanted: in words.  others: those who have what is usual.

    ours: whether role launcher changes it.  extra: whether it only has to go from the file of sessions.
    """

    name: str
    has: str
    wanted: str
    others: tuple[str, ...]
    ours: bool
    extra: bool = False


def findings(view: View, pins: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """One finding for all nodes that are odd in the same.

    pins: host to variables of its inventory, among them those that role launcher gives to jobs.
    """
    inventory = {host: job_variables(pins.get(host, {})) for host in view.static}
    names = {name for said in view.static.values() for name in said["environment"] if not OF_A_NODE.fullmatch(name)}
    odd: dict[str, list[Odd]] = {}
    for name in sorted(names):
        for host, one in _odd(view, name, inventory).items():
            odd.setdefault(host, []).append(one)
    alike = together((tuple(ones), host) for host, ones in odd.items())
    return [_finding(list(ones), hosts) for ones, hosts in alike.items()]


def _odd(view: View, name: str, inventory: Mapping[str, Mapping[str, str]]) -> dict[str, Odd]:
    """The nodes that have another value than their inventory says; of those it says nothing about, the minority."""
    said = {host: one["environment"].get(name, {"value": "", "source": ""}) for host, one in view.static.items()}
    has = {host: f"{one['value']} in {one['source']}" if one["source"] else "not set" for host, one in said.items()}
    found = {
        host: Odd(name, has[host], f"the inventory says {inventory[host][name]}", (), True)
        for host, one in said.items()
        if inventory[host].get(name, one["value"]) != one["value"]
    }
    free = {host: one["value"] for host, one in said.items() if name not in inventory[host]}
    few, many = minority(free)
    for host in few:
        usual = f"{len(many)} of {len(free)} nodes have {free[many[0]] or 'none'}"
        ours = ENVIRONMENT in (said[host]["source"], "" if said[host]["source"] else said[many[0]]["source"])
        extra = said[host]["source"] == OF_SESSIONS and not free[many[0]] and bool(NAME.fullmatch(name))
        found[host] = Odd(name, has[host], usual, tuple(many), ours, extra)
    return found


def _command(odd: list[Odd], hosts: list[str]) -> str:
    """What mends all of it; empty where somebody has to decide."""
    if not all(one.ours or one.extra for one in odd):
        return ""
    extra = [one.name for one in odd if one.extra]
    steps = [fixes.run(hosts, fixes.without_variable(OF_SESSIONS, extra))] if extra else []
    return " && ".join([*steps, *([site("launcher", hosts)] if any(one.ours for one in odd) else [])])


def _finding(odd: list[Odd], hosts: list[str]) -> Finding:
    """hosts: they are odd in the same."""
    words = "; ".join(f"{one.name} is {one.has}, {one.wanted}" for one in odd)
    names = " ".join(f"-e {one.name}" for one in odd)
    # As many others as leave these in the minority.
    others = [host for one in odd for host in one.others[: len(hosts) + 1]]
    return Finding(
        "GC-NODE-017",
        tuple(hosts),
        f"jobs on {listed(hosts)} get other variables than they should: {words}",
        FIX,
        confidence=READ,
        command=_command(odd, hosts),
        look=fixes.look(hosts, f"grep -n {names} {OF_SESSIONS} {ENVIRONMENT}"),
        reproduce=again(list(dict.fromkeys((*hosts, *others)))),
    )
