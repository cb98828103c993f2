# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one process printed, read line by line: what each line means, and which line is closest to the cause.  Pure.

The meaning of a line is corrected by what is known of the cluster: an address that no member has on the data network is
no firewall's work, and a limit that was measured as unlimited is not too low.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_network

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import address_of, not_a_host
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup, torch
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.lookup import SYSTEM, Match
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import SELF, Text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import FINDINGS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.mpi_output import RULER
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.names import spelled

#: A longer line is cut: it is data, and patterns take their time with it.
MOST_CHARACTERS = 4000
#: A block between rulers of more lines is no message of Open MPI.
MOST_FRAMED = 60
#: The bridge that Docker makes on every machine (docs.docker.com, dockerd --bip).
DOCKER = ip_network("172.17.0.0/16")
#: Python's own warnings, ``/usr/lib/x.py:12: UserWarning: text``, and what torch writes also where all is well.
HARMLESS = re.compile("|".join([r"^\S+:\d+: \w*Warning: ", *torch.HARMLESS]))
#: Texts of attempts to connect, which an address that leads nowhere explains.
CONNECTING = (causes.BLOCKED,)
#: The value of a limit that is none, as the facts have it.
UNLIMITED = -1


@dataclass(frozen=True)
class Known:
    """What is known of the cluster; all of it may be missing.

    members: address on the data network to the member.  others: further addresses of members.  limits: of the node that
    printed the text, ``memlock`` in bytes, -1 for unlimited.  versions: as in ``lookup.match``.
    """

    members: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """A line that is known.  line: its number, from 1."""

    line: int
    text: str
    match: Match

    @property
    def order(self) -> tuple[int, ...]:
        """The smallest is closest to the cause: its own node before others, earlier before later, wrappers last.

        Of those the ones that name somebody come first.
        """
        text, names = self.match.text, self.match.names
        others = text.about != SELF
        nameless = text.weak and not (names.addresses or names.ranks)
        return (text.weak, nameless, self.match.software == SYSTEM and others, others, self.line)


def records(lines: Iterable[str]) -> Iterable[tuple[int, str]]:
    """Number and text of what belongs together: single lines, and what stands between two rulers of Open MPI as one."""
    framed: list[str] = []
    began = 0
    for number, line in enumerate(lines, 1):
        if RULER.match(line):
            if framed:
                yield began, " ".join(framed)
            framed, began = [], (0 if began and framed else number)
        elif began:
            framed.append(line[:MOST_CHARACTERS])
            if len(framed) >= MOST_FRAMED:
                yield from ((began + at, one) for at, one in enumerate(framed, 1))
                framed, began = [], 0
        else:
            yield number, line[:MOST_CHARACTERS]
    if framed:
        yield began, " ".join(framed)


def read(lines: Iterable[str], known: Known | None = None) -> list[Reading]:
    """The lines that are known, in their order."""
    known = known or Known()
    found = []
    for number, line in records(lines):
        if not line.strip() or is_harmless(line):
            continue
        match = lookup.match(line, known.versions)
        if match:
            found.append(Reading(number, line, corrected(match, known)))
    return found


def closest(readings: Iterable[Reading]) -> Reading | None:
    """The line that is closest to the cause."""
    return min(readings, key=lambda one: one.order, default=None)


def is_harmless(line: str) -> bool:
    """Whether a program writes this also where all is well, or only because another one has ended."""
    return bool(HARMLESS.search(line))


def corrected(match: Match, known: Known) -> Match:
    """The match, or what it has to mean by what is known of the cluster."""
    limit = match.text.limit
    if limit and known.limits.get(limit) == UNLIMITED:
        return as_cause(match, causes.RDMA, f"{match.text.otherwise}; the limit {limit} is unlimited on this node")
    if match.id in CONNECTING and match.software != "ssh":
        for name in match.names.addresses:
            why = _leads_nowhere(name.partition("%")[0], known)
            if why:
                return as_cause(match, causes.INTERFACE, why)
    return match


def _leads_nowhere(name: str, known: Known) -> str:
    """Why this address can't be how a member is reached, or nothing."""
    address = address_of(name)
    if address is None or spelled(name) in known.members:
        return ""
    kind = not_a_host(address)
    if kind:
        return f"another rank has published the {kind} address {name}"
    if spelled(name) in known.others:
        return f"{name} is an address of {known.others[spelled(name)]}, but not the one on the data network"
    if known.members:
        return f"{name} is no member's address: a rank has published one of another network"
    if address in DOCKER:
        return f"{name} is an address of Docker's bridge: a rank has published it"
    return ""


def as_cause(match: Match, cause: str, says: str) -> Match:
    """The match with another meaning; sure, because it follows from facts."""
    text: Text = replace(match.text, cause=cause, says=says, fix="", command="", look="", limit="")
    return replace(match, id=cause, what=f"{FINDINGS[cause].title}: {says}", text=text)
