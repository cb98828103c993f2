# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is no member gets to no port of the plan: what a recorded firewalld and what stands beside it let through."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter import ruleset, strangers
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._packet_filter.strangers import Card

Json = dict[str, Any]
RECORDED: list[Json] = json.loads((Path(__file__).parent / "data/firewalld_1.3.3.json").read_text())["nftables"]
PLAN = [(29400, 29599), (32768, 64999)]
CARDS = [Card("eth0", "203.0.113.14"), Card("fab0", "192.0.2.14"), Card("fab0", "2001:db8::14")]
DPORT: Json = {"payload": {"protocol": "tcp", "field": "dport"}}
MEMBERS = ["192.0.2.14", "192.0.2.15", "2001:db8::15"]


def match(left: Any, right: Any, op: str = "==") -> Json:
    return {"match": {"op": op, "left": left, "right": right}}


def chain(table: str, name: str, family: str = "inet", **base: Any) -> Json:
    return {"chain": {"family": family, "table": table, "name": name, **base}}


def rule(table: str, name: str, *expr: Json, family: str = "inet") -> Json:
    return {"rule": {"family": family, "table": table, "chain": name, "expr": list(expr)}}


def found(objects: list[Json], spans: list[tuple[int, int]] | None = None) -> list[strangers.Opening]:
    return strangers.openings(ruleset.compiled(objects), CARDS, spans or PLAN, MEMBERS)


def in_zone(zone: str, *allowed: Json) -> list[Json]:
    """The recorded firewalld with fab0 in another zone, as firewalld writes it: target ACCEPT for trusted."""
    objects = copy.deepcopy(RECORDED)
    for one in objects:
        held = one.get("rule", {})
        if held.get("chain") == "filter_INPUT_ZONES" and held["expr"][0].get("match", {}).get("right") == "fab0":
            held["expr"][1]["goto"]["target"] = f"filter_IN_{zone}"
    objects.append(chain("firewalld", f"filter_IN_{zone}"))
    objects.append(rule("firewalld", f"filter_IN_{zone}", {"jump": {"target": "filter_INPUT_POLICIES_pre"}}))
    objects += [rule("firewalld", f"filter_IN_{zone}", *one) for one in allowed]
    return objects


def test_what_the_role_makes_is_for_members_only() -> None:
    assert found(RECORDED) == []


def test_an_interface_in_trusted() -> None:
    (four, six) = found(in_zone("trusted", [{"accept": None}]))
    assert (four.card, four.ports) == (CARDS[1], tuple(PLAN)) and six.card == CARDS[2]
    assert four.rule == six.rule == "inet firewalld filter_IN_trusted: accept"
    (sentence,) = strangers.sentences([four, six])
    assert "29400-29599, 32768-64999" in sentence and "fab0" in sentence and four.rule in sentence
    assert "zone trusted" in sentence and "eth0" not in sentence


def test_a_zone_with_wide_ports() -> None:
    (four, _six) = found(in_zone("work", [match(DPORT, {"range": [1025, 40000]}), {"accept": None}]))
    assert four.ports == ((29400, 29599), (32768, 40000))
    assert "filter_IN_work" in four.rule and "zone work" in strangers.sentences([four])[0]


def test_a_port_that_a_zone_opens_beside_the_plan_is_none_of_ours() -> None:
    assert found(in_zone("work", [match(DPORT, 9090), {"accept": None}], [{"drop": None}])) == []


def test_a_zone_that_opens_to_some_sources_is_the_sites_choice() -> None:
    source = match({"payload": {"protocol": "ip", "field": "saddr"}}, {"prefix": {"addr": "10.0.0.0", "len": 8}})
    assert found(in_zone("work", [source, {"accept": None}], [{"drop": None}])) == []


@pytest.mark.parametrize(
    "published",
    [
        # netavark of podman, and docker with its own nftables
        [match(DPORT, 29500), {"dnat": {"family": "ip", "addr": "10.88.0.5", "port": 80}}],
        [match(DPORT, 29500), {"redirect": {"port": 8080}}],
        # docker and podman over iptables-nft, of which nft prints the names only
        [{"xt": {"type": "match", "name": "tcp"}}, match(DPORT, 29500), {"xt": {"type": "target", "name": "DNAT"}}],
    ],
)
def test_a_port_that_a_container_publishes(published: list[Json]) -> None:
    objects = [
        *RECORDED,
        chain("nat", "PREROUTING", "ip", type="nat", hook="prerouting", prio=-100, policy="accept"),
        chain("nat", "DOCKER", "ip"),
        rule(
            "nat",
            "PREROUTING",
            {"xt": {"type": "match", "name": "addrtype"}},
            {"jump": {"target": "DOCKER"}},
            family="ip",
        ),
        rule("nat", "DOCKER", match({"meta": {"key": "iifname"}}, "docker0", "!="), *published, family="ip"),
    ]
    opened = found(objects)
    assert [(one.card.interface, one.ports, one.sent_on) for one in opened] == [
        ("eth0", ((29500, 29500),), True),
        ("fab0", ((29500, 29500),), True),
    ]
    (sentence,) = strangers.sentences(opened)
    assert "eth0, fab0" in sentence and "ip nat DOCKER" in sentence and "container" in sentence


def test_a_rule_of_which_nothing_is_known_accuses_nobody() -> None:
    unknown = [{"xt": {"type": "match", "name": "statistic"}}, {"xt": {"type": "target", "name": "DNAT"}}]
    nat = [
        chain("nat", "PREROUTING", "ip", type="nat", hook="prerouting", prio=-100, policy="accept"),
        rule("nat", "PREROUTING", *unknown, family="ip"),
    ]
    assert found([*RECORDED, *nat]) == []


def test_no_rule_at_all() -> None:
    opened = found([])
    assert [one.card for one in opened] == CARDS and {one.rule for one in opened} == {""}
    (sentence,) = strangers.sentences(opened)
    assert "no rule stops them" in sentence


def test_another_table_that_accepts_opens_nothing() -> None:
    """firewalld still rejects after it: an accept ends its own chain only."""
    other = [
        chain("mine", "input", type="filter", hook="input", prio=0, policy="accept"),
        rule("mine", "input", {"accept": None}),
    ]
    assert found([*other, *RECORDED]) == []


def test_a_stranger_is_no_member() -> None:
    assert strangers.address_for(4, []) not in strangers.address_for(4, [strangers.address_for(4, [])])
    assert strangers.address_for(6, MEMBERS) not in MEMBERS


def test_cards() -> None:
    """What reaches the node from outside: no loopback, and no network of containers or guests on the node itself."""
    links = [
        {"ifname": name, "addr_info": [{"local": address, "scope": scope, "prefixlen": 24}]}
        for name, address, scope in (
            ("lo", "127.0.0.1", "host"),
            ("eth0", "203.0.113.14", "global"),
            ("eth0", "fe80::1", "link"),
            ("docker0", "172.17.0.1", "global"),
            ("br-0123456789ab", "172.18.0.1", "global"),
            ("podman1", "10.89.0.1", "global"),
            ("cni0", "10.1.0.1", "global"),
            ("virbr0", "192.168.122.1", "global"),
            ("br0", "192.0.2.14", "global"),
        )
    ]
    assert strangers.cards(json.dumps(links)) == [Card("eth0", "203.0.113.14"), Card("br0", "192.0.2.14")]
    assert strangers.cards("") == []


def test_spans_of_the_role() -> None:
    assert strangers.spans(["29500/tcp", "29400-29499/tcp", "4791/udp"]) == [(29400, 29500)]
    assert strangers.spans([]) == [(1024, 65535)]
