# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NetworkManager's keyfiles of the wanted interfaces. Pure, and the only place that writes their text.

The keys are those that NetworkManager 1.42 writes itself and 1.5x still reads (``master`` instead of ``controller``,
``autoconnect-slaves`` instead of ``autoconnect-ports``).
"""

from __future__ import annotations

import configparser
import uuid
from dataclasses import dataclass

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import rails
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.rails import Rail
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.spec import (
    Interface,
    Route,
    dashed,
    is_mac,
)

FOLDER = "/etc/NetworkManager/system-connections"
PREFIX = "gpu-cluster-"
SUFFIX = ".nmconnection"
#: NetworkManager's highest: above every profile that an installer or NetworkManager itself made for the same card.
PRIORITY = 999
_NAMESPACE = uuid.UUID("6f6b3c9e-5d0c-5b38-9d5e-0f1f6a2f5b11")
_HEADER = "# Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost."


@dataclass(frozen=True)
class Keyfile:
    """One profile: its file name, its uuid (the same on every run) and its text."""

    name: str
    uuid: str
    text: str

    @property
    def path(self) -> str:
        """Where NetworkManager keeps it."""
        return f"{FOLDER}/{self.name}"


@dataclass(frozen=True)
class Claim:
    """What a keyfile says about the card for which it is meant; the hardware address is in lower case."""

    uuid: str
    name: str
    mac: str


def keyfiles(interface: Interface, rail: Rail | None = None) -> list[Keyfile]:
    """The profile of an interface, then those of its ports, in the order in which they are listed."""
    ports = interface.bond.ports if interface.bond else ()
    return [_keyfile(interface, rail, port) for port in ("", *ports)]


def uuid_of(interface: Interface, port: str = "") -> str:
    """The same for the same interface, or port of a bond, on every run. Names hold no slash, so no two are alike."""
    return str(uuid.uuid5(_NAMESPACE, f"{interface.label}/port/{port}" if port else interface.label))


def text(interface: Interface, rail: Rail | None = None, port: str = "") -> str:
    """The text of the profile of an interface or, where ``port`` is given, of that port of its bond."""
    lines = [
        _HEADER,
        "[connection]",
        f"id={_id(interface, port)}",
        f"uuid={uuid_of(interface, port)}",
        f"type={_type(interface, port)}",
    ]
    name, mac = interface.name, interface.mac
    if port:
        name, mac = ("", port) if is_mac(port) else (port, "")
    if name:
        lines.append(f"interface-name={name}")
    lines.append(f"autoconnect-priority={PRIORITY}")
    if port:
        lines += [f"master={interface.name}", "slave-type=bond"]
    elif interface.bond:
        lines.append("autoconnect-slaves=1")
    if interface.zone and not port:
        lines.append(f"zone={interface.zone}")
    lines += ["", "[ethernet]"]
    if mac:
        lines.append(f"mac-address={mac.upper()}")
    if interface.mtu:
        lines.append(f"mtu={interface.mtu}")
    if not port:
        lines += _kind(interface) + _addresses(interface, 4, rail) + _addresses(interface, 6, rail)
    return "\n".join(lines) + "\n"


def claim(text_of_file: str) -> Claim:
    """For which card a keyfile of ours is meant; everything empty when it cannot be read."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text_of_file)
    except configparser.Error:
        return Claim("", "", "")
    return Claim(
        parser.get("connection", "uuid", fallback=""),
        parser.get("connection", "interface-name", fallback=""),
        parser.get("ethernet", "mac-address", fallback="").lower(),
    )


def _keyfile(interface: Interface, rail: Rail | None, port: str) -> Keyfile:
    return Keyfile(_id(interface, port) + SUFFIX, uuid_of(interface, port), text(interface, rail, port))


def _id(interface: Interface, port: str) -> str:
    return PREFIX + interface.label + (f"-port-{dashed(port)}" if port else "")


def _type(interface: Interface, port: str) -> str:
    if port or not (interface.vlan or interface.bond):
        return "ethernet"
    return "vlan" if interface.vlan else "bond"


def _kind(interface: Interface) -> list[str]:
    """The section of a VLAN or a bond."""
    lines: list[str] = []
    if interface.vlan:
        # 1: reorder headers, as the kernel and nmcli do unless told otherwise.
        lines += ["", "[vlan]", "flags=1", f"id={interface.vlan.id}", f"parent={interface.vlan.parent}"]
    bond = interface.bond
    if bond:
        lines += ["", "[bond]", f"mode={bond.mode}", f"miimon={bond.miimon_ms}"]
        options = {
            "lacp_rate": bond.lacp_rate,
            "min_links": "" if bond.min_links is None else str(bond.min_links),
            "primary": bond.primary,
            "xmit_hash_policy": bond.xmit_hash_policy,
        }
        lines += [f"{key}={value}" for key, value in options.items() if value]
    return lines


def _addresses(interface: Interface, version: int, rail: Rail | None) -> list[str]:
    """The section of one address family."""
    lines = ["", f"[ipv{version}]"]
    own = interface.of(version)
    if not own:
        return [*lines, "method=disabled" if version == 4 else "method=link-local"]
    lines.append("method=manual")
    lines += [f"address{number}={address}" for number, address in enumerate(own, start=1)]
    gateway = interface.gateway(version)
    lines.append(f"gateway={gateway}" if gateway else "never-default=true")
    servers = [server for server in interface.dns if (":" in server) == (version == 6)]
    if servers:
        lines.append(f"dns={';'.join(servers)};")
    # One family is enough for them: the one that every node has.
    if interface.dns_search and (version == 4 or not interface.of(4)):
        lines.append(f"dns-search={';'.join(interface.dns_search)};")
    found = [route for route in interface.routes if route.version == version]
    if rail:
        found += rails.routes(interface, version, rail)
    for number, route in enumerate(found, start=1):
        lines += _route(number, route)
    for number, rule in enumerate(rails.rules(interface, version, rail) if rail else (), start=1):
        lines.append(f"routing-rule{number}={rule}")
    return lines


def _route(number: int, route: Route) -> list[str]:
    fields = [route.to]
    if route.via or route.metric is not None:
        fields.append(route.via or ("0.0.0.0" if route.version == 4 else "::"))
    if route.metric is not None:
        fields.append(str(route.metric))
    options = []
    if route.src:
        options.append(f"src={route.src}")
    if route.table is not None:
        options.append(f"table={route.table}")
    lines = [f"route{number}={','.join(fields)}"]
    return [*lines, f"route{number}_options={','.join(options)}"] if options else lines
