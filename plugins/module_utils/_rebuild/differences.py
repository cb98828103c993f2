# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How rebuilt nodes differ from the others: against what most of their peers have. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.shape import each, record, text

#: What a snapshot holds, in the order in which it is shown.
SECTIONS = ("stack", "package", "Python package", "sysctl", "service at boot")
ABSENT = "none"
#: Lines of one section for one host on the console; the data has all of them.
SHOWN = 20

ODD = "its answer is not what the module node_snapshot answers: something on this node has changed it"
RUN_SITE = "Fix: run baremetal.gpu_cluster.site, which tells the other members"


def _are_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(text(one) for pair in value.items() for one in pair)


#: Whether this is what the module has answered: root of a node, who may be hostile, decides that.
is_snapshot = record(
    {**dict.fromkeys(SECTIONS, _are_texts), "unknown_addresses": each(text), "problems": each(text)},
)


@dataclass(frozen=True)
class Difference:
    """One value of one host that is not what most peers have."""

    host: str
    section: str
    name: str
    value: str
    usual: str
    peers: int
    of: int

    def sentence(self) -> str:
        """Without the host."""
        what = self.name if self.section == "stack" else f"{self.section} {self.name}"
        return f"{what}: {self.value}; {self.peers} of {self.of} peers: {self.usual}"


@dataclass(frozen=True)
class Report:
    """For the console and for other tasks."""

    rebuilt: tuple[str, ...]
    peers: tuple[str, ...]
    differences: tuple[Difference, ...]
    unaware: Mapping[str, Sequence[str]]
    unread: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """For the task's result."""
        return {
            "rebuilt": list(self.rebuilt),
            "peers": list(self.peers),
            "differences": [asdict(one) for one in self.differences],
            "unaware": {host: list(missing) for host, missing in self.unaware.items()},
            "unread": dict(self.unread),
        }


def compare(rebuilt: Sequence[str], snapshots: Mapping[str, Mapping[str, Any]]) -> Report:
    """Compare each rebuilt host with the other hosts of ``snapshots``. A host without an answer has a ``problem``."""
    read = {host: snapshot for host, snapshot in snapshots.items() if is_snapshot(snapshot)}
    peers = [host for host in read if host not in rebuilt]
    unread = {
        host: str(snapshot["problem"] or "no answer") if isinstance(snapshot, dict) and "problem" in snapshot else ODD
        for host, snapshot in snapshots.items()
        if host not in read
    }
    unread.update(
        {host: "; ".join(snapshot["problems"]) for host, snapshot in read.items() if snapshot.get("problems")}
    )
    differences = [
        found
        for host in rebuilt
        if host in read and peers
        for section in SECTIONS
        for found in _section(host, section, read[host][section], [read[peer][section] for peer in peers])
    ]
    unaware = {host: read[host]["unknown_addresses"] for host in peers if read[host]["unknown_addresses"]}
    return Report(tuple(rebuilt), tuple(peers), tuple(differences), unaware, unread)


def _section(host: str, section: str, own: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> list[Difference]:
    """One part of one host. Where the peers do not agree among themselves, a value that one of them has is no news."""
    found = []
    for name in sorted({*own, *(key for other in others for key in other)}):
        value = own.get(name, ABSENT)
        counted = Counter(other.get(name, ABSENT) for other in others)
        usual, peers = counted.most_common(1)[0]
        if value != usual and (2 * peers > len(others) or value not in counted):
            found.append(Difference(host, section, name, value, usual, peers, len(others)))
    return found


def lines(report: Report) -> list[str]:
    """For the console, each on one line whatever the nodes have said."""
    return [("  " if one.startswith("  ") else "") + sanitize.sentence(one) for one in _lines(report)]


def _lines(report: Report) -> list[str]:
    result = []
    for host in report.rebuilt:
        if host in report.unread:
            result.append(f"{host} was not compared completely: {report.unread[host]}")
        own = [one for one in report.differences if one.host == host]
        against = f"its {len(report.peers)} peers" if len(report.peers) > 1 else f"its peer {''.join(report.peers)}"
        if not report.peers:
            result.append(f"{host} is compared with nobody: no other member answered")
        elif own:
            result.append(f"{host} differs from {against} in {len(own)} point(s):")
        elif host not in report.unread:
            result.append(f"{host} does not differ from {against}")
        for section in SECTIONS:
            here = [one for one in own if one.section == section]
            result += [f"  {one.sentence()}" for one in here[:SHOWN]]
            result += [f"  and {len(here) - SHOWN} more of this kind"] if len(here) > SHOWN else []
    for host, missing in report.unaware.items():
        result.append(f"{host} does not know {', '.join(missing)}. {RUN_SITE}.")
    for host, why in report.unread.items():
        if host not in report.rebuilt:
            result.append(f"{host}, a peer, was not read completely: {why}")
    return result
