# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the mesh to findings: each case is a fault, and only its culprit may be named, with a fix that is true."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import mesh_findings, mesh_unsent
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import probe_ports

HOSTS = ["n1", "n2", "n3", "n4"]
SEVEN = [f"n{number}" for number in range(1, 8)]
PORTS = [
    ("rendezvous", 29400),
    ("rendezvous", 29599),
    ("ephemeral", 32768),
    ("ephemeral", 42178),
    ("ephemeral", 60999),
    ("mpi", 61000),
    ("mpi", 64999),
]
RANGES = [
    {"name": "rendezvous", "first": 29400, "last": 29599},
    {"name": "ephemeral", "first": 32768, "last": 60999},
    {"name": "mpi", "first": 61000, "last": 64999},
]
PLAN: dict[str, Any] = {
    **{str(one["name"]): {"first": one["first"], "last": one["last"]} for one in RANGES},
    "extra_ports": [],
    "firewall_ports": ["29400-29599/tcp", "32768-60999/tcp", "61000-64999/tcp"],
}
Blocked = tuple[int, int, str]
EVERYTHING: Blocked = (1024, 65535, "timeout")


class Run:
    """A healthy mesh of some hosts, to be damaged by a test.

    bad: directed link to what its ports do, as intervals; searched: whether the sources searched for exact ends.
    """

    def __init__(self, hosts: list[str] | None = None) -> None:
        self.hosts = hosts or HOSTS
        self.bad: dict[tuple[str, str], list[Blocked]] = {}
        self.searched = True
        self.most_searched = len(self.hosts)
        self.failure: dict[str, Any] = {}
        self.static: dict[str, Any] = {}
        self.labels: dict[str, dict[str, str]] = {}
        self.addresses: dict[str, str] = {}
        self.ranges: dict[str, Any] = dict.fromkeys(self.hosts, RANGES)
        self.plan: dict[str, Any] | None = PLAN
        #: Link to the own ports of its source that nothing came back to.
        self.unheard: dict[tuple[str, str], list[int]] = {}
        #: Node to the ports that are tried on it in place of the ephemeral ones of the plan.
        self.drawn: dict[str, list[tuple[str, int]]] = {}

    def inbound(self, node: str, *blocked: Blocked) -> None:
        for host in self.hosts:
            if host != node:
                self.bad[host, node] = list(blocked)

    def outbound(self, node: str, *blocked: Blocked) -> None:
        for host in self.hosts:
            if host != node:
                self.bad.setdefault((node, host), list(blocked))

    def rules(self, node: str, direction: str, rule: str, *blocked: tuple[int, int]) -> None:
        """Readable packet filters everywhere; this one blocks."""
        for host in self.hosts:
            empty = {"readable": True, "why": "", "inbound": {}, "outbound": {}}
            self.static.setdefault(host, {"packet_filter": empty})
        self.static[node]["packet_filter"][direction] = {
            host: [{"first": first, "last": last, "verdict": "drop", "rule": rule} for first, last in blocked]
            for host in self.hosts
            if host != node and blocked
        }

    def _row(self, source: str, target: str) -> dict[str, Any]:
        spans = self.bad.get((source, target), [])
        fixed = [one for one in PORTS if one[0] != "ephemeral"]
        tried = [*fixed, *self.drawn[target]] if target in self.drawn else PORTS
        failures = [
            {"port": port, "range": name, "result": result, "milliseconds": 3000.0, **self.failure}
            for name, port in tried
            for first, last, result in spans
            if first <= port <= last
        ]
        failing = [host for host in self.hosts if (source, host) in self.bad]
        within = target in failing[: self.most_searched]
        exact = (
            self.searched and within and any(result in ("timeout", "unreachable") for _first, _last, result in spans)
        )
        return {
            "host": target,
            "probes": len(tried),
            "milliseconds": 0.2,
            "bytes_per_second": None if len(failures) == len(tried) else 1e9,
            "retransmits": 0,
            "failures": failures,
            "blocked": [
                {"first": first, "last": last, "result": result}
                for first, last, result in spans
                if exact and result in ("timeout", "unreachable")
            ],
            "searched": [[1024, 65535]] if exact else [],
            "unheard": self.unheard.get((source, target), []),
        }

    def findings(self) -> list[Finding]:
        probe = {
            source: {"links": [self._row(source, target) for target in self.hosts if target != source]}
            for source in self.hosts
        }
        return mesh_findings.findings(
            self.hosts,
            probe,
            static=self.static or None,
            labels=self.labels,
            ranges=self.ranges,
            addresses=self.addresses,
            plan=self.plan,
        )

    def only(self) -> Finding:
        (finding,) = self.findings()
        return finding


def ids(found: list[Finding]) -> list[tuple[str, tuple[str, ...]]]:
    return [(finding.id, finding.hosts) for finding in found]


