# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the rules of the nodes block to findings, notes and answers."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import packet_filter
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import (
    DIRECTION,
    Finding,
    Subject,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import make_port_plan

PLAN = make_port_plan().as_dict()
JUDGED = [[29400, 29599], [32768, 64999]]
ZONE = "inet firewalld filter_IN_public: reject with icmpx admin-prohibited"
FOREIGN = "inet custom input: tcp dport 40000-50000 drop"


def block(first: int, last: int, verdict: str = "drop", rule: str = FOREIGN) -> dict[str, Any]:
    return {"first": first, "last": last, "verdict": verdict, "rule": rule}


def node(inbound: dict[str, Any] | None = None, outbound: dict[str, Any] | None = None) -> dict[str, Any]:
    found = {"readable": True, "why": "", "judged": JUDGED, "inbound": inbound or {}, "outbound": outbound or {}}
    return {"packet_filter": found}


def cluster(**changed: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: changed.get(name, node()) for name in ("n1", "n2", "n3")}


CLOSED = [block(29400, 29599, "reject", ZONE), block(32768, 64999, "reject", ZONE)]
UNREADABLE = {"packet_filter": {"readable": False, "why": "nft is not installed", "inbound": {}, "outbound": {}}}


def test_no_blocks_no_findings() -> None:
    assert packet_filter.findings(cluster(), PLAN) == [] and packet_filter.notes(cluster()) == []
    assert packet_filter.findings({}, PLAN) == [] and packet_filter.findings({"n1": {}}, PLAN) == []


def test_a_node_that_blocks_all_members_by_firewalld() -> None:
    (found,) = packet_filter.findings(cluster(n2=node({"n1": CLOSED, "n3": CLOSED})), PLAN)
    assert found.id == "GC-FW-001" and found.severity == ERROR and found.hosts == ("n2",)
    assert found.cause == (
        "the packet filter of n2 rejects new TCP connections from all members to ports 29400-29599, 32768-64999"
    )
    assert found.subject == Subject(DIRECTION, ("n2",), "inbound", ((29400, 29599), (32768, 64999)))
    assert found.evidence == (f"rule on n2: {ZONE}",)
    assert found.variables == {}, "an inventory that repeats the plan contradicts the next one"
    assert "where the inventory sets cluster_firewall_ports, remove that first" in found.fix
    assert found.command == "ansible-playbook site.yml -i <inventory> --tags cluster_firewall --limit n2"


def test_one_peer_that_is_not_let_in() -> None:
    (found,) = packet_filter.findings(cluster(n2=node({"n3": CLOSED})), PLAN)
    assert "from n3 to ports" in found.cause and "cluster_firewall_peers" in found.fix
    assert found.variables == {} and "--tags cluster_firewall" in found.command, "the ports are open, to others"


def test_nodes_that_are_alike_are_one_finding() -> None:
    everybody = {
        name: node({other: CLOSED for other in ("n1", "n2", "n3") if other != name}) for name in ("n1", "n2", "n3")
    }
    (found,) = packet_filter.findings(everybody, PLAN)
    assert found.hosts == ("n1", "n2", "n3") and found.about.kind == "cluster"
    assert found.cause.startswith("the packet filter of all 3 nodes rejects")
    two = dict(everybody, n3=node({"n1": [block(40000, 50000)], "n2": [block(40000, 50000)]}))
    assert [one.hosts for one in packet_filter.findings(two, PLAN)] == [("n1", "n2"), ("n3",)]


def test_a_rule_of_somebody_else_has_no_variables_and_a_command_that_shows_it() -> None:
    (found,) = packet_filter.findings(
        cluster(n2=node({"n1": [block(40000, 50000)], "n3": [block(40000, 50000)]})), PLAN
    )
    assert found.cause.endswith("drops new TCP connections from all members to ports 40000-50000")
    assert found.variables == {} and "'inet custom'" in found.fix
    assert found.command == "" and found.look == (
        'ansible n2 -i <inventory> --become -m ansible.builtin.command -a "nft -a list chain inet custom input"'
    )


def test_outbound_is_a_finding_of_its_own() -> None:
    (found,) = packet_filter.findings(cluster(n2=node(outbound={"n1": [block(61000, 61000, "reset")]})), PLAN)
    assert found.id == "GC-FW-002" and found.about.direction == "outbound"
    assert found.cause == "the packet filter of n2 refuses new TCP connections to n1 on ports 61000"


def test_firewalld_filters_outgoing_connections_by_what_this_collection_does_not_manage() -> None:
    rule = "inet firewalld filter_OUT_policy_x: drop"
    cure = packet_filter.remedy(["n2"], "outbound", rule)
    assert cure.variables == {} and cure.command == "" and cure.look.endswith('filter_OUT_policy_x"')


def test_the_reverse_path_filter_has_a_variable_of_its_own() -> None:
    rule = "inet firewalld filter_PREROUTING: meta nfproto ipv6 fib saddr . mark . iif oif missing drop"
    cure = packet_filter.remedy(["n2"], "inbound", rule)
    assert cure.variables == {"n2": {"cluster_firewall_ipv6_rpfilter": "loose"}}


@pytest.mark.parametrize("blocks", [[block(1, 1023)], [block(40000, 50000, "unknown")]])
def test_ports_outside_of_the_plan_and_doubts_are_no_findings(blocks: list[dict[str, Any]]) -> None:
    assert packet_filter.findings(cluster(n2=node({"n1": blocks})), PLAN) == []


def test_several_ways_to_block_and_many_rules() -> None:
    blocks = [block(port, port, "drop" if port % 2 else "reject", f"inet t c: {port}") for port in range(40000, 40009)]
    (found,) = packet_filter.findings(cluster(n2=node({"n1": blocks})), PLAN)
    assert "blocks new TCP connections from n1 to ports 40000-40008" in found.cause
    assert len(found.evidence) == 5 and found.evidence[-1] == "and 5 more rules"


def mesh(*hosts: str, direction: str, ports: tuple[tuple[int, int], ...], number: str = "GC-NET-001") -> Finding:
    subject = Subject(DIRECTION, hosts, direction, ports)
    return Finding(number, hosts, "", "", subject=subject)


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        (mesh("n2", direction="inbound", ports=((50000, 60000),)), 0),
        (mesh("n2", direction="inbound", ports=()), 0),
        (mesh("n1", "n2", direction="", ports=()), 0),
        (mesh("n2", direction="inbound", ports=((50001, 60000),)), 1),
        (mesh("n2", direction="outbound", ports=()), 1),
        (mesh("n3", direction="inbound", ports=()), 1),
        (mesh("n2", direction="inbound", ports=(), number="GC-NET-007"), 1),
    ],
)
def test_what_the_mesh_names_is_not_named_twice(seen: Finding, left: int) -> None:
    static = cluster(n2=node({"n1": [block(40000, 50000)], "n3": [block(40000, 50000)]}))
    assert len(packet_filter.findings(static, PLAN, [seen])) == left


