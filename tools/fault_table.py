# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write what the fault tests measured into the table of docs/faults.md: `make faults`, then this.

What was not measured this time stays as it is: the tests of one file can be run alone.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import project

RESULTS = project.ROOT / "tests" / "output" / "faults.json"
PAGE = project.ROOT / "docs" / "faults.md"
START = "<!-- faults: start, written by tools/fault_table.py -->"
END = "<!-- faults: end -->"
TEXT_LENGTH = 160
#: The two sides of a row, as the tests call them.
WHO = ("torch", "we")
#: What lies between two cells; in a text it is escaped.
BAR = re.compile(r"(?<!\\)\|")
#: Name of a result to what the table calls it, in its order.
TITLES = {
    "none": "no fault",
    "drop": "a node drops all inbound data connections",
    "reject": "a node rejects them, as firewalld does",
    "reset": "a node resets them",
    "highest": "the node with the highest address drops them",
    "outbound": "a node drops what it opens itself",
    "half-drop": "a node drops half of the ephemeral range",
    "half-reject": "a node rejects half of the ephemeral range",
    "everywhere": "all nodes open the rendezvous ports only",
    "link": "one node drops the connections of one other",
    "between": "a switch drops half of the ephemeral range of a node",
    "mtu": "packets of more than 1400 bytes to a node vanish",
    "loopback": "a node has 127.0.1.1 for its own name",
    "foreign": "another service answers on half of the ephemeral range of a node",
    "duplicate": "another machine has the address of a node",
    "interface": "the inventory names an interface that a node does not have",
    "gloo": "the environment of jobs on a node names an interface for gloo that it does not have",
    "down": "the card of a node is down",
    "carrier": "the cable of a node is unplugged",
    "address-gone": "the card of a node has lost its address",
    "prefix": "a node has another prefix length",
    "no-route": "a node has lost the route to the data network",
    "blackhole": "a node has a blackhole route to one other",
    "prohibit": "a node has a prohibit or unreachable route to one other",
    "rule": "a policy rule of a node forbids packets to one other",
    "rule-table": "a policy rule of a node sends what comes from its own address to a blackhole",
    "source": "a node takes another source address towards the others",
    "neighbour": "a node has a fixed neighbour entry with a wrong hardware address",
    "arp-off": "ARP is turned off on the card of a node",
    "arp-ignore": "a node answers no ARP request",
    "xfrm": "an IPsec policy of a node blocks packets to one other",
    "xdp": "an eBPF program on the card of a node drops TCP",
    "netdev": "a node drops connections before its packet filter sees them (netdev hook)",
    "legacy": "a node drops connections by rules of the old iptables",
    "syn-limit": "a node takes one new connection in a second",
    "connection-count": "a node rejects more than one connection at a time",
    "stateless": "a rule without connection tracking drops the answers as well",
    "pair": "one node drops all packets of one other",
    "slow": "the cable of a node is slow",
    "slow-2": "of two nodes, one has a slow cable",
    "slow-3": "of three nodes, one has a slow cable",
    "slow-outbound-3": "of three nodes, one sends slowly",
    "slower-2": "the network of two nodes is slow, and was not in the run before",
    "slower-3": "the network of three nodes is slow, and was not in the run before",
    "lossy-link": "one packet of seven from one node to another is lost",
    "lossy-node": "one packet of seven to a node is lost",
    "limited-link": "what one node gets from another is limited to 0.5 MB/s",
    "requests-node-2": "of two nodes, one loses three of ten connection requests",
    "requests-node-3": "of three nodes, one loses three of ten connection requests",
    "requests-node-4": "of four nodes, one loses three of ten connection requests",
    "requests-link": "three of ten connection requests from one node to another are lost",
    "requests-outbound": "a node loses three of ten of its own connection requests",
    "answers-switch": "the switch loses three of ten answers to the connection requests of a node",
    "requests-limit": "a node takes eight new connections a second",
    "request-once": "one single connection request from one node to another is lost",
    "drift-rmem-3": "of three nodes, one has net.ipv4.tcp_rmem = 4096 4096 4096",
    "drift-rmem-2": "of two nodes, one has net.ipv4.tcp_rmem = 4096 4096 4096",
    "drift-wmem": "of three nodes, one has net.ipv4.tcp_wmem = 4096 4096 4096",
    "drift-scaling": "of two nodes, one has no TCP window scaling",
    "drift-retries": "of three nodes, one has net.ipv4.tcp_syn_retries = 1",
    "drift-somaxconn": "of two nodes, one has net.core.somaxconn = 16",
    "drift-offload": "of three nodes, one has no segmentation offload (tso)",
    "drift-mtu": "of two nodes, one has another MTU than the inventory says",
    "drift-two": "of two nodes, one has no TCP timestamps",
    "taken": "another program listens on a rendezvous port of a node",
    "rack": "the uplink of a rack is down",
    "five": "five of these at once, on eight nodes",
    "rank-killed": "a rank is killed",
    "rank-frozen": "a rank is stopped",
    "worker-killed-waiting": "the worker of a node is killed before the collective",
    "worker-killed-probing": "the worker of a node is killed while the ports are probed",
    "worker-killed-running": "the worker of a node is killed in the collective",
    "worker-killed-pairs": "the worker of a node is killed while pairs of nodes are tried",
    "node-paused-waiting": "a node hangs before the collective",
    "node-paused-probing": "a node hangs while the ports are probed",
    "node-paused-running": "a node hangs in the collective",
    "node-paused-pairs": "a node hangs while pairs of nodes are tried",
    "disk-full-before": "/run of a node is full",
    "disk-full-waiting": "it fills before the collective",
    "disk-full-probing": "it fills while the ports are probed",
    "disk-full-running": "it fills in the collective",
    "controller-killed-waiting": "the controller is killed before the collective",
    "controller-killed-probing": "the controller is killed while the ports are probed",
    "controller-killed-running": "the controller is killed in the collective",
    "controller-killed-pairs": "the controller is killed while pairs of nodes are tried",
    "torch-raises": "a torch.py on PYTHONPATH of a node raises an exception",
    "torch-empty": "it is empty",
    "torch-group": "it raises a group of exceptions",
    "torch-syntax": "it has a syntax error",
    "torch-leaves": "it calls sys.exit with a text",
    "torch-silent": "it calls os._exit(0)",
    "torch-crash": "it ends with a segmentation fault",
    "torch-hangs": "it sleeps for ever",
    "random-shadowed": "a random.py on PYTHONPATH of a node stands in the place of Python's",
    "json-shadowed": "a json.py does",
    "numpy-shadowed": "a numpy.py there raises an exception",
    "sitecustomize": "a sitecustomize.py there calls os._exit(3)",
    "python-home": "the environment of jobs on a node sets PYTHONHOME to an empty folder",
    "preload": "it sets LD_PRELOAD to a library that breaks the ranks",
    "64-nodes": "no fault, 64 nodes, 5 forks",
}