def test_healthy() -> None:
    assert Run().findings() == []
    assert mesh_findings.findings([], {}) == []


def test_inbound_blocked_names_one_node() -> None:
    run = Run()
    run.inbound("n2", EVERYTHING)
    finding = run.only()
    assert (finding.id, finding.severity, finding.hosts) == ("GC-NET-001", "error", ("n2",))
    assert finding.cause == (
        "inbound connections of n2 fail on the data network: "
        "ports 29400-29599, 32768-64999 (all of rendezvous, ephemeral and mpi) dropped (no answer)"
    )
    assert finding.evidence[:3] == (
        "3 of 3 peers",
        "21 of 21 probes",
        "failing ports: 29400, 29599, 32768, 42178, 60999, 61000, 64999",
    )
    assert "outbound connections of n2: all of them work" in finding.ruled_out
    about = finding.about
    assert (about.kind, about.nodes, about.direction, about.ports) == (
        "direction",
        ("n2",),
        "inbound",
        ((29400, 29599), (32768, 64999)),
    )
    assert finding.reproduce == "ansible-playbook baremetal.gpu_cluster.check -i <inventory> --limit n1,n2,n3"


def test_outbound_blocked_names_one_node() -> None:
    run = Run()
    run.outbound("n3", (1024, 65535, "unreachable"))
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-002", ("n3",))
    assert "rejected" in finding.cause and "dropped" not in finding.cause


def test_one_directed_link() -> None:
    run = Run()
    run.bad["n2", "n4"] = [EVERYTHING]
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-003", ("n2", "n4"))
    assert finding.cause.startswith("the link n2 -> n4 is closed: ports 29400-29599, 32768-64999 ")
    assert (finding.about.kind, finding.about.nodes) == ("link", ("n2", "n4"))


def test_both_directions_of_a_link_are_one_finding() -> None:
    run = Run()
    run.bad["n2", "n4"] = run.bad["n4", "n2"] = [EVERYTHING]
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-003", ("n2", "n4"))
    assert "the links between n2 and n4 are closed in both directions" in finding.cause
    assert finding.about.kind == "group"


def test_a_node_is_not_blamed_for_a_third_of_its_links() -> None:
    run = Run(SEVEN)
    run.bad = {("n3", "n2"): [EVERYTHING], ("n4", "n2"): [EVERYTHING]}
    assert ids(run.findings()) == [("GC-NET-003", ("n3", "n2")), ("GC-NET-003", ("n4", "n2"))]


def test_two_nodes_and_a_link_at_once() -> None:
    run = Run(SEVEN)
    run.inbound("n2", EVERYTHING)
    run.outbound("n5", (1024, 65535, "unreachable"))
    run.bad["n6", "n7"] = [(29400, 29599, "unreachable")]
    assert ids(run.findings()) == [("GC-NET-001", ("n2",)), ("GC-NET-002", ("n5",)), ("GC-NET-003", ("n6", "n7"))]


def test_five_faults_at_once() -> None:
    hosts = [f"n{number}" for number in range(1, 9)]
    run = Run(hosts)
    run.inbound("n2", EVERYTHING)
    run.inbound("n3", (46720, 60999, "unreachable"))
    run.outbound("n5", (61000, 64999, "timeout"))
    run.bad["n6", "n7"] = [EVERYTHING]
    run.bad["n1", "n4"] = run.bad["n4", "n1"] = [(29400, 29599, "timeout")]
    found = run.findings()
    assert ids(found) == [
        ("GC-NET-001", ("n2",)),
        ("GC-NET-001", ("n3",)),
        ("GC-NET-002", ("n5",)),
        ("GC-NET-003", ("n1", "n4")),
        ("GC-NET-003", ("n6", "n7")),
    ]
    assert "ports 46720-60999 (ephemeral) rejected" in found[1].cause
    assert "ports 61000-64999 (all of mpi) dropped" in found[2].cause


def test_all_nodes_blocked_is_one_finding() -> None:
    run = Run()
    for host in HOSTS:
        run.inbound(host, (32768, 60999, "unreachable"))
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-001", tuple(HOSTS))
    assert finding.cause == (
        "all 4 nodes block each other on the data network: ports 32768-60999 (all of ephemeral) rejected"
    )
    assert finding.about.kind == "cluster" and "rendezvous" not in finding.cause
    assert "the ports of rendezvous and mpi: none of them failed" in finding.ruled_out


