# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one node says of itself before anything is started on it.  Reads, and changes nothing.

On the wire: what the node's resolver asks for names, two ARP probes for its own address, and one login over ssh.
Commands go through an injected ``run`` (``AnsibleModule.run_command`` fits), each with a time limit. NCCL is asked in a
process of its own.
"""

from __future__ import annotations

import os
import pwd
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.command import Runner
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import (
    facts_arp,
    facts_environment,
    facts_host_keys,
    facts_interfaces,
    facts_job,
    facts_kernel,
    facts_listeners,
    facts_names,
    facts_nccl,
    facts_policy,
    facts_resources,
    facts_routes,
    facts_ssh_login,
    job_variables,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import names
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import UP
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.worker_state import RUNS_DIR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files.paths import ENVIRONMENT as OF_JOBS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import look as packet_filter
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_ranges import PortRange, merged
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import files

#: More than any of the commands takes; the check must not hang on one of them.
COMMAND_SECONDS = 10
#: A login of root over ssh may lack the folders of ip and runuser.
ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/sbin:/sbin:/usr/bin:/bin"}
#: A name server that does not answer is asked again after 5 s (resolv.conf(5)); a name of a member needs none.
NAME_SECONDS = 4.0
#: The tcp ranges of the port plan.
RANGES = ("rendezvous", "ephemeral", "mpi")


def look(
    run: Runner,
    *,
    host: str,
    members: Sequence[Mapping[str, Any]],
    user: str,
    plan: Mapping[str, Any],
    torch_python: str = "",
    login_to: str = "",
) -> dict[str, Any]:
    """Everything that ``judge.findings`` needs of this node.

    host: its name among the members.  members: as role common gives them.  user: who runs the ranks, empty for root.
    plan: the port plan.  torch_python: the Python whose NCCL is asked, empty for that of the system.  login_to: the
    member to which the user logs in over ssh, empty for none.  Takes ``NAME_SECONDS`` where a name server is silent,
    ``nccl.SECONDS`` where NCCL hangs, ``facts_ssh_login.SECONDS`` where sshd does, and below 1 s otherwise.
    """
    began, started = time.time(), time.monotonic()
    (own,) = [member for member in members if member["name"] == host]
    peers = {
        str(member["name"]): names.canonical(str(member["fabric_address"]))
        for member in members
        if member["name"] != host and names.is_address(str(member["fabric_address"]))
    }
    hostname = socket.gethostname()
    # All four work while the rest is read.
    question = facts_nccl.Question(torch_python, user, read(OF_JOBS))
    of_job = facts_job.Look(user, job_variables.values())
    peer = next((facts_ssh_login.Peer(name, address) for name, address in peers.items() if name == login_to), None)
    login = facts_ssh_login.Login(user, peer, plan["ssh"], job_variables.values())
    sources = facts_names.sources(read(facts_names.NSSWITCH))
    asked = [hostname, *(str(member["name"]) for member in members)]
    resolver = facts_names.Resolver(asked, None if sources != [] else facts_names.refuse)

    listed = _said(run, facts_interfaces.ADDRESSES)
    links = facts_interfaces.parse(listed, [str(own["fabric_interface"])], read)
    ways = _ways(run, peers, own, links)
    neighbours = _said(run, facts_interfaces.NEIGHBOURS)
    cards = facts_interfaces.all_of(listed)
    first, last = (int(port) for port in read("/proc/sys/net/ipv4/ip_local_port_range").split())
    found: dict[str, Any] = {
        "hostname": hostname,
        "interfaces": links,
        "present": list(cards),
        "macs": sorted(set(filter(None, cards.values()))),
        "routes": ways,
        "policy": _policy(run, ways, own),
        "neighbours": facts_interfaces.parse_neighbours(neighbours, peers.values()),
        "fixed_neighbours": facts_interfaces.parse_fixed(neighbours, peers.values()),
        "neighbour_tables": facts_interfaces.neighbour_tables(read),
        "duplicates": _duplicates(own, links, set(cards.values())),
        "ephemeral_range": [first, last],
        "reserved_ports": facts_resources.parse_ports(read("/proc/sys/net/ipv4/ip_local_reserved_ports")),
        "listeners": _listeners(run, plan["rendezvous"]),
        "kernel": facts_kernel.sysctls(read, _settable),
        "offloads": facts_kernel.offloads(str(own["fabric_interface"])),
        "limits": facts_resources.parse_limits(_said(run, facts_resources.limits_command(user))),
        "limits_written": facts_resources.written_limits(read(facts_resources.LIMITS_OF_ROLE)),
        "cpus": os.cpu_count() or 1,
        "rdma": _folder("/sys/class/infiniband"),
        "environment": facts_environment.of_libraries(),
        "packet_filter": _packet_filter(own, ways, plan),
        "packet_programs": facts_interfaces.programs(
            str(own["fabric_interface"]),
            listed,
            _said(run, [*facts_interfaces.QDISCS, str(own["fabric_interface"])]),
        ),
        "denials": _denials(run),
        "host_keys": facts_host_keys.own(read, _folder),
        "known_hosts": _known_hosts(run, facts_host_keys.names(members, host, plan["ssh"]), user),
        "disk": [facts_resources.free(RUNS_DIR)],
    }
    tried = login.answer()
    # After that: all nodes do the same now, and what the log of this one says may be about such a login.
    found["ssh_login"] = {"found": facts_ssh_login.look(_asked(run), user, peer, plan["ssh"]), "tried": tried}
    found["nccl"], found["job"] = question.answer(), of_job.answer()
    resolved, errors = resolver.results(NAME_SECONDS)
    found["resolves"], found["resolve_errors"] = resolved, errors
    found["hosts_file"] = facts_names.hosts_lines(read(facts_names.HOSTS), _unexpected(resolved, members))
    found["name_sources"] = sources
    # The clock as it was at the beginning, and how long ago that is.
    found["epoch"], found["seconds"] = began, time.monotonic() - started
    return found


def read(path: str) -> str:
    """The text of a file of the kernel or of the system, empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def _settable(path: str) -> bool:
    """Whether this node can write a file of the kernel: in a container not every one."""
    return os.access(path, os.W_OK)