def cell(result: Mapping[str, Any]) -> str:
    """One result: its text, short, and its time."""
    if not result:
        return ""
    # The inventory of namespaces is a file that is gone when the test has ended.
    text = re.sub(r" -i \S+", " -i <inventory>", str(result["text"])).replace("|", "\\|")
    short = text if len(text) <= TEXT_LENGTH else f"{text[: TEXT_LENGTH - 3]}..."
    return f"{short} ({result['seconds']:g} s)"


def rows(page: str) -> dict[str, list[str]]:
    """What the table of a page has: the title of each row, and its cells for torch and for the check."""
    lines = page.partition(START)[2].partition(END)[0].splitlines()
    cells = [[one.strip() for one in BAR.split(line)[1:-1]] for line in lines]
    return {one[0]: one[1:] for one in cells if one and one[0] in TITLES.values()}


def table(results: Mapping[str, Mapping[str, Any]], before: Mapping[str, list[str]]) -> str:
    """The table, one row for each fault that was measured.  before: the ``rows`` that it has so far."""
    lines = ["| fault | torch alone | the check |", "| --- | --- | --- |"]
    for name, title in TITLES.items():
        had = before.get(title, ["", ""])
        now = [cell(results.get(name, {}).get(who, {})) or old for who, old in zip(WHO, had, strict=True)]
        if any(now):
            lines.append(f"| {title} | {now[0]} | {now[1]} |")
    return "\n".join(lines)


def with_table(page: str, text: str) -> str:
    """The page with this table between its markers."""
    before, start, rest = page.partition(START)
    _old, end, after = rest.partition(END)
    if not start or not end:
        sys.exit(f"{PAGE.name} has no lines {START!r} and {END!r}")
    return f"{before}{START}\n{text}\n{END}{after}"


def main(results: Path = RESULTS, page: Path = PAGE) -> None:
    """Write the page."""
    if not results.exists():
        sys.exit(f"There is nothing to write: {results} is made by `make faults`.")
    text = page.read_text()
    page.write_text(with_table(text, table(json.loads(results.read_text()), rows(text))))


if __name__ == "__main__":
    main()
