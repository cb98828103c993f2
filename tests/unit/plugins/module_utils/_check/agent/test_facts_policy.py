# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules and routes as ip of iproute2 6.1 prints them, in batch mode: one JSON document for each question."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import facts_policy
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import policy_answer

RULES = (
    '[{"priority":0,"src":"all","table":"local"},{"priority":50,"src":"all","dst":"198.18.20.13","table":"77"},'
    '{"priority":60,"src":"198.18.20.0","srclen":24,"action":"unreachable"},'
    '{"priority":61,"src":"all","fwmark":"0x5","action":"blackhole"},{"priority":32766,"src":"all","table":"main"}]\n'
)
ROUTES = (
    '[{"dst":"default","gateway":"198.18.10.1","dev":"eth0","protocol":"static","metric":100,"flags":[]},'
    '{"dst":"198.18.20.13","dev":"eth0","table":"77","scope":"link","flags":[]},'
    '{"dst":"198.18.20.0/24","dev":"fab0","protocol":"kernel","scope":"link","prefsrc":"198.18.20.11","metric":101,'
    '"flags":[],"metrics":[{"mtu":1300}]},{"type":"blackhole","dst":"198.18.20.13","flags":[]}]\n'
)


def test_rules_and_routes_are_read() -> None:
    found = facts_policy.parse(["198.18.20.13"], RULES + ROUTES)
    assert policy_answer.ANSWER(found)
    assert [(one["source"], one["target"], one["table"], one["action"], one["further"]) for one in found["rules"]] == [
        ("all", "all", "local", "", False),
        ("all", "198.18.20.13/32", "77", "", False),
        ("198.18.20.0/24", "all", "", "unreachable", False),
        ("all", "all", "", "blackhole", True),
        ("all", "all", "main", "", False),
    ]
    routes = found["routes"]["198.18.20.13"]
    assert [(one["type"], one["target"], one["table"], one["device"]) for one in routes] == [
        ("unicast", "0.0.0.0/0", "main", "eth0"),
        ("unicast", "198.18.20.13/32", "77", "eth0"),
        ("unicast", "198.18.20.0/24", "main", "fab0"),
        ("blackhole", "198.18.20.13/32", "main", ""),
    ]
    assert (routes[2]["mtu"], routes[2]["metric"], routes[2]["source"]) == (1300, 101, "198.18.20.11")


def test_only_peers_that_are_not_reached_directly_are_asked_for_and_few_of_them() -> None:
    direct = {"interface": "fab0", "source": "192.0.2.1", "gateway": "", "mtu": 0, "error": ""}
    ways = {f"n{number}": {**direct, "address": f"192.0.2.{number}"} for number in range(2, 40)}
    assert facts_policy.asked(ways, "fab0", "192.0.2.1") == []
    for key, value in (("interface", "eth0"), ("source", "x"), ("gateway", "x"), ("mtu", 9), ("error", "x")):
        odd = {**ways, "n7": {**ways["n7"], key: value}}
        assert facts_policy.asked(odd, "fab0", "192.0.2.1") == ["192.0.2.7"]
    assert len(facts_policy.asked(ways, "fab1", "192.0.2.1")) == policy_answer.MOST_PEERS


@pytest.mark.parametrize(
    "out", ["", "7", RULES, f"{RULES}{ROUTES}{ROUTES}", f"{RULES}7", f"{RULES}[7]", f"{RULES}Error"]
)
def test_an_answer_that_is_not_whole_is_none(out: str) -> None:
    assert facts_policy.parse(["198.18.20.13"], out) == {"rules": [], "routes": {}}


def test_whatever_ip_prints_the_answer_has_its_form() -> None:
    odd: list[Any] = [7, -1, 1.5, None, True, "x", "a b", "$(x)", [], {}, [7], {"mtu": "x"}]
    lots = random.Random(3)
    for _round in range(2000):
        documents = [json.loads(RULES), json.loads(ROUTES)]
        entry = lots.choice(lots.choice(documents))
        entry[lots.choice([*entry, "type", "gateway", "metrics", "dst"])] = lots.choice(odd)
        found = facts_policy.parse(["198.18.20.13"], "\n".join(map(json.dumps, documents)))
        assert policy_answer.ANSWER(found), documents
