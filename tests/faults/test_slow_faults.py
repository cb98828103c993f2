# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slow networks of two and three nodes, where few links are there to compare; and slower than in the run before."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import results
from checking import Ended, check
from net_cluster import INTERFACE, NetCluster

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import drift

#: As a switch has it: a short queue.
SLOW = "root tbf rate 20mbit burst 32kb latency 20ms"
FEW_SIZES = ("-e", '{"cluster_check_sizes_bytes": [4096]}')


@pytest.fixture(scope="module")
def nets() -> Iterator[dict[int, NetCluster]]:
    with NetCluster(2) as two, NetCluster(3) as three:
        yield {2: two, 3: three}


@contextlib.contextmanager
def slow(net: NetCluster, *places: tuple[str, str]) -> Iterator[None]:
    """A hundredth of the speed out of these interfaces, each with the name of its node, or of the hub."""
    done: list[tuple[str, str]] = []
    try:
        for place, interface in places:
            net.run(place, "tc", "qdisc", "add", "dev", interface, *SLOW.split())
            done.append((place, interface))
        yield
        for place, interface in places:
            (sent,) = json.loads(net.run(place, "tc", "-s", "-j", "qdisc", "show", "dev", interface))
            assert sent["kind"] == "tbf" and sent["bytes"] > 1 << 20
    finally:
        for place, interface in done:
            net.run(place, "tc", "qdisc", "del", "dev", interface, "root")


def warned(ended: Ended, number: str) -> dict[str, Any]:
    assert ended.code == 0 and ended.report["verdict"] == "PASSED", ended.text
    found = [one for one in ended.report["findings"] if one["id"] == number]
    assert len(found) == 1 and found[0]["severity"] == "warning", ended.text
    return dict(found[0])


@pytest.mark.parametrize("count", [2, 3])
def test_a_slow_cable_of_few_nodes(nets: dict[int, NetCluster], rng: random.Random, count: int) -> None:
    net = nets[count]
    name = rng.choice(net.names)
    print(f"the cable to {name} of {count} takes 20 Mbit/s")
    with slow(net, ("hub", net.node(name).port)):
        ended = check(net, *FEW_SIZES)
    found = warned(ended, "GC-NET-007")
    others = [one for one in net.names if one != name]
    assert found["hosts"] == ([name] if count > 2 else [*others, name]), found
    # The answers to what it sends take the cable too.
    assert f"to {name}: " in found["cause"] or f"to and from {name}: " in found["cause"], found
    assert any("links were not judged by each other" in one for one in ended.report["notes"]), ended.text
    results.record(f"slow-{count}", "we", ended.seconds, found["cause"])


@pytest.mark.parametrize("count", [2, 3])
def test_slower_than_in_the_run_before(
    nets: dict[int, NetCluster], rng: random.Random, count: int, tmp_path: Path
) -> None:
    """All links alike, so that nothing of this run tells."""
    net = nets[count]
    folder = ("-e", f"cluster_check_report_dir={tmp_path}")
    places = [("hub", net.node(name).port) for name in net.names]
    print(f"all cables of {count} nodes take 20 Mbit/s from the second run on")

    def again() -> Ended:
        ended = check(net, *FEW_SIZES, *folder)
        return ended._replace(report=drift.read(json.loads((tmp_path / "report.json").read_text())))

    assert again().report["findings"] == []
    with slow(net, *places):
        ended = again()
    found = warned(ended, "GC-PERF-003")
    assert "the data network became " in found["cause"] and " times slower between " in found["cause"], found
    results.record(f"slower-{count}", "we", ended.seconds, found["cause"])
    back = again().report["findings"]
    assert back == [], "faster than before is no fault"


def test_a_node_of_three_that_sends_slowly(nets: dict[int, NetCluster], rng: random.Random) -> None:
    net = nets[3]
    name = rng.choice(net.names)
    print(f"{name} sends 20 Mbit/s")
    with slow(net, (name, INTERFACE)):
        ended = check(net, *FEW_SIZES)
    found = warned(ended, "GC-NET-007")
    assert found["hosts"] == [name] and f"from {name}: " in found["cause"], found
    results.record("slow-outbound-3", "we", ended.seconds, found["cause"])
