# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links on which a node's own kernel refuses to connect: no packet left the node, so only this node can be at fault.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import intervals
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    finding,
    fixes,
    mesh_links,
    set_cover,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_format import names
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Ends, Links
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

#: What the errors come from; of routes and rules see ip-route(8) and ip-rule(8).
MEANINGS = {
    "EACCES": "a route or rule with 'prohibit'",
    "EADDRNOTAVAIL": "no port of its own is free, or the address is gone",
    "EHOSTUNREACH": "a route or rule with 'unreachable'",
    "EINVAL": "a route or rule with 'blackhole'",
    "ENETDOWN": "the card is down",
    "ENETUNREACH": "there is no route",
    "ENODEV": "the card is gone",
    "EPERM": "a policy or a filter for outgoing packets",
}
FIX = "repair the route, the rule or the policy of {} towards {}; ip route get, ip rule and ip xfrm policy show them"


def _whole(link: mesh_links.Link) -> bool:
    """Whether nothing else is wrong with it."""
    return 0 < len(link.failing(mesh_links.UNSENT)) == len(link.failures)


def explained(links: Links) -> set[Ends]:
    """These links, and their opposites on which nothing came back: the answers would have had to take the same way."""
    unsent = [ends for ends, link in links.items() if _whole(link)]
    back = [
        ends[::-1]
        for ends in unsent
        if ends[::-1] in links and {one.result for one in links[ends[::-1]].failures} == {probe_ports.TIMEOUT}
    ]
    return {*unsent, *back}


def findings(hosts: Sequence[str], links: Links, addresses: Mapping[str, str]) -> list[Finding]:
    """One for each node whose kernel refuses.  hosts: in rank order.  addresses: of the hosts, as far as known."""
    targets: dict[str, list[str]] = {}
    for (source, target), link in links.items():
        if link.failing(mesh_links.UNSENT):
            targets.setdefault(source, []).append(target)
    return [_finding(host, targets[host], hosts, links, addresses) for host in hosts if host in targets]


def _finding(
    host: str, peers: Sequence[str], hosts: Sequence[str], links: Links, addresses: Mapping[str, str]
) -> Finding:
    refused = [one for peer in peers for one in links[host, peer].failing(mesh_links.UNSENT)]
    said = ", ".join(f"{one} ({MEANINGS[one]})" for one in sorted({one.result for one in refused}))
    tried = sum(links[host, peer].probes for peer in peers)
    ports = intervals.merged((one.port, one.port) for one in refused)
    alone = len(peers) == 1 and len(hosts) > 2
    return Finding(
        "GC-NET-002",
        (host,),
        f"the kernel of {host} itself refuses connections to {names(peers)}: {said}",
        FIX.format(host, names(peers)),
        (f"{len(refused)} of {tried} probes: ports {intervals.text(ports, 20)}", "no packet of them left the node"),
        Subject(finding.LINK, (host, peers[0])) if alone else Subject(finding.DIRECTION, (host,), set_cover.OUTBOUND),
        confidence=0.95,
        ruled_out=("the network and the other nodes: nothing was sent to them",),
        look=fixes.look((host,), f"ip route get {addresses[peers[0]]}") if peers[0] in addresses else "",
        reproduce=fixes.check([one for one in hosts if one in (host, *peers)][:3]),
    )
