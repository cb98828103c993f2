# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the links of the further rails to findings: who is named, on which rails, and what is told once."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import (
    mesh_findings,
    mesh_links,
    mesh_rail_findings,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import Finding

HOSTS = ["n1", "n2", "n3", "n4"]
FIRST, SECOND, THIRD = "rail 1 (10.1.0.0/24)", "rail 2 (10.2.0.0/24)", "rail 3 (fd00:20::/64)"
NETWORKS = {SECOND: "10.2.0.%s", THIRD: "fd00:20::%s"}
PORTS = [("rendezvous", 29400), ("ephemeral", 32768), ("ephemeral", 60999), ("mpi", 61000)]


class Run:
    """A healthy cluster with three rails, to be damaged by a test.

    bad: rail, source and target to the result of all ports of that link; "" is the first rail.  missing: rail and host
    to why it cannot listen there.
    """

    def __init__(self, hosts: list[str] | None = None) -> None:
        self.hosts = hosts or HOSTS
        self.bad: dict[tuple[str, str, str], str] = {}
        self.ports: list[int] = [port for _name, port in PORTS]
        self.missing: dict[tuple[str, str], str] = {}
        self.rails = [SECOND, THIRD]

    def into(self, rail: str, host: str, result: str = "timeout") -> None:
        self.bad.update({(rail, other, host): result for other in self.hosts if other != host})

    def out_of(self, rail: str, host: str, result: str = "timeout") -> None:
        self.bad.update({(rail, host, other): result for other in self.hosts if other != host})

    def members(self) -> list[dict[str, Any]]:
        return [
            {
                "name": host,
                "fabric_address": f"10.1.0.{host[1:]}",
                "fabric_prefix": 24,
                "fabric_interface": "fab0",
                "management_address": host,
                "addresses": [],
                "rail_addresses": [
                    {"address": NETWORKS[rail] % host[1:], "prefix": 0, "interface": "", "listed": True}
                    for rail in (SECOND, THIRD)
                ],
            }
            for host in self.hosts
        ]

    def launch(self) -> dict[str, Any]:
        ports = [{"range": name, "port": port} for name, port in PORTS]
        return {
            host: {
                "state": "waiting",
                "rails": [
                    {
                        "name": rail,
                        "address": NETWORKS[rail] % host[1:],
                        "ports": [] if (rail, host) in self.missing else ports,
                        "error": self.missing.get((rail, host), ""),
                    }
                    for rail in self.rails
                ],
            }
            for host in self.hosts
        }

    def links(self, rail: str, source: str) -> list[dict[str, Any]]:
        rows = []
        for target in self.hosts:
            if target == source or (rail, target) in self.missing:
                continue
            result = self.bad.get((rail, source, target), "ok")
            failures = [
                {"port": port, "range": name, "result": result, "milliseconds": 1600.0}
                for name, port in PORTS
                if result != "ok" and port in self.ports
            ]
            passed = len(failures) < len(PORTS)
            rows.append(
                {
                    "host": target,
                    "probes": len(PORTS),
                    "milliseconds": 0.2 if passed else None,
                    "bytes_per_second": 1e9 if passed else None,
                    "retransmits": 0 if passed else None,
                    "failures": failures,
                }
            )
        return rows

    def surveyed(self) -> list[mesh_rail_findings.Surveyed]:
        probe = {
            host: {
                "links": self.links("", host),
                "rails": [
                    {"name": rail, "links": self.links(rail, host)}
                    for rail in self.rails
                    if (rail, host) not in self.missing
                ],
            }
            for host in self.hosts
        }
        return mesh_rail_findings.survey(self.members(), self.launch(), probe, self.hosts)

    def findings(self) -> list[Finding]:
        """Of all rails, as the diagnosis has them."""
        first = mesh_findings.findings(self.hosts, {host: {"links": self.links("", host)} for host in self.hosts})
        surveyed = self.surveyed()
        further = [mesh_rail_findings.findings(rail) for rail in surveyed]
        told_first, told_further = mesh_rail_findings.once(first, further, surveyed, FIRST)
        return [*told_first, *told_further]

    def only(self) -> Finding:
        (found,) = self.findings()
        return found


