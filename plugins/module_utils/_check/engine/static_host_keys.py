# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ssh host keys that nodes keep of each other, against those that each has now.  Pure."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR, WARNING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    READ,
    View,
    again,
    together,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh.files import ROOT

FIX = (
    "remove these lines on the node; with the certificates of role ssh_mesh the cluster's user needs no key of a "
    "single host, and old ones do not matter to it"
)
#: Lines that a finding shows as its evidence, and commands that it gives.
MOST_PLACES, MOST_COMMANDS = 10, 3
#: What ssh says of a host key that is not the one it knows.
REFUSED = ("HOST IDENTIFICATION HAS CHANGED", "Host key verification failed")


class Stale(NamedTuple):
    """A line that has another key than the member."""

    user: str
    member: str
    name: str
    key: str
    place: str

    @property
    def command(self) -> str:
        """As the owner of the file: root would leave him one that he can't read."""
        path = self.place.rpartition(":")[0]
        words = ["ssh-keygen", "-R", self.name, "-f", path]
        if self.user != ROOT and not path.startswith("/etc/"):
            words = ["runuser", "-u", self.user, "--", *words]
        return shlex.join(words)


def refused(results: Mapping[str, Mapping[str, Any]]) -> set[tuple[str, str]]:
    """From which node to which one mpirun's ssh did not get, for the host key.  results: of openmpi, by host."""
    return {
        (host, str(one["host"]))
        for host, given in results.items()
        for one in given.get("ssh", [])
        if one["code"] != 0 and any(words in one["text"] for words in REFUSED)
    }


def findings(view: View, user: str, refusals: Collection[tuple[str, str]]) -> list[Finding]:
    """Nodes that keep no key of a member but old ones.  user: who runs the ranks.  refusals: as ``refused`` returns."""
    pairs = []
    for host in view.static:
        stale = tuple(_stale(view, host))
        if stale:
            stopped = any(one.user == (user or ROOT) and (host, one.member) in refusals for one in stale)
            pairs.append(((ERROR if stopped else WARNING, stale), host))
    return [_finding(view, severity, stale, hosts) for (severity, stale), hosts in together(pairs).items()]


def _stale(view: View, host: str) -> list[Stale]:
    """Names of which none of the keys that are kept is one of the member.

    Where one is, it depends on the order of ssh's HostKeyAlgorithms whether it asks for that one.
    """
    found = []
    for one in view.static[host]["known_hosts"]:
        current = view.static.get(one["member"], {}).get("host_keys", [])
        if current and not any(kept["key"] in current for kept in one["keys"]):
            found += [
                Stale(one["user"], one["member"], one["name"], kept["key"], kept["place"]) for kept in one["keys"]
            ]
    return found


def _finding(view: View, severity: str, stale: Sequence[Stale], hosts: list[str]) -> Finding:
    members = list(dict.fromkeys(one.member for one in stale))
    users = listed(list(dict.fromkeys(one.user for one in stale)))
    commands = list(dict.fromkeys(one.command for one in stale))
    lines = [
        f"{one.place}: {one.key} for {one.name}; {one.member} has {listed(view.static[one.member]['host_keys'])}"
        for one in stale
    ]
    return Finding(
        "GC-SSH-005",
        tuple(hosts),
        f"old ssh host keys of {listed(members)} are kept on {listed(hosts)}: ssh of {users} refuses to log in there",
        FIX,
        tuple(lines[:MOST_PLACES]),
        confidence=READ,
        command=fixes.run(hosts, "; ".join(commands[:MOST_COMMANDS])),
        reproduce=again([*hosts, *(one for one in members if one not in hosts)]),
        severity=severity,
    )
