# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What breaks a limit of the site: the cluster, a node or a link, and nobody else."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    mesh_links,
    speed_findings,
    speed_limits,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.ranks_results import SizeResult

HOSTS = ["n1", "n2", "n3", "n4", "n5"]
RATE, CONNECT = 1.1e9, 0.2


class Mesh:
    """All links alike, to be damaged by a test."""

    def __init__(self, hosts: list[str] | None = None) -> None:
        self.hosts = hosts or HOSTS
        ends = [(one, two) for one in self.hosts for two in self.hosts if one != two]
        self.rows: dict[tuple[str, str], dict[str, Any]] = {
            (one, two): {
                "host": two,
                "probes": 6,
                "milliseconds": CONNECT,
                "bytes_per_second": RATE,
                "retransmits": 0,
            }
            for one, two in ends
        }

    def set(self, source: str, target: str, **values: Any) -> None:
        for ends, row in self.rows.items():
            if source in ("", ends[0]) and target in ("", ends[1]):
                row.update(values)

    @property
    def links(self) -> mesh_links.Links:
        probe = {one: {"links": [row for ends, row in self.rows.items() if ends[0] == one]} for one in self.hosts}
        return mesh_links.read(self.hosts, probe)

    def findings(self, labels: dict[str, dict[str, str]] | None = None, **limits: float) -> list[Finding]:
        return speed_findings.of_links(wanted(links=limits), self.hosts, self.links, labels)


def wanted(**given: Any) -> speed_limits.Limits:
    limits, problems = speed_limits.read(given)
    assert problems == []
    return limits


def size(size_bytes: int, milliseconds: float, busbw: float) -> SizeResult:
    return SizeResult(size_bytes, milliseconds / 1e3, busbw, busbw, 20, {"0": milliseconds / 1e3})


def test_without_a_limit_nothing_is_too_slow() -> None:
    mesh = Mesh()
    mesh.set("", "", bytes_per_second=1.0, milliseconds=1e6, retransmits=10**6)
    assert mesh.findings() == []
    assert speed_findings.of_sizes(speed_limits.Limits(), [size(4096, 1e6, 1e-9)]) == []


def test_what_keeps_its_limits_is_no_finding() -> None:
    """A value that is exactly the limit keeps it."""
    mesh = Mesh()
    assert mesh.findings(bytes_per_second_min=RATE, connect_milliseconds_max=CONNECT, retransmits_max=0) == []
    limits = wanted(sizes=[{"size_bytes": 4096, "busbw_gb_per_s_min": 0.5, "milliseconds_max": 2}])
    assert speed_findings.of_sizes(limits, [size(4096, 2, 0.5), size(4, 9, 0.001)]) == []


def test_a_slow_all_reduce_accuses_the_cluster_and_no_node() -> None:
    limits = wanted(
        sizes=[
            {"size_bytes": 4096, "milliseconds_max": 2},
            {"size_bytes": 1048576, "busbw_gb_per_s_min": 0.5, "milliseconds_max": 900},
        ]
    )
    (finding,) = speed_findings.of_sizes(limits, [size(4096, 1, 0.01), size(1048576, 5, 0.31)])
    assert (finding.id, finding.severity, finding.hosts, finding.about.kind) == ("GC-PERF-001", "error", (), "cluster")
    assert finding.cause == (
        "the all_reduce is slower than cluster_check_limits allows: 1 MiB has busbw 0.31 GB/s, at least 0.5 wanted"
    )
    (both,) = speed_findings.of_sizes(limits, [size(4096, 3, 0.01), size(1048576, 1000, 0.31)])
    assert both.cause.endswith("4 KiB takes 3 ms, at most 2 wanted (and 2 more)")
    assert both.evidence[2] == "1 MiB takes 1e+03 ms, at most 900 wanted"


