# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sample reports of the check: for the tests of the reports, and for the pages of the documentation.

Run as a program it writes what the documentation shows of them: `python3 tools/report_samples.py`.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import project

if __name__ == "__main__":
    sys.path.insert(0, str(project.ROOT / ".ansible" / "collections"))

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import listed
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.finding import LINK, Finding, Subject
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.verdict import REPORT_VERSION
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol import bandwidth
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import (
    files,
    prometheus,
    rails,
    schema,
)

SCHEMA_FILE = "docs/report.schema.json"
EXAMPLE_FILE = "docs/examples/report.json"
GUIDE = "docs/reading-a-report.md"
BEGIN, END = "<!-- begin metrics -->\n", "<!-- end metrics -->\n"

Report = dict[str, Any]
CHECK = "ansible-playbook baremetal.gpu_cluster.check -i prod"
RATE = 1.15e9
LATENCY_MS = 0.18
READY = 1795291266.0
ALPHA, BETA = 3.1e-4, 0.62e9
#: Of a rank that got to its end.
EVENTS: list[dict[str, Any]] = [
    {"event": "ready", "at": READY},
    {"event": "store", "at": READY + 0.1},
    {"event": "joined", "at": READY + 0.4},
    {"event": "size", "at": READY + 0.9, "size_bytes": 1048576},
    {"event": "size", "at": READY + 3.4, "size_bytes": 67108864},
    {"event": "done", "at": READY + 3.5},
]
#: Step, when it began, how long it took.
STEPS = (
    ("static", 0.2, 1.9),
    ("launch", 2.1, 1.6),
    ("mesh", 3.7, 3.1),
    ("collective", 6.8, 5.2),
    ("openmpi", 12.0, 2.9),
    ("facts", 14.9, 1.9),
    ("diagnosis", 16.8, 0.3),
)


def hosts(count: int) -> list[str]:
    """gpu01 to gpu<count>."""
    return [f"gpu{number:02}" for number in range(1, count + 1)]


def healthy(count: int = 8, seed: int = 1) -> Report:
    """A run in which nothing was wrong."""
    dice = random.Random(seed)
    names = hosts(count)

    def links(value: Callable[[], float]) -> dict[str, dict[str, float]]:
        return {one: {two: value() for two in names if two != one} for one in names}

    sizes = [_size(size, count, dice) for size in (4, 4096, 1048576, 16777216, 67108864)]
    return {
        "schema_version": REPORT_VERSION,
        "verdict": "PASSED",
        "headline": f"PASSED: world {count}, {count} nodes, all_reduce over gloo exact in every iteration",
        "run_id": "20261121t200102z-k3x9ab",
        "started": "2026-11-21T20:01:02Z",
        "seconds": 17.1,
        "backend": "gloo",
        "strict": False,
        "members": names,
        "selected": list(names),
        "participants": list(names),
        "world_size": count,
        "hostnames": {name: name for name in names},
        "versions": dict.fromkeys(names, "2.13.0+cu130"),
        "stages": [
            *({"name": name, "result": "passed", "why": ""} for name in ("static", "mesh", "collective")),
            {"name": "openmpi", "result": "passed", "why": _openmpi_words(count)},
        ],
        "findings": [],
        "culprits": {},
        "unexplained": [],
        "sizes": sizes,
        "fit": {"alpha_seconds": ALPHA, "beta_bytes_per_second": BETA},
        "mesh": {one: {two: "ok" for two in names if two != one} for one in names},
        "latency_ms": links(lambda: round(LATENCY_MS * dice.uniform(0.85, 1.4), 3)),
        "bytes_per_second": links(lambda: round(RATE * dice.uniform(0.92, 1.04))),
        "retransmits": links(lambda: 0),
        "ranks": [_rank(number, name) for number, name in enumerate(names)],
        "notes": [f"GPU stages not checked on {listed(names)} (the backend gloo leaves the GPUs alone)"],
        "stack": {name: _stack() for name in names},
        "gpu_verified": [],
        "labels": {name: {"rack": f"r{1 + number // 4}"} for number, name in enumerate(names)},
        "limits": {},
        "times": [_time(*one) for one in STEPS],
        "openmpi": _openmpi(names),
        "origin": {
            "inventory": ["prod"],
            "product_version": "0.1.0",
            "controller": "deploy",
            "started_local": "2026-11-21T21:01:02+01:00",
            "zone": "CET",
        },
    }


