# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As few causes as possible: each case is a fault, or several, and nothing else may be named."""

from __future__ import annotations

import random

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.intervals import Spans
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import set_cover
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.mesh_links import Ends

HOSTS = [f"n{number}" for number in range(1, 9)]
ALL_PORTS: Spans = ((1024, 65535),)
PART: Spans = ((40000, 50000),)
RACKS = {host: {"rack": f"r{number // 3}"} for number, host in enumerate(HOSTS)}


def every(hosts: list[str]) -> list[Ends]:
    return [(source, target) for source in hosts for target in hosts if source != target]


def inbound(node: str, ports: Spans = ALL_PORTS, hosts: list[str] = HOSTS) -> dict[Ends, Spans]:
    return {ends: ports for ends in every(hosts) if ends[1] == node}


def outbound(node: str, ports: Spans = ALL_PORTS, hosts: list[str] = HOSTS) -> dict[Ends, Spans]:
    return {ends: ports for ends in every(hosts) if ends[0] == node}


def seen(
    bad: dict[Ends, Spans], hosts: list[str] = HOSTS, labels: dict[str, dict[str, str]] | None = None
) -> list[tuple[str, tuple[str, ...], str]]:
    return [(one.kind, one.nodes, one.direction) for one in set_cover.explain(bad, every(hosts), hosts, labels)]


def test_nothing_bad_has_no_cause() -> None:
    assert seen({}) == []


def test_one_node_in_one_direction() -> None:
    (cause,) = set_cover.explain(inbound("n2", PART), every(HOSTS), HOSTS)
    assert (cause.kind, cause.nodes, cause.direction) == ("node", ("n2",), "inbound")
    assert (cause.ports, len(cause.links), cause.of, cause.share) == (PART, 7, 7, 1.0)
    assert seen(outbound("n3")) == [("node", ("n3",), "outbound")]


def test_a_node_that_is_cut_off_is_one_cause() -> None:
    assert seen({**inbound("n2"), **outbound("n2")}) == [("node", ("n2",), "both")]


def test_other_ports_in_the_other_direction_are_another_cause() -> None:
    assert seen({**inbound("n2"), **outbound("n2", PART)}) == [
        ("node", ("n2",), "inbound"),
        ("node", ("n2",), "outbound"),
    ]


def test_links_in_one_and_in_both_directions() -> None:
    bad: dict[Ends, Spans] = {("n1", "n2"): PART, ("n3", "n4"): PART, ("n4", "n3"): PART}
    assert seen(bad) == [("link", ("n1", "n2"), ""), ("link", ("n3", "n4"), "both")]


def test_a_link_with_other_ports_each_way_is_two_causes() -> None:
    assert seen({("n3", "n4"): PART, ("n4", "n3"): ALL_PORTS}) == [
        ("link", ("n3", "n4"), ""),
        ("link", ("n4", "n3"), ""),
    ]


def test_what_a_node_does_not_explain_stays_a_link() -> None:
    bad = inbound("n2", PART)
    bad[("n5", "n2")] = ALL_PORTS
    node, link = set_cover.explain(bad, every(HOSTS), HOSTS)
    assert (node.nodes, node.ports, len(node.links)) == (("n2",), PART, 7)
    assert (link.nodes, link.ports) == (("n5", "n2"), ((1024, 39999), (50001, 65535)))


def test_ports_that_differ_from_link_to_link_are_still_one_cause() -> None:
    bad = {ends: (*PART, (52000 + number, 52000 + number)) for number, ends in enumerate(inbound("n2"))}
    (cause,) = set_cover.explain(bad, every(HOSTS), HOSTS)
    assert (cause.nodes, cause.ports, len(cause.links)) == (("n2",), (*PART, (52000, 52006)), 7)


def test_two_links_of_what_is_left_do_not_accuse_the_node_again() -> None:
    bad = inbound("n2", PART)
    bad[("n5", "n2")] = bad[("n6", "n2")] = ALL_PORTS
    assert seen(bad) == [("node", ("n2",), "inbound"), ("link", ("n5", "n2"), ""), ("link", ("n6", "n2"), "")]


