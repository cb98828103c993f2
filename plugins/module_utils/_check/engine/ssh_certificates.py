# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the certificates of the ssh mesh, host by host.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.node import Node

#: Any run of the site playbook renews far earlier (ssh_mesh_renew_days): so late, nobody has run it for a while.
WARNING_DAYS = 21
#: The mesh is split: members with certificates of different authorities refuse each other.
SPLIT = "GC-SSH-004"
RENEW = "ssh_mesh_renew_days"
FIX = "run the site playbook with --tags ssh_mesh: it signs new certificates where they are missing, wrong or lapsing"


def findings(nodes: Sequence[Node]) -> list[Finding]:
    """All nodes, cause by cause; nothing where no node has a certificate."""
    known = [node for node in nodes if node.facts]
    held = {node.name: list(node.facts.get("ssh", [])) for node in known}
    result = [one for node in known for one in _problems(node, held[node.name])]
    holders = list(dict.fromkeys(one["holder"] for own in held.values() for one in own))
    for holder in holders:
        without = [name for name, own in held.items() if holder not in [one["holder"] for one in own]]
        if without:
            cause = f"{', '.join(without)} without the ssh certificate of {_who(holder)}, which other members have"
            result.append(_finding("GC-SSH-003", without, cause))
        result += _authorities(holder, held)
    return result


def _authorities(holder: str, held: Mapping[str, Sequence[dict[str, Any]]]) -> list[Finding]:
    """Whose certificate the others do not take, or who does not take theirs: the minority, or all without one."""
    ours = {name: one for name, own in held.items() for one in own if one["holder"] == holder and one["authority"]}
    count = Counter(one["authority"] for one in ours.values()).most_common()
    if not count:
        return []
    most = count[0][0]
    signed = [name for name, one in ours.items() if one["authority"] != most]
    deaf = [name for name, one in ours.items() if most not in one["trusts"] and name not in signed]
    if len(count) > 1 and count[1][1] == count[0][1]:
        keys = {key: [name for name, one in ours.items() if one["authority"] == key] for key, _times in count}
        several = " and ".join(_signed(key, names) for key, names in keys.items())
        return [_finding(SPLIT, list(ours), f"the ssh certificates of {_who(holder)} disagree: {several}", 0.5)]
    result = []
    if signed:
        others = f"another authority signed the ssh certificate of {_who(holder)} on {', '.join(signed)}: "
        foreign = list(dict.fromkeys(ours[name]["authority"] for name in signed))
        result.append(_finding(SPLIT, signed, f"{others}{', '.join(foreign)}, on the other members {most}"))
    if deaf:
        what = "hosts" if holder == "host" else "users"
        cause = f"{', '.join(deaf)} trusts no certificate of the other members' {what}: {most} is missing there"
        result.append(_finding(SPLIT, deaf, cause))
    return result


def _signed(key: str, names: Sequence[str]) -> str:
    return f"{', '.join(names)} signed by {key}"


def _finding(number: str, hosts: Sequence[str], cause: str, confidence: float = 1.0) -> Finding:
    command, again = fixes.site("ssh_mesh", hosts), fixes.check(hosts)
    fix = f"{FIX}; from the controller, and with the ssh_mesh_ca_dir, of the other members" if number == SPLIT else FIX
    return Finding(number, tuple(hosts), cause, fix, confidence=confidence, command=command, reproduce=again)


def _who(holder: str) -> str:
    return "the host" if holder == "host" else f"the user {holder}"


def _days(node: Node) -> int:
    """How early to warn: not before the inventory wants it renewed."""
    value = str(node.inventory.get(RENEW, WARNING_DAYS))
    return min(WARNING_DAYS, int(value)) if value.isdigit() else WARNING_DAYS


def _problems(node: Node, held: Sequence[dict[str, Any]]) -> list[Finding]:
    result = []
    for one in held:
        what = f"the ssh certificate of {_who(one['holder'])} on {node.name}"
        if one["problem"]:
            cause = f"{what} does not do: {one['problem']}"
            result.append(_finding("GC-SSH-001", [node.name], cause))
        elif one["valid_until"] != "never" and one["days_left"] < _days(node):
            cause = f"{what} lapses on {one['valid_until']}, in {one['days_left']} days"
            result.append(_finding("GC-SSH-002", [node.name], cause))
    return result