def test_two_nodes_blocking_each_other() -> None:
    run = Run(["n1", "n2"])
    run.bad = {("n1", "n2"): [EVERYTHING], ("n2", "n1"): [EVERYTHING]}
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-001", ("n1", "n2"))
    assert finding.confidence <= 0.5 and UNDECIDED + "it may be n1, n2, or what lies between them" in finding.evidence
    # Its own rules accuse one of them in both directions.
    run.rules("n2", "inbound", BY_HAND, (1024, 65535))
    run.rules("n2", "outbound", BY_HAND.replace("input", "output"), (1024, 65535))
    finding = run.only()
    assert (finding.id, finding.hosts, finding.confidence) == ("GC-NET-001", ("n2",), 0.99)
    assert finding.cause.startswith("inbound and outbound connections of n2 fail on the data network")


UNDECIDED = "between two nodes nobody is in the majority: "


def test_between_two_nodes_a_closed_direction_accuses_both_ends() -> None:
    run = Run(["n1", "n2"])
    run.bad["n1", "n2"] = [(32768, 60999, "timeout")]
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-003", ("n1", "n2"))
    assert finding.cause.startswith("the link n1 -> n2 is closed: ports 32768-60999 ")
    assert (finding.about.kind, finding.about.nodes) == ("link", ("n1", "n2"))
    assert finding.confidence <= 0.5
    assert UNDECIDED + "n1 may not let it out, n2 may not let it in, or something between them filters" in (
        finding.evidence
    )
    assert finding.command == "" and finding.look.startswith("ansible n1,n2 ") and "nft list" in finding.look


@pytest.mark.parametrize(
    ("node", "direction", "number"), [("n1", "outbound", "GC-NET-002"), ("n2", "inbound", "GC-NET-001")]
)
def test_between_two_nodes_their_own_rules_tell(node: str, direction: str, number: str) -> None:
    run = Run(["n1", "n2"])
    run.bad["n1", "n2"] = [(32768, 60999, "timeout")]
    run.rules(node, direction, BY_HAND, (32768, 60999))
    finding = run.only()
    assert (finding.id, finding.hosts, finding.about.direction) == (number, (node,), direction)
    assert finding.confidence == 0.99 and not any(UNDECIDED in one for one in finding.evidence)


def test_between_two_nodes_that_permit_it_something_else_filters() -> None:
    run = Run(["n1", "n2"])
    run.bad["n1", "n2"] = [(32768, 60999, "timeout")]
    run.rules("n2", "inbound", "")
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-003", ("n1", "n2")) and "ACL of the switch" in finding.fix
    assert finding.confidence == pytest.approx(0.95) and not any(UNDECIDED in one for one in finding.evidence)


def test_between_two_nodes_the_range_of_a_kernel_tells() -> None:
    run = Run(["n1", "n2"])
    run.plan = {**PLAN, "ephemeral": {"first": 32768, "last": 40000}}
    run.ranges["n1"] = [dict(RANGES[0]), {"name": "ephemeral", "first": 32768, "last": 40000}, dict(RANGES[2])]
    run.bad["n1", "n2"] = [(40001, 60999, "unreachable")]
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-001", ("n2",)) and "kernel_tuning" in finding.command


@pytest.mark.parametrize(
    ("result", "failure", "number", "hosts"),
    [
        ("stalled", {"passed_bytes": 1300, "stalled_bytes": 1500}, "GC-NET-005", ("n1", "n2")),
        ("refused", {}, "GC-NET-009", ("n1", "n2")),
        # Who accepts a connection has been reached: what goes wrong then is at this end.
        ("stalled", {"passed_bytes": 0, "stalled_bytes": 64}, "GC-NET-011", ("n2",)),
        ("foreign", {"said": "SSH-2.0-OpenSSH_8.7"}, "GC-NET-008", ("n2",)),
    ],
)
def test_between_two_nodes_who_answers_is_known(
    result: str, failure: dict[str, Any], number: str, hosts: tuple[str, ...]
) -> None:
    run = Run(["n1", "n2"])
    run.failure = failure
    run.bad["n1", "n2"] = [(1024, 65535, result)]
    finding = run.only()
    assert (finding.id, finding.hosts) == (number, hosts)
    assert any(UNDECIDED in one for one in finding.evidence) == (len(hosts) == 2)


@pytest.mark.parametrize(
    ("result", "failure", "number"),
    [
        ("stalled", {"passed_bytes": 0, "stalled_bytes": 64}, "GC-NET-011"),
        ("foreign", {"said": "SSH-2.0-OpenSSH_8.7"}, "GC-NET-008"),
    ],
)
def test_between_two_nodes_trouble_in_both_directions_accuses_neither_of_what_is_left(
    result: str, failure: dict[str, Any], number: str
) -> None:
    run = Run(["n1", "n2"])
    run.failure = failure
    run.bad["n1", "n2"] = [(29400, 29400, result), (32768, 32768, result)]
    run.bad["n2", "n1"] = [(32768, 32768, result)]
    both, left = run.findings()
    assert (both.id, both.hosts, both.about.ports) == (number, ("n1", "n2"), ((32768, 32768),))
    assert (left.id, left.hosts, left.about.ports) == (number, ("n1", "n2"), ((29400, 29400),))
    assert (left.about.kind, left.about.nodes, left.confidence) == ("link", ("n1", "n2"), 0.5)
    assert any(UNDECIDED in one for one in left.evidence)