def _said(run: Runner, argv: Sequence[str], **more: Any) -> str:
    code, out, _err = run(_limited(argv), environ_update=ENVIRONMENT, **more)
    return out if code == 0 else ""


def _asked(run: Runner) -> facts_ssh_login.Said:
    """A command, with its time limit, to its exit status and what it wrote."""
    return lambda argv: run(_limited(argv), environ_update=ENVIRONMENT)


def _limited(argv: Sequence[str]) -> list[str]:
    return ["timeout", str(COMMAND_SECONDS), *argv]


def _ways(
    run: Runner, peers: Mapping[str, str], own: Mapping[str, Any], links: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    if not peers:
        return {}
    card, address = str(own["fabric_interface"]), names.canonical(str(own["fabric_address"]))
    held = any(one.partition("/")[0] == address for one in links.get(card, {}).get("addresses", ()))
    asked = facts_routes.questions(peers.values(), address if held else "")
    # Ends with 1 when there is no way to some of them.
    _code, out, err = run(_limited(facts_routes.COMMAND), data=asked, environ_update=ENVIRONMENT)
    return facts_routes.parse(peers, out, err, address if held else "", card)


def _policy(run: Runner, ways: Mapping[str, Mapping[str, Any]], own: Mapping[str, Any]) -> dict[str, Any]:
    """The rules and routes towards peers that are not reached directly."""
    address = names.canonical(str(own["fabric_address"]))
    asked = facts_policy.asked(ways, str(own["fabric_interface"]), address)
    # All of one family: those of the other one are left out.
    asked = [one for one in asked if (":" in one) == (":" in asked[0])]
    if not asked:
        return {"rules": [], "routes": {}}
    _code, out, _err = run(
        _limited(facts_policy.command(asked)), data=facts_policy.questions(asked), environ_update=ENVIRONMENT
    )
    return facts_policy.parse(asked, out)


def _duplicates(own: Mapping[str, Any], links: Mapping[str, Any], macs: set[str]) -> list[dict[str, str]] | None:
    """Who else answers for the fabric address; None when nobody could be asked."""
    address = names.canonical(str(own["fabric_address"]))
    holders = [
        name
        for name, link in links.items()
        if address in [one.partition("/")[0] for one in link["addresses"]] and link["state"] == UP
    ]
    if not holders:
        return None
    macs_of_others = facts_arp.others(holders[0], address, macs)
    return None if macs_of_others is None else [{"address": address, "mac": mac} for mac in macs_of_others]


def _listeners(run: Runner, rendezvous: Mapping[str, Any]) -> list[dict[str, Any]]:
    return facts_listeners.known(
        facts_listeners.parse(_said(run, facts_listeners.command(rendezvous["first"], rendezvous["last"])))
    )


def _denials(run: Runner) -> int | None:
    """None where there is no SELinux."""
    if not os.path.exists("/sys/fs/selinux/enforce"):
        return None
    # Fails when nothing matches, and when there is no audit log: the journal has what there is then.
    return facts_resources.denials(_said(run, facts_resources.AUDIT_LOG) or _said(run, facts_resources.JOURNAL))


def _known_hosts(run: Runner, names: Mapping[str, str], user: str) -> list[dict[str, Any]]:
    """The keys of other members that the files have which ssh reads for this user and for root."""
    client, found = read(files.CLIENT), []
    for who in dict.fromkeys((user or files.ROOT, files.ROOT)):
        try:
            path = os.path.join(pwd.getpwnam(who).pw_dir, facts_host_keys.OF_USER)
        except KeyError:
            continue
        own = {path: _said(run, facts_host_keys.command(path, "" if who == files.ROOT else who))}
        for of_all, asked in zip(
            (files.KNOWN_HOSTS, facts_host_keys.OF_ALL), facts_host_keys.split(names, client, who)
        ):
            found += [{"user": who, **one} for one in facts_host_keys.kept(asked, {**own, of_all: read(of_all)})]
    return found


def _folder(path: str) -> list[str]:
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def _unexpected(resolved: Mapping[str, Sequence[str]], members: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names that do not mean the fabric address alone: of those a person wants to know where that comes from."""
    wanted = {str(member["name"]): [names.canonical(str(member["fabric_address"]))] for member in members}
    return [name for name, addresses in resolved.items() if list(addresses) != wanted.get(name)]


def _packet_filter(
    own: Mapping[str, Any], ways: Mapping[str, Mapping[str, Any]], plan: Mapping[str, Any]
) -> dict[str, Any]:
    """What the rules of this node would do to connections from and to each peer."""
    peers = {
        name: packet_filter.Peer(
            way["address"],
            source=str(own["fabric_address"]),
            interface=str(own["fabric_interface"]),
            leaves_by=way["interface"] or None,
        )
        for name, way in ways.items()
    }
    tcp = [plan[key] for key in RANGES] + [one for one in plan["extra_ports"] if one["protocol"] == "tcp"]
    spans = merged(PortRange(int(one["first"]), int(one["last"])) for one in tcp)
    return packet_filter.packet_filter(peers=peers, ranges=[(span.first, span.last) for span in spans])
