# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the network: the first verdict names exactly the culprits, with the right cause, and nobody else."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys

import pytest
import results
from checking import check, left_over
from injection import DROP, MESH, Fault, between, filter_rule, judge
from net_cluster import INTERFACE, NetCluster

#: Of the packets with data; and what a policer of a switch lets through: at once what it lets through in a second.
LOSES = "meta length > 1000 numgen random mod 100 < 15"
LIMITS = "limit rate over 500 kbytes/second burst 10 kbytes"


@pytest.mark.parametrize("fault", MESH, ids=[fault.name for fault in MESH])
def test_the_first_verdict_names_the_culprit(clean: NetCluster, rng: random.Random, fault: Fault) -> None:
    injected = fault.make(clean, clean.names, rng)
    print(injected.what)
    try:
        ended = check(clean, *injected.arguments)
        assert ended.code != 0, ended.text
        judge(ended.report, [injected])
        results.record(fault.name, "we", ended.seconds, ended.report["headline"])
    finally:
        injected.undo()


def test_between_two_nodes_nobody_is_in_the_majority(clean: NetCluster, rng: random.Random) -> None:
    """Both ends are named, and since the rules of both permit it, what lies between them.

    The switch drops answers too, to those connections of the node that took one of these ports as their own: that is
    no finding of its own.
    """
    pair = rng.sample(clean.names, 2)
    injected = between(clean, pair, rng)
    print(injected.what)
    try:
        ended = check(clean, "--limit", ",".join(pair))
        assert ended.code != 0 and set(ended.report["culprits"]) == set(pair), ended.text
        errors = [one for one in ended.report["findings"] if one["severity"] == "error"]
        (found,) = [one for one in errors if one["id"] != "GC-NET-010"]
        assert injected.bit() > 0 and found["id"] == "GC-NET-003", ended.text
        assert set(found["hosts"]) == set(pair) and "ACL of the switch" in found["fix"], found
        assert [tuple(span) for span in found["subject"]["ports"]] == list(injected.ports), found
    finally:
        injected.undo()


def test_five_faults_at_once_are_five_findings(eight: NetCluster, rng: random.Random) -> None:
    """Each on a node of its own, the link between two more; one node has nothing."""
    names = list(eight.names)
    rng.shuffle(names)
    kinds = {fault.name: fault for fault in MESH}
    chosen = [
        kinds["drop"].make(eight, names[:1], rng),
        kinds["half-reject"].make(eight, names[1:2], rng),
        kinds["mtu"].make(eight, names[2:3], rng),
        kinds["loopback"].make(eight, names[3:4], rng),
        kinds["link"].make(eight, names[4:6], rng),
    ]
    print("; ".join(one.what for one in chosen))
    try:
        ended = check(eight)
        assert ended.code != 0, ended.text
        judge(ended.report, chosen)
        results.record("five", "we", ended.seconds, ended.report["headline"])
    finally:
        for one in chosen:
            one.undo()
    assert left_over(eight) == []


def test_a_slow_cable_is_a_warning_that_names_its_node(clean: NetCluster, rng: random.Random) -> None:
    """A hundredth of the speed towards one node, and a short queue, as a switch has it; the sums are right."""
    name = rng.choice(clean.names)
    port = clean.node(name).port
    print(f"the cable to {name} takes 20 Mbit/s")
    clean.run("hub", "tc", *f"qdisc add dev {port} root tbf rate 20mbit burst 32kb latency 20ms".split())
    try:
        ended = check(clean, "-e", '{"cluster_check_sizes_bytes": [4096]}')
        assert ended.code == 0 and ended.report["verdict"] == "PASSED", ended.text
        (found,) = [one for one in ended.report["findings"] if one["id"] == "GC-NET-007"]
        assert found["severity"] == "warning" and found["subject"]["nodes"] == [name], found
        sent = json.loads(clean.run("hub", "tc", "-s", "-j", "qdisc", "show", "dev", port))
        assert sent[0]["kind"] == "tbf" and sent[0]["bytes"] > 1 << 20
        results.record("slow", "we", ended.seconds, found["cause"])
    finally:
        clean.run("hub", "tc", "qdisc", "del", "dev", port, "root")


