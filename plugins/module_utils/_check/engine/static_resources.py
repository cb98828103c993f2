# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node leaves to the ranks: ports, limits, disk, and SELinux.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.fixes import without_override
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR, WARNING
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.static_view import (
    READ,
    View,
    again,
    site,
    together,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import (
    DENIAL_MINUTES,
    UNLIMITED,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import (
    DEFAULTS,
    LISTENERS_PER_RANK_AND_GROUP,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_ranges import PortRange, left_over, merged

#: What a rank has open besides its connections: libraries, devices, pipes. Ours, generous and without a source.
OPEN_FILES = 256
#: Threads of a rank for each process group: two workers (ProcessGroupGloo.cpp of torch) and a loop
#: (gloo/transport/tcp) of Gloo, the proxy of NCCL. Besides them one for each processor (OpenMP).
THREADS_PER_GROUP = 4
#: What role kernel_tuning sets where the inventory says nothing (its defaults/main.yml), as the kernel counts.
ROLE_LIMITS = {"memlock": UNLIMITED, "nofile": 524288}
#: The check writes below 1 MiB of code and a few lines for each rank. Ours, without a source.
NEEDED_BYTES = 32 << 20
MIB = 1 << 20
#: Listeners that a finding shows as its evidence.
MOST_PLACES = 10

FIX_PORTS = (
    "let role kernel_tuning set net.ipv4.ip_local_port_range; `sysctl --system` tells who sets another; "
    f"{without_override('kernel_tuning_ephemeral_range')}"
)
FIX_RESERVED = (
    "let role kernel_tuning set net.ipv4.ip_local_reserved_ports from gpu_cluster_ports.reserved; "
    f"{without_override('kernel_tuning_reserved_ports')}"
)
FIX_LISTENERS = (
    "give jobs another port of the range (torchrun --master-port; gpu-cluster-run finds a free one), or end what "
    "listens there; while a job is at work, the times of the check are too long, and the check slows the job down"
)
FIX_DEFAULTS = (
    "run role kernel_tuning, whose defaults are enough: where the inventory sets kernel_tuning_limits, first remove it "
    "there or raise it; it holds for logins from then on"
)
FIX_LIMITS = "raise it in kernel_tuning_limits, and run role kernel_tuning; it holds for logins from then on"
FIX_DISK = "remove what fills it: `du -xsh /run/*`; the check removes its own files"
FIX_DENIALS = "role selinux_policy reads them, says what each means, and which of its variables allows it"


def findings(view: View, plan: Mapping[str, Any], user: str) -> list[Finding]:
    """All nodes.  plan: the port plan; its ``ranks_per_node`` and ``process_groups`` size the limits."""
    return [
        *_outside(view, plan),
        *_reserved(view, plan),
        *_listeners(view),
        *_limits(view, plan, user),
        *_disk(view),
        *_denials(view),
    ]


def _finding(
    number: str,
    hosts: list[str],
    cause: str,
    fix: str,
    tag: str = "",
    variables: Mapping[str, Any] | None = None,
    evidence: tuple[str, ...] = (),
    severity: str = "",
) -> Finding:
    return Finding(
        number,
        tuple(hosts),
        cause,
        fix,
        evidence,
        confidence=READ,
        variables=dict.fromkeys(hosts, variables) if variables else {},
        command=site(tag, hosts) if tag else "",
        reproduce=again(hosts),
        severity=severity,
    )


def _outside(view: View, plan: Mapping[str, Any]) -> list[Finding]:
    """Nodes whose kernel gives Gloo and NCCL ports that the plan, and so the firewall, does not know."""
    wanted = PortRange(plan["ephemeral"]["first"], plan["ephemeral"]["last"])
    alike = together((tuple(said["ephemeral_range"]), host) for host, said in view.static.items())
    found = []
    for (first, last), hosts in alike.items():
        outside = left_over(PortRange(first, last), [wanted])
        if outside:
            ports = ", ".join(span.text() for span in outside)
            cause = (
                f"the kernel of {listed(hosts)} gives out ports {first}-{last}, the port plan knows {wanted.text()}: "
                f"{ports} are open in no firewall"
            )
            found.append(_finding("GC-NODE-010", hosts, cause, FIX_PORTS, "kernel_tuning"))
        elif (first, last) != (wanted.first, wanted.last):
            cause = f"the kernel of {listed(hosts)} gives out ports {first}-{last} only, the plan has {wanted.text()}"
            found.append(_finding("GC-NODE-010", hosts, cause, FIX_PORTS, "kernel_tuning", severity=WARNING))
    return found


def _reserved(view: View, plan: Mapping[str, Any]) -> list[Finding]:
    """Nodes that may give a connection the port of a service."""
    wanted = [_span(text) for text in plan["reserved"]]
    pairs = []
    for host, said in view.static.items():
        kept = [PortRange(first, last) for first, last in said["reserved_ports"]]
        missing = ", ".join(part.text() for span in wanted for part in left_over(span, kept))
        if missing:
            pairs.append((missing, host))
    return [
        _finding(
            "GC-NODE-011",
            hosts,
            f"the port plan reserves {missing}, {listed(hosts)} does not: any connection may take these ports",
            FIX_RESERVED,
            "kernel_tuning",
        )
        for missing, hosts in together(pairs).items()
    ]


def _listeners(view: View) -> list[Finding]:
    """Ports of the rendezvous that something else has: a job that is given one of them hangs, or does not start."""
    held: dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]] = {}
    for host, said in view.static.items():
        for one in said["listeners"]:
            held.setdefault((one["program"], one["user"]), []).append((host, one))
    found = []
    for (program, user), places in held.items():
        hosts = list(dict.fromkeys(host for host, _one in places))
        ports = merged(PortRange(one["port"], one["port"]) for _host, one in places)
        spans = ", ".join(one.text() for one in ports)
        who = f"{program or 'something'}{f' of user {user}' if user else ''}"
        found.append(
            Finding(
                "GC-NODE-015",
                tuple(hosts),
                f"{who} listens on {listed(hosts)} on ports of the rendezvous: {spans}",
                FIX_LISTENERS,
                tuple(
                    f"{host}: {one['address']}:{one['port']}, process {one['pid'] or 'unknown'}"
                    for host, one in places[:MOST_PLACES]
                ),
                confidence=READ,
                look="; ".join(f"ss -ltnp 'sport >= :{one.first} and sport <= :{one.last}'" for one in ports[:3]),
                reproduce=again(hosts),
            )
        )
    return found


def _span(text: str) -> PortRange:
    first, _dash, last = str(text).partition("-")
    return PortRange(int(first), int(last or first))


def needed_files(world_size: int, groups: int) -> int:
    """Open files of one rank: listeners and a connection to each other rank, for each process group, and the rest."""
    return OPEN_FILES + groups * (LISTENERS_PER_RANK_AND_GROUP + world_size - 1)


def needed_processes(ranks: int, cpus: int, groups: int) -> int:
    """Threads, which count as processes, of all ranks of a node."""
    return ranks * (cpus + THREADS_PER_GROUP * groups)


class Short(NamedTuple):
    """A limit that is too low; ``needed`` is -1 for unlimited."""

    item: str
    has: int
    needed: int
    severity: str


def _limits(view: View, plan: Mapping[str, Any], user: str) -> list[Finding]:
    ranks = int(plan.get("ranks_per_node", DEFAULTS["ranks_per_node"]))
    groups = int(plan.get("process_groups", DEFAULTS["process_groups"]))
    world = ranks * len(view.members)
    pairs = []
    for host, said in view.static.items():
        needs = {
            "nofile": (needed_files(world, 1), needed_files(world, groups)),
            "nproc": (needed_processes(ranks, said["cpus"], 1), needed_processes(ranks, said["cpus"], groups)),
        }
        short = _short(said["limits"], needs, bool(said["rdma"]))
        if short:
            pairs.append(((short, _wanted(said["limits"], short)), host))
    return [_limit(short, dict(wanted), hosts, user) for (short, wanted), hosts in together(pairs).items()]


def _short(limits: Mapping[str, int], needs: Mapping[str, tuple[int, int]], rdma: bool) -> tuple[Short, ...]:
    """The limits that are too low: for one process group an error, for all of the plan a warning."""
    found = []
    for item, (least, needed) in needs.items():
        has = limits.get(item, UNLIMITED)
        if has != UNLIMITED and has < needed:
            found.append(Short(item, has, needed, ERROR if has < least else WARNING))
    memlock = limits.get("memlock", UNLIMITED)
    if rdma and memlock != UNLIMITED:
        found.append(Short("memlock", memlock, UNLIMITED, WARNING))
    return tuple(found)


def _wanted(limits: Mapping[str, int], short: tuple[Short, ...]) -> tuple[tuple[str, str], ...]:
    """What kernel_tuning_limits has to be; nothing where the role's own defaults are enough.

    A list in the inventory replaces that of the role as a whole, so the role's items are in it too, and none is below
    the role's default or below what the node has.  Where the defaults are enough, such a list would repeat them, and in
    a container it could do harm: a lower list that its site has chosen would give way to numbers above its hard limits,
    of which nothing is known here, and the role then sets none.
    """
    needed = {one.item: one.needed for one in short}
    wanted = {item: _more(number, needed.get(item, number)) for item, number in {**needed, **ROLE_LIMITS}.items()}
    if wanted == ROLE_LIMITS:
        return ()
    numbers = {item: _more(number, limits.get(item, number)) for item, number in wanted.items()}
    return tuple((item, _in_limits_conf(item, number)) for item, number in sorted(numbers.items()))


def _more(one: int, other: int) -> int:
    """The higher one of two limits."""
    return UNLIMITED if UNLIMITED in (one, other) else max(one, other)


def _in_limits_conf(item: str, number: int) -> str:
    """Memory is counted in KiB there (limits.conf(5))."""
    return "unlimited" if number == UNLIMITED else str(number // 1024 if item == "memlock" else number)


REASONS = {
    "nofile": f"{OPEN_FILES} + process_groups x ({LISTENERS_PER_RANK_AND_GROUP} listeners + other ranks), for one rank",
    "nproc": f"ranks_per_node x (processors + {THREADS_PER_GROUP} x process_groups)",
    "memlock": "RDMA locks the memory that it registers",
}


def _limit(short: tuple[Short, ...], wanted: Mapping[str, str], hosts: list[str], user: str) -> Finding:
    words = [
        f"{one.item} is {one.has}{' bytes' if one.item == 'memlock' else ''}, "
        f"the port plan needs {'unlimited' if one.needed == UNLIMITED else one.needed}"
        for one in short
    ]
    limits = [{"item": item, "value": value, "reason": REASONS[item]} for item, value in wanted.items()]
    return _finding(
        "GC-NODE-012",
        hosts,
        f"limits of {user or 'root'} on {listed(hosts)}: {'; '.join(words)}",
        FIX_LIMITS if limits else FIX_DEFAULTS,
        "kernel_tuning",
        {"kernel_tuning_limits": limits} if limits else None,
        tuple(f"{one.item}: {REASONS[one.item]}" for one in short),
        ERROR if any(one.severity == ERROR for one in short) else WARNING,
    )


def _disk(view: View) -> list[Finding]:
    pairs = [
        ((str(one["path"]), int(one["free_bytes"]) // MIB), host)
        for host, said in view.static.items()
        for one in said["disk"]
        if int(one["free_bytes"]) < NEEDED_BYTES
    ]
    return [
        Finding(
            "GC-NODE-013",
            tuple(hosts),
            f"{path} on {listed(hosts)} has {free} MiB free, the check needs {NEEDED_BYTES // MIB}",
            FIX_DISK,
            confidence=READ,
            look=fixes.run(hosts, "df -h /run; df -i /run; du -xsh /run/*"),
            reproduce=again(hosts),
        )
        for (path, free), hosts in together(pairs).items()
    ]


def _denials(view: View) -> list[Finding]:
    """SELinux refused something lately; what it was, and whether a job minds, role selinux_policy says."""
    counts = {host: said["denials"] for host, said in view.static.items() if said["denials"]}
    if not counts:
        return []
    words = ", ".join(f"{count} on {host}" for host, count in counts.items())
    cause = f"SELinux refused accesses in the last {DENIAL_MINUTES} minutes: {words}"
    shown = fixes.look(list(counts), "ausearch -m AVC,USER_AVC -ts recent -i")
    return [replace(_finding("GC-NODE-014", list(counts), cause, FIX_DENIALS), look=shown)]
