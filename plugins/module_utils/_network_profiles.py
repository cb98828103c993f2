# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Static addresses as NetworkManager profiles: what is wanted against what a node has. Pure.

An interface that carries Ansible's own connection or the default route is never touched: it is left alone when it holds
what is wanted already, and refused otherwise.
"""

from __future__ import annotations

import ipaddress
import json
import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PREFIX = "gpu-cluster-"
_NAMESPACE = uuid.UUID("6f6b3c9e-5d0c-5b38-9d5e-0f1f6a2f5b11")
_NAME = re.compile(r"^[^\s/:;=\[\]#]{1,15}$")
_ZONE = re.compile(r"^[A-Za-z0-9_-]{1,17}$")
MTU_LIMITS = (576, 65520)

ERR_NAME = "interfaces[%d].name: expected the name of a network card (1 to 15 characters), found %r"
ERR_DUPLICATE = "interfaces[%d].name: %s is listed more than once"
ERR_NO_ADDRESS = "interfaces[%d].addresses: expected at least one address for %s"
ERR_ADDRESS = "interfaces[%d].addresses[%d]: expected an address with prefix length such as 198.18.20.11/24, found %r"
ERR_MTU = f"interfaces[%d].mtu: expected {MTU_LIMITS[0]} to {MTU_LIMITS[1]} bytes, found %d"
ERR_ZONE = "interfaces[%d].zone: expected the name of a firewalld zone, found %r"
ERR_NO_LINK = "%s: this node has no such interface; it has %s"
ERR_NOT_ETHERNET = "%s: expected an Ethernet card, found link type %s"
ERR_CARRIER = (
    "%s: wanted %s, but the interface %s and changing it could cut this node off. Set the address with the installer "
    "or by hand, name another interface, or take it out of static_network_interfaces"
)
ERR_HELD_ELSEWHERE = "%s: the address %s is on the interface %s"
ERR_NO_ZONE = "%s: firewalld has no zone %s; it has %s"
LEFT_ALONE = "%s holds what is wanted and was left to the profile that set it: it %s"


class InputError(Exception):
    """The wanted interfaces are malformed; ``problems`` holds every sentence."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


@dataclass(frozen=True)
class Profile:
    """One wanted interface."""

    name: str
    addresses: tuple[str, ...]
    mtu: int | None = None
    zone: str = ""

    @property
    def file_name(self) -> str:
        """The keyfile's name."""
        return f"{PREFIX}{self.name}.nmconnection"

    @property
    def uuid(self) -> str:
        """The same for the same interface name on every run."""
        return str(uuid.uuid5(_NAMESPACE, self.name))

    def wish(self) -> str:
        """For messages."""
        mtu = f" and an MTU of {self.mtu} bytes" if self.mtu else ""
        return " ".join(self.addresses) + mtu


@dataclass(frozen=True)
class Link:
    """One interface as the node has it."""

    name: str
    kind: str
    mtu: int
    addresses: frozenset[str]


@dataclass(frozen=True)
class Step:
    """What is to be done about one profile."""

    profile: Profile
    before: str
    after: str
    activate: bool

    @property
    def changed(self) -> bool:
        """Whether anything is to be done."""
        return self.activate or self.before != self.after


@dataclass(frozen=True)
class Plan:
    """All steps, or all reasons why none may be taken."""

    steps: tuple[Step, ...]
    problems: tuple[str, ...]
    left_alone: tuple[str, ...]


def parse_profiles(interfaces: Sequence[Mapping[str, Any]]) -> list[Profile]:
    """Check the inputs; raise ``InputError`` with every problem."""
    problems: list[str] = []
    profiles: list[Profile] = []
    seen: set[str] = set()
    for index, entry in enumerate(interfaces):
        name = str(entry["name"])
        if not _NAME.match(name) or name in (".", ".."):
            problems.append(ERR_NAME % (index, name))
        if name in seen:
            problems.append(ERR_DUPLICATE % (index, name))
        seen.add(name)
        if not entry["addresses"]:
            problems.append(ERR_NO_ADDRESS % (index, name))
        addresses = []
        for position, text in enumerate(entry["addresses"]):
            try:
                if "/" not in text:
                    raise ValueError(text)
                addresses.append(str(ipaddress.ip_interface(text.strip())))
            except ValueError:
                problems.append(ERR_ADDRESS % (index, position, text))
        mtu = entry.get("mtu")
        if mtu is not None and not MTU_LIMITS[0] <= mtu <= MTU_LIMITS[1]:
            problems.append(ERR_MTU % (index, mtu))
        zone = entry.get("zone") or ""
        if zone and not _ZONE.match(zone):
            problems.append(ERR_ZONE % (index, zone))
        profiles.append(Profile(name=name, addresses=tuple(addresses), mtu=mtu, zone=zone))
    if problems:
        raise InputError(problems)
    return profiles