def test_between_two_nodes_another_trouble_of_the_reverse_link_excuses_nobody() -> None:
    run = Run(["n1", "n2"])
    run.failure = {"passed_bytes": 0, "stalled_bytes": 64}
    run.bad["n1", "n2"] = [(32768, 32768, "stalled")]
    run.bad["n2", "n1"] = [(32768, 32768, "refused")]
    assert ids(run.findings()) == [("GC-NET-009", ("n2", "n1")), ("GC-NET-011", ("n2",))]


def few(run: Run, finding: Finding) -> list[tuple[str, tuple[str, ...]]]:
    """What the command shows that the finding gives to see it again."""
    (limit,) = re.findall(r" --limit (\S+)", finding.reproduce)
    again = Run(limit.split(","))
    assert len(again.hosts) < len(run.hosts)
    again.bad = {ends: spans for ends, spans in run.bad.items() if {*ends} <= {*again.hosts}}
    again.failure = run.failure
    return ids(again.findings())


@pytest.mark.parametrize("result", ["timeout", "refused", "stalled", "foreign"])
@pytest.mark.parametrize("way", ["inbound", "outbound", "one link", "both ways"])
def test_the_command_to_see_it_again_accuses_the_same(way: str, result: str) -> None:
    run = Run(SEVEN)
    run.failure = {"passed_bytes": 1300, "stalled_bytes": 1500} if result == "stalled" else {}
    if way in ("inbound", "outbound"):
        getattr(run, way)("n4", (1024, 65535, result))
    else:
        run.bad["n4", "n6"] = [(1024, 65535, result)]
        if way == "both ways":
            run.bad["n6", "n4"] = [(1024, 65535, result)]
    finding = run.only()
    assert few(run, finding) == [(finding.id, finding.hosts)]


def test_most_nodes_alike_are_one_finding() -> None:
    run = Run(SEVEN)
    for host in SEVEN[:5]:
        run.inbound(host, (40000, 50000, "timeout"))
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-001", tuple(SEVEN[:5]))
    assert finding.cause.startswith("5 of 7 nodes are alike: inbound connections of n1, n2, n3, n4 and n5 fail")


def test_a_rack_is_one_finding() -> None:
    run = Run([f"n{number}" for number in range(1, 9)])
    run.labels = {host: {"rack": "r3" if host in ("n2", "n5", "n7") else "r1"} for host in run.hosts}
    for source in run.hosts:
        for target in run.hosts:
            if run.labels[source] != run.labels[target]:
                run.bad[source, target] = [EVERYTHING]
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-004", ("n2", "n5", "n7"))
    assert finding.cause.startswith(
        "all failing links cross rack=r3: connections between the nodes with rack=r3 and all others fail"
    )
    assert finding.about.label == "rack=r3" and finding.evidence[0] == "30 of 30 links"


def test_without_a_search_the_ports_that_were_tried_are_told() -> None:
    run = Run()
    run.searched = False
    run.inbound("n2", (32768, 60999, "unreachable"))
    finding = run.only()
    assert finding.cause.endswith("fail on the data network: 9 probes of the ephemeral ports rejected")
    assert not any("exact" in one for one in finding.evidence)


def test_exact_intervals_with_drop_and_reject_told_apart() -> None:
    run = Run()
    run.inbound("n2", (40000, 50000, "timeout"), (60000, 63000, "unreachable"))
    finding = run.only()
    assert "ports 40000-50000 (ephemeral) dropped (no answer), " in finding.cause
    assert "ports 60000-63000 (ephemeral and mpi) rejected" in finding.cause
    assert finding.about.ports == ((40000, 50000), (60000, 63000))
    assert "39.0% of the ephemeral ports of n2: whether a job meets it depends on its ports" in finding.evidence
    assert any("without listeners: the intervals are exact" in one for one in finding.evidence)


@pytest.mark.parametrize(
    ("unheard", "is_told"),
    [
        ({}, False),
        ({("n2", "n1"): [41000]}, False),
        ({("n2", "n1"): [41000], ("n2", "n3"): [40000, 50000]}, True),
        ({("n2", "n1"): [41000, 42000, 39999]}, False),
        ({("n1", "n3"): [41000, 42000]}, False),
    ],
)
def test_answers_that_are_lost_too_show_a_filter_without_state(
    unheard: dict[tuple[str, str], list[int]], is_told: bool
) -> None:
    run = Run()
    run.inbound("n2", (40000, 50000, "timeout"))
    run.unheard = unheard
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-001", ("n2",))
    found = [one for one in finding.evidence if "keeps no state" in one]
    assert len(found) == is_told
    assert all(one.startswith("no answer to 3 calls that n2 made from own ports among these") for one in found)


