# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Made-up runs of the check on clusters of any size, as the nodes would answer: for what measures diagnosis and report.

Of a run with faults, one node rejects inbound connections, one link stalls, another one is slow, one node has another
kernel, and some segments were sent again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.run_data import Run

PORTS = [
    {"range": "rendezvous", "port": 29500},
    {"range": "ephemeral", "port": 32768},
    {"range": "ephemeral", "port": 60999},
]
SIZES = (4, 4096, 65536, 1048576, 4194304, 16777216)
ITERATIONS = 60
READY = 1795291266.0
KERNEL, OLD_KERNEL = "6.12.0-170.el10.x86_64", "6.12.0-158.el10.x86_64"


def run(count: int, rails: int = 1, faults: bool = True, ranks: int = 1, seed: int = 1) -> Run:
    """A run of so many nodes, rails and ranks of a node."""
    dice = random.Random(seed)
    hosts = [f"gpu{number:04}" for number in range(1, count + 1)]
    bad = _faults(hosts) if faults and count > 8 else {}
    names = [f"rail {number + 1} (10.{number}.0.0/16)" for number in range(rails)]
    launch = {
        host: {
            "state": "waiting",
            "address": _address(0, number),
            "ports": PORTS,
            "hostname": host,
            "ranges": [],
            "rails": [
                {"name": name, "address": _address(rail, number), "ports": PORTS, "error": ""}
                for rail, name in enumerate(names[1:], 1)
            ],
        }
        for number, host in enumerate(hosts)
    }
    probe = {
        host: {
            "links": list(_links(host, hosts, bad, dice)),
            "rails": [{"name": name, "links": list(_links(host, hosts, {}, dice))} for name in names[1:]],
        }
        for host in hosts
    }
    made = plan.make_plan(hosts, launch, probe, ranks)
    return Run(
        run_id="20261121t200102z-k3x9ab",
        started="2026-11-21T20:01:02Z",
        seconds=310.0,
        backend="gloo",
        members=hosts,
        selected=hosts,
        launch=launch,
        probe=probe,
        plan=made,
        go={host: {"started": True} for host in made["hosts"]},
        collect={host: _collected(host, made, dice) for host in hosts},
        facts={host: _facts(OLD_KERNEL if bad and host == hosts[7] else KERNEL) for host in hosts},
        pins={host: {} for host in hosts},
        known_members=[_member(host, number, rails) for number, host in enumerate(hosts)],
        labels={host: {"rack": f"r{1 + number // 8:03}"} for number, host in enumerate(hosts)},
    )


def _address(rail: int, number: int) -> str:
    return f"10.{rail}.{number // 250}.{1 + number % 250}"


def _member(host: str, number: int, rails: int) -> dict[str, Any]:
    return {
        "name": host,
        "fabric_address": _address(0, number),
        "fabric_prefix": 16,
        "fabric_interface": "fab0",
        "management_address": host,
        "rail_addresses": [
            {"address": _address(rail, number), "prefix": 16, "interface": f"fab{rail}", "listed": False}
            for rail in range(1, rails)
        ],
    }


def _faults(hosts: Sequence[str]) -> dict[tuple[str, str], str]:
    """Links with their result; ``slow`` for one that is open."""
    blocked = {(source, hosts[2]): "unreachable" for source in hosts if source != hosts[2]}
    return {**blocked, (hosts[1], hosts[5]): "stalled", (hosts[4], hosts[6]): "slow"}


def _links(
    source: str, hosts: Sequence[str], bad: Mapping[tuple[str, str], str], dice: random.Random
) -> Iterator[dict[str, Any]]:
    for target in hosts:
        if target != source:
            result = bad.get((source, target), "ok")
            slow = 8 if result == "slow" else 1
            fine = result in ("ok", "slow")
            yield {
                "host": target,
                "probes": len(PORTS),
                "milliseconds": round(0.18 * dice.lognormvariate(0, 0.2) * slow, 3) if fine else None,
                "bytes_per_second": round(1.15e9 * dice.lognormvariate(0, 0.1) / slow) if fine else None,
                "retransmits": (143 if slow > 1 else int(dice.random() < 0.001)) if fine else None,
                "failures": [] if fine else [_failure(one, result) for one in PORTS[1:]],
                "blocked": [],
                "searched": [],
                "unheard": [],
            }


def _failure(tried: Mapping[str, Any], result: str) -> dict[str, Any]:
    payloads = {"passed_bytes": 1300, "stalled_bytes": 1500} if result == "stalled" else {}
    return {"port": tried["port"], "range": tried["range"], "result": result, "milliseconds": 3000.0, **payloads}


def _collected(host: str, made: Mapping[str, Any], dice: random.Random) -> dict[str, Any]:
    ranks = [
        {
            "local_rank": number,
            "events": _events(dice) if host in made["hosts"] else [_ready(dice)],
            "exit_code": 0,
            "process_state": "",
            "stderr_tail": "",
        }
        for number, _rank in enumerate(made["ranks"].get(host, ()))
    ]
    moved = {"rx_bytes": 10**11, "tx_bytes": 10**11}
    return {"state": "finished", "hostname": host, "interface_bytes": moved, "ranks": ranks}


def _ready(dice: random.Random) -> dict[str, Any]:
    seconds = round(4 + dice.random(), 3)
    return {
        "event": "ready",
        "at": round(READY + dice.random(), 3),
        "torch": "2.13.0+cu130",
        "code": [],
        "seconds": seconds,
    }


def _events(dice: random.Random) -> list[dict[str, Any]]:
    times = [
        [(3.1e-4 + size / 0.62e9) * dice.uniform(0.97, 1.03) for _iteration in range(ITERATIONS)] for size in SIZES
    ]
    moments = [round(READY + 1 + number / 5 + dice.random() / 100, 3) for number in range(len(SIZES) + 3)]
    return [
        _ready(dice),
        {"event": "store", "at": moments[0]},
        {"event": "joined", "at": moments[1]},
        *(
            {"event": "size", "at": at, "size_bytes": size, "seconds": seconds, "checked": 65, "wrong": None}
            for at, size, seconds in zip(moments[2:-1], SIZES, times, strict=True)
        ),
        {"event": "done", "at": moments[-1]},
    ]


def _facts(kernel: str) -> dict[str, Any]:
    """What gpu_node_facts read on a node without a GPU."""
    return {
        "kernel": {"running": kernel},
        "pci": {"gpus": [], "nvswitches": []},
        "driver": {"loaded": "", "user_space": ""},
        "gpus": [],
        "fabric_manager": {"version": "", "active": None},
        "nccl": {"system": "", "torch": ""},
        "torch": {"version": "2.13.0+cu130"},
        "openmpi": {"version": "5.0.7"},
        "nics": [{"name": "fab0", "mtu": 9000, "speed_mbit": 100000, "firmware": "", "model": ""}],
    }
