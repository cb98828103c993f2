# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the links of every rail after the first to what is wrong there.  Pure, on the controller.

A rail is judged as the first one is (findings.py), with two differences.  What a node's packet filter permits was
asked for the first rail, and is not claimed of others.  And a rail may be down for a node that is fine otherwise: then
the finding says so, in place of a firewall that nobody has seen.  What is the same on several rails is told once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    finding,
    fixes,
    mesh_findings,
    mesh_links,
    rails,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_format import Ranges, names
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import (
    Link,
    Links,
    Results,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

FIX_ABSENT = (
    "give the node this address (static_network_interfaces), or take it out of the inventory where it shall have none "
    "(gpu_cluster_further_addresses)"
)
FIX_DARK = (
    "see whether the interface is up and has its carrier, its VLAN and its route; where ping gets through, open the "
    "ports of the plan to the members with --tags cluster_firewall"
)


@dataclass(frozen=True)
class Surveyed:
    """A rail after the first, as a run found it.

    addresses: host to its address there, of all that were launched.  errors: of those that cannot listen there, why.
    hosts: those that probed, in rank order.  links: between them.
    """

    name: str
    family: str
    addresses: Mapping[str, str]
    errors: Mapping[str, str]
    hosts: Sequence[str]
    probe: Results
    links: Links

    def as_dict(self) -> dict[str, Any]:
        """For a report."""
        return {
            "name": self.name,
            "family": self.family,
            "addresses": dict(self.addresses),
            "mesh": mesh_links.table(self.links, "worst", self.hosts),
            "latency_ms": mesh_links.table(self.links, "milliseconds", self.hosts),
            "bytes_per_second": mesh_links.table(self.links, "bytes_per_second", self.hosts),
            "retransmits": mesh_links.table(self.links, "retransmits", self.hosts),
        }


def survey(known_members: rails.Members, launch: Results, probe: Results, hosts: Sequence[str]) -> list[Surveyed]:
    """The rails after the first that were probed.  hosts: those that probed the first one, in rank order."""
    found = []
    for rail in rails.rails(known_members)[1:]:
        told = {host: one for host in hosts for one in launch[host].get("rails", ()) if one["name"] == rail.name}
        if not told:
            continue
        there = [host for host in hosts if told.get(host, {}).get("ports")]
        seen = {
            host: {"links": one["links"]}
            for host in there
            for one in probe[host].get("rails", ())
            if one["name"] == rail.name
        }
        found.append(
            Surveyed(
                rail.name,
                rail.family,
                {host: str(one["address"]) for host, one in told.items()},
                {host: str(one["error"]) for host, one in told.items() if not one["ports"]},
                there,
                seen,
                mesh_links.read(there, seen),
            )
        )
    return found


def findings(
    rail: Surveyed,
    *,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    ranges: Ranges | None = None,
    plan: Mapping[str, Any] | None = None,
) -> list[Finding]:
    """What is wrong on one rail.  The arguments are those of findings.findings()."""
    dark = _dark(rail)
    lit = [host for host in rail.hosts if host not in dark]
    found = [*_absent(rail), *_down(rail, dark)]
    if len(lit) > 1:
        found += mesh_findings.findings(lit, rail.probe, labels=labels, ranges=ranges, plan=plan)
    return [
        replace(one, cause=f"{rail.name}: {one.cause}", subject=replace(one.about, rails=(rail.name,))) for one in found
    ]


def _absent(rail: Surveyed) -> list[Finding]:
    """The nodes that cannot listen on their address; at most one finding."""
    hosts = tuple(rail.errors)
    if not hosts:
        return []
    whose = f"address {rail.addresses[hosts[0]]} of {hosts[0]}" if len(hosts) == 1 else f"addresses of {names(hosts)}"
    return [
        Finding(
            "GC-NET-012",
            hosts,
            f"nobody can connect to the {whose}: {'; '.join(dict.fromkeys(rail.errors.values()))}",
            FIX_ABSENT,
            tuple(f"{host} cannot listen on {rail.addresses[host]}: {rail.errors[host]}" for host in hosts),
            _about(hosts, len(rail.addresses)),
            look=fixes.look(hosts, "ip -br address"),
            reproduce=fixes.check(_few(list(rail.addresses), hosts)),
        )
    ]


def _down(rail: Surveyed, dark: Sequence[str]) -> list[Finding]:
    """The nodes to and from which nothing gets through; at most one finding."""
    if not dark:
        return []
    hosts = tuple(dark)
    among = set(dark)
    own = [link for ends, link in rail.links.items() if not among.isdisjoint(ends)]
    everybody = len(hosts) == len(rail.hosts)
    between = f"between all {len(hosts)} nodes" if everybody else f"to and from {names(hosts)}"
    sure = mesh_findings.UNDECIDED if len(hosts) == 2 and everybody else mesh_findings.PROBED
    return [
        Finding(
            "GC-NET-012",
            hosts,
            f"nothing gets through {between}, on no port and in no direction",
            FIX_DARK,
            (
                f"{len(own)} of {len(rail.links)} links, with all of their {sum(link.probes for link in own)} probes",
                *(f"{host} has {rail.addresses[host]}, and listens there" for host in hosts[:8]),
            ),
            _about(hosts, len(rail.hosts)),
            sure,
            () if everybody else (f"the other {len(rail.hosts) - len(hosts)} nodes: they reach each other there",),
            look=fixes.look(hosts, "ip -s -br link"),
            reproduce=fixes.check(_few(list(rail.hosts), hosts)),
        )
    ]


def _about(hosts: tuple[str, ...], total: int) -> Subject:
    if len(hosts) == 1:
        return Subject(finding.NODE, hosts)
    return Subject(finding.CLUSTER if len(hosts) == total else finding.GROUP, hosts)


def _few(hosts: Sequence[str], first: Sequence[str]) -> list[str]:
    """Up to three hosts that show it again, in their order."""
    chosen = list(dict.fromkeys([*first[:2], *hosts]))[:3]
    return [host for host in hosts if host in chosen]


def _dark(rail: Surveyed) -> list[str]:
    """The nodes of which the others hear nothing and that hear nothing from them: no port answers, not even with a no.

    What the node's own kernel says of its own attempts, such as "no route", is no answer of a peer.
    """
    into: dict[str, list[Link]] = {}
    out_of: dict[str, list[Link]] = {}
    for (source, target), link in rail.links.items():
        out_of.setdefault(source, []).append(link)
        into.setdefault(target, []).append(link)
    return [
        host
        for host in rail.hosts
        if host in into
        and host in out_of
        and all(
            _closed(link) and all(one.result == probe_ports.TIMEOUT for one in link.failures) for link in into[host]
        )
        and all(_closed(link) for link in out_of[host])
    ]


def _closed(link: Link) -> bool:
    """Whether no port of it gave any sign of a peer."""
    signs = (probe_ports.REFUSED, probe_ports.STALLED, probe_ports.FOREIGN)
    return 0 < link.probes == len(link.failures) and not any(one.result in signs for one in link.failures)


def once(
    first: Sequence[Finding], further: Sequence[Sequence[Finding]], surveyed: Sequence[Surveyed], first_name: str
) -> tuple[list[Finding], list[Finding]]:
    """The findings of the first rail, and those that are not among them, with what is the same on several told once.

    further: the findings of each of ``surveyed``.  A finding is the same when its id and its subject are.
    """
    by_key: dict[Any, list[tuple[str, Finding]]] = {}
    for one in first:
        by_key.setdefault(_key(one), []).append((first_name, one))
    for rail, found in zip(surveyed, further):
        for one in found:
            by_key.setdefault(_key(one), []).append((rail.name, one))
    told_first: list[Finding] = []
    told_further: list[Finding] = []
    for same in by_key.values():
        on = list(dict.fromkeys(name for name, _one in same))
        if len(on) == 1:
            (told_first if on == [first_name] else told_further).extend(one for _name, one in same)
            continue
        name, one = same[0]
        cause = one.cause if name == first_name else one.cause[len(f"{name}: ") :]
        together = replace(
            one, cause=f"{_on(on, one, surveyed, first_name)}: {cause}", subject=replace(one.about, rails=tuple(on))
        )
        (told_first if name == first_name else told_further).append(together)
    return told_first, told_further


def _key(one: Finding) -> Any:
    return one.id, one.severity, one.hosts, replace(one.about, rails=())


def _on(on: Sequence[str], one: Finding, surveyed: Sequence[Surveyed], first_name: str) -> str:
    """On which rails, of those that its nodes are on."""
    theirs = [first_name, *(rail.name for rail in surveyed if set(one.about.nodes) & set(rail.addresses))]
    return f"on all {len(theirs)} rails" if len(theirs) == len(on) else names(on)


def notes(known_members: rails.Members, surveyed: Sequence[Surveyed], launch: Results) -> list[str]:
    """What was not probed."""
    if not any(one.get("state") == "waiting" for one in launch.values()):
        return []
    there = rails.rails(known_members)[1:]
    if there and not surveyed:
        return [f"not probed: {names([rail.name for rail in there])} (cluster_check_rails)"]
    lonely = rails.alone(known_members)
    lines = [f"not probed, as no other member has an address in the same network: {names(lonely)}"] if lonely else []
    return lines + [f"not probed: {rail.name}, no two nodes could" for rail in surveyed if not rail.links]
