# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the check says about a broken network: the culprit and nobody else, the exact ports, and a fix that repairs it.

Node and ports are drawn by lot from a seed that is printed.
"""

from __future__ import annotations

import ipaddress
import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from lab_cluster import Cluster, Ended

#: A table beside firewalld's, on the input of one node.
TABLE = "gpu_cluster_test"
#: Two of the ports on which the workers listen: a quarter and a half into the ephemeral range.
TRIED = (42178, 51589)


@pytest.fixture
def chance() -> random.Random:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    return random.Random(seed)


@contextmanager
def rule(cluster: Cluster, node: str, chain: str, text: str) -> Iterator[None]:
    """One more rule on a node; it must have matched by the end, or the fault was none."""
    lines = [f"add table inet {TABLE}", f"add chain inet {TABLE} test {{ {chain} }}"]
    lines.append(f"add rule inet {TABLE} test iifname fab0 {text}")
    try:
        for line in lines:
            cluster.lab("exec", node, "nft", line)
        yield
        rules = json.loads(cluster.lab("exec", node, "nft", "-j", "list", "chain", "inet", TABLE, "test"))
        (packets,) = [
            part["counter"]["packets"]
            for one in rules["nftables"]
            for part in one.get("rule", {}).get("expr", [])
            if "counter" in part
        ]
        assert packets > 0, "the rule matched nothing"
    finally:
        cluster.shell(node, f"nft delete table inet {TABLE} || true")


INPUT = "type filter hook input priority -5; policy accept;"


def network(ended: Ended) -> list[dict[str, Any]]:
    """The findings of the mesh."""
    return [one for one in ended.report["findings"] if one["id"].startswith("GC-NET-")]


def overlay(cluster: Cluster, name: str, content: dict[str, Any]) -> str:
    path: Path = cluster.reports / name
    path.write_text(json.dumps(content))
    return str(path)


def test_a_rule_made_by_hand_is_named_with_its_exact_ports(cluster: Cluster, chance: random.Random) -> None:
    node = chance.choice(list(cluster.hosts))
    port = chance.choice(TRIED)
    first, last = port - chance.randint(0, 3000), port + chance.randint(20, 3000)
    how, looks = chance.choice([("drop", "dropped"), ("reject with icmpx admin-prohibited", "rejected")])
    with rule(cluster, node, INPUT, f"tcp dport {first}-{last} counter {how}"):
        ended = cluster.check()
    assert ended.code != 0 and list(ended.report["culprits"]) == [node], ended.text
    finding = network(ended)[0]
    assert (finding["id"], finding["subject"]["direction"]) == ("GC-NET-001", "inbound")
    assert finding["subject"]["ports"] == [[first, last]]
    assert f"ports {first}-{last} (ephemeral) {looks}" in finding["cause"]
    assert any(TABLE in one for one in finding["evidence"]), finding["evidence"]
    assert finding["variables"] == {}, "no variable of this collection removes a rule of somebody else"
    assert [one["id"] for one in ended.report["findings"] if one["id"].startswith("GC-FW-")] == []
    healthy = cluster.check()
    assert healthy.code == 0 and network(healthy) == [], healthy.text


#: A rule of the site in firewalld, after those of the role: it resets what the role does not open.
RESETS = "rule family=ipv4 port port=32768-60999 protocol=tcp reject type=tcp-reset"


@contextmanager
def reset_by_firewalld(cluster: Cluster, node: str) -> Iterator[None]:
    """At once and after a reload."""
    zone = cluster.shell(node, "firewall-cmd --get-default-zone").strip()

    def change(verb: str) -> None:
        for where in ("", "--permanent "):
            cluster.shell(node, f"firewall-cmd {where}--zone={zone} --{verb}-rich-rule='{RESETS}'")

    change("add")
    try:
        yield
    finally:
        change("remove")


@pytest.mark.parametrize(
    ("number", "count"), [("GC-NET-001", 1), ("GC-NET-004", 2), ("GC-NET-009", 1)], ids=["node", "rack", "reset"]
)
def test_a_firewall_that_was_set_too_narrow_is_open_without_the_override(
    cluster: Cluster, chance: random.Random, number: str, count: int
) -> None:
    """One node of the three, or two that are a rack."""
    nodes = sorted(chance.sample(list(cluster.hosts), count), key=list(cluster.hosts).index)
    rack = {"gpu_cluster_labels": {"rack": "r1"}}
    wrong = {"cluster_firewall_ports": ["29400-29599/tcp", "61000-64999/tcp"], **rack}
    narrow = overlay(cluster, "narrow.json", {"gpu_cluster": {"hosts": dict.fromkeys(nodes, wrong)}})
    limit = ",".join(nodes)
    with ExitStack() as stack:
        try:
            made = cluster.play("site.yml", "-i", narrow, "--tags", "cluster_firewall", "--limit", limit)
            assert made.code == 0, made.text
            if number == "GC-NET-009":
                stack.enter_context(reset_by_firewalld(cluster, nodes[0]))
            ended = cluster.check("-i", narrow)
            assert list(ended.report["culprits"]) == nodes, ended.text
            finding = network(ended)[0]
            assert finding["id"] == number and f"--tags cluster_firewall --limit {limit}" in finding["command"], finding
            # Of a reset the ports that were tried are told, and not what is between them.
            spans = finding["subject"]["ports"]
            assert (spans[0][0], spans[-1][1]) == (32768, 60999), finding
            assert finding["variables"] == {} and "cluster_firewall_ports, remove that" in finding["fix"], finding
            repaired = overlay(cluster, "repaired.json", {"gpu_cluster": {"hosts": dict.fromkeys(nodes, rack)}})
            green = cluster.play("site.yml", "-i", repaired, "--tags", "cluster_firewall,check")
            assert green.code == 0 and green.report["verdict"] == "PASSED", green.text
        finally:
            back = cluster.play("site.yml", "--tags", "cluster_firewall", "--limit", limit)
    assert back.code == 0, back.text


def test_what_gloo_passes_by_luck_of_the_addresses_is_an_error(cluster: Cluster) -> None:
    by_address = sorted(cluster.hosts, key=lambda name: ipaddress.ip_address(cluster.fabric_address(name)))
    for node, lucky in ((by_address[-1], True), (by_address[0], False)):
        with rule(cluster, node, INPUT, "ct state new tcp dport 32768-60999 counter drop"):
            ended = cluster.check()
        assert ended.code != 0 and list(ended.report["culprits"]) == [node], ended.text
        assert ("GC-NET-010" in [one["id"] for one in network(ended)]) == lucky
        assert network(ended)[0]["id"] == "GC-NET-001" and "dropped" in network(ended)[0]["cause"]


def test_a_redirected_port_is_foreign_and_quoted(cluster: Cluster, chance: random.Random) -> None:
    """sshd answers in the place of the worker."""
    node = chance.choice(list(cluster.hosts))
    chain = "type nat hook prerouting priority dstnat; policy accept;"
    with rule(cluster, node, chain, "tcp dport 40000-50000 counter redirect to :22"):
        ended = cluster.check()
    assert list(ended.report["culprits"]) == [node], ended.text
    (finding,) = [one for one in network(ended) if one["id"] == "GC-NET-008"]
    assert "SSH-2.0" in finding["cause"] and finding["subject"]["nodes"] == [node]


def test_without_the_override_the_kernels_ports_are_in_the_plan_again(cluster: Cluster, chance: random.Random) -> None:
    node = chance.choice(list(cluster.hosts))
    other = {node: {"kernel_tuning_ephemeral_range": {"first": 20000, "last": 28000}}}
    wrong = overlay(cluster, "range.json", {"gpu_cluster": {"hosts": other}})
    try:
        set_so = cluster.play("site.yml", "-i", wrong, "--tags", "kernel_tuning", "--limit", node)
        assert set_so.code == 0, set_so.text
        ended = cluster.check()
        assert list(ended.report["culprits"]) == [node], ended.text
        finding = network(ended)[0]
        assert finding["variables"] == {} and "kernel_tuning_ephemeral_range, remove that" in finding["fix"], finding
        green = cluster.play("site.yml", "--tags", "kernel_tuning,check")
        assert green.code == 0 and green.report["verdict"] == "PASSED", green.text
    finally:
        back = cluster.play("site.yml", "--tags", "kernel_tuning", "--limit", node)
    assert back.code == 0, back.text