def _openmpi_words(count: int) -> str:
    return f"Open MPI 4.1.1, ob1 over tcp, {count} ranks, 4 MiB in 9.2 ms"


def _openmpi(names: list[str]) -> dict[str, Any]:
    ran = {"version": "4.1.1", "pml": "ob1", "btl": "tcp", "last": "done", "wrong": 0}
    times = ((4, 20, 0.00011), (65536, 10, 0.00062), (4194304, 3, 0.0092))
    return {
        "host": names[0],
        "seconds": 1.3,
        "sizes": [dict(zip(("size_bytes", "iterations", "seconds"), one)) for one in times],
        "ranks": [{"rank": rank, "host": host, "hostname": host, **ran} for rank, host in enumerate(names)],
    }


def _time(name: str, begin: float, seconds: float) -> dict[str, Any]:
    return {"name": name, "begin_seconds": begin, "seconds": seconds}


def _size(size: int, world: int, dice: random.Random) -> dict[str, Any]:
    seconds = round((ALPHA + size / BETA) * dice.uniform(0.97, 1.03), 6)
    algbw = bandwidth.algbw_gb_per_s(size, seconds)
    return {
        "size_bytes": size,
        "seconds": seconds,
        "algbw_gb_per_s": round(algbw, 3),
        "busbw_gb_per_s": round(algbw * bandwidth.busbw_factor(world), 3),
        "iterations": 20,
        "low_seconds": round(seconds * 0.99, 6),
        "high_seconds": round(seconds * 1.01, 6),
        "seconds_by_rank": {str(rank): round(seconds * dice.uniform(0.9, 1.0), 6) for rank in range(world)},
    }


def _rank(number: int, host: str) -> dict[str, Any]:
    return {
        "rank": number,
        "host": host,
        "hostname": host,
        "state": "finished",
        "exit_code": 0,
        "events": [dict(one) for one in EVENTS],
        "stderr_tail": "",
    }


def _stack() -> dict[str, str]:
    return {
        "torch": "2.13.0+cu130",
        "the loaded NVIDIA driver": "580.95.05",
        "the NCCL that torch loads": "2.30.7",
        "the running kernel": "6.12.0-170.el10.x86_64",
        "the MTU of the data network": "9000",
    }


def judged(report: Report, findings: list[Finding], headline: str) -> Report:
    """The report with these findings, and the verdict that follows from them."""
    report["findings"] = json.loads(json.dumps([finding.as_dict() for finding in findings]))
    errors = [finding for finding in findings if finding.severity == ERROR]
    for finding in errors:
        for host in finding.hosts:
            report["culprits"][host] = f"{finding.id} {finding.cause}"
    if errors:
        report.update(verdict="FAILED", headline=f"FAILED: {headline}")
    return report


def blocked(report: Report, host: str, result: str = "unreachable") -> Report:
    """One node that nobody reaches: the collective goes on without it."""
    for source, row in report["mesh"].items():
        if source != host:
            row[host] = result
            for key in ("latency_ms", "bytes_per_second", "retransmits"):
                del report[key][source][host]
    report["participants"].remove(host)
    report["world_size"] -= 1
    report["ranks"] = [_rank(number, name) for number, name in enumerate(report["participants"])]
    for size in report["sizes"]:
        size["seconds_by_rank"].pop(str(report["world_size"]))
    report["stages"][1].update(result="failed", why=f"{host} is not reached")
    report["stages"][3]["why"] = _openmpi_words(report["world_size"])
    report["openmpi"] = _openmpi(report["participants"])
    return report


def inbound(host: str, peers: int) -> Finding:
    """What a blocked node is accused of."""
    cause = f"{host} rejects inbound connections on the data network, ports 40000-50000"
    return Finding(
        "GC-NET-001",
        (host,),
        cause,
        "put these ports into the port plan, and bring the firewall of this node to it",
        (
            f"{peers} of {peers} peers",
            "ports 40000-50000 rejected, 55 probes",
            "no rule of a peer blocks outbound connections",
        ),
        Subject("direction", (host,), "inbound", ((40000, 50000),)),
        0.97,
        ("routing: ports 1024-39999 and 50001-65535 are open", "MTU: 64 B to 1 MiB pass on the open ports"),
        {"gpu_cluster": {"gpu_cluster_ports": {"ephemeral": "32768-60999"}}},
        f"ansible-playbook site.yml -i prod --tags cluster_firewall --limit {host}",
        f"{CHECK} --limit gpu01,{host}",
    )


