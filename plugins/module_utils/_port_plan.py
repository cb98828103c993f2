# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The port plan: every port and port range of the cluster, merged from defaults and overrides, checked, and handed on.

Pure: plain values in, a ``PortPlan`` or a ``PortPlanError`` with all problems at once out.
NCCL and Gloo have no port option, they take what ``net.ipv4.ip_local_port_range`` gives; Open MPI has its own range.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    FIRST_PORT,
    LAST_PORT,
    whole_number,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_ranges import PortRange, left_over, merged

VARIABLE = "gpu_cluster_ports"
#: ranks_per_node and process_groups size the ephemeral range, see ``needed_ephemeral_ports``.
DEFAULTS: dict[str, Any] = {
    "ssh": 22,
    "rendezvous": "29400-29599",
    "ephemeral": "32768-60999",
    "mpi": "61000-64999",
    "etcd": "",
    "extra_ports": [],
    "reserved": [],
    "ranks_per_node": 8,
    "process_groups": 32,
}
#: What etcd itself calls its ports; the plan has them where the inventory sets them.
ETCD, ETCD_PORTS = "2379-2380", 2
RANGES = ("rendezvous", "ephemeral", "mpi")
EPHEMERAL_MINIMUM = 1024
PROTOCOLS = ("tcp", "udp", "sctp")
#: Catches slips of the pen; no node has that many ranks, and no rank that many groups.
COUNT_MAXIMUM = 1024
#: NCCL opens four listening sockets for a rank of a communicator: for its neighbour in the ring, for the root, for
#: peers, and for its proxy (bootstrapInit in src/bootstrap.cc, 2.30). Gloo opens one (its listener for the group).
LISTENERS_PER_RANK_AND_GROUP = 4
#: The kernel gives listeners the odd ports of the range and outgoing connections the even ones, each the other's only
#: when its own are used up (inet_csk_find_open_port and __inet_hash_connect, since Linux 4.5).
HALVES = 2

ERR_NOT_A_DICT = "expected a dictionary with the keys {}".format(", ".join(DEFAULTS))
ERR_UNKNOWN_KEY = "no such key in the port plan; known are {}".format(", ".join(DEFAULTS))
ERR_RANGE_TYPE = "expected a range of ports written as a string 'FIRST-LAST'"
ERR_SSH_TYPE = "expected a port as a whole number, or a list of them"
ERR_SSH_EMPTY = "expected at least one port: without ssh the node cannot be reached"
ERR_LIST_TYPE = "expected ports and ranges, each as 10086, '12345-12355' or '4791/udp'"
ERR_RESERVED_TYPE = "expected ports and ranges, each as 50000 or '50000-50010'"
ERR_BOUNDS = f"expected ports from {FIRST_PORT} to {LAST_PORT}"
ERR_INVERTED = "the first port is above the last one"
ERR_COUNT = "expected a whole number from %d to %d"
ERR_EPHEMERAL_SMALL = (
    f"holds %d ports that are not reserved, expected at least %d: {HALVES} halves (listeners, outgoing connections) "
    f"x {LISTENERS_PER_RANK_AND_GROUP} listeners x ranks_per_node (%d) x process_groups (%d), "
    f"and never fewer than {EPHEMERAL_MINIMUM}"
)
ERR_MPI_SMALL = "holds %d ports, expected at least ranks_per_node (%d): Open MPI takes one for each rank"
ERR_ETCD = "expected two ports: the first one is for clients of etcd, the second one for its members"
ERR_OVERLAP = "overlaps with %s (%s)"
ERR_UNRESERVED = "lies in %s (%s), from which the kernel gives ports to any connection; %s is not reserved"
ERR_RESERVED_OUTSIDE = "lies outside of %s (%s), so reserving it has no effect"

_RANGE = re.compile(r"\s*([0-9]{1,6})\s*-\s*([0-9]{1,6})\s*")
_SPAN = re.compile(r"\s*([0-9]{1,6})(?:\s*-\s*([0-9]{1,6}))?\s*(?:/\s*([a-z]+)\s*)?")


