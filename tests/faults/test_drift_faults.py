# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that drifted on one node: it is named, and the command that is printed mends it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import project
import pytest
import results
from checking import check
from net_cluster import INTERFACE, NetCluster

#: Key, value, the number of nodes, and the row of the table.
SYSCTLS = (
    ("net.ipv4.tcp_rmem", "4096 4096 4096", 3, "drift-rmem-3"),
    ("net.ipv4.tcp_rmem", "4096 4096 4096", 2, "drift-rmem-2"),
    ("net.ipv4.tcp_wmem", "4096 4096 4096", 3, "drift-wmem"),
    ("net.ipv4.tcp_window_scaling", "0", 2, "drift-scaling"),
    ("net.ipv4.tcp_syn_retries", "1", 3, "drift-retries"),
    ("net.core.somaxconn", "16", 2, "drift-somaxconn"),
)
#: ethtool(8) may not be there: ETHTOOL_STSO and the value, through a struct ifreq.
SWITCH = """
import ctypes, fcntl, socket, struct, sys
value = bytearray(struct.pack("=II", 0x1F, int(sys.argv[2])))
kept = (ctypes.c_char * len(value)).from_buffer(value)
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(asking, 0x8946, struct.pack("16sP16x", sys.argv[1].encode(), ctypes.addressof(kept)))
"""


@pytest.fixture(scope="module")
def nets() -> Iterator[dict[int, NetCluster]]:
    with NetCluster(2) as two, NetCluster(3) as three:
        yield {2: two, 3: three}


def drifted(net: NetCluster, *arguments: str) -> tuple[list[dict[str, Any]], float]:
    ended = check(net, *arguments)
    assert ended.code == 0 and ended.report["verdict"] != "FAILED", ended.text
    return [one for one in ended.report["findings"] if one["id"] == "GC-NODE-024"], ended.seconds


@pytest.mark.parametrize(("key", "value", "count", "title"), SYSCTLS, ids=[one[3] for one in SYSCTLS])
def test_a_sysctl_of_one_node(
    nets: dict[int, NetCluster], rng: random.Random, key: str, value: str, count: int, title: str
) -> None:
    net = nets[count]
    name = rng.choice(net.names)
    print(f"{key} = {value} on {name} of {count}")
    before = net.run(name, "sysctl", "-n", key).strip()
    net.run(name, "sysctl", "-w", f"{key}={value}")
    try:
        (found,), seconds = drifted(net, "-e", '{"cluster_check_sizes_bytes": [4096]}')
        assert found["severity"] == "warning" and found["hosts"] == [name], found
        assert f"settings of {name} differ: {key} is {value}, " in found["cause"], found
        results.record(title, "we", seconds, found["cause"])
        subprocess.run(
            found["command"], shell=True, check=True, cwd=project.ROOT, env=project.tool_environment(), timeout=60
        )
        assert net.run(name, "sysctl", "-n", key).split() == before.split()
        assert drifted(net, "--check")[0] == []
    finally:
        net.run(name, "sysctl", "-w", f"{key}={before}")


def test_an_offload_of_one_node(nets: dict[int, NetCluster], rng: random.Random) -> None:
    net = nets[3]
    name = rng.choice(net.names)
    print(f"no segmentation offload on {name}")
    net.run(name, sys.executable, "-c", SWITCH, INTERFACE, "0")
    try:
        (found,), seconds = drifted(net, "--check")
        assert found["hosts"] == [name], found
        assert f"tso is off on {INTERFACE}, 2 of 3 nodes have on" in found["cause"], found
        assert f"ethtool -K {INTERFACE} tso on" in found["command"], found
        results.record("drift-offload", "we", seconds, found["cause"])
    finally:
        net.run(name, sys.executable, "-c", SWITCH, INTERFACE, "1")


def test_the_mtu_of_one_of_two_nodes(nets: dict[int, NetCluster], rng: random.Random, tmp_path: Path) -> None:
    """Nobody is in the majority; the inventory tells which one it is."""
    net = nets[2]
    name = rng.choice(net.names)
    print(f"{name} has an MTU of 1400, the inventory says 1500")
    hosts = {
        one: {
            "static_network_interfaces": [
                {"name": INTERFACE, "addresses": [f"{net.node(one).address}/24"], "mtu": 1500}
            ]
        }
        for one in net.names
    }
    overlay = tmp_path / "mtu.json"
    overlay.write_text(json.dumps({"gpu_cluster": {"hosts": hosts}}))
    net.run(name, "ip", "link", "set", INTERFACE, "mtu", "1400")
    try:
        ended = check(net, "--check", "-i", str(overlay))
        (found,) = ended.report["findings"]
        assert (found["id"], found["hosts"]) == ("GC-NODE-008", [name]), ended.text
        assert f"the MTU of {INTERFACE} on {name} is 1400 bytes, the inventory says 1500" in found["cause"], found
        results.record("drift-mtu", "we", ended.seconds, found["cause"])
    finally:
        net.run(name, "ip", "link", "set", INTERFACE, "mtu", "1500")


def test_of_two_nodes_that_differ_nobody_is_accused(nets: dict[int, NetCluster], rng: random.Random) -> None:
    net = nets[2]
    name = rng.choice(net.names)
    print(f"no timestamps on {name}")
    net.run(name, "sysctl", "-w", "net.ipv4.tcp_timestamps=0")
    try:
        (found,), seconds = drifted(net, "--check")
        assert found["hosts"] == [] and "net.ipv4.tcp_timestamps is " in found["cause"], found
        assert f"0 on {name}" in found["cause"], found
        results.record("drift-two", "we", seconds, found["cause"])
    finally:
        net.run(name, "sysctl", "-w", "net.ipv4.tcp_timestamps=1")
