# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What repairs a cause in the mesh.  Pure.

Variables are named only where they are known to help: where a rule of the node's own firewalld blocks a port of the
plan, or where its kernel draws ports outside of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import intervals
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes as repair
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    mesh_links,
    packet_filter,
    set_cover,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_format import (
    Ranges,
    failing,
    names,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Links, Results
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.set_cover import Cause

# A cause may have a million links; so many are enough to know whose rules it is.
LINKS_ASKED = 50

FIX_FIREWALL = (
    "open the ports of the plan to the members: run the site playbook with --tags cluster_firewall; if they are open, "
    "look at what filters between the nodes"
)
FIX_BETWEEN = (
    "see what lies between the nodes: an ACL of the switch, a security group of the cloud, a wrong VLAN or a bad "
    "cable; the packet filters of both ends permit tcp ports {}"
)
FIX_SUSPECT = (
    "look at the packet filter of {} first, which cannot be judged by reading it: {}; take away what blocks, or let "
    "the members through before it"
)
#: What shows a filter that nft does not show, by a word of what was said of it.
SHOWN_BY = {
    "iptables": "iptables-legacy-save",
    "ip6tables": "ip6tables-legacy-save",
    "XDP": "ip -d link show",
    "traffic control": "tc filter show",
}
FIX_RANGE = (
    "the kernel of {} draws its ports from {}, the plan opens {}: let role kernel_tuning set it as planned; "
    f"{repair.without_override('kernel_tuning_ephemeral_range')}"
)
FIX_MTU = (
    "set the same MTU on all interfaces and switches of the path (static_network_interfaces takes an mtu for each "
    "interface), or allow ICMP 'fragmentation needed' on it"
)
FIX_SILENT = (
    "the kernel takes the connections and the worker does not answer: look for a node that is paused, swapping or out "
    "of CPU time, and for a proxy in between"
)
FIX_FOREIGN = (
    "see who listens there on {}; where it is not the worker of this check, look for a redirection (DNAT), a proxy, or "
    "another machine with the same address"
)
FIX_REFUSED = (
    "look for a rule that rejects with a TCP reset, on the node and between the nodes, and for a worker that was killed"
)


@dataclass(frozen=True)
class Remedy:
    """fix: a sentence.  variables: by host.  evidence: the rules that were found.  sure: whether they explain it.

    rules: hosts and their rules that block it; suspects: hosts and what cannot be judged of their packet filters.
    """

    fix: str
    command: str = ""
    look: str = ""
    variables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()
    ruled_out: tuple[str, ...] = ()
    sure: bool = False
    rules: tuple[tuple[str, str], ...] = ()
    suspects: tuple[tuple[str, str], ...] = ()

    @property
    def accused(self) -> str:
        """The one node whose rules are named; empty where it is none, or several."""
        hosts = {host for host, _rule in self.rules or self.suspects}
        return hosts.pop() if len(hosts) == 1 else ""


def remedy(
    cause: Cause,
    trouble: str,
    links: Links,
    ranges: Ranges,
    static: Results | None,
    plan: Mapping[str, Any] | None,
    *,
    two: bool = False,
) -> Remedy:
    """plan: the port plan, as the role common publishes it; without it no variable of it is named.

    two: only two nodes were looked at, so that the packet filter of either may be the one.
    """
    if trouble == mesh_links.STALLED:
        return Remedy(FIX_MTU, look=repair.look(cause.nodes, "ip -d link"))
    if trouble == mesh_links.SILENT:
        return Remedy(FIX_SILENT, look=repair.look(cause.nodes, "ps -eo pid,stat,pcpu,wchan:20,args --sort=-pcpu"))
    if trouble == mesh_links.FOREIGN:
        targets = list(dict.fromkeys(target for _source, target in cause.links))
        return Remedy(FIX_FOREIGN.format(names(targets)), look=repair.look(targets, "ss -Hltnp"))
    outside = _outside_of_plan(cause, links, ranges, plan) if trouble == mesh_links.CLOSED else {}
    if outside and plan:
        return _by_range(outside, _planned(plan))
    asked = _asked(cause, trouble, links, static or {})
    if asked.blocked:
        return _by_rule(asked, cause.ports, static or {})
    suspects = [one for one in asked.suspects if one[0] in cause.nodes]
    if suspects and trouble in (mesh_links.CLOSED, mesh_links.REFUSED):
        return _by_suspect(suspects)
    if asked.permitted and trouble == mesh_links.CLOSED:
        ports = intervals.text(cause.ports)
        said = f"the packet filters: those of {names(asked.hosts)} permit these ports"
        return Remedy(FIX_BETWEEN.format(ports), ruled_out=(said,))
    filtering = cause.nodes if two else _filtering(cause)
    if trouble == mesh_links.REFUSED:
        return Remedy(FIX_REFUSED, look=repair.look(filtering, "nft list ruleset"))
    # What the role would open is open by the rules that can be read.
    return Remedy(FIX_FIREWALL, look=repair.look(filtering, "nft list ruleset"))


def told(
    cause: Cause,
    trouble: str,
    links: Links,
    ranges: Ranges,
    static: Results | None,
    plan: Mapping[str, Any] | None,
) -> tuple[str, str] | None:
    """The one node that its own rules accuse, or the range of its kernel, and in which direction; None without one."""
    outside = _outside_of_plan(cause, links, ranges, plan) if trouble == mesh_links.CLOSED else {}
    if outside:
        accused = [(host, set_cover.INBOUND) for host in outside]
    else:
        asked = _asked(cause, trouble, links, static or {})
        accused = [(host, direction) for (direction, _rule), hosts in asked.blocked.items() for host in hosts]
    if len({host for host, _direction in accused}) != 1:
        return None
    host, direction = accused[0]
    return host, direction if len({one for _host, one in accused}) == 1 else set_cover.BOTH


def _filtering(cause: Cause) -> Sequence[str]:
    """Whose packet filter is the first one to look at."""
    return cause.nodes[1:] if cause.kind == set_cover.LINK and not cause.direction else cause.nodes


@dataclass
class _Asked:
    """What the nodes' own rules say about the links of a cause.

    blocked: direction and rule to the hosts that have it.  suspects: hosts and what cannot be judged of their packet
    filters.  hosts: whose rules were asked.
    """

    blocked: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    suspects: dict[tuple[str, str], None] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    permitted: bool = False


def _asked(cause: Cause, trouble: str, links: Links, static: Results) -> _Asked:
    asked = _Asked()
    answers = []
    for source, target in cause.links[:LINKS_ASKED] if static else ():
        bad = failing(links[(source, target)], trouble, cause.ports)
        permit = packet_filter.permits(static, source, target, [(one.port, one.port) for one in bad])
        answers.append(permit.answer)
        asked.hosts += [host for host in (source, target) if host not in asked.hosts]
        if permit.answer == packet_filter.BLOCKS:
            having = asked.blocked.setdefault((permit.direction, permit.rule), [])
            having += [permit.host] if permit.host not in having else []
        asked.suspects.update(dict.fromkeys(permit.suspects))
    asked.permitted = bool(answers) and all(answer == packet_filter.PERMITS for answer in answers)
    if answers.count(packet_filter.BLOCKS) < set_cover.NODE_SHARE * len(answers):
        asked.blocked = {}
    return asked


def _by_rule(asked: _Asked, spans: intervals.Spans, static: Results) -> Remedy:
    """What opens it, from the rules that were found."""
    fixes, commands, looks, evidence = [], [], [], []
    variables: dict[str, dict[str, Any]] = {}
    for (direction, rule), having in asked.blocked.items():
        hosts = [host for host in asked.hosts if host in having]
        everybody = all(packet_filter.blocks_everybody(static, host, direction, spans) for host in hosts)
        one = packet_filter.remedy(hosts, direction, rule, everybody=everybody)
        fixes.append(one.fix)
        commands.append(one.command)
        looks.append(one.look)
        evidence.append(f"rule of {names(hosts)}, {direction}: {rule}")
        for host, values in one.variables.items():
            variables.setdefault(host, {}).update(values)
    return Remedy(
        fix="; ".join(dict.fromkeys(fixes)),
        # One that opens the half of it mends nothing.
        command=" && ".join(dict.fromkeys(commands)) if all(commands) else "",
        look="; ".join(dict.fromkeys(filter(None, looks))),
        variables=variables,
        evidence=tuple(evidence),
        sure=True,
        rules=tuple((host, rule) for (_direction, rule), having in asked.blocked.items() for host in having),
    )


def _by_suspect(suspects: Sequence[tuple[str, str]]) -> Remedy:
    hosts = list(dict.fromkeys(host for host, _rule in suspects))
    rules = list(dict.fromkeys(rule for _host, rule in suspects))
    show = next((command for word, command in SHOWN_BY.items() if word in rules[0]), "nft list ruleset")
    return Remedy(
        FIX_SUSPECT.format(names(hosts), rules[0]),
        look=repair.look(hosts, show),
        evidence=tuple(f"cannot be judged on {host}: {rule}" for host, rule in suspects),
        suspects=tuple(suspects),
    )


def _outside_of_plan(
    cause: Cause, links: Links, ranges: Ranges, plan: Mapping[str, Any] | None
) -> dict[str, tuple[int, int]]:
    """The nodes whose kernel draws ports that the plan does not open, and which; none where another port failed too."""
    if not plan:
        return {}
    spans = [(int(plan[name]["first"]), int(plan[name]["last"])) for name in ("rendezvous", "ephemeral", "mpi")]
    spans += [(int(one["first"]), int(one["last"])) for one in plan.get("extra_ports", ()) if one["protocol"] == "tcp"]
    bad = [one for ends in cause.links for one in failing(links[ends], mesh_links.CLOSED, cause.ports)]
    if not bad or any(intervals.holds(spans, one.port) for one in bad):
        return {}
    drawn = {
        target: (int(one["first"]), int(one["last"]))
        for _source, target in cause.links
        for one in ranges.get(target, ())
        if one["name"] == "ephemeral"
    }
    return {host: span for host, span in drawn.items() if span != _planned(plan)}


def _planned(plan: Mapping[str, Any]) -> tuple[int, int]:
    return int(plan["ephemeral"]["first"]), int(plan["ephemeral"]["last"])


def _by_range(drawn: Mapping[str, tuple[int, int]], planned: tuple[int, int]) -> Remedy:
    hosts = list(drawn)
    said = FIX_RANGE.format(names(hosts), intervals.text([drawn[hosts[0]]]), intervals.text([planned]))
    return Remedy(said, repair.site("kernel_tuning", hosts), sure=True)