@dataclass(frozen=True)
class PortPlan:
    """A plan without contradictions. ``reserved`` is merged and in order."""

    ssh: tuple[int, ...]
    rendezvous: PortRange
    ephemeral: PortRange
    mpi: PortRange
    #: None without etcd.
    etcd: PortRange | None = None
    extra_ports: tuple[PortRange, ...] = ()
    reserved: tuple[PortRange, ...] = ()
    ranks_per_node: int = DEFAULTS["ranks_per_node"]
    process_groups: int = DEFAULTS["process_groups"]

    def firewall_ports(self) -> list[str]:
        """What peers must reach; ssh is not in it, it stays as the site opened it."""
        etcd = (self.etcd,) if self.etcd is not None else ()
        return [span.firewall() for span in (self.rendezvous, self.ephemeral, self.mpi, *etcd, *self.extra_ports)]

    def openmpi(self) -> dict[str, int]:
        """Open MPI's parameters for its data ports. The range is a count, and IPv6 has parameters of its own."""
        return {
            f"btl_tcp_port_{name}_{family}": value
            for family in ("v4", "v6")
            for name, value in (("min", self.mpi.first), ("range", self.mpi.count()))
        }

    def as_dict(self) -> dict[str, Any]:
        """The form that the filter returns."""
        return {
            "ssh": list(self.ssh),
            **{key: {"first": getattr(self, key).first, "last": getattr(self, key).last} for key in RANGES},
            "etcd": {"first": self.etcd.first, "last": self.etcd.last} if self.etcd is not None else {},
            "extra_ports": [
                {"first": span.first, "last": span.last, "protocol": span.protocol} for span in self.extra_ports
            ],
            "reserved": [span.text() for span in self.reserved],
            "ranks_per_node": self.ranks_per_node,
            "process_groups": self.process_groups,
            "firewall_ports": self.firewall_ports(),
            "openmpi": self.openmpi(),
        }


class PortPlanError(Exception):
    """The plan contradicts itself; ``problems`` holds every reason."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(problem.sentence() for problem in problems))
        self.problems = problems


def needed_ephemeral_ports(ranks_per_node: int, process_groups: int) -> int:
    """How many ephemeral ports a node needs for its ranks, each of them in all process groups."""
    return max(EPHEMERAL_MINIMUM, HALVES * LISTENERS_PER_RANK_AND_GROUP * ranks_per_node * process_groups)


class _Reader:
    """Reads the merged values one by one and collects what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def refuse(self, key: str, value: Any, rule: str, fix: str) -> None:
        self.problems.append(Problem(f"{VARIABLE}.{key}", shown(value), rule, fix))

    def bounded(self, key: str, value: Any, span: PortRange) -> PortRange | None:
        """``span`` when its ends are ports in the right order."""
        wrong = len(self.problems)
        if not (FIRST_PORT <= span.first <= LAST_PORT and FIRST_PORT <= span.last <= LAST_PORT):
            self.refuse(key, value, ERR_BOUNDS, "choose ports in that interval")
        if span.first > span.last:
            self.refuse(key, value, ERR_INVERTED, f"write {span.last}-{span.first}")
        return span if len(self.problems) == wrong else None

    def range(self, key: str, value: Any) -> PortRange | None:
        match = _RANGE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            self.refuse(key, value, ERR_RANGE_TYPE, f'write it like "{DEFAULTS[key]}"')
            return None
        return self.bounded(key, value, PortRange(int(match.group(1)), int(match.group(2))))

    def etcd(self, value: Any) -> PortRange | None:
        """Two ports, or none where it is empty."""
        if value in ("", None):
            return None
        match = _RANGE.fullmatch(value) if isinstance(value, str) else None
        span = PortRange(int(match.group(1)), int(match.group(2))) if match else None
        if span is None or (span.count() != ETCD_PORTS and span.first <= span.last):
            self.refuse("etcd", value, ERR_ETCD, f'write it like "{ETCD}"')
            return None
        return self.bounded("etcd", value, span)

    def spans(self, key: str, value: Any, *, protocols: Sequence[str], rule: str) -> list[tuple[str, PortRange]]:
        """A list of ports and ranges, or the same as one string with commas; each with the name of its place."""
        if isinstance(value, str):
            # -e hands lists over as text.
            value = [part for part in value.split(",") if part.strip()]
        elif isinstance(value, int) and not isinstance(value, bool):
            value = [value]
        example = "write a list, [12345-12355, 23456, 10086]"
        if not isinstance(value, (list, tuple)):
            self.refuse(key, value, rule, example)
            return []
        spans = []
        for index, item in enumerate(value):
            place = f"{key}[{index}]"
            match = (
                None if isinstance(item, bool) else _SPAN.fullmatch(str(item)) if isinstance(item, (str, int)) else None
            )
            protocol = (match.group(3) or "tcp") if match else ""
            if match is None or (match.group(3) and not protocols):
                self.refuse(place, item, rule, example)
            elif protocols and protocol not in protocols:
                self.refuse(place, item, rule, "use one of the protocols {}".format(", ".join(protocols)))
            else:
                first = int(match.group(1))
                span = self.bounded(place, item, PortRange(first, int(match.group(2) or first), protocol))
                if span is not None:
                    spans.append((f"{VARIABLE}.{place}", span))
        return spans

    def ssh(self, value: Any) -> tuple[int, ...]:
        items = value if isinstance(value, (list, tuple)) else [value]
        if not items:
            self.refuse("ssh", value, ERR_SSH_EMPTY, f"write it like {DEFAULTS['ssh']}")
        ports: list[int] = []
        for entry in items:
            # -e and templates hand numbers over as text.
            item = whole_number(entry)
            if item is None:
                self.refuse("ssh", value, ERR_SSH_TYPE, f"write it like {DEFAULTS['ssh']} or [22, 2222]")
            elif self.bounded("ssh", item, PortRange(item, item)) is not None and item not in ports:
                ports.append(item)
        return tuple(ports)

    def count(self, key: str, value: Any, most: int) -> int:
        number = whole_number(value)
        if number is None or not 1 <= number <= most:
            self.refuse(key, value, ERR_COUNT % (1, most), f"write it like {DEFAULTS[key]}")
            return 0
        return number


