# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which way the kernel takes to each peer: one command for all of them.  Pure.

``ip -batch`` reads its commands from the input and asks the kernel for each, so that rules, tables and learned path
MTUs count as they do for a connection. 1,000 peers take one process and some milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import iproute

#: Goes on after a peer without a way.
COMMAND = ("ip", "-j", "-force", "-batch", "-")
NO_ANSWER = "ip gave no answer"
_FAILED = re.compile(r"^Command failed .*?:(\d+)\s*$")


def questions(addresses: Iterable[str]) -> str:
    """The input. Only addresses that are well formed: ip ends at the first that is not."""
    return "".join(f"route get {address}\n" for address in addresses)


def parse(peers: Mapping[str, str], out: str, err: str) -> dict[str, dict[str, Any]]:
    """The way to each peer.

    peers: name to address, in the order of the questions.  Each way has ``address``, ``interface``, ``source``,
    ``gateway`` (empty when there is none), ``mtu`` (bytes; 0 where the way has none of its own) and ``error`` (why
    there is no way, empty otherwise).
    """
    errors = _errors(err)
    answers = iter(iproute.batch_routes(out))
    found = {}
    for line, (peer, address) in enumerate(peers.items(), 1):
        way = iproute.Route() if line in errors else next(answers, iproute.Route())
        found[peer] = {
            "address": address,
            "interface": way.device,
            "source": way.source,
            "gateway": way.gateway,
            "mtu": way.mtu,
            "error": errors.get(line, "" if way.device else NO_ANSWER),
        }
    return found


def _errors(err: str) -> dict[int, str]:
    """Number of a line of the input to what was said before it was given up."""
    found, said = {}, ""
    for line in err.splitlines():
        failed = _FAILED.match(line)
        if failed:
            found[int(failed.group(1))] = said or NO_ANSWER
            said = ""
        elif line.strip():
            said = line.strip()
    return found
