# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of ``ip`` that lead a node to a peer over the data network again.  Pure.

The rules and routes that the node told are walked as the kernel does (fib_rules_lookup in net/core/fib_rules.c,
fib_table_lookup in net/ipv4/fib_trie.c).  Where the walk ends at a rule or a route of somebody else, that is taken
away, and the walk goes on: the commands are given only where it ends at the card of the data network.  Roles write no
such routes and rules, and leave them alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Member
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import View
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import policy_answer

#: More rules or routes of somebody else in one place are no slip of a hand.
MOST_STEPS = 4
#: What the kernel has from the beginning (ip-rule(8)).
OWN_TABLES = ("local", "main", "default")
#: A route that ends the look into its table.
THROW = "throw"

Entry = Mapping[str, Any]


class _Place(NamedTuple):
    """Where a walk ends: at a rule that refuses, or at a route by a rule."""

    rule: Entry
    route: Entry | None


def command(view: View, host: str, peers: Sequence[str]) -> str:
    """What leads this node to all of these peers over the data network; empty where that is not known."""
    told: Any = view.static[host].get("policy")
    if not peers or not policy_answer.ANSWER(told):
        return ""
    steps: list[str] = []
    addresses = [str(view.static[host]["routes"][peer]["address"]) for peer in peers]
    if len(told["routes"]) == policy_answer.MOST_PEERS:
        # Of more peers the node did not tell; what is in the way of all is in the way of these.
        addresses = [one for one in addresses if one in told["routes"]]
    for address in addresses:
        found = _steps(view.members[host], address, told["rules"], told["routes"].get(address))
        if not found:
            return ""
        steps += [one for one in found if one not in steps]
    return fixes.run([host], " && ".join(steps))


def forget(view: View, host: str, peers: Sequence[str]) -> str:
    """What makes this node forget what it has learned of the ways to these peers; empty where it was told to it."""
    told: Any = view.static[host].get("policy")
    if not peers or not policy_answer.ANSWER(told):
        return ""
    addresses = [str(view.static[host]["routes"][peer]["address"]) for peer in peers]
    if any(one not in told["routes"] or any(route["mtu"] for route in told["routes"][one]) for one in addresses):
        return ""
    return fixes.run([host], f"ip{' -6' if ':' in addresses[0] else ''} route flush cache")


def look(host: str, address: str) -> str:
    """What shows the rules and routes that decide about an address."""
    family = " -6" if ":" in address else ""
    return fixes.run([host], f"ip{family} rule; ip{family} route show table all to match {address}")


def _steps(member: Member, address: str, rules: Sequence[Entry], routes: Sequence[Entry] | None) -> list[str]:
    """For one peer; none where nothing is wrong, or nobody knows what to do."""
    if routes is None:
        return []
    rules, routes = sorted(rules, key=lambda one: one["priority"]), list(routes)
    peer, own = ipaddress.ip_address(address), ipaddress.ip_interface(f"{member.fabric_address}/{member.fabric_prefix}")
    if peer not in own.network:
        return []
    found: list[str] = []
    # As it is asked without a source, and as gloo asks: its sockets are bound to the address.
    for source in ("", member.fabric_address):
        while True:
            place = _walk(peer, source, rules, routes)
            if place is not None and place.route is not None and _good(place.route, member):
                break
            if len(found) == MOST_STEPS:
                return []
            step = _step(place, own, member, rules, routes)
            if not step:
                return []
            found.append(step)
    return found


def _walk(peer: Any, source: str, rules: Iterable[Entry], routes: Sequence[Entry]) -> _Place | None:
    for rule in rules:
        if rule["further"] or not _holds(rule["target"], peer):
            continue
        if rule["source"] != policy_answer.ALL and (not source or not _holds(rule["source"], source)):
            continue
        if rule["action"]:
            return _Place(rule, None)
        table = [one for one in routes if one["table"] == rule["table"] and _holds(one["target"], peer)]
        best = min(table, key=lambda one: (-_length(one), one["metric"]), default=None)
        if best is not None and best["type"] != THROW:
            return _Place(rule, best)
    return None


def _step(place: _Place | None, own: Any, member: Member, rules: list[Entry], routes: list[Entry]) -> str:
    """One command, and the lists as they are after it; empty where there is none."""
    family = "ip -6" if own.version == 6 else "ip"
    net = str(own.network)
    if place is None or (place.route is not None and _length(place.route) < own.network.prefixlen):
        if place is not None and place.rule["table"] not in OWN_TABLES:
            return ""
        if any(one["target"] == net and one["table"] == "main" for one in routes):
            return ""
        routes.append(_connected(member, net))
        how = f"dev {member.fabric_interface} proto kernel scope link src {member.fabric_address}"
        return f"{family} route add {net} {how}"
    rule, route = place
    if route is None or (rule["target"] != policy_answer.ALL and rule["table"] not in OWN_TABLES):
        rules.remove(rule)
        return f"{family} rule del {_rule(rule)}"
    if route["protocol"] == "kernel" and not (route["target"] == net and route["device"] == member.fabric_interface):
        return ""
    routes.remove(route)
    return f"{family} route del {_route(route)}"


def _connected(member: Member, net: str) -> Entry:
    return {
        "type": "unicast",
        "target": net,
        "table": "main",
        "device": member.fabric_interface,
        "gateway": "",
        "source": member.fabric_address,
        "protocol": "kernel",
        "metric": 0,
        "mtu": 0,
    }


def _good(route: Entry, member: Member) -> bool:
    """Whether it is the way of the data network."""
    return (
        route["type"] in ("unicast", "")
        and route["device"] == member.fabric_interface
        and route["source"] in ("", member.fabric_address)
        and not route["gateway"]
        and not route["mtu"]
    )


def _rule(rule: Entry) -> str:
    """As ``ip rule del`` asks for it."""
    words = [f"pref {rule['priority']}"]
    words += [f"from {rule['source']}"] if rule["source"] != policy_answer.ALL else []
    words += [f"to {rule['target']}"] if rule["target"] != policy_answer.ALL else []
    return " ".join([*words, rule["action"] or f"lookup {rule['table']}"])


def _route(route: Entry) -> str:
    """As ``ip route del`` asks for it."""
    words = [route["type"]] if route["type"] not in ("unicast", "") else []
    words += [str(route["target"])]
    words += [f"via {route['gateway']}"] if route["gateway"] else []
    words += [f"dev {route['device']}"] if route["device"] and route["type"] in ("unicast", "") else []
    words += [f"table {route['table']}"] if route["table"] != "main" else []
    return " ".join([*words, *([f"metric {route['metric']}"] if route["metric"] else [])])


def _holds(network: str, address: Any) -> bool:
    """Whether a network, or all, holds an address of its own family."""
    if network == policy_answer.ALL:
        return True
    one, where = ipaddress.ip_address(str(address)), ipaddress.ip_network(network)
    return one.version == where.version and one in where


def _length(route: Entry) -> int:
    return ipaddress.ip_network(str(route["target"])).prefixlen