def test_notes_say_whose_rules_are_not_known() -> None:
    doubt = node({"n1": [block(40000, 50000, "unknown")]}, {"n1": [block(40000, 50000, "unknown")]})
    assert packet_filter.notes(cluster(n1=UNREADABLE, n2=doubt, n3=UNREADABLE)) == [
        "the packet filter of n1, n3 could not be read: nft is not installed",
        f"the packet filter of n2 cannot be judged beforehand: {FOREIGN}",
    ]


def test_a_rule_that_is_a_finding_needs_no_note() -> None:
    both = node({"n1": [block(40000, 50000)]}, {"n1": [block(29400, 64999, "unknown")]})
    assert packet_filter.notes(cluster(n2=both)) == []


# --- permits ----------------------------------------------------------------------------------------------------------


def test_rules_of_both_ends_permit() -> None:
    assert packet_filter.permits(cluster(), "n1", "n2", [(29500, 29500), (40000, 50000)]).answer == "permits"


def test_the_end_that_blocks_is_named_with_its_rule() -> None:
    inbound = cluster(n2=node({"n1": [block(45000, 50000)]}))
    found = packet_filter.permits(inbound, "n1", "n2", [(40000, 46000)])
    assert found == packet_filter.Permit("blocks", "n2", "inbound", "drop", FOREIGN, ((45000, 46000),))
    assert packet_filter.permits(inbound, "n3", "n2", [(40000, 46000)]).answer == "permits"
    assert packet_filter.permits(inbound, "n1", "n2", [(40000, 44999)]).answer == "permits"
    outbound = cluster(n1=node(outbound={"n2": [block(45000, 50000)]}))
    found = packet_filter.permits(outbound, "n1", "n2", [(40000, 46000)])
    assert (found.host, found.direction) == ("n1", "outbound")


def test_a_certain_block_counts_more_than_a_doubt() -> None:
    static = cluster(n2=UNREADABLE, n1=node(outbound={"n2": [block(45000, 50000)]}))
    assert packet_filter.permits(static, "n1", "n2", [(45000, 45000)]).answer == "blocks"


@pytest.mark.parametrize(
    ("static", "ports", "why"),
    [
        (cluster(n2=UNREADABLE), (40000, 40001), "nft is not installed"),
        (cluster(n1=UNREADABLE), (40000, 40001), "nft is not installed"),
        ({"n1": node()}, (40000, 40001), "not read"),
        (cluster(n2=node({"n1": [block(40000, 40000, "unknown")]})), (40000, 40001), FOREIGN),
        (cluster(), (1024, 1030), "ports outside of the plan were not looked at"),
    ],
)
def test_what_is_not_known_is_not_permitted(static: dict[str, Any], ports: tuple[int, int], why: str) -> None:
    found = packet_filter.permits(static, "n1", "n2", [ports])
    assert (found.answer, found.rule) == ("unknown", why)


def test_the_ranges_of_the_plan_are_those_of_tcp() -> None:
    plan = make_port_plan({"extra_ports": ["4791/udp", "12345-12355", 12356]}).as_dict()
    assert packet_filter.plan_ranges(plan) == [(12345, 12356), (29400, 29599), (32768, 64999)]