def keyfile_text(profile: Profile) -> str:
    """The profile as NetworkManager reads it. It never gives the node a default route."""
    lines = [
        "# Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost.",
        "[connection]",
        f"id={PREFIX}{profile.name}",
        f"uuid={profile.uuid}",
        "type=ethernet",
        f"interface-name={profile.name}",
        # Above the profile that NetworkManager makes by itself for a card without one.
        "autoconnect-priority=100",
    ]
    if profile.zone:
        lines.append(f"zone={profile.zone}")
    lines += ["", "[ethernet]"]
    if profile.mtu:
        lines.append(f"mtu={profile.mtu}")
    for version, without in ((4, "disabled"), (6, "link-local")):
        own = [text for text in profile.addresses if ipaddress.ip_interface(text).version == version]
        lines += ["", f"[ipv{version}]"]
        lines += [f"address{number}={text}" for number, text in enumerate(own, start=1)]
        lines.append(f"method={'manual' if own else without}")
        if own:
            lines.append("never-default=true")
    return "\n".join(lines) + "\n"


def parse_links(text: str) -> dict[str, Link]:
    """The interfaces out of ``ip -j address``."""
    links = {}
    for entry in json.loads(text or "[]"):
        name = entry.get("ifname", "")
        addresses = frozenset(
            str(ipaddress.ip_interface(f"{item['local']}/{item['prefixlen']}"))
            for item in entry.get("addr_info", [])
            if "local" in item and not item.get("tentative") and not item.get("dadfailed")
        )
        links[name] = Link(name, entry.get("link_type", "unknown"), int(entry.get("mtu", 0)), addresses)
    return links


def parse_default_routes(text: str) -> list[str]:
    """The interfaces of the default routes out of ``ip -j route show default``, several hops included."""
    devices: list[str] = []
    for entry in json.loads(text or "[]"):
        found = [entry.get("dev")] + [hop.get("dev") for hop in entry.get("nexthops", [])]
        devices.extend(device for device in found if device and device not in devices)
    return devices


def carriers(links: Mapping[str, Link], default_routes: Sequence[str], ssh_address: str) -> dict[str, str]:
    """The interfaces that must not be touched, and why."""
    reasons: dict[str, list[str]] = {}
    for device in default_routes:
        reasons.setdefault(device, []).append("holds the default route")
    if ssh_address:
        for link in links.values():
            if ssh_address in {text.split("/")[0] for text in link.addresses}:
                reasons.setdefault(link.name, []).append("carries Ansible's own ssh connection")
    return {name: " and ".join(found) for name, found in reasons.items()}


def satisfied(profile: Profile, link: Link) -> bool:
    """Whether the running interface has what is wanted."""
    return set(profile.addresses) <= link.addresses and (profile.mtu is None or profile.mtu == link.mtu)


def make_plan(
    profiles: Sequence[Profile],
    *,
    links: Mapping[str, Link],
    untouchable: Mapping[str, str],
    files: Mapping[str, str],
    active: Mapping[str, str],
    zones: Collection[str],
) -> Plan:
    """Compare everything before anything is done.

    ``files`` has the current text by keyfile name, ``active`` the uuid of the active profile by interface name,
    ``zones`` the names that firewalld knows: NetworkManager takes an unknown one without a word and uses none.
    """
    steps: list[Step] = []
    problems: list[str] = []
    left_alone: list[str] = []
    for profile in profiles:
        link = links.get(profile.name)
        if link is None:
            problems.append(ERR_NO_LINK % (profile.name, ", ".join(sorted(links)) or "none"))
            continue
        before, after = files.get(profile.file_name, ""), keyfile_text(profile)
        activate = active.get(profile.name) != profile.uuid or not satisfied(profile, link)
        if before == after and not activate:
            steps.append(Step(profile, before, after, False))
            continue
        if profile.name in untouchable:
            if satisfied(profile, link):
                left_alone.append(LEFT_ALONE % (profile.name, untouchable[profile.name]))
            else:
                problems.append(ERR_CARRIER % (profile.name, profile.wish(), untouchable[profile.name]))
            continue
        if link.kind != "ether":
            problems.append(ERR_NOT_ETHERNET % (profile.name, link.kind))
        if profile.zone and profile.zone not in zones:
            problems.append(ERR_NO_ZONE % (profile.name, profile.zone, ", ".join(sorted(zones)) or "none"))
        for address in profile.addresses:
            plain = address.split("/")[0]
            problems.extend(
                ERR_HELD_ELSEWHERE % (profile.name, plain, other.name)
                for other in links.values()
                if other.name != profile.name and plain in {text.split("/")[0] for text in other.addresses}
            )
        steps.append(Step(profile, before, after, True))
    return Plan(tuple(steps), tuple(problems), tuple(left_alone))
