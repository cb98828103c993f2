# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's network is now, out of four commands and some files. Pure: their texts in, a ``NodeState`` out.

The module runs ``COMMANDS``, reads the files that ``PATTERNS`` match and lists those that ``LISTED`` match. Only when
``plan.details_needed`` says so, it runs one command more: ``details_command``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import iproute
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import address_of
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import ifcfg, keyfile, rails

#: By key of ``outputs``: the arguments, without the path of the program. All of them only read.
COMMANDS: dict[str, tuple[str, ...]] = {
    "links": ("ip", "-j", "-d", "address"),
    "routes4": ("ip", "-j", "-4", "route", "show", "default"),
    "routes6": ("ip", "-j", "-6", "route", "show", "default"),
    "active": ("nmcli", "-t", "-f", "UUID,DEVICE,TYPE", "connection", "show", "--active"),
}
#: The files that are read. Of the keyfiles only ours: those of others may hold passwords. One that others may read is
#: not seen by NetworkManager: its text is empty here.
PATTERNS: tuple[str, ...] = (
    f"{keyfile.FOLDER}/{keyfile.PREFIX}*{keyfile.SUFFIX}",
    *ifcfg.PATTERNS,
    rails.SYSCTL_PATH,
    *(f"/proc/sys/net/ipv4/conf/*/{key}" for key, _value, _reason in rails.SYSCTLS),
)
#: The files of which only the names count.
LISTED: tuple[str, ...] = ("/etc/firewalld/zones/*.xml", "/usr/lib/firewalld/zones/*.xml", *ifcfg.LISTED)

_DETAILS = "connection.uuid,connection.autoconnect,connection.zone,ipv4.method,ipv6.method"
#: Its active connection stands at the device below it, which has a profile of its own.
_VPN = "vpn"


@dataclass(frozen=True)
class Link:
    """One interface as the kernel has it.

    ``kind`` is empty for a card, ``mac`` the permanent hardware address where there is one, ``addresses`` those that
    are in force (canonical, with prefix length). ``max_mtu`` 0: the driver names no limit. ``master`` is the bond or
    bridge that it is a port of, ``parent`` and ``vlan_id`` are set for a VLAN.
    """

    name: str
    type: str = "ether"
    kind: str = ""
    mac: str = ""
    mtu: int = 1500
    min_mtu: int = 0
    max_mtu: int = 0
    addresses: frozenset[str] = frozenset()
    master: str = ""
    parent: str = ""
    vlan_id: int = 0

    @property
    def hosts(self) -> set[str]:
        """Its addresses without prefix length."""
        return {address.partition("/")[0] for address in self.addresses}

    @property
    def is_card(self) -> bool:
        """Whether it is a network card, or passes for one: a virtual cable, or a port of a switch chip."""
        return self.type == "ether" and self.kind in ("", "veth", "dsa")


@dataclass(frozen=True)
class DefaultRoute:
    """A default route of the main table. ``version`` is 4 or 6, ``gateway`` may be empty."""

    version: int
    device: str
    gateway: str


@dataclass(frozen=True)
class Details:
    """What a profile of somebody else says; ``methods`` by address family (4, 6)."""

    autoconnect: bool
    zone: str
    methods: Mapping[int, str]


@dataclass(frozen=True)
class NodeState:
    """Everything that a plan needs to know. ``active`` has the uuid of the active profile by interface."""

    links: Mapping[str, Link]
    default_routes: tuple[DefaultRoute, ...] = ()
    active: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    listed: frozenset[str] = frozenset()
    ssh_interface: str = ""
    details: Mapping[str, Details] = field(default_factory=dict)

    @property
    def zones(self) -> list[str]:
        """The zones that firewalld knows."""
        return sorted({path.rsplit("/", 1)[1][: -len(".xml")] for path in self.listed if path.endswith(".xml")})

    def sysctl(self, key: str) -> str:
        """The value in force of a key with slashes; empty when there is none."""
        return self.files.get(f"/proc/sys/{key}", "").strip()


def make_state(
    outputs: Mapping[str, str], files: Mapping[str, str], listed: Iterable[str], ssh_address: str
) -> NodeState:
    """The state of a node.

    ``outputs`` has the output of each of ``COMMANDS``, ``files`` the texts by path of what ``PATTERNS`` match,
    ``listed`` the paths that ``LISTED`` match, ``ssh_address`` the address at which the ssh connection arrived (empty
    without one).
    """
    links = parse_links(outputs["links"])
    address, _percent, scope = ssh_address.partition("%")
    carriers = [link.name for link in links.values() if str(address_of(address)) in link.hosts]
    return NodeState(
        links=links,
        default_routes=(
            *parse_default_routes(outputs["routes4"], 4),
            *parse_default_routes(outputs["routes6"], 6),
        ),
        active=parse_active(outputs["active"]),
        files=dict(files),
        listed=frozenset(listed),
        ssh_interface=scope or (carriers or [""])[0],
    )


def details_command(uuids: Sequence[str]) -> tuple[str, ...]:
    """The arguments of the one command that tells the details of all these profiles."""
    argv = ["nmcli", "-t", "-f", _DETAILS, "connection", "show"]
    for uuid in uuids:
        argv += ["uuid", uuid]
    return tuple(argv)


def with_details(state: NodeState, text: str) -> NodeState:
    """The state with the output of ``details_command``."""
    return replace(state, details=parse_details(text))


def parse_links(text: str) -> dict[str, Link]:
    """The interfaces out of ``ip -j -d address``."""
    return {link.name: _link(link) for link in iproute.links(text or "[]")}


def _link(found: iproute.Link) -> Link:
    held = [one.cidr for one in found.addresses if not one.tentative and not one.duplicated]
    return Link(
        name=found.name,
        type=found.type or "unknown",
        kind=found.kind,
        # A bond gives its ports one address.
        mac=found.permanent_mac or found.mac,
        mtu=found.mtu,
        min_mtu=found.min_mtu,
        max_mtu=found.max_mtu,
        addresses=frozenset(str(ipaddress.ip_interface(cidr)) for cidr in held),
        master=found.master,
        parent=found.parent,
        vlan_id=found.vlan_id,
    )


def parse_default_routes(text: str, version: int) -> list[DefaultRoute]:
    """The default routes out of ``ip -j -4 route show default`` or ``-6``, each hop of one with several."""
    routes = iproute.routes(text or "[]")
    return [DefaultRoute(version, route.device, route.gateway) for route in routes if route.device]


def parse_active(text: str) -> dict[str, str]:
    """The uuid of the active profile by interface, out of ``nmcli -t -f UUID,DEVICE,TYPE connection show --active``."""
    found = {}
    for line in text.splitlines():
        # Only a name of an interface could hold a colon, which nmcli would escape; the kernel allows none.
        uuid, _colon, rest = line.partition(":")
        device, _colon, kind = rest.rpartition(":")
        if device and kind != _VPN:
            found[device] = uuid
    return found


def parse_details(text: str) -> dict[str, Details]:
    """The details by uuid out of ``nmcli -t -f ... connection show``: lines of key:value, an empty line between two."""
    found = {}
    for block in text.strip().split("\n\n"):
        values = {key: value for key, _colon, value in (line.partition(":") for line in block.splitlines())}
        if values.get("connection.uuid"):
            found[values["connection.uuid"]] = Details(
                autoconnect=values.get("connection.autoconnect") == "yes",
                zone=values.get("connection.zone", ""),
                methods={4: values.get("ipv4.method", ""), 6: values.get("ipv6.method", "")},
            )
    return found
