# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interfaces that the environment of jobs names for gloo, beside the data network.  Pure.

The ranks of a check take the interface of the data network whatever the node says: the check is about the network.  So
what a job would do is judged from the variable.  As seen with PyTorch 2.13.0, gloo makes a mesh for each interface in
the list, by its place there, and all ranks fail when one of them can't use an interface or lists fewer than another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes, static_network
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.node import OF_HOST, job_variables
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR, WARNING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    READ,
    View,
    again,
    minority,
    site,
    together,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import (
    DOWN,
    OF_SESSIONS,
    UP,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.environment import (
    GLOO_SOCKET_IFNAME,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.fabric import SHORTEST
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.paths import ENVIRONMENT

Pins = Mapping[str, Mapping[str, Any]]

LOOPBACK = "lo"
FIX_FILE = f"let role launcher write {GLOO_SOCKET_IFNAME} again, from the node's address on the data network"
FIX_SESSIONS = (
    f"take {GLOO_SOCKET_IFNAME} out of {OF_SESSIONS}: with gpu-cluster-run what role launcher writes wins over it, "
    "in a login shell it does not"
)
FIX_ALONE = f"name the interface of the data network alone, as {GLOO_SOCKET_IFNAME} in launcher_host_environment"
FIX_RAILS = (
    f"let role static_network set up the interfaces in {GLOO_SOCKET_IFNAME}, or name that of the data network alone on "
    "all members"
)
FIX_LENGTH = f"let {GLOO_SOCKET_IFNAME} name the same rails in the same order on all members, or the data network alone"


class Setting(NamedTuple):
    """What a node says, empty where it says nothing.  pinned: the inventory says the same."""

    value: str
    source: str
    pinned: bool

    @property
    def names(self) -> list[str]:
        """As PyTorch reads it: a value of one character is none, and a comma at the end leaves nothing over."""
        return [one for one in self.value.split(",") if one] if len(self.value) >= SHORTEST else []

    @property
    def words(self) -> str:
        """For a sentence."""
        if not self.source:
            return f"nothing sets {GLOO_SOCKET_IFNAME}"
        return f"{GLOO_SOCKET_IFNAME} is {self.value} in {self.source}"


class Repair(NamedTuple):
    """variables: by host, none where the inventory is right already or more than these hosts must change.

    tags: of the roles that mend it; none where the inventory has to say something else first.  by_hand: whether a line
    of ``OF_SESSIONS`` has to go before.
    """

    fix: str
    tags: str
    variables: Mapping[str, Mapping[str, Any]]
    by_hand: bool = False


def findings(view: View, pins: Pins) -> list[Finding]:
    """Interfaces that gloo can't use, then those beside the data network, then lists that are not of one length.

    pins: host to variables of its inventory, among them those that role launcher gives to jobs.
    """
    settings = {host: _setting(view, host, pins) for host in view.static if not static_network.broken(view, host)}
    useless = {host: reasons for host, one in settings.items() if (reasons := _useless(view, host, one.names))}
    rest = {host: one for host, one in settings.items() if host not in useless}
    found = []
    for (setting, reasons), hosts in together(((settings[host], useless[host]), host) for host in useless).items():
        cause = f"jobs over gloo fail with {listed(hosts)}: {setting.words}, and {' and '.join(reasons)}"
        found.append(_finding(ERROR, hosts, cause, _repair(view, hosts, settings, pins)))
    pairs = (((one, view.members[host].fabric_interface), host) for host, one in rest.items() if one.names)
    for (setting, wanted), hosts in together(pairs).items():
        if wanted not in map(_card, setting.names):
            taken = f"{', '.join(setting.names)} on {listed(hosts)} and not {wanted}, the data network"
            cause = f"jobs over gloo take {taken}: {setting.words}"
            found.append(_finding(WARNING, hosts, cause, _repair(view, hosts, settings, pins)))
    return [*found, *_unequal(view, rest, pins)]


def _setting(view: View, host: str, pins: Pins) -> Setting:
    said = view.static[host]["environment"].get(GLOO_SOCKET_IFNAME, {"value": "", "source": ""})
    return Setting(**said, pinned=job_variables(pins.get(host, {})).get(GLOO_SOCKET_IFNAME) == said["value"])


def _card(name: str) -> str:
    """The interface of an address with a label: ``eth0:1``."""
    return name.partition(":")[0]


def _useless(view: View, host: str, names: Sequence[str]) -> tuple[str, ...]:
    """Why gloo fails with these interfaces, in words."""
    said = view.static[host]
    reasons = []
    for name in names:
        link = said["interfaces"].get(_card(name))
        if _card(name) == LOOPBACK:
            reasons.append(f"{name} leads every node to itself")
        elif _card(name) not in said["present"]:
            reasons.append(f"there is no interface {name}")
        elif link is None or not link["addresses"]:
            reasons.append(f"{name} has no address that others reach")
        elif link["state"] != UP:
            reasons.append(f"{name} is down" if link["state"] == DOWN else f"{name} has no carrier")
    return tuple(reasons)


def _unequal(view: View, settings: Mapping[str, Setting], pins: Pins) -> list[Finding]:
    """Lists of different lengths.  Where nothing is set gloo takes one interface, by the node's own name."""
    lengths = {host: len(one.names) or 1 for host, one in settings.items()}
    alike = together((length, host) for host, length in lengths.items())
    if len(alike) < 2:
        return []
    few, many = minority(lengths)
    words = "; ".join(f"{length} on {listed(hosts)}" for length, hosts in sorted(alike.items()))
    cause = (
        f"jobs over gloo fail with all members: {GLOO_SOCKET_IFNAME} does not name as many interfaces on each, {words}"
    )
    # What the inventory says itself, the role only writes again.
    repair = Repair(FIX_LENGTH, "" if not few or any(settings[host].pinned for host in few) else "launcher", {})
    if few and all(len(settings[host].names) > 1 for host in few):
        repair = _repair(view, few, settings, pins)
    said = together((one.words, host) for host, one in settings.items())
    compared = [*few, *many[: len(few) + 1]] if few else [hosts[0] for hosts in alike.values()]
    evidence = tuple(f"{one} on {listed(hosts)}" for one, hosts in said.items())
    return [_finding(ERROR, few, cause, repair, evidence, compared)]


def _repair(view: View, hosts: Sequence[str], settings: Mapping[str, Setting], pins: Pins) -> Repair:
    """What brings these hosts to the data network."""
    if any(settings[host].source == OF_SESSIONS for host in hosts):
        return Repair(FIX_SESSIONS, "launcher", {}, by_hand=True)
    if not all(settings[host].pinned for host in hosts):
        return Repair(FIX_FILE, "launcher", {})
    if any(len(one.names) > 1 for host, one in settings.items() if host not in hosts):
        return Repair(FIX_RAILS, "", {})
    own = {
        host: {**(pins[host].get(OF_HOST) or {}), GLOO_SOCKET_IFNAME: view.members[host].fabric_interface}
        for host in hosts
    }
    return Repair(FIX_ALONE, "launcher", {host: {OF_HOST: variables} for host, variables in own.items()})


def _command(repair: Repair, hosts: Sequence[str]) -> str:
    """What mends these hosts; empty where no command does."""
    steps = [fixes.run(hosts, fixes.without_variable(OF_SESSIONS, [GLOO_SOCKET_IFNAME]))] if repair.by_hand else []
    return " && ".join([*steps, *([site(repair.tags, hosts)] if repair.tags and hosts else [])])


def _finding(
    severity: str,
    hosts: Sequence[str],
    cause: str,
    repair: Repair,
    evidence: tuple[str, ...] = (),
    compared: Sequence[str] = (),
) -> Finding:
    """compared: the hosts that show it, where these alone do not."""
    return Finding(
        "GC-NODE-016",
        tuple(hosts),
        cause,
        repair.fix,
        (*evidence, "the ranks of the check take the data network whatever the variable says"),
        confidence=READ,
        ruled_out=("the interface of the data network is up and has its address",),
        variables=repair.variables,
        command=_command(repair, hosts),
        look=fixes.look(hosts or compared, f"grep -n {GLOO_SOCKET_IFNAME} {OF_SESSIONS} {ENVIRONMENT}"),
        reproduce=again(compared or hosts),
        severity=severity,
    )