def test_a_port_that_only_some_saw_rejected_is_not_told_twice() -> None:
    run = Run()
    run.inbound("n2", (40000, 50000, "timeout"))
    run.bad["n4", "n2"] = [(40000, 44999, "unreachable"), (45000, 50000, "timeout")]
    cause = run.only().cause
    assert "ports 40000-44999 (ephemeral) rejected, ports 45000-50000 (ephemeral) dropped" in cause


def test_what_is_blocked_outside_of_the_plan_is_no_fault() -> None:
    """A firewall that opens the plan blocks all else; the search finds that too."""
    run = Run()
    run.inbound("n2", (1024, 29399, "unreachable"), (40000, 50000, "timeout"), (64000, 65535, "timeout"))
    finding = run.only()
    assert finding.cause.endswith(": ports 40000-50000, 64000-64999 (ephemeral and mpi) dropped (no answer)")
    assert finding.about.ports == ((40000, 50000), (64000, 64999))
    assert not any("1024-29399" in one for one in finding.evidence)
    run.ranges = {}
    assert "ports 1024-29399 rejected, ports 40000-50000, 64000-65535 dropped" in run.only().cause


def test_one_rejection_among_timeouts_is_a_rejection() -> None:
    """ICMP is rate limited, so that some sources see nothing of a rule that rejects."""
    run = Run()
    run.inbound("n2", (40000, 50000, "timeout"))
    run.bad["n4", "n2"] = [(40000, 50000, "unreachable")]
    assert run.only().cause.endswith("ports 40000-50000 (ephemeral) rejected")


def test_an_error_of_the_nodes_own_kernel_is_told_as_it_is() -> None:
    run = Run()
    run.searched = False
    run.outbound("n2", (1024, 65535, "ENETDOWN"))
    finding = run.only()
    assert finding.id == "GC-NET-002" and "ENETDOWN" in finding.cause


def test_what_the_search_did_not_find_is_told_by_its_ports() -> None:
    run = Run()
    run.inbound("n2", (40000, 50000, "timeout"), (61000, 61000, "ECONNRESET"))
    cause = run.only().cause
    assert "ports 40000-50000 (ephemeral) dropped (no answer), 3 probes of the mpi ports ECONNRESET" in cause


def test_a_direction_with_a_closed_link_is_not_ruled_out() -> None:
    run = Run()
    run.inbound("n2", EVERYTHING)
    run.bad["n2", "n3"] = [(61000, 64999, "timeout")]
    node, link = run.findings()
    assert (node.hosts, link.hosts) == (("n2",), ("n2", "n3"))
    assert not any("outbound connections" in one for one in node.ruled_out)


def test_the_largest_payload_rules_out_the_mtu() -> None:
    run = Run()
    run.inbound("n2", (40000, 50000, "timeout"))
    assert "the MTU: 1 MiB arrives on a port that is open" in run.only().ruled_out
    run.inbound("n2", EVERYTHING)
    assert not any("MTU" in one for one in run.only().ruled_out)


@pytest.mark.parametrize(
    ("direction", "where"),
    [("inbound", "through to n2: "), ("outbound", "through from n2: "), ("both", "to and from n2: ")],
)
def test_an_mtu_hole_names_what_passed_and_what_stalled(direction: str, where: str) -> None:
    run = Run()
    run.failure = {"passed_bytes": 1300, "stalled_bytes": 1500}
    if direction != "outbound":
        run.inbound("n2", (32768, 32768, "stalled"))
    if direction != "inbound":
        run.outbound("n2", (32768, 32768, "stalled"))
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-005", ("n2",))
    assert "payloads above 1300 bytes do not " in finding.cause and where in finding.cause
    assert "1300 bytes pass, 1500 bytes stall" in finding.cause
    assert "MTU" in finding.cause and "MTU" in finding.fix


def test_what_does_not_answer_the_smallest_payload_is_no_mtu_hole() -> None:
    run = Run()
    run.failure = {"passed_bytes": 0, "stalled_bytes": 64}
    run.inbound("n2", (1024, 65535, "stalled"))
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-011", ("n2",))
    assert "not even 64 bytes are answered" in finding.cause and "MTU" not in finding.cause + finding.fix


def test_a_reset_is_told_with_the_worker_that_listens() -> None:
    run = Run()
    run.inbound("n2", (32768, 60999, "refused"))
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-009", ("n2",))
    assert "refused (reset) although a worker listens there: ports 32768, 42178, 60999 (ephemeral)" in finding.cause


def test_a_reset_of_one_link() -> None:
    run = Run(SEVEN)
    run.inbound("n2", EVERYTHING)
    run.bad["n6", "n7"] = [(1024, 65535, "refused")]
    assert ids(run.findings()) == [("GC-NET-001", ("n2",)), ("GC-NET-009", ("n6", "n7"))]


