# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links that lose connection requests: named where they are; one request alone is a note."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    mesh_findings,
    mesh_links,
    mesh_lost_requests,
)

Row = dict[str, Any]
CLOSED = {"port": 40000, "range": "ephemeral", "result": "timeout", "milliseconds": 3000.0}


class Mesh:
    def __init__(self, count: int) -> None:
        self.hosts = [f"n{number}" for number in range(1, count + 1)]
        self.rows = {(a, b): self._row(b) for a in self.hosts for b in self.hosts if a != b}

    def _row(self, target: str) -> Row:
        requests = {"sent": 20, "lost": 0, "worst_milliseconds": 0.2}
        return {"host": target, "probes": 12, "milliseconds": 0.03, "bytes_per_second": 1e9, "requests": requests}

    def lose(self, source: str, target: str, lost: int) -> None:
        for (one, other), row in self.rows.items():
            if source in ("", one) and target in ("", other):
                row["requests"] = {"sent": 20 + lost, "lost": lost, "worst_milliseconds": 1030.0}

    @property
    def probe(self) -> dict[str, Row]:
        return {a: {"links": [row for (one, _b), row in self.rows.items() if one == a]} for a in self.hosts}

    def told(self) -> tuple[list[str], list[str]]:
        links = mesh_links.read(self.hosts, self.probe)
        found = mesh_findings.findings(self.hosts, self.probe)
        assert {one.id for one in found} <= {"GC-NET-013"}
        return [one.cause for one in found], mesh_lost_requests.notes(self.hosts, links)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_nothing_lost_is_nothing_to_say(count: int) -> None:
    assert Mesh(count).told() == ([], [])


@pytest.mark.parametrize("count", [2, 3, 8])
def test_one_direction_of_a_link(count: int) -> None:
    mesh = Mesh(count)
    mesh.lose("n2", "n1", 6)
    said = "6 of 26 connection requests from n2 to n1 got no answer: the slowest connect took 1.03 s, the median 30 us"
    assert mesh.told() == ([said], [])


@pytest.mark.parametrize(
    ("source", "target", "where"), [("", "n2", "to n2"), ("n2", "", "from n2")], ids=["inbound", "outbound"]
)
def test_a_node(source: str, target: str, where: str) -> None:
    mesh = Mesh(4)
    mesh.lose(source, target, 2)
    ((cause,), notes) = mesh.told()
    assert cause.startswith(f"6 of 66 connection requests {where} got no answer") and notes == []
    (found,) = mesh_findings.findings(mesh.hosts, mesh.probe)
    assert (found.hosts, found.severity, found.subject.kind if found.subject else "") == (("n2",), "warning", "node")
    assert "n2" in found.look and found.reproduce.count(",") == 2


def test_two_nodes_both_ways_accuse_both() -> None:
    mesh = Mesh(2)
    mesh.lose("", "", 5)
    (found,) = mesh_findings.findings(mesh.hosts, mesh.probe)
    assert "10 of 50 connection requests between " in found.cause and found.about.kind in ("link", "cluster")


def test_one_of_many_is_a_note_and_no_finding() -> None:
    mesh = Mesh(4)
    mesh.lose("n3", "n4", 1)
    causes, (note,) = mesh.told()
    assert causes == [] and note == (
        "1 of 21 connection requests from n3 to n4 got no answer: the slowest connect took 1.03 s, the median 30 us; "
        "one alone may be chance"
    )


def test_a_small_share_of_many_is_a_note() -> None:
    mesh = Mesh(2)
    mesh.rows["n1", "n2"]["requests"] = {"sent": 2000, "lost": 4, "worst_milliseconds": 1030.0}
    causes, notes = mesh.told()
    assert causes == [] and len(notes) == 1


def test_notes_do_not_fill_the_report() -> None:
    mesh = Mesh(8)
    for number, other in enumerate(mesh.hosts[1:], 1):
        mesh.lose(mesh.hosts[number - 1], other, 1)
    _causes, notes = mesh.told()
    assert len(notes) == 5 and notes[-1] == "connection requests without an answer on 3 more links"


def test_a_link_with_closed_ports_is_explained_by_them() -> None:
    """A filter without state drops the answers of the other direction as well."""
    mesh = Mesh(4)
    mesh.lose("n1", "n2", 6)
    mesh.lose("n2", "n1", 6)
    mesh.rows["n1", "n2"]["failures"] = [CLOSED]
    found = mesh_findings.findings(mesh.hosts, mesh.probe)
    assert "GC-NET-013" not in {one.id for one in found} and found


def test_where_payloads_lose_packets_requests_are_no_second_finding() -> None:
    mesh = Mesh(8)
    mesh.lose("", "n3", 6)
    for (_source, target), row in mesh.rows.items():
        row["retransmits"] = 60 if target == "n3" else 0
        row["bytes_per_second"] = 1e8 if target == "n3" else 1e9
    (found,) = mesh_findings.findings(mesh.hosts, mesh.probe)
    assert (found.id, found.hosts) == ("GC-NET-007", ("n3",))


def test_an_answer_without_counts_is_none() -> None:
    mesh = Mesh(4)
    for row in mesh.rows.values():
        del row["requests"]
    assert mesh.told() == ([], [])
