# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fault of what some nodes have in common is one finding, with the label that they share."""

from __future__ import annotations

import json
import random

import results
from checking import check, left_over
from net_cluster import NetCluster

TABLE = "leaf"


def test_a_rack_that_is_cut_off_is_named_by_its_label(eight: NetCluster, rng: random.Random) -> None:
    """Two or three nodes of a rack reach each other, and nobody else, as behind a switch without its uplink."""
    inside = rng.sample(eight.names, rng.choice([2, 3]))
    outside = [name for name in eight.names if name not in inside]
    print(f"{', '.join(inside)} are in rack r3, whose uplink is down")
    racks = {name: {"gpu_cluster_labels": {"rack": "r3" if name in inside else "r1"}} for name in eight.names}
    labels = eight.folder / "labels.json"
    labels.write_text(json.dumps({"gpu_cluster": {"hosts": racks}}))
    others = ", ".join(eight.node(name).address for name in outside)
    try:
        for name in inside:
            eight.run(name, "nft", "add", "table", "inet", TABLE)
            for hook, end in (("input", "saddr"), ("output", "daddr")):
                eight.run(name, "nft", f"add chain inet {TABLE} {hook} {{ type filter hook {hook} priority 0; }}")
                eight.run(name, "nft", f"add rule inet {TABLE} {hook} ip {end} {{ {others} }} counter drop")
        ended = check(eight, "-i", str(labels))
        assert ended.code != 0 and set(ended.report["culprits"]) == set(inside), ended.text
        (found,) = [one for one in ended.report["findings"] if one["id"].startswith("GC-NET-00")]
        assert (found["id"], found["subject"]["label"]) == ("GC-NET-004", "rack=r3")
        assert found["cause"].startswith("all failing links cross rack=r3: ")
        for name in inside:
            rules = json.loads(eight.run(name, "nft", "-j", "list", "table", "inet", TABLE))["nftables"]
            parts = [part for one in rules for part in one.get("rule", {}).get("expr", []) if "counter" in part]
            assert [part["counter"]["packets"] > 0 for part in parts] == [True, True]
        results.record("rack", "we", ended.seconds, ended.report["headline"])
    finally:
        for name in inside:
            eight.run(name, "nft", "delete", "table", "inet", TABLE, check=False)
    assert left_over(eight) == []
