# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the members' names mean on each node.  Pure.

gloo binds the address that the node's own name has, and a loopback address where it has none. Open MPI and ssh connect
to the names of the others where a person writes names; the check and gpu-cluster-run dial addresses. A name that means
the node itself on that node alone passes on one machine and hangs on two.
"""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import Member
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR, WARNING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    READ,
    View,
    again,
    site,
    together,
)

LOOPBACK, WRONG, NAMELESS, MISSING, OTHER = "loopback", "wrong", "nameless", "missing", "other"
#: By kind: id and severity. Another address of the same member is reached, over another network; a name that nobody
#: knows stops those who use it, and leads nobody astray, unless it is the node's own.
KINDS = {
    LOOPBACK: ("GC-NODE-001", ERROR),
    WRONG: ("GC-NODE-002", ERROR),
    NAMELESS: ("GC-NODE-002", ERROR),
    MISSING: ("GC-NODE-002", WARNING),
    OTHER: ("GC-NODE-002", WARNING),
}
#: With authselect the file is written from another one (authselect(8)).
FIX_SOURCES = (
    "let the line hosts of /etc/nsswitch.conf begin with files, so that /etc/hosts is read first; where authselect "
    "writes that file, in its profile too"
)
FIX_UNKNOWN = (
    "find what keeps the resolver from the line in /etc/hosts that is right: a cache (nscd, sssd), the rights of the "
    "file, or another source in the line hosts of /etc/nsswitch.conf"
)
FILES = "files"
#: Puts it first, before what is there; the second one is for a file without such a line.
FILES_FIRST = "sed -i --follow-symlinks 's/^[[:space:]]*hosts:[[:space:]]*/hosts: files /' /etc/nsswitch.conf"
FILES_ALONE = "sed -i --follow-symlinks '1i hosts: files dns' /etc/nsswitch.conf"
VARIABLES = {"cluster_hosts_conflicting_names": "remove"}
FIX = "let role cluster_hosts write the members into /etc/hosts, and take their names off other lines"
FIX_HOSTNAME = (
    "set static_network_hostname to the name in the inventory, and run the site playbook with --tags static_network"
)


class Repair(NamedTuple):
    """What mends names that are wrong; the command may be empty."""

    fix: str
    variables: dict[str, dict[str, str]]
    command: str


class Trouble(NamedTuple):
    """A name that does not mean what it should.  ``name`` is empty for the own name of whoever has the trouble."""

    kind: str
    name: str
    addresses: tuple[str, ...]
    wanted: str
    error: str

    def text(self, several: bool) -> str:
        """What goes after the names of the nodes, one of them or several."""
        who = self.name or ("their own names" if several else "its own name")
        if self.kind in (NAMELESS, MISSING):
            return f"cannot resolve {who} ({self.error})"
        instead = f" instead of {self.wanted}" if self.wanted else ""
        return f"{'resolve' if several else 'resolves'} {who} to {', '.join(self.addresses)}{instead}"


def findings(view: View) -> list[Finding]:
    """One finding for each kind of trouble and all nodes that have the same."""
    alike: dict[tuple[str, tuple[str, ...]], list[Trouble]] = {}
    for trouble, hosts in together(
        (trouble, host) for host in view.static for trouble in _troubles(view, host)
    ).items():
        alike.setdefault((trouble.kind, tuple(hosts)), []).append(trouble)
    found = [_finding(view, kind, hosts, troubles) for (kind, hosts), troubles in alike.items()]
    return sorted(found, key=lambda one: one.severity != ERROR) + _hostnames(view)


def _troubles(view: View, host: str) -> list[Trouble]:
    said = view.static[host]
    found = []
    for name, member in view.members.items():
        addresses = tuple(said["resolves"].get(name, ()))
        kind = _kind(addresses, member)
        if kind == MISSING and name == host == said["hostname"]:
            kind = NAMELESS
        if kind:
            wanted = "" if kind == LOOPBACK else member.fabric_address
            error = "" if addresses else str(said["resolve_errors"].get(name, "no address"))
            # The name in the inventory of a node that calls itself otherwise is one among others.
            own = name == host and kind != MISSING
            found.append(Trouble(kind, "" if own else name, addresses, wanted, error))
    return found


def _kind(addresses: tuple[str, ...], member: Member) -> str:
    """What is wrong with these addresses of a member, empty when nothing is."""
    if not addresses:
        return MISSING
    if any(ipaddress.ip_address(address).is_loopback for address in addresses):
        return LOOPBACK
    own = {*member.addresses, member.management_address}
    if not set(addresses) <= own:
        return WRONG
    return "" if addresses[0] == member.fabric_address else OTHER


def _finding(view: View, kind: str, hosts: tuple[str, ...], troubles: list[Trouble]) -> Finding:
    number, severity = KINDS[kind]
    words = listed([trouble.text(len(hosts) > 1) for trouble in troubles])
    repair = _repair(view, hosts, troubles)
    return Finding(
        number,
        hosts,
        f"{listed(hosts)} {words}",
        repair.fix,
        tuple(_source(view, host, trouble) for host in hosts for trouble in troubles),
        confidence=READ,
        variables=repair.variables,
        command=repair.command,
        look=fixes.run(hosts, f"getent ahosts {troubles[0].name or hosts[0]}; grep ^hosts: /etc/nsswitch.conf"),
        reproduce=again(hosts),
        severity=severity,
    )


def _repair(view: View, hosts: tuple[str, ...], troubles: list[Trouble]) -> Repair:
    """The role writes lines of /etc/hosts.  Where the right one is there, something else keeps it from being read."""
    told = [view.static[host].get("name_sources", [FILES]) for host in hosts]
    # Some systems have no such file, or tell nothing of it.
    unread = [one for one in told if one is None or (isinstance(one, list) and one[:1] != [FILES])]
    if len(unread) == len(told):
        command = FILES_ALONE if all(one is None for one in unread) else FILES_FIRST
        missing = [host for host in hosts for trouble in troubles if not _right_line(view, host, trouble)]
        if None in unread and any(unread):
            command = ""
        role = [site("cluster_hosts", hosts)] if missing else []
        variables = dict.fromkeys(hosts, VARIABLES) if missing else {}
        first = fixes.run(hosts, command)
        return Repair(FIX_SOURCES, variables, " && ".join([first, *role]) if first else "")
    if all(_right_line(view, host, trouble) for host in hosts for trouble in troubles) and not any(
        trouble.addresses for trouble in troubles
    ):
        return Repair(FIX_UNKNOWN, {}, "")
    return Repair(FIX, dict.fromkeys(hosts, VARIABLES), site("cluster_hosts", hosts))


def _right_line(view: View, host: str, trouble: Trouble) -> bool:
    """Whether /etc/hosts has the fabric address of this member for its name, and no other one."""
    name = trouble.name or host
    lines = view.static[host]["hosts_file"].get(name, [])
    return bool(lines) and all(one["address"] == view.members[name].fabric_address for one in lines)


def _source(view: View, host: str, trouble: Trouble) -> str:
    """Where this node has it from, as far as that can be known."""
    name = trouble.name or host
    lines = view.static[host]["hosts_file"].get(name, [])
    if lines:
        where = ", ".join(f"line {one['line']} of /etc/hosts ({one['address']})" for one in lines)
    elif trouble.kind in (NAMELESS, MISSING):
        where = "no line of /etc/hosts, and no answer from another source of nsswitch.conf"
    else:
        where = "no line of /etc/hosts: DNS, or another source of nsswitch.conf"
    return f"{name} on {host}: {where}"


def _hostnames(view: View) -> list[Finding]:
    """Nodes that call themselves otherwise than the inventory does, by a name that leads nowhere."""
    found = []
    for host, said in view.static.items():
        own = said["hostname"]
        addresses = said["resolves"].get(own, [])
        if own in view.members or not any(ipaddress.ip_address(address).is_loopback for address in addresses):
            continue
        found.append(
            Finding(
                "GC-NODE-001",
                (host,),
                f"{host} calls itself {own}, which it resolves to {', '.join(addresses)}",
                FIX_HOSTNAME,
                (_source(view, host, Trouble(LOOPBACK, own, tuple(addresses), "", "")),),
                confidence=READ,
                variables={host: {"static_network_hostname": host}},
                command=site("static_network,cluster_hosts", (host,)),
                reproduce=again((host,)),
                severity=WARNING,
            )
        )
    return found