def test_a_foreign_listener_is_quoted() -> None:
    run = Run()
    run.failure = {"said": "SSH-2.0-OpenSSH_8.7"}
    run.inbound("n2", (29400, 29400, "foreign"))
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-008", ("n2",))
    assert "to n2 on port 29400, and says 'SSH-2.0-OpenSSH_8.7'" in finding.cause
    assert "on n2" in finding.fix and "ss -Hltnp" in finding.look and finding.command == ""


def test_two_kinds_of_trouble_on_one_node_are_two_findings() -> None:
    run = Run()
    run.inbound("n2", (61000, 64999, "timeout"), (29400, 29599, "refused"))
    assert ids(run.findings()) == [("GC-NET-001", ("n2",)), ("GC-NET-009", ("n2",))]


def test_what_passes_by_luck_is_said() -> None:
    run = Run()
    run.addresses = {host: f"192.0.2.{number}" for number, host in enumerate(HOSTS, 1)}
    run.inbound("n4", EVERYTHING)
    assert ids(run.findings()) == [("GC-NET-001", ("n4",)), ("GC-NET-010", ())]
    run.bad = {}
    run.inbound("n1", EVERYTHING)
    assert ids(run.findings()) == [("GC-NET-001", ("n1",))]


FIREWALLD = "inet firewalld filter_IN_public: reject with icmpx admin-prohibited"
BY_HAND = "inet mine input: tcp dport 32768-60999 drop"


def test_the_nodes_own_firewalld_is_opened_by_the_role_and_without_an_override() -> None:
    run = Run()
    run.inbound("n2", (32768, 60999, "timeout"))
    run.rules("n2", "inbound", FIREWALLD, (32768, 60999))
    finding = run.only()
    assert finding.variables == {} and "sets cluster_firewall_ports, remove that first" in finding.fix
    assert "--tags cluster_firewall" in finding.command and "n2" in finding.command
    assert f"rule of n2, inbound: {FIREWALLD}" in finding.evidence and finding.confidence == 0.99


def test_a_peer_that_firewalld_leaves_out_is_no_matter_of_ports() -> None:
    run = Run()
    run.bad["n1", "n2"] = [(32768, 60999, "unreachable")]
    run.rules("n2", "inbound", FIREWALLD, (32768, 60999))
    blocked = run.static["n2"]["packet_filter"]["inbound"]
    run.static["n2"]["packet_filter"]["inbound"] = {"n1": blocked["n1"]}
    finding = run.only()
    assert finding.id == "GC-NET-003" and finding.variables == {}
    assert "cluster_firewall_peers" in finding.fix and "--tags cluster_firewall" in finding.command


def test_hosts_with_the_same_rule_stand_in_the_order_of_the_cluster() -> None:
    run = Run()
    for host in HOSTS:
        run.inbound(host, (32768, 60999, "timeout"))
        run.rules(host, "inbound", FIREWALLD, (32768, 60999))
    assert f"rule of n1, n2, n3 and n4, inbound: {FIREWALLD}" in run.only().evidence


def test_the_reverse_path_filter_is_loosened_by_a_variable() -> None:
    rule = "inet firewalld filter_PREROUTING: meta nfproto ipv6 fib saddr . mark . iif oif missing drop"
    run = Run()
    run.inbound("n2", (32768, 60999, "timeout"))
    run.rules("n2", "inbound", rule, (32768, 60999))
    assert run.only().variables == {"n2": {"cluster_firewall_ipv6_rpfilter": "loose"}}


def test_one_fix_for_all_nodes_with_the_same_rule() -> None:
    run = Run()
    for host in HOSTS:
        run.inbound(host, (32768, 60999, "timeout"))
        run.rules(host, "inbound", FIREWALLD, (32768, 60999))
    finding = run.only()
    assert finding.fix.count("with the role cluster_firewall") == 1
    assert all(host in finding.command for host in HOSTS)


def test_a_rule_of_somebody_else_is_named_and_no_variable_is() -> None:
    run = Run()
    run.inbound("n2", (32768, 60999, "timeout"))
    run.rules("n2", "inbound", BY_HAND, (32768, 60999))
    finding = run.only()
    assert finding.variables == {} and any(BY_HAND in one for one in finding.evidence)
    assert "cluster_firewall" not in finding.fix + finding.command


def test_a_rule_for_outgoing_packets_is_that_of_the_source() -> None:
    run = Run()
    run.outbound("n3", (32768, 60999, "timeout"))
    run.rules("n3", "outbound", BY_HAND, (32768, 60999))
    finding = run.only()
    assert finding.id == "GC-NET-002" and f"rule of n3, outbound: {BY_HAND}" in finding.evidence