def test_healthy() -> None:
    assert Run().findings() == []
    second, third = (rail.as_dict() for rail in Run().surveyed())
    assert (second["name"], second["family"], third["family"]) == (SECOND, "IPv4", "IPv6")
    assert third["addresses"] == {host: f"fd00:20::{host[1:]}" for host in HOSTS}
    assert second["mesh"]["n1"] == {"n2": "ok", "n3": "ok", "n4": "ok"}
    assert second["latency_ms"]["n4"]["n1"] == 0.2 and second["retransmits"]["n4"]["n1"] == 0


def test_rails_that_nobody_was_to_probe_are_none() -> None:
    run = Run()
    run.rails = []
    assert run.surveyed() == [] and run.findings() == []
    notes = mesh_rail_findings.notes(run.members(), run.surveyed(), run.launch())
    assert notes == [f"not probed: {SECOND} and {THIRD} (cluster_check_rails)"]
    assert mesh_rail_findings.notes(run.members(), [], {}) == []
    assert mesh_rail_findings.notes(Run().members(), Run().surveyed(), Run().launch()) == []


def test_a_rail_that_no_two_nodes_could_probe_is_told() -> None:
    """It has no links, and so no finding about them: that is not the same as fine."""
    run = Run()
    run.missing = {(SECOND, host): "Cannot assign requested address" for host in HOSTS[1:]}
    notes = mesh_rail_findings.notes(run.members(), run.surveyed(), run.launch())
    assert notes == [f"not probed: {SECOND}, no two nodes could"]


def test_an_address_that_is_alone_is_told() -> None:
    run = Run()
    known = run.members()
    known[1]["rail_addresses"].append({"address": "10.7.0.2", "prefix": 24, "interface": "x", "listed": False})
    (note,) = mesh_rail_findings.notes(known, run.surveyed(), run.launch())
    assert note == "not probed, as no other member has an address in the same network: 10.7.0.2 of n2"


def test_a_node_that_is_closed_on_one_rail_is_named_with_it() -> None:
    run = Run()
    run.into(SECOND, "n3")
    found = run.only()
    assert (found.id, found.hosts, found.about.rails) == ("GC-NET-001", ("n3",), (SECOND,))
    assert (
        found.cause.startswith(f"{SECOND}: inbound connections of n3 fail") and "--tags cluster_firewall" in found.fix
    )


def test_the_packet_filter_of_the_first_rail_says_nothing_about_another() -> None:
    run = Run()
    run.into(THIRD, "n3", "unreachable")
    assert "permit" not in str(run.only()) and "rejected" in run.only().cause


def test_a_node_to_and_from_which_nothing_gets_through_is_down_there() -> None:
    run = Run()
    run.into(SECOND, "n2")
    run.out_of(SECOND, "n2")
    found = run.only()
    assert (found.id, found.hosts, found.about.kind) == ("GC-NET-012", ("n2",), "node")
    assert found.cause == f"{SECOND}: nothing gets through to and from n2, on no port and in no direction"
    assert found.ruled_out == ("the other 3 nodes: they reach each other there",)
    assert "6 of 12 links, with all of their 24 probes" in found.evidence


def test_a_node_that_hears_a_no_is_not_down() -> None:
    """It rejects, or its own kernel lets nothing out: there is something that answers, or another cause."""
    for inbound, outbound in (("unreachable", "timeout"), ("timeout", "refused")):
        run = Run()
        run.into(SECOND, "n2", inbound)
        run.out_of(SECOND, "n2", outbound)
        assert "GC-NET-012" not in [one.id for one in run.findings()]


def test_a_node_without_a_route_is_down_as_well() -> None:
    run = Run()
    run.into(SECOND, "n2")
    run.out_of(SECOND, "n2", "unreachable")
    assert run.only().id == "GC-NET-012"