def test_a_difference_that_no_probe_met_accuses_nobody() -> None:
    bad = inbound("n2", PART)
    bad[("n5", "n2")] = ((39990, 50000),)
    points = {ends: [42178] for ends in bad}
    assert len(set_cover.explain(bad, every(HOSTS), HOSTS)) == 2
    (cause,) = set_cover.explain(bad, every(HOSTS), HOSTS, points=points)
    assert cause.ports == PART


def test_links_that_nobody_searched_follow_those_that_were() -> None:
    """Only the first eight peers of a node are searched; of the others the ports are known that were tried."""
    bad = outbound("n3", PART)
    bad[("n3", "n7")] = bad[("n3", "n8")] = ((42178, 42178),)
    (cause,) = set_cover.explain(bad, every(HOSTS), HOSTS)
    assert (cause.ports, len(cause.links)) == (PART, 7)


def test_three_of_three_nodes_outbound_are_not_blamed_on_the_third() -> None:
    hosts = HOSTS[:3]
    bad = {**outbound("n1", hosts=hosts), **outbound("n2", hosts=hosts)}
    assert seen(bad, hosts) == [("node", ("n1",), "outbound"), ("node", ("n2",), "outbound")]


def test_one_link_more_does_not_accuse_another_node() -> None:
    hosts = HOSTS[:3]
    assert seen({**inbound("n1", hosts=hosts), ("n2", "n3"): ALL_PORTS}, hosts) == [
        ("node", ("n1",), "inbound"),
        ("link", ("n2", "n3"), ""),
    ]


def test_three_nodes_that_some_reach_are_not_their_rack() -> None:
    bad = {**inbound("n4"), **inbound("n5"), **inbound("n6")}
    for ends in (("n1", "n4"), ("n2", "n4"), ("n3", "n5"), ("n7", "n5"), ("n8", "n6")):
        del bad[ends]
    assert seen(bad, labels=RACKS) == [("node", (node,), "inbound") for node in ("n6", "n4", "n5")]


def test_a_group_with_a_node_that_is_well_is_the_wrong_group() -> None:
    hosts = [f"n{number}" for number in range(16)]
    labels = {host: {"image": "new" if number < 11 else "old"} for number, host in enumerate(hosts)}
    bad = {ends: PART for ends in every(hosts) if ends[1] in hosts[:10]}
    assert seen(bad, hosts, labels) == [("alike", tuple(hosts[:10]), "inbound")]


def test_all_alike_is_one_cause() -> None:
    assert seen(dict.fromkeys(every(HOSTS), PART)) == [("all", tuple(HOSTS), "both")]
    assert seen(dict.fromkeys(every(HOSTS[:2]), PART), HOSTS[:2]) == [("all", ("n1", "n2"), "both")]


def test_most_nodes_alike_is_one_cause_and_the_others_are_not_in_it() -> None:
    bad = {ends: PART for ends in every(HOSTS) if ends[1] not in ("n1", "n4")}
    assert seen(bad) == [("alike", ("n2", "n3", "n5", "n6", "n7", "n8"), "inbound")]


@pytest.mark.parametrize(
    ("direction", "wanted"),
    [
        ("inbound", lambda source, target: target == "r1"),
        ("outbound", lambda source, target: source == "r1"),
        ("across", lambda source, target: (source == "r1") != (target == "r1")),
        ("into", lambda source, target: source != "r1" and target == "r1"),
        ("out of", lambda source, target: source == "r1" and target != "r1"),
        ("within", lambda source, target: source == "r1" and target == "r1"),
    ],
)
def test_a_group(direction: str, wanted: object) -> None:
    assert callable(wanted)
    bad = {ends: ALL_PORTS for ends in every(HOSTS) if wanted(RACKS[ends[0]]["rack"], RACKS[ends[1]]["rack"])}
    (cause,) = set_cover.explain(bad, every(HOSTS), HOSTS, RACKS)
    assert (cause.kind, cause.nodes, cause.direction) == ("group", ("n4", "n5", "n6"), direction)
    assert [label.text for label in cause.labels] == ["rack=r1"] and cause.share == 1.0
    # Without labels the same is many causes.
    assert len(set_cover.explain(bad, every(HOSTS), HOSTS)) > 1