def faulty() -> Report:
    """Eight nodes with three faults: one node, one link, one slow link; the node's collective was left out."""
    report = blocked(healthy(), "gpu03")
    report["mesh"]["gpu02"]["gpu06"] = "stalled"
    for key in ("latency_ms", "bytes_per_second", "retransmits"):
        del report[key]["gpu02"]["gpu06"]
    report["bytes_per_second"]["gpu05"]["gpu07"] = 0.21e9
    report["retransmits"]["gpu05"]["gpu07"] = 143
    report["latency_ms"]["gpu05"]["gpu07"] = 0.71
    report["stack"]["gpu08"]["the running kernel"] = "6.12.0-158.el10.x86_64"
    report["stages"][1]["why"] = "gpu03 is not reached, and gpu02 -> gpu06 loses large packets"
    report["unexplained"] = [{"host": "gpu04", "rank": 2, "text": "UserWarning: something that no table knows"}]
    findings = [
        inbound("gpu03", 7),
        Finding(
            "GC-NET-005",
            ("gpu02", "gpu06"),
            "from gpu02 to gpu06 packets above 1300 bytes get lost: something between them has a smaller MTU",
            "set the same MTU on both nodes and on what lies between them",
            ("1300 B passed, 1500 B stalled, with DF set",),
            Subject(LINK, ("gpu02", "gpu06")),
            0.9,
            ("the packet filter: all ports connect", "the other direction: 1 MiB passes"),
            {"gpu06": {"static_network_interfaces": [{"name": "fab0", "mtu": 9000}]}},
            "ansible-playbook site.yml -i prod --tags static_network --limit gpu02,gpu06",
            f"{CHECK} --limit gpu02,gpu06",
        ),
        Finding(
            "GC-NET-007",
            (),
            "the link gpu05 -> gpu07 is 5.3 times slower than the median of the cluster and sent 143 segments again",
            "look at the cable, transceiver and switch port of both nodes",
            ("0.21 GB/s, the median is 1.13 GB/s",),
            Subject(LINK, ("gpu05", "gpu07")),
            0.8,
            reproduce=f"{CHECK} --limit gpu05,gpu07",
            look='ansible gpu05,gpu07 -i prod --become -m ansible.builtin.command -a "ip -s -s link"',
        ),
        Finding(
            "GC-VER-010",
            ("gpu08",),
            "the running kernel differs: gpu08 has 6.12.0-158.el10.x86_64, 7 of 8 have 6.12.0-170.el10.x86_64",
            "install the same kernel and reboot",
        ),
    ]
    return judged(report, findings, f"{findings[0].cause}. Fix: {findings[0].fix} (and 1 more)")


def limited() -> Report:
    """A healthy run under --limit: two of eight members, with limits of the site."""
    report = healthy(2)
    report["limits"] = {
        "sizes": [{"size_bytes": 67108864, "busbw_gb_per_s_min": 0.5, "milliseconds_max": 250}],
        "links": {"bytes_per_second_min": 5e8, "connect_milliseconds_max": 1, "retransmits_max": 5},
    }
    report["members"] = hosts(8)
    rest = report["headline"].removeprefix("PASSED: ")
    report.update(verdict="NOT VALIDATED", headline=f"NOT VALIDATED, 2 of 8 members: {rest}")
    return report


def lost() -> Report:
    """Two nodes of which one gave no answer: no mesh, no collective."""
    report = healthy(2)
    for key in ("mesh", "latency_ms", "bytes_per_second", "retransmits", "versions", "stack", "hostnames"):
        report[key] = {}
    for key in ("sizes", "ranks", "participants", "notes"):
        report[key] = []
    report.update(fit=None, world_size=0, openmpi={})
    why = "fewer than two nodes are left"
    report["stages"] = [
        {"name": "static", "result": "failed", "why": "gpu02 gave no answer"},
        {"name": "mesh", "result": "skipped", "why": why},
        {"name": "collective", "result": "skipped", "why": why},
        {"name": "openmpi", "result": "skipped", "why": why},
    ]
    cause = "gpu02 gave no answer to the step 'launch'"
    return judged(report, [Finding("GC-HOST-001", ("gpu02",), cause, "see whether gpu02 is up")], cause)


