# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports sshd uses on this node, and whether the plan knows them. Pure, but for the command lines of processes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    LOOPBACK,
    address_of,
    not_a_host,
    port_of,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm.program import read_text

#: One listener each, with the processes that hold it.
LISTENERS = ("ss", "-Hltnp")
#: The units that listen for sshd where systemd starts it on demand; names of EL and of Debian.
SOCKETS = ("systemctl", "show", "--property=ActiveState,Listen", "sshd.socket", "ssh.socket")

_PROCESS = re.compile(r'\("([^"]+)",pid=(\d+)')
_LISTEN = re.compile(r"^(?:Listen=)?(\S+) \(Stream\)$")


def _port(address: str) -> int:
    """The port of ``192.0.2.1:22``, ``[::]:22``, ``*:22`` or ``22``; 0 where only this node itself can connect."""
    host, _colon, port = address.rpartition(":")
    host = host.strip("[]").partition("%")[0]
    heard = address_of(host)
    local = heard is not None and not_a_host(heard) == LOOPBACK
    return 0 if local else port_of(port) or 0


def listening(listeners: str, command_lines: Mapping[int, str]) -> set[int]:
    """The ports of sshd itself in the output of ``LISTENERS``.

    A session of sshd listens too, for ``ssh -R``: its command line is ``sshd: user@...``, while the daemon's names the
    path of its program.
    """
    found = set()
    for line in listeners.splitlines():
        fields = line.split()
        holders = [(name, int(pid)) for name, pid in _PROCESS.findall(line)]
        daemons = [pid for name, pid in holders if name == "sshd" and "/sshd" in command_lines.get(pid, "/sshd")]
        if len(fields) > 3 and daemons:
            found.add(_port(fields[3]))
    return found - {0}


def process_ids(listeners: str) -> set[int]:
    """The processes named sshd in the output of ``LISTENERS``."""
    return {int(pid) for name, pid in _PROCESS.findall(listeners) if name == "sshd"}


def of_sockets(text: str) -> set[int]:
    """The ports of the active units in the output of ``SOCKETS``."""
    found = set()
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if "ActiveState=active" in lines:
            matches = [_LISTEN.match(line) for line in lines]
            found |= {_port(match.group(1)) for match in matches if match}
    return found - {0}


class Used(NamedTuple):
    """The ports that sshd listens on, and that of the ssh connection in which this was looked at (0: none)."""

    listened: frozenset[int]
    connection: int


def used(listeners: str, sockets: str, connection: int) -> Used:
    """What this node says: the output of ``LISTENERS`` and of ``SOCKETS``, and the port of this connection."""
    lines = {pid: (read_text(f"/proc/{pid}/cmdline") or "").replace("\0", " ") for pid in process_ids(listeners)}
    return Used(frozenset(listening(listeners, lines) | of_sockets(sockets)), connection)


def problems(wanted: Sequence[int], found: Used, variable: str) -> list[Problem]:
    """What would be closed, or forgotten, if the plan were followed. ``variable`` holds the ports of the plan."""
    refused = []
    for port in sorted(found.listened | ({found.connection} if found.connection else set())):
        if port in wanted:
            continue
        who = "sshd of this node listens on port" if port in found.listened else "this very ssh connection uses port"
        rule = f"{who} {port}, which the port plan does not know: nothing would keep it open"
        fix = f"add it, gpu_cluster_ports.ssh: {shown([*wanted, port])}, or take the port away from sshd first"
        refused.append(Problem(variable, shown(list(wanted)), rule, fix))
    return refused
