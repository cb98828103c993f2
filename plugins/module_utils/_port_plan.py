# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The port plan: every port and port range of the cluster, merged from defaults and overrides, checked, and handed on.

Pure: plain values in, a ``PortPlan`` or a ``PortPlanError`` with all problems at once out.
NCCL and Gloo have no port option, they take what ``net.ipv4.ip_local_port_range`` gives; Open MPI has its own range.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.problems import Problem, nearest, shown

VARIABLE = "gpu_cluster_ports"
DEFAULTS: dict[str, Any] = {
    "ssh": 22,
    "rendezvous": "29400-29599",
    "ephemeral": "32768-60999",
    "mpi": "61000-64999",
    "extra": [],
}
FIRST_PORT = 1
LAST_PORT = 65535
EPHEMERAL_MINIMUM = 1024
PROTOCOLS = ("tcp", "udp", "sctp")

ERR_NOT_A_DICT = "expected a dictionary with the keys {}".format(", ".join(DEFAULTS))
ERR_UNKNOWN_KEY = "no such key in the port plan; known are {}".format(", ".join(DEFAULTS))
ERR_RANGE_TYPE = "expected a range of ports written as a string 'FIRST-LAST'"
ERR_SSH_TYPE = "expected one port as a whole number"
ERR_EXTRA_TYPE = "expected a list of strings such as '12345-12355/tcp' or '4791/udp'"
ERR_BOUNDS = f"expected ports from {FIRST_PORT} to {LAST_PORT}"
ERR_INVERTED = "the first port is above the last one"
ERR_EPHEMERAL_SMALL = (
    f"holds %d ports, expected at least {EPHEMERAL_MINIMUM}: "
    "every NCCL and Gloo connection of a node takes its port from it"
)
ERR_OVERLAP = "overlaps with %s (%s)"
ERR_SSH_INSIDE = "lies inside %s (%s)"

_RANGE = re.compile(r"^\s*(\d{1,6})\s*-\s*(\d{1,6})\s*$")
_EXTRA = re.compile(r"^\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*/\s*([a-z]+)\s*$")


@dataclass(frozen=True)
class PortRange:
    """The ports from ``first`` to ``last``, both included, of one protocol."""

    first: int
    last: int
    protocol: str = "tcp"

    def count(self) -> int:
        """How many ports it holds."""
        return self.last - self.first + 1

    def overlaps(self, other: PortRange) -> bool:
        """Whether both contain the same port of the same protocol."""
        return self.protocol == other.protocol and self.first <= other.last and other.first <= self.last

    def text(self) -> str:
        """``29400-29599``, or ``29500`` when it is one port."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def firewall(self) -> str:
        """``29400-29599/tcp``: the form of firewalld and of the role variables."""
        return f"{self.text()}/{self.protocol}"


@dataclass(frozen=True)
class PortPlan:
    """A plan without contradictions."""

    ssh: int
    rendezvous: PortRange
    ephemeral: PortRange
    mpi: PortRange
    extra: tuple[PortRange, ...] = field(default=())

    def firewall_ports(self) -> list[str]:
        """What peers must reach; ssh is not in it, it stays as the site opened it."""
        return [span.firewall() for span in (self.rendezvous, self.ephemeral, self.mpi, *self.extra)]

    def as_dict(self) -> dict[str, Any]:
        """The form that the filter returns."""
        return {
            "ssh": self.ssh,
            "rendezvous": {"first": self.rendezvous.first, "last": self.rendezvous.last},
            "ephemeral": {"first": self.ephemeral.first, "last": self.ephemeral.last},
            "mpi": {"first": self.mpi.first, "last": self.mpi.last},
            "extra": [{"first": span.first, "last": span.last, "protocol": span.protocol} for span in self.extra],
            "firewall_ports": self.firewall_ports(),
        }


class PortPlanError(Exception):
    """The plan contradicts itself; ``problems`` holds every reason."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(problem.sentence() for problem in problems))
        self.problems = problems


def _bounded(name: str, value: Any, span: PortRange, problems: list[Problem]) -> PortRange | None:
    """Return ``span`` when its ends are ports in the right order, else note why not."""
    wrong = len(problems)
    if not (FIRST_PORT <= span.first <= LAST_PORT and FIRST_PORT <= span.last <= LAST_PORT):
        problems.append(Problem(name, shown(value), ERR_BOUNDS, "choose ports in that interval"))
    if span.first > span.last:
        problems.append(Problem(name, shown(value), ERR_INVERTED, f"write {span.last}-{span.first}"))
    return span if len(problems) == wrong else None