def test_one_port_that_passes_is_enough_not_to_be_down() -> None:
    run = Run()
    run.ports = run.ports[:-1]
    run.into(SECOND, "n2")
    run.out_of(SECOND, "n2")
    assert {one.id for one in run.findings()} == {"GC-NET-001"}


def test_a_rail_that_is_down_for_everybody_is_one_finding() -> None:
    run = Run()
    for host in HOSTS:
        run.into(SECOND, host)
    found = run.only()
    assert (found.id, found.hosts, found.about.kind) == ("GC-NET-012", tuple(HOSTS), "cluster")
    assert "between all 4 nodes" in found.cause and found.confidence == 0.95


def test_between_two_nodes_nobody_is_in_the_majority() -> None:
    run = Run(["n1", "n2"])
    run.into(SECOND, "n1")
    run.into(SECOND, "n2")
    assert (run.only().hosts, run.only().confidence) == (("n1", "n2"), 0.5)


def test_the_others_of_a_rail_are_still_judged_when_one_is_down() -> None:
    run = Run()
    run.into(SECOND, "n2")
    run.out_of(SECOND, "n2")
    run.bad[SECOND, "n1", "n4"] = "refused"
    assert [(one.id, one.hosts) for one in run.findings()] == [("GC-NET-012", ("n2",)), ("GC-NET-009", ("n1", "n4"))]


def test_a_missing_address_is_named_and_the_others_are_judged() -> None:
    run = Run()
    run.missing = {(THIRD, "n4"): "Cannot assign requested address"}
    found = run.only()
    assert (found.id, found.hosts, found.confidence) == ("GC-NET-012", ("n4",), 1.0)
    assert found.cause == (
        f"{THIRD}: nobody can connect to the address fd00:20::4 of n4: Cannot assign requested address"
    )
    assert set(run.surveyed()[1].as_dict()["mesh"]) == {"n1", "n2", "n3"}


def test_addresses_that_all_nodes_lack_are_one_finding() -> None:
    run = Run()
    run.missing = {(THIRD, host): "Address family not supported by protocol" for host in HOSTS}
    found = run.only()
    assert (found.hosts, found.about.kind, len(found.evidence)) == (tuple(HOSTS), "cluster", 4)


def test_the_same_on_all_rails_is_told_once() -> None:
    run = Run()
    for rail in ("", SECOND, THIRD):
        run.into(rail, "n3")
    found = run.only()
    assert found.cause.startswith("on all 3 rails: inbound connections of n3 fail")
    assert found.about.rails == (FIRST, SECOND, THIRD)


def test_the_same_on_some_rails_names_them() -> None:
    run = Run()
    for rail in (SECOND, THIRD):
        run.into(rail, "n3")
    found = run.only()
    assert found.cause.startswith(f"{SECOND} and {THIRD}: inbound connections of n3 fail")
    assert found.about.rails == (SECOND, THIRD)


def test_different_nodes_on_different_rails_are_different_findings() -> None:
    run = Run()
    run.into("", "n1")
    run.into(SECOND, "n3")
    assert [(one.hosts, one.about.rails) for one in run.findings()] == [(("n1",), ()), (("n3",), (SECOND,))]


def test_a_small_rail_has_its_own_majority() -> None:
    """Three of the four nodes are on it; all that do not reach the third one are named by it."""
    run = Run()
    run.missing = {(SECOND, "n4"): "gone"}
    run.into(SECOND, "n3", "refused")
    assert {(one.id, one.hosts) for one in run.findings()} == {("GC-NET-012", ("n4",)), ("GC-NET-009", ("n3",))}


def test_links_that_were_not_measured_have_no_numbers() -> None:
    run = Run()
    run.into(SECOND, "n3")
    (rail, _other) = run.surveyed()
    assert mesh_links.table(rail.links, "bytes_per_second")["n1"] == {"n2": 1e9, "n4": 1e9}