def _collisions(
    ssh: Sequence[int], fixed: Sequence[tuple[str, PortRange]], ephemeral: PortRange | None, reserved: list[PortRange]
) -> list[Problem]:
    """Fixed ports against each other, and against those that the kernel gives away."""
    named = [(f"{VARIABLE}.ssh", PortRange(port, port)) for port in ssh] + list(fixed)
    problems = []
    for index, (name, span) in enumerate(named):
        for other_name, other in named[:index]:
            if span.overlaps(other):
                fix = "move one of the two"
                if other_name == f"{VARIABLE}.ssh":
                    fix = "move the range, or set the port that sshd really listens on"
                problems.append(Problem(name, shown(span.text()), ERR_OVERLAP % (other_name, other.text()), fix))
        # The kernel's range holds for every protocol.
        inside = span.common(ephemeral) if ephemeral is not None else None
        missing = [part.text() for part in left_over(inside, reserved)] if inside is not None else []
        if ephemeral is not None and missing:
            place = (f"{VARIABLE}.ephemeral", ephemeral.text(), ", ".join(missing))
            fix = f"add {shown(missing)} to {VARIABLE}.reserved, or move one of the two"
            problems.append(Problem(name, shown(span.text()), ERR_UNRESERVED % place, fix))
    return problems


def make_port_plan(overrides: Any = None) -> PortPlan:
    """Merge ``overrides`` into the defaults; raise ``PortPlanError`` with every problem of the result."""
    if overrides is None:
        overrides = {}
    if not isinstance(overrides, Mapping):
        raise PortPlanError([Problem(VARIABLE, shown(overrides), ERR_NOT_A_DICT, "write it as a dictionary, or {}")])
    reader = _Reader()
    for key in overrides:
        if key not in DEFAULTS:
            near = nearest(str(key), DEFAULTS)
            fix = f"write {VARIABLE}.{near}" if near else "remove it"
            reader.refuse(str(key), overrides[key], ERR_UNKNOWN_KEY, fix)
    values = dict(DEFAULTS, **{str(key): value for key, value in overrides.items() if key in DEFAULTS})

    ssh = reader.ssh(values["ssh"])
    ranges = {key: reader.range(key, values[key]) for key in RANGES}
    etcd = reader.etcd(values["etcd"])
    extra = reader.spans("extra_ports", values["extra_ports"], protocols=PROTOCOLS, rule=ERR_LIST_TYPE)
    held_back = reader.spans("reserved", values["reserved"], protocols=(), rule=ERR_RESERVED_TYPE)
    reserved = [span for _name, span in held_back]
    ranks = reader.count("ranks_per_node", values["ranks_per_node"], COUNT_MAXIMUM)
    groups = reader.count("process_groups", values["process_groups"], COUNT_MAXIMUM)

    rendezvous, ephemeral, mpi = (ranges[key] for key in RANGES)
    if ephemeral is not None:
        for name, span in held_back:
            if span.common(ephemeral) is None:
                rule = ERR_RESERVED_OUTSIDE % (f"{VARIABLE}.ephemeral", ephemeral.text())
                reader.problems.append(Problem(name, shown(span.text()), rule, "remove it"))
    if ephemeral is not None and ranks and groups:
        free = sum(part.count() for part in left_over(ephemeral, reserved))
        needed = needed_ephemeral_ports(ranks, groups)
        if free < needed:
            fix = 'widen it; the default is "{}"'.format(DEFAULTS["ephemeral"])
            reader.refuse("ephemeral", values["ephemeral"], ERR_EPHEMERAL_SMALL % (free, needed, ranks, groups), fix)
    if mpi is not None and mpi.count() < ranks:
        fix = 'widen it; the default is "{}"'.format(DEFAULTS["mpi"])
        reader.refuse("mpi", values["mpi"], ERR_MPI_SMALL % (mpi.count(), ranks), fix)
    fixed = [(f"{VARIABLE}.{key}", span) for key, span in ranges.items() if span is not None and key != "ephemeral"]
    fixed += [(f"{VARIABLE}.etcd", etcd)] if etcd is not None else []
    problems = reader.problems + _collisions(ssh, fixed + extra, ephemeral, reserved)
    if problems or rendezvous is None or ephemeral is None or mpi is None:
        raise PortPlanError(problems)
    return PortPlan(
        ssh=ssh,
        rendezvous=rendezvous,
        ephemeral=ephemeral,
        mpi=mpi,
        etcd=etcd,
        extra_ports=tuple(span for _name, span in extra),
        reserved=merged(reserved),
        ranks_per_node=ranks,
        process_groups=groups,
    )