def _range(key: str, value: Any, problems: list[Problem]) -> PortRange | None:
    name = f"{VARIABLE}.{key}"
    match = _RANGE.match(value) if isinstance(value, str) else None
    if match is None:
        problems.append(Problem(name, shown(value), ERR_RANGE_TYPE, f'write it like "{DEFAULTS[key]}"'))
        return None
    return _bounded(name, value, PortRange(int(match.group(1)), int(match.group(2))), problems)


def _ssh(value: Any, problems: list[Problem]) -> PortRange | None:
    name = f"{VARIABLE}.ssh"
    if isinstance(value, str) and value.strip().isdigit():
        # -e and templates hand numbers over as text.
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        problems.append(Problem(name, shown(value), ERR_SSH_TYPE, f"write it like {DEFAULTS['ssh']}"))
        return None
    return _bounded(name, value, PortRange(int(value), int(value)), problems)


def _extra(value: Any, problems: list[Problem]) -> list[tuple[str, PortRange]]:
    name = f"{VARIABLE}.extra"
    if not isinstance(value, (list, tuple)):
        problems.append(Problem(name, shown(value), ERR_EXTRA_TYPE, 'write a list, ["4791/udp"] for one port'))
        return []
    spans = []
    for index, item in enumerate(value):
        item_name = f"{name}[{index}]"
        match = _EXTRA.match(item) if isinstance(item, str) else None
        if match is None or match.group(3) not in PROTOCOLS:
            problems.append(
                Problem(
                    item_name, shown(item), ERR_EXTRA_TYPE, "use one of the protocols {}".format(", ".join(PROTOCOLS))
                )
            )
            continue
        first = int(match.group(1))
        span = PortRange(first, int(match.group(2) or first), match.group(3))
        if _bounded(item_name, item, span, problems) is not None:
            spans.append((item_name, span))
    return spans


def make_port_plan(overrides: Any = None) -> PortPlan:
    """Merge ``overrides`` into the defaults; raise ``PortPlanError`` with every problem of the result."""
    if overrides is None:
        overrides = {}
    if not isinstance(overrides, Mapping):
        raise PortPlanError([Problem(VARIABLE, shown(overrides), ERR_NOT_A_DICT, "write it as a dictionary, or {}")])
    problems: list[Problem] = []
    for key in overrides:
        if key not in DEFAULTS:
            near = nearest(str(key), DEFAULTS)
            fix = f"write {VARIABLE}.{near}" if near else "remove it"
            problems.append(Problem(f"{VARIABLE}.{key}", shown(overrides[key]), ERR_UNKNOWN_KEY, fix))
    merged = dict(DEFAULTS, **{str(key): value for key, value in overrides.items() if key in DEFAULTS})

    ssh = _ssh(merged["ssh"], problems)
    ranges = {key: _range(key, merged[key], problems) for key in ("rendezvous", "ephemeral", "mpi")}
    extra = _extra(merged["extra"], problems)

    ephemeral = ranges["ephemeral"]
    if ephemeral is not None and ephemeral.count() < EPHEMERAL_MINIMUM:
        problems.append(
            Problem(
                f"{VARIABLE}.ephemeral",
                shown(merged["ephemeral"]),
                ERR_EPHEMERAL_SMALL % ephemeral.count(),
                'widen it; the default is "{}"'.format(DEFAULTS["ephemeral"]),
            )
        )
    named = [(f"{VARIABLE}.{key}", span) for key, span in ranges.items() if span is not None] + extra
    for index, (name, span) in enumerate(named):
        for other_name, other in named[:index]:
            if span.overlaps(other):
                problems.append(
                    Problem(name, shown(span.text()), ERR_OVERLAP % (other_name, other.text()), "move one of the two")
                )
        if ssh is not None and span.overlaps(ssh):
            problems.append(
                Problem(
                    f"{VARIABLE}.ssh",
                    str(ssh.first),
                    ERR_SSH_INSIDE % (name, span.text()),
                    "move the range, or set the port that sshd really listens on",
                )
            )
    rendezvous, mpi = ranges["rendezvous"], ranges["mpi"]
    if problems or ssh is None or rendezvous is None or ephemeral is None or mpi is None:
        raise PortPlanError(problems)
    return PortPlan(
        ssh=ssh.first,
        rendezvous=rendezvous,
        ephemeral=ephemeral,
        mpi=mpi,
        extra=tuple(span for _name, span in extra),
    )
