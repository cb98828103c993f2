# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an all_reduce over gloo would pass although links are closed.  Pure.

gloo makes one connection for each pair of ranks: the side with the higher address dials, to a port of the kernel's
ephemeral range (``Device::isInitiator`` in gloo/transport/tcp/device.cc: it compares the address, then the port). A
link that only the other side would use is never tried. Before that every rank calls the store at rank 0.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import mesh_links
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import GROUP, Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_format import names
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Ends, Links

#: The troubles that a connection meets while it is made; the others break one that is there, whoever made it.
_AT_CONNECT = (mesh_links.CLOSED, mesh_links.REFUSED, mesh_links.FOREIGN)


def dials(ends: Ends, addresses: Mapping[str, str]) -> bool:
    """Whether gloo connects this pair from the first to the second.  The families must be equal, as gloo demands."""
    source, target = (ipaddress.ip_address(addresses[host]) for host in ends)
    return source.packed > target.packed


def findings(hosts: Sequence[str], links: Links, addresses: Mapping[str, str]) -> list[Finding]:
    """At most one.  hosts: in rank order, so the first one holds the store."""
    bad = {ends: {one.range for one in link.failures} for ends, link in links.items() if link.failures}
    unused = [ends for ends, ranges in bad.items() if "ephemeral" in ranges]
    if not unused or not all(host in addresses for host in hosts):
        return []
    if len({ipaddress.ip_address(addresses[host]).version for host in hosts}) > 1:
        return []
    for ends, ranges in bad.items():
        at_connect = all(one.trouble in _AT_CONNECT for one in links[ends].failures)
        to_store = "rendezvous" in ranges and ends[1] == hosts[0]
        if not at_connect or to_store or ("ephemeral" in ranges and dials(ends, addresses)):
            return []
    return [_finding(unused, addresses)]


def _finding(unused: Sequence[Ends], addresses: Mapping[str, str]) -> Finding:
    targets = list(dict.fromkeys(target for _source, target in unused))
    shown = [f"{source} ({addresses[source]}) -> {target} ({addresses[target]})" for source, target in unused[:8]]
    return Finding(
        "GC-NET-010",
        (),
        "an all_reduce over gloo passes all the same: gloo connects each pair only from the higher address to the "
        f"lower, and needs none of the {len(unused)} closed links (to {names(targets)})",
        "fix the links first; what passed is no proof, and breaks as soon as a node with a higher address takes part",
        (f"closed and not used by gloo: {', '.join(shown)}" + (" ..." if len(unused) > 8 else ""),),
        Subject(GROUP, tuple(targets)),
        confidence=0.95,
    )
