# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cables: two bridges on this machine, and two veth pairs per node. podman's own networking is not used."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

from lab.settings import (
    FABRIC_BRIDGE,
    MANAGEMENT_BRIDGE,
    MANAGEMENT_HOST_ADDRESS,
    OUTSIDER_LINK,
    PREFIX,
    Node,
)
from lab.shell import LabError, run, say

INTERFACES = Path("/sys/class/net")


def links() -> list[str]:
    """The lab's interfaces on this machine."""
    return sorted(path.name for path in INTERFACES.glob(f"{PREFIX}-*"))


def _batch(commands: Iterable[str]) -> None:
    run(["ip", "-batch", "-"], stdin="".join(f"{command}\n" for command in commands).encode())


def _refuse_taken_network() -> None:
    network = IPv4Interface(MANAGEMENT_HOST_ADDRESS).network
    for interface in json.loads(run(["ip", "-json", "-4", "address"]).stdout):
        for address in interface.get("addr_info", []):
            if IPv4Address(address["local"]) in network and interface["ifname"] != MANAGEMENT_BRIDGE:
                raise LabError(
                    f"the lab's management network {network} is taken: {interface['ifname']} has the address "
                    f"{address['local']}; remove it or run the lab on another machine"
                )


def ensure_bridges() -> bool:
    """Make the bridges that are missing. The fabric bridge has no address: this machine is not on that network."""
    commands = []
    if not (INTERFACES / MANAGEMENT_BRIDGE).exists():
        _refuse_taken_network()
        commands += [
            f"link add {MANAGEMENT_BRIDGE} type bridge stp_state 0 forward_delay 0",
            f"link set {MANAGEMENT_BRIDGE} addrgenmode none",
            f"address add {MANAGEMENT_HOST_ADDRESS} dev {MANAGEMENT_BRIDGE}",
            f"link set {MANAGEMENT_BRIDGE} up",
        ]
    if not (INTERFACES / FABRIC_BRIDGE).exists():
        commands += [
            f"link add {FABRIC_BRIDGE} type bridge stp_state 0 forward_delay 0",
            f"link set {FABRIC_BRIDGE} addrgenmode none",
            f"link set {FABRIC_BRIDGE} up",
        ]
    if commands:
        _batch(commands)
        _warn_of_bridge_filter()
    return bool(commands)


def _warn_of_bridge_filter() -> None:
    switch = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
    if not switch.exists() or switch.read_text().strip() == "0":
        return
    if "hook forward" in run(["nft", "list", "ruleset"], check=False).stdout:
        say(
            "this machine filters bridged traffic (net.bridge.bridge-nf-call-iptables = 1): if the nodes cannot "
            "reach each other, its FORWARD rules are why"
        )


def attach(node: Node, pid: int) -> None:
    """Plug both cables into a node whose network namespace belongs to process `pid`."""
    detach(node)
    commands = []
    cables = zip(node.links, node.macs, ("eth0", "fab0"), (MANAGEMENT_BRIDGE, FABRIC_BRIDGE), strict=True)
    for link, mac, inside, bridge in cables:
        commands += [
            f"link add {link} type veth peer name {inside} address {mac} netns {pid}",
            f"link set {link} addrgenmode none",
            f"link set {link} master {bridge} up",
        ]
    _batch(commands)


def plug(node: Node, pid: int, interface: str, *, pull: bool) -> bool:
    """Give a node a further card on the fabric, or pull it out again; whether there was anything to do."""
    link = f"{node.links[1]}-{interface}"
    if (INTERFACES / link).exists() != pull:
        return False
    if pull:
        remove_links([link])
        return True
    _batch(
        [
            f"link add {link} type veth peer name {interface} netns {pid}",
            f"link set {link} addrgenmode none",
            f"link set {link} master {FABRIC_BRIDGE} up",
        ]
    )
    return True


def detach(node: Node) -> None:
    remove_links([link for link in node.links if (INTERFACES / link).exists()])


def attached(node: Node) -> bool:
    """Both cables are there and plugged into their bridges."""
    return all((INTERFACES / link / "master").exists() for link in node.links)


def remove_links(names: Sequence[str]) -> None:
    """A veth end may vanish by itself at any moment, with the namespace of its other end."""
    for name in names:
        done = run(["ip", "link", "delete", name], check=False)
        if done.returncode != 0 and (INTERFACES / name).exists():
            raise LabError(f"cannot remove the network interface {name}: {done.stderr.strip()}")


def with_outsider(address: str, command: Callable[[list[str]], int]) -> int:
    """Call `command` with the words that put a program on a host of the fabric that is no member of the cluster.

    The namespace has no name and no file: it lives as long as its holder, which ends when this process does.
    """
    if not (INTERFACES / FABRIC_BRIDGE).exists():
        raise LabError("the lab is not up, so there is no fabric to join: run `make lab`")
    if (INTERFACES / OUTSIDER_LINK).exists():
        raise LabError(f"another outsider is running (its cable is {OUTSIDER_LINK}): there can be one at a time")
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo ready; read -r _"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None and holder.stdout is not None
    try:
        if holder.stdout.readline() != b"ready\n":
            raise LabError("cannot make a network namespace for the outsider: `unshare --net` failed")
        enter = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
        _batch(
            [
                f"link add {OUTSIDER_LINK} type veth peer name fab0 netns {holder.pid}",
                f"link set {OUTSIDER_LINK} addrgenmode none",
                f"link set {OUTSIDER_LINK} master {FABRIC_BRIDGE} up",
            ]
        )
        for words in (f"address add {address} dev fab0", "link set lo up", "link set fab0 up"):
            run([*enter, "ip", *words.split()])
        return command(enter)
    finally:
        remove_links([name for name in (OUTSIDER_LINK,) if (INTERFACES / name).exists()])
        holder.stdin.close()
        holder.wait(timeout=10)