@pytest.mark.parametrize(
    ("rule", "whole_node", "title"),
    [(LOSES, False, "lossy-link"), (LOSES, True, "lossy-node"), (LIMITS, False, "limited-link")],
    ids=["lossy-link", "lossy-node", "limited-link"],
)
def test_a_link_that_loses_packets_is_a_warning_that_names_it(
    clean: NetCluster, rng: random.Random, rule: str, whole_node: bool, title: str
) -> None:
    """From one node to another, or from all others; ports are open and sums are right."""
    source, target = rng.sample(clean.names, 2)
    sources = [name for name in clean.names if name != target] if whole_node else [source]
    print(f"what {', '.join(sources)} sends to {target}: {rule}")
    addresses = ", ".join(clean.node(name).address for name in sources)
    bit, undo = filter_rule(clean, target, "input", f"ip saddr {{ {addresses} }} {rule}", DROP, before="")
    try:
        # Packets as on a wire: the kernel would hand over 64 KiB at once, of which 1 MiB needs few. Single ones are
        # slower, so on all nodes: one alone would be the slow one.
        for name in clean.names:
            clean.run(name, "ip", "link", "set", INTERFACE, "gso_max_segs", "1")
        ended = check(clean, "-e", '{"cluster_check_sizes_bytes": [4096]}')
        assert ended.code == 0 and ended.report["verdict"] == "PASSED" and bit() > 0, ended.text
        (found,) = [one for one in ended.report["findings"] if one["id"] == "GC-NET-007"]
        named = ("node", [target]) if whole_node else ("link", [source, target])
        assert found["severity"] == "warning" and (found["subject"]["kind"], found["subject"]["nodes"]) == named, found
        assert found["cause"].startswith("the data network is slow and loses packets "), found
        assert all(ended.report["mesh"][name][target] == "ok" for name in sources), ended.text
        results.record(title, "we", ended.seconds, found["cause"])
    finally:
        undo()
        for name in clean.names:
            clean.run(name, "ip", "link", "set", INTERFACE, "gso_max_segs", "65535")


def test_a_rendezvous_port_that_something_holds_is_told_and_the_check_takes_another(
    clean: NetCluster, rng: random.Random
) -> None:
    """It accepts connections and says nothing: a job with this port would wait there."""
    name = rng.choice(clean.names)
    program = "import socket, time; s = socket.create_server(('', 29400)); print(1, flush=True); time.sleep(600)"
    with subprocess.Popen([*clean.enter(name), sys.executable, "-c", program], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == b"1\n"
            ended = check(clean)
        finally:
            for pid in clean.processes(name, "create_server"):
                os.kill(pid, signal.SIGKILL)
    assert ended.code == 0 and ended.report["verdict"] == "PASSED", ended.text
    (found,) = [one for one in ended.report["findings"] if one["id"] == "GC-NODE-015"]
    assert found["severity"] == "warning" and found["hosts"] == [name] and "rendezvous: 29400" in found["cause"], found
    results.record("taken", "we", ended.seconds, found["cause"])


def test_a_variable_of_jobs_that_differs_is_a_warning_that_names_its_node(
    clean: NetCluster, rng: random.Random
) -> None:
    """NCCL would read it; all nodes may have names of their own cards."""
    name = rng.choice(clean.names)
    paths = {one: clean.folder / one / "environment" for one in clean.names}
    try:
        for number, (one, path) in enumerate(paths.items()):
            path.write_text(f"NCCL_IB_TIMEOUT={14 if one == name else 22}\nNCCL_IB_HCA=mlx5_{number}\n")
        ended = check(clean, "--check")
    finally:
        for path in paths.values():
            path.write_text("")
    (found,) = ended.report["findings"]
    assert (found["id"], found["severity"], found["hosts"]) == ("GC-NODE-017", "warning", [name]), ended.text
    assert found["cause"].endswith("NCCL_IB_TIMEOUT is 14 in /etc/environment, 3 of 4 nodes have 22"), found


def test_a_cluster_without_a_fault_passes(clean: NetCluster) -> None:
    """The other tests of this file would be worth nothing if this one were red."""
    ended = check(clean)
    assert ended.code == 0 and ended.report["verdict"] == "PASSED", ended.text
    assert [one for one in ended.report["findings"] if one["severity"] == "error"] == []
    results.record("none", "we", ended.seconds, ended.report["headline"])