def test_what_both_ends_permit_is_blocked_between_them() -> None:
    run = Run()
    run.inbound("n2", (40000, 50000, "timeout"))
    run.rules("n2", "inbound", "")
    finding = run.only()
    assert "ACL of the switch" in finding.fix and "security group" in finding.fix and "40000-50000" in finding.fix
    assert finding.variables == {} and finding.command == ""
    (said,) = [one for one in finding.ruled_out if one.startswith("the packet filters: those of ")]
    assert all(host in said for host in HOSTS)


def test_rules_that_nobody_could_read_rule_out_nothing() -> None:
    run = Run()
    run.inbound("n2", (40000, 50000, "timeout"))
    run.rules("n2", "inbound", "")
    run.static["n2"]["packet_filter"] = {"readable": False, "why": "nft is not installed"}
    finding = run.only()
    assert finding.fix.startswith("look at the packet filter of n2 first") and "nft is not installed" in finding.fix
    assert not any("packet filters" in one for one in finding.ruled_out)


def test_a_kernel_that_draws_ports_outside_of_the_plan() -> None:
    run = Run()
    run.plan = {**PLAN, "ephemeral": {"first": 32768, "last": 40000}, "mpi": {"first": 61000, "last": 64999}}
    run.inbound("n2", (40001, 60999, "unreachable"))
    run.rules("n2", "inbound", FIREWALLD, (40001, 60999))
    finding = run.only()
    assert "the kernel of n2 draws its ports from 32768-60999, the plan opens 32768-40000" in finding.fix
    assert finding.variables == {} and "kernel_tuning_ephemeral_range, remove that" in finding.fix
    assert "--tags kernel_tuning --limit n2" in finding.command
    # A port of the plan failed too: the range is not what is wrong.
    run.inbound("n2", (32768, 60999, "unreachable"))
    assert "kernel_tuning" not in run.only().command


