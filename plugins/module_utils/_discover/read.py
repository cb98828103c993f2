# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module discover_node does, for the module and for the program that is sent in its place.  Reads only."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import iproute
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import ssh_connection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover import arp, lldp
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import ssh
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node import driver, pci, rdma, tree
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.gather import (
    Node,
    ask_gpus,
    network_cards,
)

SPEC: dict[str, Any] = {"probe": {"type": "list", "elements": "str", "default": []}}
#: What the result may hold.
RESULTS = ("changed", "failed", "msg", "machine")
#: A machine with more interfaces that matter is not described to the end.
MOST_CARDS = 512
#: Interfaces that are made of cards, as of ``ip link add``.
KINDS = ("bond", "bridge", "team", "vlan")
_RATE = re.compile(r"(\d+)(?:\.\d+)? Gb/sec")
_MEMORY = re.compile(r"^MemTotal:\s+(\d+) kB", re.MULTILINE)
_PRETTY = re.compile(r'^PRETTY_NAME="?([^"\n]*)"?$', re.MULTILINE)


def run_step(_run: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Read and answer.  params: as ``SPEC`` has them."""
    return {"changed": False, "machine": look(Node(), [str(one) for one in params["probe"]])}


def look(node: Node, targets: Sequence[str]) -> dict[str, Any]:
    """All that the inventory could depend on.  targets: IPv4 addresses of other machines, for cards without address."""
    memory = _MEMORY.search(node.read("proc/meminfo"))
    pretty = _PRETTY.search(node.read("etc/os-release"))
    space = os.statvfs(node.root)
    connection = ssh_connection.current()
    ports = ssh.used(node.ask(*ssh.LISTENERS).out, node.ask(*ssh.SOCKETS).out, connection.port)
    return {
        "hostname": os.uname().nodename,
        "system": pretty.group(1) if pretty else "",
        "kernel": os.uname().release,
        "architecture": os.uname().machine,
        "python": platform.python_version(),
        "system_python": tree.exists(node.root, "usr/bin/python3"),
        "user_id": os.geteuid(),
        "became": os.geteuid() == 0 and os.environ.get("SUDO_USER", "root") != "root",
        "sudo": sudo(node),
        "address": connection.address,
        "ssh_ports": sorted({*ports.listened, connection.port} - {0}),
        "memory_bytes": int(memory.group(1)) << 10 if memory else 0,
        "disk_bytes": space.f_blocks * space.f_frsize,
        **networks(node),
        "cards": cards(node, targets),
        "gpus": gpus(node),
    }


def sudo(node: Node) -> str:
    """Whether the login becomes root: ``root``, ``yes``, ``password`` or ``no``."""
    if os.geteuid() == 0:
        return "root"
    answer = node.ask("sudo", "-n", "true")
    if not answer.problem:
        return "yes"
    return "password" if "password" in answer.problem else "no"


def networks(node: Node) -> dict[str, Any]:
    """The card of the default route, and the networks that this machine has a route to."""
    table = [line.split() for line in node.ask("ip", "-4", "route", "show").out.splitlines()]
    default = next((line for line in table if line[:1] == ["default"] and "dev" in line[:-1]), [])
    return {
        "default_card": default[default.index("dev") + 1] if default else "",
        "routes": [line[0] for line in table if line and "/" in line[0]][:MOST_CARDS],
    }


def gpus(node: Node) -> dict[str, Any]:
    """The GPUs on the PCI bus, and what nvidia-smi says of them."""
    devices = pci.gpus(tree.nvidia_devices(node.root))
    names = pci.device_names(node.read(pci.NAMES), [(one.vendor, one.device) for one in devices]) if devices else {}
    version, _kind = driver.parse_proc_version(node.read(driver.PROC_VERSION))
    shown, _cuda, problem = ask_gpus(node, {}) if version else ([], "", "")
    return {
        "devices": [names.get((one.vendor, one.device), f"{one.vendor}:{one.device}") for one in devices],
        "driver": version,
        "models": [one["model"] for one in shown],
        "problem": problem,
    }


def cards(node: Node, targets: Sequence[str]) -> list[dict[str, Any]]:
    """The interfaces that matter here."""
    try:
        links = iproute.links(node.ask("ip", "-details", "-json", "address", "show").out)
    except ValueError:
        links = []
    known = {one["name"]: one for one in network_cards(node)}
    switches = lldp.neighbours(node.ask("lldpctl", "-f", "json").out)
    devices = rdma_devices(node)
    links = [link for link in links if matters(node, link)][:MOST_CARDS]
    found = [_card(node, link, known.get(link.name, {}), switches, devices) for link in links]
    silent = {
        card["name"]: card["mac"]
        for card, link in zip(found, links)
        if link.type == "ether" and card["up"] and card["carrier"] and not link.master and link.kind != "bridge"
        if not any(one.scope == "global" and ":" not in one.local for one in link.addresses)
    }
    heard = arp.probe(silent, targets) if os.geteuid() == 0 else {}
    return [{**card, "heard": heard.get(card["name"], [])} for card in found]


def matters(node: Node, link: iproute.Link) -> bool:
    """Whether it is a card, or made of cards.  In a container a card is one end of a pair."""
    made = link.kind in KINDS or (link.kind == "veth" and not link.master)
    return made or tree.exists(node.root, f"sys/class/net/{link.name}/device")


def _card(
    node: Node,
    link: iproute.Link,
    known: Mapping[str, Any],
    switches: Mapping[str, tuple[str, str]],
    devices: Mapping[str, tuple[str, str, int]],
) -> dict[str, Any]:
    """One interface."""
    device, layer, rate = devices.get(link.name, ("", "", 0))
    switch, port = switches.get(link.name, ("", ""))
    return {
        "name": link.name,
        "type": link.type,
        "kind": link.kind,
        "driver": str(known.get("driver") or ""),
        "device": tree.exists(node.root, f"sys/class/net/{link.name}/device"),
        "mac": link.mac,
        "mtu": link.mtu,
        "up": "UP" in link.flags,
        "carrier": "LOWER_UP" in link.flags and "NO-CARRIER" not in link.flags,
        # An InfiniBand card has no speed in sysfs; a rate of its RDMA device is one of all lanes.
        "speed_mbit": known.get("speed_mbit") or rate * 1000,
        "master": link.master,
        "parent": link.parent,
        "addresses": [one.cidr for one in link.addresses if one.scope == "global" and not one.duplicated],
        "rdma": device,
        "rdma_layer": layer,
        "switch": switch,
        "port": port,
    }


def rdma_devices(node: Node) -> dict[str, tuple[str, str, int]]:
    """Interface to its RDMA device, that one's link layer, and its rate in Gbit/s."""
    found: dict[str, tuple[str, str, int]] = {}
    for name in tree.names(node.root, rdma.DEVICES):
        folder = f"{rdma.DEVICES}/{name}"
        rate = _RATE.search(node.read(f"{folder}/ports/1/rate"))
        layer = node.read(f"{folder}/ports/1/link_layer")
        for card in tree.names(node.root, f"{folder}/device/net"):
            found.setdefault(card, (name, layer, int(rate.group(1)) if rate else 0))
    return found
