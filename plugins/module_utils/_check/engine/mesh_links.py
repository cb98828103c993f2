# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all nodes saw of the mesh: the ``links`` of the probes as typed values, and as tables for a report.

Pure, on the controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import intervals
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.intervals import Spans
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import link_table
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

Results = Mapping[str, Mapping[str, Any]]
#: From whom to whom.
Ends = tuple[str, str]

# What kinds of trouble a link can have; each has causes of its own, so each is explained by itself.
UNSENT = "unsent"
CLOSED = "closed"
REFUSED = "refused"
STALLED = "stalled"
SILENT = "silent"
FOREIGN = "foreign"
#: But for UNSENT, which needs no search for whom it is about (mesh_unsent.py).
TROUBLES = (CLOSED, REFUSED, STALLED, SILENT, FOREIGN)

# The worst first; an error of the node's own kernel comes after those named here.
_WORST = (probe_ports.UNREACHABLE, probe_ports.TIMEOUT, probe_ports.REFUSED, probe_ports.STALLED, probe_ports.FOREIGN)


@dataclass(frozen=True)
class Failure:
    """One port that did not answer as it should.  passed_bytes, stalled_bytes: with ``stalled``, the payloads."""

    port: int
    range: str
    result: str
    passed_bytes: int
    stalled_bytes: int
    said: str

    @property
    def trouble(self) -> str:
        """Which kind it is.  Where not even the smallest payload is answered, it is no question of the MTU."""
        if self.result == probe_ports.STALLED:
            return STALLED if self.passed_bytes else SILENT
        if self.result == probe_ports.REFUSED:
            return REFUSED
        if self.result in probe_ports.OWN_KERNEL:
            return UNSENT
        return FOREIGN if self.result == probe_ports.FOREIGN else CLOSED


@dataclass(frozen=True)
class Link:
    """A directed link.  blocked: result to exact intervals, within ``searched``, which is empty where nobody searched.

    milliseconds: of a connect.  bytes_per_second, retransmits: of the largest payload; None where it was not sent.
    unheard: ports of the source that nothing came back to, where another one of its ports was answered.
    requests, lost_requests: SYNs that were sent, and those without an answer. worst_milliseconds: the slowest connect.
    """

    source: str
    target: str
    probes: int
    milliseconds: float | None
    bytes_per_second: float | None
    retransmits: int | None
    failures: tuple[Failure, ...]
    blocked: Mapping[str, Spans]
    searched: Spans
    unheard: tuple[int, ...] = ()
    requests: int = 0
    lost_requests: int = 0
    worst_milliseconds: float = 0.0

    def failing(self, trouble: str) -> list[Failure]:
        """The ports with this trouble."""
        return [failure for failure in self.failures if failure.trouble == trouble]

    def spans(self, trouble: str) -> Spans:
        """The ports with this trouble: exact intervals where they were searched, and those that were tried."""
        points = [(failure.port, failure.port) for failure in self.failing(trouble)]
        if not points or trouble != CLOSED:
            return intervals.merged(points)
        return intervals.merged(points + [span for spans in self.blocked.values() for span in spans])

    @property
    def worst(self) -> str:
        """One result for a cell of the grid."""
        results = {failure.result for failure in self.failures}
        for result in _WORST:
            if result in results:
                return result
        return min(results, default=probe_ports.OK)


Links = dict[Ends, Link]


def _failure(given: Mapping[str, Any]) -> Failure:
    return Failure(
        port=int(given["port"]),
        range=str(given["range"]),
        result=str(given["result"]),
        passed_bytes=int(given.get("passed_bytes") or 0),
        stalled_bytes=int(given.get("stalled_bytes") or 0),
        said=str(given.get("said") or ""),
    )


def _blocked(given: Iterable[Mapping[str, Any]]) -> dict[str, Spans]:
    found: dict[str, list[intervals.Span]] = {}
    for one in given:
        found.setdefault(str(one["result"]), []).append((int(one["first"]), int(one["last"])))
    return {result: intervals.merged(spans) for result, spans in found.items()}


def _spans(given: Iterable[Sequence[Any]]) -> Spans:
    return intervals.merged((int(first), int(last)) for first, last in given)


def read(hosts: Sequence[str], probe: Results) -> Links:
    """The links between these hosts.  probe: host to the answer to the step probe; a host may have none."""
    wanted = set(hosts)
    return {
        (source, row["host"]): Link(
            source=source,
            target=row["host"],
            probes=int(row["probes"]),
            milliseconds=row.get("milliseconds"),
            bytes_per_second=row.get("bytes_per_second"),
            retransmits=row.get("retransmits"),
            failures=tuple(_failure(one) for one in row.get("failures") or ()),
            # Most links have none of these, and there are a million links of a thousand nodes.
            blocked=_blocked(row["blocked"]) if row.get("blocked") else {},
            searched=_spans(row["searched"]) if row.get("searched") else (),
            unheard=tuple(int(port) for port in row.get("unheard") or ()),
            requests=int(row.get("requests", {}).get("sent", 0)),
            lost_requests=int(row.get("requests", {}).get("lost", 0)),
            worst_milliseconds=float(row.get("requests", {}).get("worst_milliseconds", 0.0)),
        )
        for source in hosts
        for row in probe.get(source, {}).get("links", [])
        if row["host"] in wanted and row["host"] != source
    }


def table(links: Links, name: str, hosts: Sequence[str] = ()) -> link_table.Table:
    """Source to target to one value, for a report.  hosts: those that probed, in their order.

    name: ``worst`` (the worst result), ``milliseconds``, ``bytes_per_second`` or ``retransmits``.  What was not
    measured is left out.
    """
    found: dict[str, dict[str, Any]] = {}
    for (source, target), link in links.items():
        value = getattr(link, name)
        if value is not None:
            found.setdefault(source, {})[target] = value
    return link_table.Table.of(found, hosts)
