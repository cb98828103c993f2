# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who listens on the rendezvous ports of a node already, before the check does: a job that wants the port hangs there.

Not the ephemeral ports: any program may have some of those, and the kernel gives a job others.
"""

from __future__ import annotations

import os
import pwd
import re
from typing import Any

#: Part of the command line of the programs of a check, which says itself that another one is at work.
OF_A_CHECK = "gpu_cluster.plugins.module_utils._check.agent."
#: ss(8): state, queues, local address and port, peer, and with -p who holds it.
_LINE = re.compile(r"^LISTEN +\d+ +\d+ +(?P<address>\S+):(?P<port>\d+) +\S+(?: +users:\(\((?P<users>.*)\)\))?")
_USER = re.compile(r'"(?P<program>[^"]*)",pid=(?P<pid>\d+)')


def command(first: int, last: int) -> list[str]:
    """Ask the kernel for the listeners on these ports, both ends included, with the processes that hold them."""
    return ["ss", "-H", "-l", "-t", "-n", "-p", f"( sport >= :{first} and sport <= :{last} )"]


def parse(text: str) -> list[dict[str, Any]]:
    """``port``, ``address``, and of the first process that holds it ``program`` and ``pid`` (empty and 0: unknown)."""
    found = []
    for match in filter(None, map(_LINE.match, text.splitlines())):
        holder = _USER.search(match.group("users") or "")
        found.append(
            {
                "port": int(match.group("port")),
                "address": match.group("address"),
                "program": holder.group("program") if holder else "",
                "pid": int(holder.group("pid")) if holder else 0,
            }
        )
    return found


def known(found: list[dict[str, Any]], proc: str = "/proc") -> list[dict[str, Any]]:
    """The same with the ``user`` of each process (empty: unknown), and without the programs of a check."""
    listed = []
    for one in found:
        user, line = "", ""
        try:
            folder = os.path.join(proc, str(one["pid"]))
            user = _name(os.stat(folder).st_uid)
            with open(os.path.join(folder, "cmdline"), encoding="utf-8", errors="replace") as stream:
                line = stream.read()
        except OSError:
            pass  # It has just ended, or belongs to a container.
        if OF_A_CHECK not in line:
            listed.append(dict(one, user=user))
    return listed


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