@pytest.mark.parametrize(
    ("first", "last", "closed"),
    [
        # Below the plan, around all of it, and beyond both of its ends.
        (20000, 28000, [(20000, 28000)]),
        (1024, 65535, [(1024, 29399), (29600, 32767), (65000, 65535)]),
        (30000, 65535, [(30000, 32767), (65000, 65535)]),
    ],
)
def test_the_range_of_a_kernel_wherever_it_lies(first: int, last: int, closed: list[tuple[int, int]]) -> None:
    run = Run()
    drawn = {"name": "ephemeral", "first": first, "last": last}
    run.ranges["n2"] = [RANGES[0], drawn, RANGES[2]]
    run.drawn["n2"] = [("ephemeral", first + number * (last - first) // 3) for number in range(4)]
    run.inbound("n2", *((low, high, "unreachable") for low, high in closed))
    run.rules("n2", "inbound", FIREWALLD, *closed)
    finding = run.only()
    assert (finding.id, finding.hosts) == ("GC-NET-001", ("n2",))
    assert finding.command.endswith(" -i <inventory> --tags kernel_tuning --limit n2")
    assert f"draws its ports from {first}-{last}, the plan opens 32768-60999" in finding.fix


def test_everything_is_plain_data() -> None:
    run = Run()
    run.inbound("n2", (40000, 50000, "timeout"))
    shown = run.only().as_dict()
    assert shown["subject"]["ports"] == ((40000, 50000),) and shown["confidence"] == pytest.approx(0.95)


def test_one_of_sixty_four_nodes() -> None:
    run = Run([f"n{number}" for number in range(64)])
    run.labels = {host: {"rack": str(number // 8)} for number, host in enumerate(run.hosts)}
    run.inbound("n33", EVERYTHING)
    assert ids(run.findings()) == [("GC-NET-001", ("n33",))]


def test_the_answer_of_another_cause_does_not_say_how_this_one_looks() -> None:
    """n4 rejects what it sends to anybody; n2 drops, and on their common link the rejection comes first."""
    run = Run([f"n{number}" for number in range(1, 9)])
    run.inbound("n2", (40000, 50000, "timeout"))
    run.outbound("n4", (1024, 65535, "unreachable"))
    run.bad["n4", "n2"] = [(1024, 65535, "unreachable")]
    causes = {one.id: one.cause for one in run.findings()}
    assert "ports 40000-50000 (ephemeral) dropped (no answer)" in causes["GC-NET-001"], causes
    assert "dropped" not in causes["GC-NET-002"]


def test_a_node_with_more_failing_peers_than_it_searches_has_exact_ports_all_the_same() -> None:
    run = Run([f"n{number}" for number in range(1, 17)])
    run.outbound("n9", (36273, 61819, "timeout"))
    run.most_searched = 8
    finding = run.only()
    assert (finding.id, finding.hosts, finding.about.ports) == ("GC-NET-002", ("n9",), ((36273, 61819),))


@pytest.mark.parametrize("error", sorted(probe_ports.OWN_KERNEL))
def test_the_node_whose_kernel_refuses_is_the_only_one_at_fault(error: str) -> None:
    """The answers would take the same way, so the other direction is closed too; that is no second finding."""
    run = Run()
    run.addresses = {"n3": "192.0.2.3"}
    run.bad = {("n2", "n3"): [(1024, 65535, error)], ("n3", "n2"): [(1024, 65535, "timeout")]}
    one = run.only()
    assert (one.id, one.hosts, one.about.kind) == ("GC-NET-002", ("n2",), "link")
    assert one.cause.startswith("the kernel of n2 itself refuses connections to n3: ") and error in one.cause
    assert "ip route get 192.0.2.3" in one.look and "switch" not in one.fix and "firewall" not in one.fix


def test_every_answer_of_the_kernel_is_explained() -> None:
    assert set(mesh_unsent.MEANINGS) == probe_ports.OWN_KERNEL


def test_a_node_that_can_send_to_nobody() -> None:
    run = Run()
    run.outbound("n2", (1024, 65535, "ENETUNREACH"))
    one = run.only()
    assert (one.hosts, one.about.kind, one.about.direction) == (("n2",), "direction", "outbound")


def test_a_few_ports_that_the_kernel_refuses_hide_nothing_else() -> None:
    run = Run()
    run.bad = {("n2", "n3"): [(61000, 64999, "EACCES"), (29400, 29599, "timeout")]}
    own, link = run.findings()
    assert own.hosts == ("n2",) and "ports 61000, 64999" in own.evidence[0]
    assert link.id == "GC-NET-003" and link.about.ports == ((29400, 29599),)


def test_a_closed_way_back_that_rejects_has_a_reason_of_its_own() -> None:
    run = Run()
    run.bad = {("n2", "n3"): [(1024, 65535, "EINVAL")], ("n3", "n2"): [(1024, 65535, "unreachable")]}
    assert [one.id for one in run.findings()] == ["GC-NET-002", "GC-NET-003"]


FOREIGN_RULE = "inet site input: tcp dport 1024-65535 drop"


def test_of_a_link_only_the_end_fails_whose_rule_it_is() -> None:
    run = Run()
    run.bad["n2", "n3"] = [EVERYTHING]
    run.rules("n3", "inbound", FOREIGN_RULE, (1024, 65535))
    one = run.only()
    assert (one.id, one.hosts, one.about.nodes) == ("GC-NET-003", ("n3",), ("n2", "n3"))
    assert one.fix.startswith("remove the rule")


def test_of_a_link_the_end_fails_whose_filter_nobody_can_judge() -> None:
    run = Run()
    run.bad["n2", "n3"] = [EVERYTHING]
    run.rules("n3", "inbound", "")
    run.static["n3"]["packet_programs"] = ["an eBPF program (XDP) on fab0"]
    one = run.only()
    assert one.hosts == ("n3",) and one.confidence < 0.95 and "ip -d link show" in one.look
    assert one.fix.startswith("look at the packet filter of n3 first") and "XDP" in one.fix
    # Of two such filters nobody knows which one it is.
    run.static["n2"]["packet_programs"] = ["traffic control (tc) with filters on fab0"]
    assert run.only().hosts == ("n2", "n3")


def test_what_nobody_looked_at_makes_no_suspect() -> None:
    run = Run()
    run.bad["n2", "n3"] = [EVERYTHING]
    run.static = {"n2": {}, "n3": {"packet_filter": {}}}
    one = run.only()
    assert one.hosts == ("n2", "n3") and "look at the packet filter" not in one.fix


@pytest.mark.parametrize("verdict", ["drop", "unknown"])
def test_a_rule_without_state_that_drops_answers_as_well_is_one_fault(verdict: str) -> None:
    """What is certain comes first, whichever of them closes more."""
    run = Run()
    run.inbound("n2", (32768, 60999, "timeout"))
    run.outbound("n2", EVERYTHING)
    run.rules("n2", "inbound", FOREIGN_RULE, (32768, 60999))
    run.rules("n2", "outbound", FOREIGN_RULE, (1024, 65535))
    for blocks in run.static["n2"]["packet_filter"]["outbound"].values():
        blocks[0]["verdict"] = verdict
    one = run.only()
    assert one.id == "GC-NET-001" and one.hosts == ("n2",) and one.confidence == mesh_findings.TOLD
    assert "the same rule closes further links: from n2" in one.evidence


def test_the_finding_with_a_rule_stands_before_the_one_without() -> None:
    run = Run(SEVEN)
    run.inbound("n2", EVERYTHING)
    run.bad["n5", "n6"] = [EVERYTHING]
    run.rules("n6", "inbound", FOREIGN_RULE, (1024, 65535))
    assert [one.hosts for one in run.findings()] == [("n6",), ("n2",)]
