# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine as it described itself, as values that others can rely on.  Pure.

Root of a machine decides what its Python answers: texts are cleaned and cut, names and addresses are such or left out,
and an answer of another shape is none.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    Interface,
    address_of,
    interface_of,
    is_interface_name,
    not_a_host,
    port_of,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.read import MOST_CARDS
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import gpus

ERR_ODD = "its answer is not one of this collection: look at ansible_python_interpreter and at that program"
#: No text of a machine is longer in a sentence or a comment.
MOST_CHARACTERS = 80
#: Mbit/s; faster than any card.
MOST_SPEED = 10_000_000
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_RDMA = re.compile(r"[A-Za-z0-9_.-]{1,63}")
#: Cards that lead to the management controller of the machine itself.
_CONTROLLERS = ("cdc_ether", "cdc_ncm", "cdc_eem", "cdc_subset", "rndis_host", "usbnet")
#: Kinds of interfaces that can carry the data network; a card has none.
_KINDS = ("", "bond", "team", "vlan")


@dataclass(frozen=True)
class Card:
    """A network card, or a bond or VLAN of cards.  speed: in Mbit/s, 0 where nobody knows it."""

    name: str
    kind: str = ""
    driver: str = ""
    device: bool = True
    mac: str = ""
    mtu: int = 0
    up: bool = True
    carrier: bool = True
    speed: int = 0
    master: str = ""
    parent: str = ""
    addresses: tuple[Interface, ...] = ()
    rdma: str = ""
    infiniband: bool = False
    heard: frozenset[str] = frozenset()
    switch: str = ""
    port: str = ""

    @property
    def usable(self) -> bool:
        """Whether it has a link."""
        return self.up and self.carrier

    @property
    def address(self) -> Interface | None:
        """Its first address, of IPv4 before IPv6."""
        return min(self.addresses, key=lambda one: one.version, default=None)


@dataclass(frozen=True)
class Machine:
    """A machine of the inventory.  host: its name there; where: where ssh reaches it; address: the one that ssh found.

    cards: those that can carry the data network.  routes: networks that addresses must not be taken from.
    """

    host: str
    where: str
    hostname: str
    system: str
    kernel: str
    architecture: str
    python: str
    system_python: bool
    user_id: int
    became: bool
    sudo: str
    ssh_ports: tuple[int, ...]
    memory: int
    disk: int
    ssh_card: str
    cards: tuple[Card, ...]
    controllers: tuple[str, ...]
    routes: tuple[str, ...]
    gpus: int
    gpu_model: str
    gpu_driver: str
    gpu_problem: str


def machine(host: str, where: str, data: Any) -> Machine:
    """The machine in an answer of the module discover_node; ValueError where it is no such answer."""
    try:
        return _machine(host, where, data)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(ERR_ODD) from error


def _machine(host: str, where: str, data: Mapping[str, Any]) -> Machine:
    found = [one for one in (_card(entry) for entry in data["cards"][:MOST_CARDS]) if one is not None]
    address = address_of(data["address"])
    holding = [one.name for one in found if address is not None and address in [own.ip for own in one.addresses]]
    physical = any(one.device for one in found)
    cards = [one for one in found if not one.master and _carries(one, physical)]
    devices = [_text(one) for one in data["gpus"]["devices"][: gpus.MOST]]
    models = [_text(one) for one in data["gpus"]["models"][: gpus.MOST]]
    networks = [str(own.network) for one in found for own in one.addresses if own.version == 4]
    return Machine(
        host=host,
        where=where,
        hostname=_text(data["hostname"]),
        system=_text(data["system"]),
        kernel=_text(data["kernel"]),
        architecture=_text(data["architecture"]),
        python=_text(data["python"]),
        system_python=bool(data["system_python"]),
        user_id=_number(data["user_id"]),
        became=bool(data["became"]),
        sudo=_text(data["sudo"]),
        ssh_ports=tuple(sorted({port for port in map(port_of, data["ssh_ports"][:MOST_CARDS]) if port is not None})),
        memory=_number(data["memory_bytes"]),
        disk=_number(data["disk_bytes"]),
        ssh_card=next(iter(holding), _text(data["default_card"])),
        cards=tuple(cards),
        controllers=tuple(one.name for one in found if one.driver in _CONTROLLERS),
        routes=tuple(dict.fromkeys([*networks, *(one for one in map(_network, data["routes"][:MOST_CARDS]) if one)])),
        gpus=len(devices),
        gpu_model=next(iter(models or devices), ""),
        gpu_driver=_text(data["gpus"]["driver"]),
        gpu_problem=_text(data["gpus"]["problem"]),
    )


def _carries(card: Card, physical: bool) -> bool:
    """Whether the data network could use it.  A container has no card with a device, and ends of pairs instead."""
    if card.driver in _CONTROLLERS:
        return False
    if card.kind == "":
        return card.device
    return card.kind in _KINDS or (card.kind == "veth" and not physical)


def _card(entry: Mapping[str, Any]) -> Card | None:
    name = entry["name"]
    if not is_interface_name(name):
        return None
    mac = str(entry["mac"])
    rdma = str(entry["rdma"])
    return Card(
        name=str(name),
        kind=_text(entry["kind"]),
        driver=_text(entry["driver"]),
        device=bool(entry["device"]),
        mac=mac if _MAC.fullmatch(mac) else "",
        mtu=_number(entry["mtu"]),
        up=bool(entry["up"]),
        carrier=bool(entry["carrier"]),
        speed=min(_number(entry["speed_mbit"]), MOST_SPEED),
        master=_text(entry["master"]),
        parent=_text(entry["parent"]),
        addresses=tuple(one for one in map(_address, entry["addresses"][:MOST_CARDS]) if one is not None),
        rdma=rdma if _RDMA.fullmatch(rdma) else "",
        infiniband=entry["type"] == "infiniband" or entry["rdma_layer"] == "InfiniBand",
        heard=frozenset(one for one in map(str, entry["heard"][:MOST_CARDS]) if _MAC.fullmatch(one)),
        switch=_text(entry["switch"]),
        port=_text(entry["port"]),
    )


def _address(text: Any) -> Interface | None:
    found = interface_of(text)
    return found if found is not None and not not_a_host(found.ip) else None


def _network(text: Any) -> str:
    try:
        return str(ipaddress.IPv4Network(text)) if isinstance(text, str) else ""
    except ValueError:
        return ""


def _text(value: Any) -> str:
    return sanitize.one_line(value)[:MOST_CHARACTERS]


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise TypeError(value)
    return value
