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


def questions(addresses: Iterable[str], own: str = "") -> str:
    """The input. Only addresses that are well formed: ip ends at the first that is not.

    own: an address that the node has; each way is asked for again for packets from it, since a rule can send them
    elsewhere (ip-rule(8)), and gloo binds its sockets to it.
    """
    more = f" from {own}" if own else ""
    return "".join(f"route get {address}\n" + (f"route get {address}{more}\n" if more else "") for address in addresses)


def parse(peers: Mapping[str, str], out: str, err: str, own: str = "", card: str = "") -> dict[str, dict[str, Any]]:
    """The way to each peer.

    peers: name to address, in the order of the questions.  own: as for ``questions``.  card: the interface of the data
    network.  Each way has ``address``, ``interface``, ``source``, ``gateway`` (empty when there is none), ``mtu``
    (bytes; 0 where the way has none of its own) and ``error`` (why there is no way, empty otherwise).  A way over
    the card whose packets from ``own`` go elsewhere is that of these packets.
    """
    errors = _errors(err)
    answers = iter(iproute.batch_routes(out))

    def take(line: int) -> tuple[iproute.Route, str]:
        way = iproute.Route() if line in errors else next(answers, iproute.Route())
        return way, errors.get(line, "" if way.device else NO_ANSWER)

    found = {}
    for number, (peer, address) in enumerate(peers.items()):
        way, error = take(2 * number + 1 if own else number + 1)
        if own:
            bound, refused = take(2 * number + 2)
            if not error and refused:
                way, error = iproute.Route(), f"{refused} (for packets from {own})"
            elif not error and way.device == card != bound.device:
                way = bound._replace(source=own)
        found[peer] = {
            "address": address,
            "interface": way.device,
            "source": way.source,
            "gateway": way.gateway,
            "mtu": way.mtu,
            "error": error,
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
