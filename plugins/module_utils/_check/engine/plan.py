# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who takes part: members and their mesh in, ranks and rendezvous out.

Pure; used once per check, on the controller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def launched(launch: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> list[str]:
    """The hosts whose worker listens, in the given order."""
    return [host for host in hosts if launch.get(host, {}).get("state") == "waiting"]


def ranges(port_plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The ranges of the port plan that are neither the kernel's nor the rendezvous': ``name``, ``first``, ``last``."""
    if not port_plan:
        return []
    extra = [one for one in port_plan["extra_ports"] if one["protocol"] == "tcp"]
    named = [("mpi", port_plan["mpi"]), *(("extra", one) for one in extra)]
    return [{"name": name, "first": one["first"], "last": one["last"]} for name, one in named]


def address_book(launch: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> list[dict[str, Any]]:
    """What a probe needs to know about each peer.

    ``host``, ``address``, ``ports`` (``port``, ``range``) on which it listens, ``ranges`` (``name``, ``first``,
    ``last``) of its port plan, and ``rails`` (``name``, ``address``, ``ports``): its further addresses with listeners.
    """
    return [
        {
            "host": host,
            "address": launch[host]["address"],
            "ports": launch[host]["ports"],
            "ranges": launch[host]["ranges"],
            "rails": [
                {key: one[key] for key in ("name", "address", "ports")}
                for one in launch[host].get("rails", ())
                if one["ports"]
            ],
        }
        for host in launched(launch, hosts)
    ]


def bad_links(probe: Mapping[str, Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Directed links with at least one probe that did not end in ``ok``."""
    return {
        (source, link["host"])
        for source, result in probe.items()
        for link in result.get("links", [])
        if link["failures"]
    }


def survivors(hosts: Sequence[str], bad: set[tuple[str, str]]) -> list[str]:
    """Hosts that all reach each other, in the given order.

    Greedy: drops the host with the most bad links, the later one in a tie, until no bad link is left.
    """
    left = list(hosts)
    # At the other ends of a host's bad links.
    peers: dict[str, list[str]] = {host: [] for host in left}
    for source, target in bad:
        if source in peers and target in peers:
            peers[source].append(target)
            peers[target].append(source)
    count = {host: len(others) for host, others in peers.items()}
    while True:
        worst = max(reversed(left), key=lambda host: count[host], default=None)
        if worst is None or count[worst] == 0:
            return left
        left.remove(worst)
        for peer in peers[worst]:
            count[peer] -= 1


def make_plan(
    hosts: Sequence[str],
    launch: Mapping[str, Mapping[str, Any]],
    probe: Mapping[str, Mapping[str, Any]],
    ranks_per_node: int,
) -> dict[str, Any]:
    """Ranks and rendezvous for the hosts that can run a collective together.

    hosts: in rank order.  Returns ``hosts``, ``ranks`` (host to list of ranks), ``world_size``, ``master_host``,
    ``master_address`` and ``master_port``.  Fewer than two hosts: an empty plan with ``world_size`` 0.
    """
    answered = [host for host in launched(launch, hosts) if "links" in probe.get(host, {})]
    together = survivors(answered, bad_links(probe))
    if len(together) < 2:
        return {"hosts": [], "ranks": {}, "world_size": 0, "master_host": "", "master_address": "", "master_port": 0}
    master = together[0]
    port = next(one["port"] for one in launch[master]["ports"] if one["range"] == "rendezvous")
    return {
        "hosts": together,
        "ranks": {
            host: list(range(node * ranks_per_node, (node + 1) * ranks_per_node)) for node, host in enumerate(together)
        },
        "world_size": len(together) * ranks_per_node,
        "master_host": master,
        "master_address": launch[master]["address"],
        "master_port": port,
    }