def test_between_two_groups() -> None:
    bad = {ends: PART for ends in every(HOSTS) if {RACKS[end]["rack"] for end in ends} == {"r0", "r1"}}
    (cause,) = set_cover.explain(bad, every(HOSTS), HOSTS, RACKS)
    assert {label.text for label in cause.labels} == {"rack=r0", "rack=r1"} and cause.direction == "both"
    bad = {ends: ports for ends, ports in bad.items() if RACKS[ends[0]]["rack"] == "r1"}
    (cause,) = set_cover.explain(bad, every(HOSTS), HOSTS, RACKS)
    assert [label.text for label in cause.labels] == ["rack=r1", "rack=r0"] and cause.direction == ""


def test_one_node_of_a_group_is_not_the_group() -> None:
    labels = {host: {"rack": "a" if host in ("n1", "n2") else "b"} for host in HOSTS}
    assert seen(inbound("n2"), labels=labels) == [("node", ("n2",), "inbound")]


def test_a_group_of_the_inventory_is_a_label_and_a_real_label_comes_before_it() -> None:
    labels = {host: {"group:blue": "blue"} if host in ("n4", "n5", "n6") else {} for host in HOSTS}
    bad = {
        ends: PART for ends in every(HOSTS) if (ends[0] in labels and labels[ends[0]] == {}) != (not labels[ends[1]])
    }
    (cause,) = set_cover.explain(bad, every(HOSTS), HOSTS, labels)
    assert [label.text for label in cause.labels] == ["group=blue"] and cause.direction == "across"
    both = {host: {**labels[host], **RACKS[host]} for host in HOSTS}
    (cause,) = set_cover.explain(bad, every(HOSTS), HOSTS, both)
    assert [label.text for label in cause.labels] == ["rack=r1"]


def test_five_faults_at_once() -> None:
    bad = {**outbound("n5"), **inbound("n2")}
    bad.update({ends: ports for ends, ports in inbound("n3", PART).items() if ends[0] != "n5"})
    bad[("n6", "n7")] = ALL_PORTS
    bad[("n1", "n8")] = bad[("n8", "n1")] = PART
    assert seen(bad) == [
        ("node", ("n2",), "inbound"),
        ("node", ("n3",), "inbound"),
        ("node", ("n5",), "outbound"),
        ("link", ("n1", "n8"), "both"),
        ("link", ("n6", "n7"), ""),
    ]


@pytest.mark.parametrize("seed", range(200))
def test_faults_drawn_by_lot_are_all_named_and_nobody_else(seed: int) -> None:
    """Three nodes and two links of twelve, each with an interval of its own."""
    chance = random.Random(seed)
    hosts = [f"n{number}" for number in range(12)]
    chosen = chance.sample(hosts, 7)
    expected: set[tuple[str, tuple[str, ...], str]] = set()
    bad: dict[Ends, Spans] = {}
    for node in chosen[:3]:
        direction = chance.choice(["inbound", "outbound"])
        first = chance.randint(1024, 60000)
        found = (inbound if direction == "inbound" else outbound)(node, ((first, first + 5000),), hosts)
        for ends, ports in found.items():
            bad[ends] = bad.get(ends, ()) + ports
        expected.add(("node", (node,), direction))
    for link in (tuple(chosen[3:5]), tuple(chosen[5:7])):
        bad[link[0], link[1]] = ((1024, 65535),)
        expected.add(("link", link, ""))
    assert set(seen(bad, hosts)) == expected


@pytest.mark.parametrize("count", [5, 6])
def test_six_bad_links_of_ten_are_the_nodes_fault_and_five_are_five_links(count: int) -> None:
    hosts = [f"n{number}" for number in range(11)]
    bad = {(source, "n0"): PART for source in hosts[1 : 1 + count]}
    found = seen(bad, hosts)
    assert found == [("node", ("n0",), "inbound")] if count == 6 else [kind for kind, *_ in found] == ["link"] * 5