def railed() -> Report:
    """Eight nodes with three rails: one of them has a node that is blocked there, the one of IPv6 lacks a node."""
    report = healthy()
    second, third = (healthy(seed=seed) for seed in (2, 3))
    finding = inbound("gpu03", 7)
    name = "rail 2 (198.51.100.0/24)"
    where = replace(finding.about, rails=(name,))
    finding = replace(finding, cause=f"{name}: {finding.cause}", subject=where)
    blocked(second, "gpu03")
    report["stages"][1].update(result="failed", why="gpu03 is not reached on the second rail")
    for key in rails.OWN:
        del third[key]["gpu08"]
        for row in third[key].values():
            row.pop("gpu08", None)
    report["rails"] = [
        {
            "name": name,
            "family": "IPv4",
            "addresses": {one: f"198.51.100.{number}" for number, one in enumerate(hosts(8), 11)},
            **{key: second[key] for key in rails.OWN},
        },
        {
            "name": "rail 3 (2001:db8::/64)",
            "family": "IPv6",
            "addresses": {one: f"2001:db8::{number}" for number, one in enumerate(hosts(7), 11)},
            **{key: third[key] for key in rails.OWN},
        },
    ]
    return judged(report, [finding], f"{finding.cause}. Fix: {finding.fix}")


def large(count: int = 64) -> Report:
    """Many nodes, of which one is blocked."""
    host = hosts(count)[12]
    finding = inbound(host, count - 1)
    return judged(blocked(healthy(count), host), [finding], finding.cause)


def racks(count: int = 64) -> Report:
    """Many nodes, of which a rack is slow to all others, and one link loses packets."""
    report = healthy(count)
    rack = {name for name in report["members"] if report["labels"][name]["rack"] == "r3"}
    for source, row in report["bytes_per_second"].items():
        for target in row:
            if (source in rack) != (target in rack):
                row[target] = round(row[target] / 3.1)
    report["bytes_per_second"]["gpu05"]["gpu21"] = 0.19e9
    report["retransmits"]["gpu05"]["gpu21"] = 61
    # The order of the inventory is not that of the racks.
    for name in ("members", "selected", "participants"):
        report[name] = report[name][::2] + report[name][1::2]
    return report


def all_samples() -> dict[str, Report]:
    """Every sample by its name."""
    return {
        "healthy": healthy(),
        "faulty": faulty(),
        "limited": limited(),
        "lost": lost(),
        "large": large(),
        "railed": railed(),
    }


EVIL = "\"'><script>alert(1)</script>&amp;\\{{ x }}]]>\x1b[31m\u202e\n"
#: What is no name of a host and no free text: the results of links, an event that is looked for, a time, an id.
FIXED = re.compile(r"(ok|stalled|unreachable|done|\d{4}-\d\d-\d\dT.*|GC-[A-Z]+-\d+)?\Z")


def hostile(value: Any) -> Any:
    """The same report with every host name and free text made as dangerous as it can be."""
    if isinstance(value, dict):
        return {
            name if name in SCHEMA_WORDS or name.isdigit() else EVIL + name: hostile(one) for name, one in value.items()
        }
    if isinstance(value, list):
        return [hostile(one) for one in value]
    if isinstance(value, str) and value not in SCHEMA_WORDS and not FIXED.match(value):
        return EVIL + value
    return value


def _words(part: Any) -> Iterator[str]:
    """The keys and the choices that a schema names."""
    if isinstance(part, dict):
        yield from part.get("properties", {})
        yield from part.get("enum", [])
        for one in part.values():
            yield from _words(one)


SCHEMA_WORDS = set(_words(schema.SCHEMA))


def closed(part: Any) -> Any:
    """The schema, or a part of it, that allows no key that it does not name."""
    if isinstance(part, dict):
        shut = {"additionalProperties": False} if "properties" in part else {}
        return shut | {name: closed(one) for name, one in part.items()}
    return [closed(one) for one in part] if isinstance(part, list) else part


def written() -> Iterator[tuple[Path, str]]:
    """The files that come from here, with what belongs into them."""
    yield project.ROOT / SCHEMA_FILE, schema.text()
    yield project.ROOT / EXAMPLE_FILE, files.contents(faulty())[files.JSON]
    guide = project.ROOT / GUIDE
    before, rest = guide.read_text().split(BEGIN)
    after = rest.split(END)[1]
    rows = "".join(f"| `{prometheus.PREFIX}{name}` | {text} |\n" for name, text in prometheus.METRICS.items())
    yield guide, f"{before}{BEGIN}| metric | meaning |\n| --- | --- |\n{rows}{END}{after}"


def main() -> None:
    """Write them."""
    for path, text in written():
        path.write_text(text)


if __name__ == "__main__":
    main()
