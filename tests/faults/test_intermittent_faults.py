# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that come and go: every port answers in the end, and the sums are right."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
import results
from checking import check
from injection import DROP, filter_rule
from net_cluster import NetCluster

#: Of the connection requests, three of ten.
REQUESTS = "tcp flags & (syn | ack) == syn numgen random mod 100 < 30"
#: Of their answers.
ANSWERS = "tcp flags & (syn | ack) == syn | ack numgen random mod 100 < 30"
#: The first request of each link, and none after it.
FIRST = "tcp flags & (syn | ack) == syn limit rate 1/hour burst 1 packets"
#: No quota of a firewall is that exact; it is the kind: so many new connections a second, and the rest is dropped.
TOO_MANY = "tcp flags & (syn | ack) == syn limit rate over 8/second burst 8 packets"
FEW_SIZES = ("-e", '{"cluster_check_sizes_bytes": [4096]}')


@pytest.fixture(params=[2, 3, 4])
def some(request: pytest.FixtureRequest) -> Iterator[NetCluster]:
    with NetCluster(request.param) as net:
        yield net


def of_requests(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in report["findings"] if one["id"] == "GC-NET-013"]


def passed_with_one(net: NetCluster, title: str) -> dict[str, Any]:
    """The one warning of a check that passes."""
    ended = check(net, *FEW_SIZES)
    assert ended.code == 0 and ended.report["verdict"] == "PASSED", ended.text
    found = of_requests(ended.report)
    assert len(found) == 1 and found[0]["severity"] == "warning", ended.text
    took = re.search(r"the slowest connect took ([\d.]+) s, the median [\d.]+ [um]s$", found[0]["cause"])
    assert took and float(took[1]) > 1, found
    results.record(title, "we", ended.seconds, found[0]["cause"])
    return dict(found[0])


def test_requests_to_a_node_that_get_lost(some: NetCluster, rng: random.Random) -> None:
    """From all others; of two nodes it is the link, of more the node."""
    target = rng.choice(some.names)
    print(f"{target} loses three of ten connection requests, {len(some.names)} nodes")
    bit, undo = filter_rule(some, target, "input", REQUESTS, DROP)
    try:
        found = passed_with_one(some, f"requests-node-{len(some.names)}")
        others = [name for name in some.names if name != target]
        named = ("node", [target]) if len(others) > 1 else ("link", [others[0], target])
        assert bit() > 0 and (found["subject"]["kind"], found["subject"]["nodes"]) == named, found
    finally:
        undo()


def test_requests_on_one_link_that_get_lost(clean: NetCluster, rng: random.Random) -> None:
    source, target = rng.sample(clean.names, 2)
    print(f"{target} loses three of ten connection requests of {source}")
    bit, undo = filter_rule(clean, target, "input", f"ip saddr {clean.node(source).address} {REQUESTS}", DROP)
    try:
        found = passed_with_one(clean, "requests-link")
        assert bit() > 0 and found["subject"]["nodes"] == [source, target], found
        assert f"from {source} to {target} got no answer" in found["cause"], found
    finally:
        undo()


def test_requests_of_a_node_that_get_lost(clean: NetCluster, rng: random.Random) -> None:
    """On its own way out."""
    name = rng.choice(clean.names)
    print(f"{name} loses three of ten of its own connection requests")
    bit, undo = filter_rule(clean, name, "output", REQUESTS, DROP)
    try:
        found = passed_with_one(clean, "requests-outbound")
        assert bit() > 0 and found["subject"] == {**found["subject"], "kind": "node", "nodes": [name]}, found
        assert f"requests from {name} got no answer" in found["cause"], found
    finally:
        undo()


def test_answers_to_a_node_that_the_switch_loses(clean: NetCluster, rng: random.Random) -> None:
    name = rng.choice(clean.names)
    print(f"the switch loses three of ten answers to {name}")
    match = f"ip daddr {clean.node(name).address} {ANSWERS}"
    bit, undo = filter_rule(clean, "hub", "forward", match, DROP, before="", family="bridge")
    try:
        found = passed_with_one(clean, "answers-switch")
        assert bit() > 0 and found["subject"]["nodes"] == [name], found
    finally:
        undo()


def test_a_limit_of_new_connections(clean: NetCluster, rng: random.Random) -> None:
    name = rng.choice(clean.names)
    print(f"{name} takes eight new connections a second")
    bit, undo = filter_rule(clean, name, "input", TOO_MANY, DROP)
    try:
        found = passed_with_one(clean, "requests-limit")
        assert bit() > 0 and found["subject"]["nodes"] == [name], found
    finally:
        undo()


def test_one_request_alone_is_a_note(clean: NetCluster, rng: random.Random) -> None:
    source, target = rng.sample(clean.names, 2)
    print(f"{target} loses one connection request of {source}")
    # The ssh of nobody: only the probe connects to these ports.
    match = f"ip saddr {clean.node(source).address} tcp dport 29400-65535 {FIRST}"
    bit, undo = filter_rule(clean, target, "input", match, DROP)
    try:
        ended = check(clean, *FEW_SIZES)
        assert ended.code == 0 and ended.report["findings"] == [] and bit() == 1, ended.text
        (note,) = [one for one in ended.report["notes"] if "connection requests" in one]
        assert "1 of " in note and f"from {source} to {target} got no answer" in note, note
        results.record("request-once", "we", ended.seconds, note)
    finally:
        undo()
