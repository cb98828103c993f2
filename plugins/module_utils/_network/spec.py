# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted interfaces of one node: their options, and every rule that needs no node.

Pure. The entries may come from ``AnsibleModule`` or straight from the inventory: missing and unknown keys and wrong
types are problems like all others, never exceptions. Strings of digits count as numbers, and a string counts as a list
(separated by commas), as Ansible itself takes them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, TypeVar, Union

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    LINK_LOCAL,
    LOOPBACK,
    Address,
    address_of,
    interface_of,
    is_host_name,
    is_interface_name,
    is_loopback_name,
    not_a_host,
    whole_number,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import Interface as CidrInterface
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.members import (
    ERR_BROADCAST,
    ERR_NETWORK,
    ERR_NOT_A_HOST,
    ERR_NOT_CIDR,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, nearest, shown

VARIABLE = "static_network_interfaces"
HOSTNAME = "static_network_hostname"
CONFIRM_SECONDS = "static_network_confirm_seconds"
#: Seconds. Less than 15 leaves no time to connect; NetworkManager takes any number, but nobody waits longer.
CONFIRM_LIMITS = (15, 600)

ACTIVE_BACKUP = "active-backup"
LACP = "802.3ad"
#: Bytes, of a whole packet. The kernel refuses IPv6 below 1280.
MTU_LIMITS = (576, 65536)
MTU_IPV6 = 1280
NUMBER_LIMITS = {
    "metric": (0, 2**32 - 1),
    "table": (1, 2**32 - 1),
    "id": (1, 4094),
    "miimon_ms": (10, 10000),
    "min_links": (0, 64),
    "mtu": MTU_LIMITS,
}
#: The kernel's own table of this node's addresses.
LOCAL_TABLE = 255

#: The options of one interface, as AnsibleModule and an argument spec of a role take them.
INTERFACE_OPTIONS: dict[str, dict[str, Any]] = {
    "name": {"type": "str"},
    "mac": {"type": "str"},
    "addresses": {"type": "list", "elements": "str"},
    "gateway": {"type": "list", "elements": "str"},
    "routes": {
        "type": "list",
        "elements": "dict",
        "options": {
            "to": {"type": "str", "required": True},
            "via": {"type": "str"},
            "metric": {"type": "int"},
            "table": {"type": "int"},
        },
    },
    "dns": {"type": "list", "elements": "str"},
    "dns_search": {"type": "list", "elements": "str"},
    "mtu": {"type": "int"},
    "zone": {"type": "str"},
    "vlan": {
        "type": "dict",
        "options": {"parent": {"type": "str", "required": True}, "id": {"type": "int", "required": True}},
    },
    "bond": {
        "type": "dict",
        "options": {
            "mode": {"type": "str", "required": True, "choices": [ACTIVE_BACKUP, LACP]},
            "ports": {"type": "list", "elements": "str", "required": True},
            "miimon_ms": {"type": "int", "default": 100},
            "lacp_rate": {"type": "str", "choices": ["slow", "fast"]},
            "xmit_hash_policy": {
                "type": "str",
                "choices": ["layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4"],
            },
            "min_links": {"type": "int"},
            "primary": {"type": "str"},
        },
    },
}

ERR_TYPE = "expected %s, found %s"
ERR_UNKNOWN_KEY = "there is no such option"
ERR_REQUIRED = "not set, but needed here"
ERR_EMPTY = "is empty"
ERR_CHOICE = "expected one of %s"
ERR_RANGE = "expected %d to %d"
ERR_WHICH = "neither name nor mac is set, so nobody knows which card is meant"
ERR_NAME = (
    "expected the name of a network card: 1 to 15 letters, digits and . _ - + @ ~ (not - in front), and none that the "
    "kernel keeps for itself"
)
ERR_MAC = "expected a hardware address of a network card: six pairs of hexadecimal digits"
ERR_MAC_VIRTUAL = "only cards are matched by their hardware address, not a bond or a VLAN"
ERR_NAME_VIRTUAL = "not set, but a bond or a VLAN needs a name"
ERR_TWICE = "is listed more than once, first in %s"
ERR_NO_ADDRESSES = "expected at least one address: only what a VLAN of this list stands on may have none"
ERR_EVERYTHING = "the prefix length 0 would take the whole internet for this network"
ERR_NOT_ADDRESS = "expected an address without prefix length"
ERR_OFF_LINK = "is in none of the subnets of this interface (%s), so it could never be reached"
ERR_OWN_ADDRESS = "is an address of this interface itself"
ERR_TWO_GATEWAYS = "is a second IPv%d gateway of this interface"
ERR_TWO_DEFAULTS = (
    "%s has an IPv%d gateway too: with two default routes it depends on the order of activation which one is used, "
    "and after a restart it may be the other one"
)
ERR_NOT_NETWORK = "expected a network such as 203.0.113.0/24"
ERR_HOST_BITS = "has bits set beyond its prefix length"
ERR_DEFAULT_ROUTE = "is a default route"
ERR_OTHER_FAMILY = "is of another address family than the network %s"
ERR_NO_FAMILY = "this interface has no IPv%d address"
ERR_SEARCH = "this interface has no address, and without one NetworkManager takes no search domain"
ERR_LOCAL_TABLE = "the table 255 belongs to the kernel"
ERR_MTU_IPV6 = f"IPv6 needs an MTU of at least {MTU_IPV6} bytes"
ERR_ZONE = "expected the name of a firewalld zone: 1 to 17 letters, digits, '_' and '-'"
ERR_DOMAIN = "expected the name of a domain such as lab.example.com"
ERR_VLAN_AND_BOND = "an interface is a VLAN or a bond, not both"
ERR_OWN_PARENT = "is the interface itself"
ERR_LOOP = "closes a ring of VLANs: %s"
ERR_SAME_VLAN = "%s is VLAN %d of %s too"
ERR_PARENT_IS_PORT = "is a port of the bond %s, which takes all its packets"
ERR_PORT = "expected the name or the hardware address of a card"
ERR_OWN_PORT = "is the bond itself"
ERR_PORT_TWICE = "is a port of the bond %s already"
ERR_PORT_DECLARED = "is listed as an interface of its own in %s: a port has no configuration but that of its bond"
ERR_MODE_OPTION = "means nothing in the mode %s"
ERR_PRIMARY = "is not the name of a port of this bond (%s)"
ERR_MIN_LINKS = "is more than the number of ports, %d"
ERR_HOSTNAME = (
    "expected the name of a host: at most 64 characters, labels of letters, digits and '-' (not at their ends), "
    "separated by '.', no number, and not localhost"
)

FIX_INTERFACES = "see the table of variables in roles/static_network/README.md"
FIX_NAMES = "`ip -br link` on the node lists the names"
FIX_MACS = "`ip -br link` on the node lists the hardware addresses"
FIX_ADDRESS = 'write it like "192.0.2.11/24"'
FIX_ONE = "keep one of them"

_MAC = re.compile(r"^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$")
_ZONE = re.compile(r"^[A-Za-z0-9_-]{1,17}$")
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_DOMAIN = re.compile(rf"^~?(\.|{_LABEL}(\.{_LABEL})*\.?)$")
_HOST_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = re.compile(rf"^{_HOST_LABEL}(\.{_HOST_LABEL})*$")
T = TypeVar("T")
Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

_WORDS = {"str": "a text", "int": "a whole number", "list": "a list", "dict": "a dictionary"}


class InputError(Exception):
    """The wanted interfaces are malformed; ``problems`` holds every reason."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(problem.sentence() for problem in problems))
        self.problems = list(problems)


@dataclass(frozen=True)
class Route:
    """One route: ``to`` a network, ``via`` a router or, where that is empty, on link. ``src`` is set for rails only."""

    to: str
    via: str = ""
    metric: int | None = None
    table: int | None = None
    src: str = ""

    @property
    def version(self) -> int:
        """4 or 6."""
        return ipaddress.ip_network(self.to).version


@dataclass(frozen=True)
class Vlan:
    """A VLAN on another interface."""

    parent: str
    id: int


@dataclass(frozen=True)
class Bond:
    """A bond. ``ports`` are names or hardware addresses (lower case); empty strings and None: the kernel's choice."""

    mode: str
    ports: tuple[str, ...]
    miimon_ms: int = 100
    lacp_rate: str = ""
    xmit_hash_policy: str = ""
    min_links: int | None = None
    primary: str = ""


@dataclass(frozen=True)
class Interface:
    """One wanted interface.

    ``mac`` is in lower case, ``addresses`` are canonical with prefix length, ``gateways`` is None where nothing was
    said about them, ``mtu`` is in bytes. ``variable`` is the path for messages.
    """

    name: str = ""
    mac: str = ""
    addresses: tuple[str, ...] = ()
    gateways: tuple[str, ...] | None = None
    routes: tuple[Route, ...] = ()
    dns: tuple[str, ...] = ()
    dns_search: tuple[str, ...] = ()
    mtu: int | None = None
    zone: str = ""
    vlan: Vlan | None = None
    bond: Bond | None = None
    variable: str = field(default="", compare=False)

    @property
    def label(self) -> str:
        """What its profile is named after: the name, or the hardware address where that is all that was said."""
        return self.name or dashed(self.mac)

    def of(self, version: int) -> list[CidrInterface]:
        """Its addresses of one family (4 or 6), in their order."""
        own = [ipaddress.ip_interface(text) for text in self.addresses]
        return [address for address in own if address.version == version]

    @property
    def routers(self) -> dict[str, str]:
        """All routers, and what each leads to: a network, or nothing for the default gateways, which come first."""
        found = dict.fromkeys(self.gateways or (), "")
        for route in self.routes:
            if route.via:
                found.setdefault(route.via, route.to)
        return found

    def gateway(self, version: int) -> str:
        """Its gateway of one family (4 or 6), or nothing."""
        return next((text for text in self.gateways or () if ipaddress.ip_address(text).version == version), "")


def is_mac(text: str) -> bool:
    """Whether a port or parent is spelled as a hardware address; names never look like one."""
    return bool(_MAC.match(text.lower()))


def dashed(mac: str) -> str:
    """A hardware address as a part of a file name."""
    return mac.replace(":", "-")


def _found(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a dictionary"
    if isinstance(value, (list, tuple)):
        return "a list"
    return shown(value)


class _Refused(Exception):
    """One value is wrong; ``value`` None means that there is nothing to show."""

    def __init__(self, variable: str, value: Any, rule: str, fix: str) -> None:
        super().__init__(variable)
        self.problem = Problem(variable, "" if value is None else shown(value), rule, fix)


def _own_address(text: str, path: str) -> CidrInterface:
    """One address with prefix length that a card can have."""
    interface = interface_of(text)
    if interface is None:
        raise _Refused(path, text, ERR_NOT_CIDR, FIX_ADDRESS)
    address, network = interface.ip, interface.network
    _refuse_special(address, text, path)
    if network.prefixlen == 0:
        raise _Refused(path, text, ERR_EVERYTHING, FIX_ADDRESS)
    if network.num_addresses > 2:
        fix = "choose an address between the first and the last one of the network"
        if address == network.network_address:
            raise _Refused(path, text, ERR_NETWORK % network, fix)
        if network.version == 4 and address == network.broadcast_address:
            raise _Refused(path, text, ERR_BROADCAST % network, fix)
    return interface


def _refuse_special(address: Address, text: str, path: str, but: str = "") -> None:
    """Refuse an address that no single machine can have, or that others do not see. ``but``: a kind that may be."""
    kind = not_a_host(address)
    if kind not in ("", but):
        raise _Refused(path, text, ERR_NOT_A_HOST % kind, "use an address of your network")


def _router(text: str, path: str, own: Sequence[CidrInterface], sure: bool) -> Address:
    """The address of a router that can be reached directly. ``sure``: all addresses of the interface are known."""
    address = address_of(text)
    if address is None or "%" in text:
        raise _Refused(path, text, ERR_NOT_ADDRESS, 'write it like "192.0.2.1"')
    _refuse_special(address, text, path, LINK_LOCAL if address.version == 6 else "")
    local = not_a_host(address) == LINK_LOCAL
    subnets = [one for one in own if one.version == address.version]
    if sure and not subnets:
        fix = "give it one, or move this to the interface that has one"
        raise _Refused(path, text, ERR_NO_FAMILY % address.version, fix)
    if sure and not local and not any(address in one.network for one in subnets):
        networks = ", ".join(str(one.network) for one in subnets)
        fix = f"choose an address in {networks}, or check the prefix lengths"
        raise _Refused(path, text, ERR_OFF_LINK % networks, fix)
    if any(address == one.ip for one in own):
        raise _Refused(path, text, ERR_OWN_ADDRESS, "name the router's address")
    for one in subnets:
        if address.version == 4 and one.network.num_addresses > 2:
            if address == one.network.network_address:
                raise _Refused(path, text, ERR_NETWORK % one.network, "name the router's address")
            if address == one.network.broadcast_address:
                raise _Refused(path, text, ERR_BROADCAST % one.network, "name the router's address")
    return address


def _target(given: Mapping[str, Any], path: str, own: Sequence[CidrInterface], sure: bool) -> Network:
    """The network of a route."""
    text = given["to"]
    if "/" not in text or interface_of(text) is None:
        raise _Refused(path, text, ERR_NOT_NETWORK, 'write it like "203.0.113.0/24"')
    network = ipaddress.ip_network(text, strict=False)
    if ipaddress.ip_interface(text).ip != network.network_address:
        raise _Refused(path, text, ERR_HOST_BITS, f"write {network}")
    if network.prefixlen == 0 and given["table"] in (None, 254):
        raise _Refused(path, text, ERR_DEFAULT_ROUTE, "name its router in gateway instead")
    if not_a_host(network.network_address) in ("multicast", LOOPBACK, LINK_LOCAL):
        raise _Refused(path, text, ERR_NOT_NETWORK, "the kernel has routes of its own for such networks")
    if sure and not any(one.version == network.version for one in own):
        raise _Refused(path, text, ERR_NO_FAMILY % network.version, "move it to an interface that has one")
    return network


def _server(text: str, path: str, own: Sequence[CidrInterface], sure: bool) -> str:
    """A DNS server; it may be one of this node itself."""
    address = address_of(text)
    if address is None or "%" in text:
        raise _Refused(path, text, ERR_NOT_ADDRESS, 'write it like "192.0.2.53"')
    _refuse_special(address, text, path, LOOPBACK)
    if sure and not any(one.version == address.version for one in own):
        fix = "NetworkManager wants a server at an interface of its family: move it to one"
        raise _Refused(path, text, ERR_NO_FAMILY % address.version, fix)
    return str(address)


def _domain(text: str, path: str) -> str:
    """A search domain."""
    if len(text) > 253 or not _DOMAIN.match(text):
        raise _Refused(path, text, ERR_DOMAIN, "write one domain in each place of the list")
    return text


def _vlan(given: Mapping[str, Any], name: str, path: str) -> Vlan:
    """The VLAN; both of its options are of the right type."""
    parent = given["parent"]
    if not is_interface_name(parent):
        raise _Refused(f"{path}.parent", parent, ERR_NAME, FIX_NAMES)
    if parent == name:
        raise _Refused(f"{path}.parent", parent, ERR_OWN_PARENT, "name the card or bond that carries the VLAN")
    return Vlan(parent, given["id"])


class _Checker:
    """Collects the problems of one list of interfaces."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        #: Interfaces, by their path, of which not all addresses are known.
        self.unsure: set[str] = set()

    def refuse(self, variable: str, value: Any, rule: str, fix: str) -> None:
        """Note one problem, and go on."""
        self.problems.append(_Refused(variable, value, rule, fix).problem)

    def take(self, check: Callable[..., T], *arguments: Any) -> T | None:
        """What a check of one value finds; None when it refuses the value, which is noted."""
        try:
            return check(*arguments)
        except _Refused as refused:
            self.problems.append(refused.problem)
            return None

    # --- types ------------------------------------------------------------------------------------------------------

    def typed(self, value: Any, options: Mapping[str, Mapping[str, Any]], path: str) -> dict[str, Any]:
        """A dictionary with every option of its spec, None for those that are missing or wrong."""
        if not isinstance(value, Mapping):
            raise _Refused(path, value, ERR_TYPE % (_WORDS["dict"], _found(value)), FIX_INTERFACES)
        for key in value:
            if key not in options:
                near = nearest(str(key), options)
                fix = f"write {near} instead" if near else "use one of: {}".format(", ".join(options))
                self.refuse(f"{path}.{key}", value[key], ERR_UNKNOWN_KEY, fix)
        result: dict[str, Any] = {}
        for key, option in options.items():
            given = value.get(key)
            if given is None:
                given = option.get("default")
            if given is None:
                result[key] = None
                if option.get("required"):
                    self.refuse(f"{path}.{key}", None, ERR_REQUIRED, FIX_INTERFACES)
                continue
            result[key] = self.take(self.converted, given, option, f"{path}.{key}")
        return result

    def converted(self, value: Any, option: Mapping[str, Any], path: str) -> Any:
        """One value as its option wants it, or None."""
        kind = option["type"]
        if kind == "dict":
            return self.typed(value, option["options"], path)
        if kind == "list":
            return self.elements(value, option, path)
        if kind == "int":
            if isinstance(value, str) and re.match(r"^\s*[0-9]+\s*$", value):
                value = int(value)
            if not isinstance(value, int) or isinstance(value, bool):
                raise _Refused(path, value, ERR_TYPE % (_WORDS[kind], _found(value)), FIX_INTERFACES)
            low, high = NUMBER_LIMITS[path.rsplit(".", 1)[1]]
            if not low <= value <= high:
                raise _Refused(path, value, ERR_RANGE % (low, high), "choose a value in this range")
            return value
        if not isinstance(value, str):
            # YAML reads 10:00:00:00:00:11 as a number.
            fix = "put it in quotes" if isinstance(value, (int, float)) else FIX_INTERFACES
            raise _Refused(path, value, ERR_TYPE % (_WORDS[kind], _found(value)), fix)
        text = str(value).strip()
        if not text:
            raise _Refused(path, value, ERR_EMPTY, "fill it in, or leave the option out")
        if "choices" in option and text not in option["choices"]:
            fix = "choose one of them"
            raise _Refused(path, value, ERR_CHOICE % ", ".join(option["choices"]), fix)
        return text

    def elements(self, value: Any, option: Mapping[str, Any], path: str) -> list[Any]:
        """Every element, None in the place of a wrong one."""
        if isinstance(value, str) and option["elements"] == "str":
            value = value.split(",")
        if not isinstance(value, (list, tuple)):
            raise _Refused(path, value, ERR_TYPE % (_WORDS["list"], _found(value)), FIX_INTERFACES)
        element = {"type": option["elements"], "options": option.get("options")}
        return [self.take(self.converted, one, element, f"{path}[{number}]") for number, one in enumerate(value)]

    # --- one interface ----------------------------------------------------------------------------------------------

    def interface(self, entry: Any, path: str) -> Interface:
        """One entry, with what is right in it."""
        given = self.typed(entry, INTERFACE_OPTIONS, path)
        own = self.each(given["addresses"], f"{path}.addresses", _own_address)
        sure = not any(problem.variable.startswith(f"{path}.address") for problem in self.problems)
        if not sure:
            self.unsure.add(path)
        vlan = given["vlan"]
        virtual = vlan is not None or given["bond"] is not None
        name, mac = self.identity(entry, given, path, virtual)
        if vlan is not None and given["bond"] is not None:
            self.refuse(f"{path}.vlan", None, ERR_VLAN_AND_BOND, "put the VLAN on the bond, as an interface of its own")
        gateways = None
        if given["gateway"] is not None:
            gateways = tuple(self.gateways(given["gateway"], own, sure, f"{path}.gateway"))
        if given["mtu"] is not None and given["mtu"] < MTU_IPV6 and any(address.version == 6 for address in own):
            self.refuse(f"{path}.mtu", given["mtu"], ERR_MTU_IPV6, f"choose at least {MTU_IPV6}")
        if given["zone"] is not None and not _ZONE.match(given["zone"]):
            self.refuse(f"{path}.zone", given["zone"], ERR_ZONE, "`firewall-cmd --get-zones` lists them")
        dns = self.each(given["dns"], f"{path}.dns", _server, own, sure)
        search = self.each(given["dns_search"], f"{path}.dns_search", _domain)
        if search and sure and not own:
            self.refuse(f"{path}.dns_search", given["dns_search"], ERR_SEARCH, "move it to an interface that has one")
        return Interface(
            name=name,
            mac=mac,
            addresses=tuple(str(address) for address in own),
            gateways=gateways,
            routes=tuple(self.routes(given["routes"] or [], own, sure, f"{path}.routes")),
            dns=tuple(dns),
            dns_search=tuple(search),
            mtu=given["mtu"],
            zone=given["zone"] or "",
            vlan=self.take(_vlan, vlan, name, f"{path}.vlan") if vlan and None not in vlan.values() else None,
            bond=self.bond(given["bond"], name, f"{path}.bond"),
            variable=path,
        )

    def each(self, texts: Sequence[Any] | None, path: str, check: Callable[..., T], *arguments: Any) -> list[T]:
        """What a check finds for every element that is a text."""
        found = [
            self.take(check, text, f"{path}[{number}]", *arguments)
            for number, text in enumerate(texts or [])
            if text is not None
        ]
        return [one for one in found if one is not None]

    def identity(self, entry: Mapping[str, Any], given: Mapping[str, Any], path: str, virtual: bool) -> tuple[str, str]:
        """Name and hardware address."""
        name, mac = given["name"] or "", (given["mac"] or "").lower().replace("-", ":")
        if name and not is_interface_name(name):
            self.refuse(f"{path}.name", name, ERR_NAME, FIX_NAMES)
            name = ""
        if mac and (not _MAC.match(mac) or mac == "00:00:00:00:00:00" or int(mac[:2], 16) & 1):
            self.refuse(f"{path}.mac", given["mac"], ERR_MAC, FIX_MACS)
            mac = ""
        if virtual and mac:
            fix = "remove it, and name ports by their hardware addresses where that is wanted"
            self.refuse(f"{path}.mac", mac, ERR_MAC_VIRTUAL, fix)
        if entry.get("name") is None:
            if virtual:
                self.refuse(f"{path}.name", None, ERR_NAME_VIRTUAL, "choose one, such as bond0 or eth0.100")
            elif entry.get("mac") is None:
                self.refuse(path, None, ERR_WHICH, f"set name or mac; {FIX_NAMES}")
        return name, mac

    def gateways(self, texts: Sequence[Any], own: Sequence[CidrInterface], sure: bool, path: str) -> list[str]:
        """At most one of each family, each one on link."""
        found: dict[int, str] = {}
        for number, text in enumerate(texts):
            if text is None:
                continue
            where = f"{path}[{number}]"
            address = self.take(_router, text, where, own, sure)
            if address is None:
                continue
            if address.version in found:
                self.refuse(where, text, ERR_TWO_GATEWAYS % address.version, FIX_ONE)
                continue
            found[address.version] = str(address)
        return list(found.values())

    def routes(self, entries: Sequence[Any], own: Sequence[CidrInterface], sure: bool, path: str) -> list[Route]:
        """The static routes."""
        result: list[Route] = []
        for number, given in enumerate(entries):
            where = f"{path}[{number}]"
            if given is None or given["to"] is None:
                continue
            network = self.take(_target, given, f"{where}.to", own, sure)
            if given["table"] == LOCAL_TABLE:
                self.refuse(f"{where}.table", LOCAL_TABLE, ERR_LOCAL_TABLE, "choose another one, or leave it out")
            via = ""
            if given["via"] is not None:
                router = self.take(_router, given["via"], f"{where}.via", own, sure)
                via = "" if router is None else str(router)
                if router is not None and network is not None and router.version != network.version:
                    fix = f"name a router of IPv{network.version}"
                    self.refuse(f"{where}.via", given["via"], ERR_OTHER_FAMILY % network, fix)
            if network is None:
                continue
            route = Route(str(network), via, given["metric"], given["table"])
            for other, earlier in enumerate(result):
                if (earlier.to, earlier.metric, earlier.table) == (route.to, route.metric, route.table):
                    self.refuse(f"{where}.to", given["to"], ERR_TWICE % f"{path}[{other}]", FIX_ONE)
                    break
            result.append(route)
        return result

    def bond(self, given: Mapping[str, Any] | None, name: str, path: str) -> Bond | None:
        """The bond, when its mode and ports are right."""
        if given is None:
            return None
        ports: list[str] = []
        for number, text in enumerate(given["ports"] or []):
            where = f"{path}.ports[{number}]"
            if text is None:
                continue
            port = text.lower().replace("-", ":") if is_mac(text) else text
            if not is_mac(port) and not is_interface_name(port):
                self.refuse(where, text, ERR_PORT, FIX_NAMES)
            elif port == name:
                self.refuse(where, text, ERR_OWN_PORT, "name the cards that it is made of")
            elif port in ports:
                self.refuse(where, text, ERR_TWICE % f"{path}.ports", FIX_ONE)
            else:
                ports.append(port)
        if given["ports"] == []:
            self.refuse(f"{path}.ports", [], ERR_EMPTY, "name the cards that the bond is made of")
        if given["min_links"] is not None and ports and given["min_links"] > len(ports):
            fix = f"choose at most {len(ports)}"
            self.refuse(f"{path}.min_links", given["min_links"], ERR_MIN_LINKS % len(ports), fix)
        foreign = {ACTIVE_BACKUP: ("lacp_rate", "xmit_hash_policy", "min_links"), LACP: ("primary",)}
        for key in foreign.get(given["mode"], ()):
            if given[key] is not None:
                self.refuse(f"{path}.{key}", given[key], ERR_MODE_OPTION % given["mode"], "remove it, or change mode")
        primary = given["primary"]
        if given["mode"] == ACTIVE_BACKUP and primary is not None and (primary not in ports or is_mac(primary)):
            rule = ERR_PRIMARY % ", ".join(ports)
            self.refuse(f"{path}.primary", primary, rule, "name a port that is listed by its name")
        if given["mode"] is None or not ports or given["miimon_ms"] is None:
            return None
        return Bond(
            mode=given["mode"],
            ports=tuple(ports),
            miimon_ms=given["miimon_ms"],
            lacp_rate=given["lacp_rate"] or "",
            xmit_hash_policy=given["xmit_hash_policy"] or "",
            min_links=given["min_links"],
            primary=primary or "",
        )

    # --- all interfaces of the node ----------------------------------------------------------------------------------

    def together(self, interfaces: Sequence[Interface]) -> None:
        """What only shows when all interfaces are looked at."""
        self.unique(interfaces)
        self.one_default(interfaces)
        self.ports(interfaces)
        self.parents(interfaces)

    def unique(self, interfaces: Sequence[Interface]) -> None:
        """Names, hardware addresses and addresses."""
        seen: dict[tuple[str, str], str] = {}
        for interface in interfaces:
            named = [("name", interface.name, ".name"), ("mac", interface.mac, ".mac")]
            for number, text in enumerate(interface.addresses):
                place = ".addresses" if interface.variable in self.unsure else f".addresses[{number}]"
                named.append(("address", text.split("/")[0], place))
            for kind, value, key in named:
                where = interface.variable + key
                first = seen.setdefault((kind, value), where)
                if value and first != where:
                    self.refuse(where, value, ERR_TWICE % first, FIX_ONE)

    def one_default(self, interfaces: Sequence[Interface]) -> None:
        """At most one default route of each family."""
        for version in (4, 6):
            having = [interface for interface in interfaces if interface.gateway(version)]
            for interface in having[1:]:
                fix = "keep the gateway of one, and give the other one routes to the networks behind its router"
                rule = ERR_TWO_DEFAULTS % (having[0].label, version)
                self.refuse(f"{interface.variable}.gateway", interface.gateway(version), rule, fix)

    def ports(self, interfaces: Sequence[Interface]) -> None:
        """Every port belongs to one bond and to nothing else."""
        users: dict[str, str] = {}
        declared = {key: one.variable for one in interfaces for key in (one.name, one.mac) if key}
        for interface in interfaces:
            if interface.bond is None:
                continue
            for port in interface.bond.ports:
                where = f"{interface.variable}.bond.ports"
                if port in users:
                    self.refuse(where, port, ERR_PORT_TWICE % users[port], FIX_ONE)
                elif port in declared:
                    fix = "remove that entry, and set addresses and MTU at the bond"
                    self.refuse(where, port, ERR_PORT_DECLARED % declared[port], fix)
                users.setdefault(port, interface.label)

    def parents(self, interfaces: Sequence[Interface]) -> None:
        """VLANs stand on something, and only what they stand on may be without addresses."""
        vlans = {one.name: one.vlan for one in interfaces if one.vlan is not None and one.name}
        port_of = {port: one.label for one in interfaces if one.bond for port in one.bond.ports}
        taken: dict[tuple[str, int], str] = {}
        for interface in interfaces:
            vlan = interface.vlan
            if vlan is None:
                continue
            where = f"{interface.variable}.vlan"
            first = taken.setdefault((vlan.parent, vlan.id), interface.label)
            if first != interface.label:
                self.refuse(f"{where}.id", vlan.id, ERR_SAME_VLAN % (first, vlan.id, vlan.parent), FIX_ONE)
            if vlan.parent in port_of:
                bond = port_of[vlan.parent]
                self.refuse(f"{where}.parent", vlan.parent, ERR_PARENT_IS_PORT % bond, f"put the VLAN on {bond}")
            chain = [interface.name]
            while chain[-1] in vlans and vlans[chain[-1]].parent not in chain:
                chain.append(vlans[chain[-1]].parent)
            if chain[-1] in vlans:
                rule = ERR_LOOP % " on ".join([*chain, vlans[chain[-1]].parent])
                self.refuse(f"{where}.parent", vlan.parent, rule, "name the card or bond that carries the VLAN")
        names = {one.name for one in interfaces if one.name}
        parents = {one.vlan.parent for one in interfaces if one.vlan is not None}
        for interface in interfaces:
            carries = interface.name in parents if interface.name else bool(parents - names)
            if not interface.addresses and not carries and interface.variable not in self.unsure:
                fix = "give it addresses, or take it out of the list"
                self.refuse(f"{interface.variable}.addresses", None, ERR_NO_ADDRESSES, fix)


def _check(entries: Any, variable: str) -> tuple[list[Interface], list[Problem]]:
    checker = _Checker()
    if not isinstance(entries, (list, tuple)):
        checker.refuse(variable, entries, ERR_TYPE % ("a list of interfaces", _found(entries)), FIX_INTERFACES)
        return [], checker.problems
    found = [checker.take(checker.interface, entry, f"{variable}[{number}]") for number, entry in enumerate(entries)]
    interfaces = [interface for interface in found if interface is not None]
    checker.together(interfaces)
    return interfaces, checker.problems


def parse_interfaces(entries: Any, variable: str = VARIABLE) -> list[Interface]:
    """The wanted interfaces; raise ``InputError`` with every problem. ``variable`` is what messages call the list."""
    interfaces, problems = _check(entries, variable)
    if problems:
        raise InputError(problems)
    return interfaces


def interface_problems(entries: Any, variable: str = VARIABLE) -> list[Problem]:
    """Every problem of one host's list, taken as it stands in the inventory."""
    return _check(entries, variable)[1]


def hostname_problems(value: Any, variable: str = HOSTNAME) -> list[Problem]:
    """Whether a node can be called so; an empty text leaves its name as it is."""
    text = str(value) if isinstance(value, str) else ""
    right = text == value and (
        not text
        or (len(text) <= 64 and _HOSTNAME.fullmatch(text) and is_host_name(text) and not is_loopback_name(text))
    )
    return [] if right else [Problem(variable, shown(value), ERR_HOSTNAME, 'write it like "gpu01.lab.example.com"')]


def confirm_seconds_problems(value: Any, variable: str = CONFIRM_SECONDS) -> list[Problem]:
    """Whether this is a time in which a change can be confirmed."""
    low, high = CONFIRM_LIMITS
    number = whole_number(value)
    if number is not None and low <= number <= high:
        return []
    return [Problem(variable, shown(value), ERR_RANGE % (low, high) + " seconds", "choose a value in this range")]