def test_one_slow_link() -> None:
    mesh = Mesh()
    mesh.set("n2", "n4", bytes_per_second=2e8)
    (finding,) = mesh.findings(bytes_per_second_min=5e8)
    assert (finding.id, finding.severity) == ("GC-PERF-002", "error")
    assert (finding.about.kind, finding.about.nodes, finding.about.ports) == ("link", ("n2", "n4"), ())
    assert finding.cause == (
        "the rate of one connection from n2 to n4 is below its limit: 200 MB/s, at least 500 MB/s wanted"
    )
    assert finding.evidence == (
        "1 of 1 links, the worst n2 -> n4, median 200 MB/s",
        "between the others: 1.1 GB/s (median)",
        "the limit: cluster_check_limits.links.bytes_per_second_min is 5e+08",
    )
    assert finding.reproduce.endswith("--limit n1,n2,n4"), "two nodes alone would be no comparison"


def test_one_node_inbound_and_nobody_else() -> None:
    mesh = Mesh()
    mesh.set("", "n3", milliseconds=4.0)
    mesh.set("n1", "n3", milliseconds=9.0)
    (finding,) = mesh.findings(connect_milliseconds_max=1)
    assert finding.hosts == ("n3",) and (finding.about.kind, finding.about.direction) == ("direction", "inbound")
    assert finding.cause == "the time to connect to n3 is above its limit: 9 ms, at most 1 ms wanted"


def test_one_node_both_ways() -> None:
    mesh = Mesh()
    mesh.set("", "n3", retransmits=12)
    mesh.set("n3", "", retransmits=12)
    (finding,) = mesh.findings(retransmits_max=3)
    assert finding.hosts == ("n3",) and finding.about.kind == "node"
    assert "sent again for 1 MiB to and from n3 is above its limit: 12, at most 3 wanted" in finding.cause


def test_a_limit_that_all_links_break_blames_the_cluster_and_not_everybody() -> None:
    for hosts in (["n1", "n2"], ["n1", "n2", "n3"], HOSTS):
        mesh = Mesh(hosts)
        (finding,) = mesh.findings(bytes_per_second_min=2e9)
        assert finding.hosts == () and finding.about.kind == "cluster"
        assert f"between all {len(hosts)} nodes is below its limit: 1.1 GB/s, at least 2 GB/s wanted" in finding.cause
        assert "--limit" not in finding.reproduce


def test_a_group_that_shares_a_label() -> None:
    hosts = [f"n{number}" for number in range(1, 9)]
    labels = {host: {"rack": "r1" if number < 4 else "r2"} for number, host in enumerate(hosts)}
    mesh = Mesh(hosts)
    for ends, row in mesh.rows.items():
        if labels[ends[0]] != labels[ends[1]]:
            row["bytes_per_second"] = 1e8
    (finding,) = mesh.findings(labels, bytes_per_second_min=5e8)
    assert finding.about.kind == "group" and "rack=" in finding.about.label


def test_each_limit_has_its_own_causes() -> None:
    mesh = Mesh()
    mesh.set("", "n3", milliseconds=4.0)
    mesh.set("n5", "", bytes_per_second=1e8)
    rate, connect = mesh.findings(bytes_per_second_min=5e8, connect_milliseconds_max=1)
    assert (rate.hosts, connect.hosts) == (("n5",), ("n3",))


def test_what_has_no_number_breaks_no_limit_and_is_told() -> None:
    mesh = Mesh(["n1", "n2"])
    mesh.set("n1", "n2", bytes_per_second=None)
    limits = wanted(
        sizes=[{"size_bytes": 4096, "milliseconds_max": 2}, {"size_bytes": 8, "milliseconds_max": 2}],
        links={"bytes_per_second_min": 5e8, "connect_milliseconds_max": 1},
    )
    assert speed_findings.of_links(limits, mesh.hosts, mesh.links) == []
    assert speed_findings.notes(limits, mesh.links, [size(4096, 1, 1)]) == [
        "cluster_check_limits.links.bytes_per_second_min: 1 of 2 links have no value to compare",
        "cluster_check_limits.sizes: 8 B was not measured in this run",
    ]
    assert speed_findings.notes(speed_limits.Limits(), mesh.links, []) == []
