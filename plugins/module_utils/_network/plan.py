# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted interfaces against what a node has: what is to be done, what is left alone, what cannot be meant. Pure.

Every problem is found before anything is done. What is to be done leaves here as a job, which another program carries
out and takes back when it is not confirmed; so nothing here asks whether a change is dangerous, only whether it can be
meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import ifcfg, keyfile, rails
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.keyfile import Keyfile
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.rails import Rail
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.spec import (
    ERR_PARENT_IS_PORT,
    FIX_MACS,
    FIX_NAMES,
    Interface,
    is_mac,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.state import DefaultRoute, NodeState

ERR_UNKNOWN = "this node has no such interface; it has %s"
ERR_NO_MAC = "no card of this node has this hardware address; it has %s"
ERR_SEVERAL = "several cards have this hardware address: %s"
ERR_OTHER_NAME = "the card with this hardware address is called %s, not %s"
ERR_SAME_CARD = "is the same card as in %s"
ERR_NOT_ETHERNET = "%s is no Ethernet card, but %s"
ERR_IS_PORT = "%s is a port of %s now"
ERR_PORT_DECLARED = "the card %s is listed as an interface of its own in %s"
ERR_OTHER_KIND = "%s exists, and is %s"
ERR_OTHER_VLAN = "%s exists as VLAN %d of %s, and NetworkManager does not turn it into another one"
ERR_NO_PARENT = "neither this node nor the list has an interface of this name; the node has %s"
ERR_PARENT_KIND = "a VLAN needs Ethernet below it, %s is %s"
ERR_DRIVER_MTU = "the driver of %s takes %d to %s bytes"
ERR_PARENT_MTU = "is more than the MTU of %s, %d"
ERR_ZONE = "firewalld has no such zone; it has %s"
ERR_HELD = "is on the interface %s, which is not in the list"
ERR_GATEWAY_UNSAID = "%s, and nothing is said about a gateway"
ERR_OTHER_DEFAULT = (
    "%s, which this list does not change, has an IPv%d default route (%s): with two of them it depends on the order of "
    "activation which one is used, and after a restart it may be the other one"
)
LEFT_ALONE = "%s has all that is wanted from the profile that somebody else made, and was left alone"

FIX_GATEWAY = "declare gateway: [%s] to keep it, or gateway: [] to go without, or take the interface out of the list"
FIX_NO_GATEWAY = "declare gateway: [] when it shall have none, or the router's address, or take it out of the list"
FIX_CARD = "name a card; %s"
FIX_BOND = "declare the bond itself, or take the card out of it by hand first"

#: Bytes; what the kernel gives a new interface.
NEW_MTU = 1500
LOST = (
    "%s has the IPv%d default route via %s, and gateway names none of this family: the route goes away, and who comes "
    "from outside by it no longer gets in. Name that router too to keep it"
)
_CARD, _BOND, _VLAN = 0, 1, 2


@dataclass(frozen=True)
class Target:
    """A wanted interface, found on the node: the names of itself and of its ports as they are now."""

    interface: Interface
    name: str
    ports: tuple[str, ...]
    rail: Rail | None
    keyfiles: tuple[Keyfile, ...]

    @property
    def uuid(self) -> str:
        """Of its own profile, not of its ports'."""
        return self.keyfiles[0].uuid

    @property
    def names(self) -> tuple[str, ...]:
        """Itself and its ports."""
        return (self.name, *self.ports)

    @property
    def hosts(self) -> set[str]:
        """Its wanted addresses without prefix length."""
        return {address.partition("/")[0] for address in self.interface.addresses}


@dataclass(frozen=True)
class Plan:
    """What is to be done; nothing when there are ``problems``. ``left_alone`` holds a sentence for each interface.

    ``lost`` holds a sentence for each default route that goes without having been mentioned.
    """

    problems: list[Problem]
    left_alone: list[str]
    lost: list[str]
    profiles: tuple[Keyfile, ...]
    targets: tuple[Target, ...]
    set_aside: tuple[str, ...]
    sysctl: Mapping[str, Any] | None
    state: NodeState

    @property
    def changed(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.profiles or self.targets or self.set_aside or self.sysctl)

    @property
    def activated(self) -> list[str]:
        """The interfaces whose profile is to be activated, in this order."""
        return [target.name for target in self.targets]

    def job(self) -> dict[str, Any]:
        """What the program that makes the change is told."""
        held = {host for link in self.state.links.values() for host in link.hosts}
        return {
            "profiles": [{"name": file.name, "uuid": file.uuid, "text": file.text} for file in self.profiles],
            "activate": [{"uuid": target.uuid, "interface": target.name} for target in self.targets],
            "expect": [
                {
                    "interface": target.name,
                    "addresses": list(target.interface.addresses),
                    "mtu": target.interface.mtu,
                }
                for target in self.targets
            ],
            "conflicts": [
                {"interface": target.name, "address": str(address.ip)}
                for target in self.targets
                for address in target.interface.of(4)
                if str(address.ip) not in held
            ],
            "routers": [
                {"interface": target.name, "router": router, "to": to}
                for target in self.targets
                for router, to in target.interface.routers.items()
            ],
            "mtu_probes": [
                {
                    "interface": target.name,
                    "mtu": target.interface.mtu,
                    "targets": list(target.interface.gateways or ()),
                }
                for target in self.targets
                if target.interface.mtu
            ],
            "sysctl": dict(self.sysctl) if self.sysctl else None,
            "set_aside": list(self.set_aside),
        }

    def diffs(self) -> list[dict[str, str]]:
        """Every file that changes, as it is and as it will be."""
        files = self.state.files
        found = [_diff(file.path, files.get(file.path, ""), file.text) for file in self.profiles]
        found += [_diff(path, files.get(path, ""), "", " (set aside)") for path in self.set_aside]
        if self.sysctl:
            found.append(_diff(self.sysctl["path"], self.sysctl["before"], self.sysctl["text"]))
        return found


def _diff(path: str, before: str, after: str, note: str = "") -> dict[str, str]:
    return {"before_header": path, "after_header": path + note, "before": before, "after": after}


def details_needed(interfaces: Sequence[Interface], state: NodeState) -> list[str]:
    """The uuids of the profiles whose details the plan needs: somebody else's, where all that is wanted is there."""
    planner = _Planner(interfaces, state)
    return [state.active[target.name] for target in planner.targets if planner.may_be_left_alone(target)]


def make_plan(interfaces: Sequence[Interface], state: NodeState) -> Plan:
    """Compare everything."""
    planner = _Planner(interfaces, state)
    alone = [target for target in planner.targets if planner.is_left_alone(target)]
    mine = [target for target in planner.targets if target not in alone]
    changing = [target for target in mine if planner.needs_activation(target)]
    for target in changing:
        planner.check(target, alone)
    sysctl = _sysctl(mine, state)
    return Plan(
        problems=planner.problems,
        left_alone=[LEFT_ALONE % target.name for target in alone],
        lost=[sentence for target in changing for sentence in planner.lost(target)],
        profiles=tuple(file for target in mine for file in target.keyfiles if planner.differs(file)),
        targets=tuple(planner.in_order(planner.with_dependents(changing, mine))),
        set_aside=tuple(planner.obsolete(mine)),
        sysctl=sysctl,
        state=state,
    )


def _sysctl(targets: Sequence[Target], state: NodeState) -> dict[str, Any] | None:
    """The sysctl file of the rails and the values in it, when either is not as it should be."""
    names = [target.name for target in targets if target.rail and 4 in target.rail.versions]
    text, values = rails.sysctl_text(names), rails.sysctl_values(names)
    before = state.files.get(rails.SYSCTL_PATH, "")
    if text == before and all(state.sysctl(key) == value for key, value in values.items()):
        return None
    return {"path": rails.SYSCTL_PATH, "text": text, "before": before, "values": values}


class _Planner:
    """Everything that looks at the wanted interfaces and at the node; collects the problems."""

    def __init__(self, interfaces: Sequence[Interface], state: NodeState) -> None:
        self.state = state
        self.problems: list[Problem] = []
        self.cards = {link.name: link for link in state.links.values() if link.is_card}
        found = rails.find(interfaces)
        self.targets = [target for one in interfaces if (target := self.target(one, found.get(one.label))) is not None]
        self.by_name: dict[str, Target] = {}
        for target in self.targets:
            other = self.by_name.setdefault(target.name, target)
            if other is not target:
                rule = ERR_SAME_CARD % other.interface.variable
                self.refuse(target, "", target.interface.label, rule, "keep one of them")
        self.declared = {name for target in self.targets for name in target.names}
        #: The uuids of the profiles that an earlier run may have left.
        self.own_uuids = {keyfile.claim(text).uuid for path, text in state.files.items() if _is_ours(path)}
        self.own_uuids |= {file.uuid for target in self.targets for file in target.keyfiles}

    def refuse(self, target: Target | Interface, option: str, value: Any, rule: str, fix: str) -> None:
        """Note one problem of an interface; ``option`` is the path below it."""
        interface = target.interface if isinstance(target, Target) else target
        variable = f"{interface.variable}.{option}" if option else interface.variable
        self.problems.append(Problem(variable, shown(value), rule, fix))

    # --- which interface is meant -------------------------------------------------------------------------------------

    def target(self, interface: Interface, rail: Rail | None) -> Target | None:
        """The interface on the node; None, with a problem, when it is not there."""
        name = interface.name
        if interface.mac:
            found = self.by_mac(interface, "mac", interface.mac)
            if not found:
                return None
            if name and found != name:
                fix = "correct one of them, or name the card by its hardware address alone"
                self.refuse(interface, "mac", interface.mac, ERR_OTHER_NAME % (found, name), fix)
                return None
            name = found
        elif not (interface.vlan or interface.bond) and name not in self.state.links:
            self.refuse(interface, "name", name, ERR_UNKNOWN % self.present(), FIX_NAMES)
            return None
        ports = []
        for number, port in enumerate(interface.bond.ports if interface.bond else ()):
            option = f"bond.ports[{number}]"
            found = self.by_mac(interface, option, port) if is_mac(port) else port
            if found and found not in self.state.links:
                self.refuse(interface, option, port, ERR_UNKNOWN % self.present(), FIX_NAMES)
            elif found:
                ports.append(found)
        return Target(interface, name, tuple(ports), rail, tuple(keyfile.keyfiles(interface, rail)))

    def by_mac(self, interface: Interface, option: str, mac: str) -> str:
        """The name of the card with a hardware address; empty, with a problem, when there is not exactly one."""
        found = sorted(card.name for card in self.cards.values() if card.mac == mac)
        if len(found) > 1:
            fix = "name the card by its name"
            self.refuse(interface, option, mac, ERR_SEVERAL % ", ".join(found), fix)
        elif not found:
            present = ", ".join(f"{card.name} {card.mac}" for card in self.cards.values()) or "none"
            self.refuse(interface, option, mac, ERR_NO_MAC % present, FIX_MACS)
        return found[0] if len(found) == 1 else ""

    def present(self) -> str:
        """The names of the node's interfaces."""
        return ", ".join(sorted(link.name for link in self.state.links.values() if link.type != "loopback")) or "none"

    # --- is it as it should be ----------------------------------------------------------------------------------------

    def differs(self, file: Keyfile) -> bool:
        """Whether a keyfile is missing or not as it should be."""
        return self.state.files.get(file.path, "") != file.text

    def runs(self, target: Target) -> bool:
        """Whether the running interface has what is wanted, and nothing that another interface of the list wants."""
        link = self.state.links.get(target.name)
        wanted = target.interface
        return (
            link is not None
            and set(wanted.addresses) <= link.addresses
            and wanted.mtu in (None, link.mtu)
            and not self.gives_up(target)
            and all(self.gateway_runs(target, version) for version in (4, 6))
        )

    def gateway_runs(self, target: Target, version: int) -> bool:
        """Whether the running default routes are those that are wanted, as far as anything was said."""
        found = {route.gateway for route in self.defaults(target, version)}
        gateway = target.interface.gateway(version)
        if gateway:
            return gateway in found
        return target.interface.gateways is None or not found

    def gives_up(self, target: Target) -> bool:
        """Whether the interface holds an address that another interface of the list wants."""
        wanted = {host for other in self.targets if other is not target for host in other.hosts}
        return any(wanted & self.state.links[name].hosts for name in target.names if name in self.state.links)

    def defaults(self, target: Target, version: int = 0) -> list[DefaultRoute]:
        """The default routes over an interface or its ports; ``version`` 0 means both families."""
        return [
            route
            for route in self.state.default_routes
            if route.device in target.names and version in (0, route.version)
        ]

    def lost(self, target: Target) -> list[str]:
        """The default routes of a family of which a gateway of the other one says nothing. An empty list says it."""
        return [
            LOST % (route.device, route.version, route.gateway or "nothing")
            for route in self.defaults(target)
            if target.interface.gateways
            if not target.interface.gateway(route.version)
        ]

    def needs_activation(self, target: Target) -> bool:
        """Whether its profile, or one of its ports', is new, or something does not run as it says."""
        active = self.state.active
        ports = zip(target.ports, target.keyfiles[1:])
        return (
            any(self.differs(file) for file in target.keyfiles)
            or active.get(target.name) != target.uuid
            # A port without a carrier has no active profile.
            or any(active.get(name, file.uuid) != file.uuid for name, file in ports)
            or not self.runs(target)
        )

    def may_be_left_alone(self, target: Target) -> bool:
        """Whether somebody else's profile gave the interface all that is wanted, as far as the running state tells."""
        wanted = target.interface
        active = self.state.active.get(target.name, "")
        beyond = wanted.vlan or wanted.bond or target.rail or wanted.routes or wanted.dns or wanted.dns_search
        return bool(active) and active not in self.own_uuids and not beyond and self.runs(target)

    def is_left_alone(self, target: Target) -> bool:
        """The same, when that profile is static, comes back after a restart and puts the interface into the zone."""
        if not self.may_be_left_alone(target):
            return False
        details = self.state.details.get(self.state.active[target.name])
        wanted = target.interface
        return (
            details is not None
            # NetworkManager makes profiles without it for what was set up by hand.
            and details.autoconnect
            and wanted.zone in ("", details.zone)
            and all(details.methods[version] == "manual" for version in (4, 6) if wanted.of(version))
        )

    # --- can it be meant ----------------------------------------------------------------------------------------------

    def check(self, target: Target, alone: Sequence[Target]) -> None:
        """Every reason why an interface that is to be changed must not be."""
        if target.interface.bond:
            self.check_bond(target)
        elif target.interface.vlan:
            self.check_vlan(target)
        else:
            self.check_card(target, target.name, "name" if target.interface.name else "mac", "")
        self.check_mtu(target)
        self.check_zone(target)
        self.check_held(target)
        self.check_gateway(target, alone)

    def check_card(self, target: Target, name: str, option: str, bond: str) -> None:
        """A card, or a port of the bond named ``bond``."""
        link = self.state.links[name]
        if not link.is_card:
            kind = link.kind or f"of the type {link.type}"
            self.refuse(target, option, name, ERR_NOT_ETHERNET % (name, kind), FIX_CARD % FIX_NAMES)
        elif link.master not in ("", bond):
            self.refuse(target, option, name, ERR_IS_PORT % (name, link.master), FIX_BOND)

    def check_bond(self, target: Target) -> None:
        """A bond and its ports."""
        link = self.state.links.get(target.name)
        if link is not None and link.kind != "bond":
            kind = link.kind or "a card"
            self.refuse(target, "name", target.name, ERR_OTHER_KIND % (target.name, kind), "choose another name")
        for number, name in enumerate(target.ports):
            option = f"bond.ports[{number}]"
            self.check_card(target, name, option, target.name)
            others = [one for one in self.targets if one is not target and name in one.names]
            if others or name in target.ports[:number]:
                place = (others or [target])[0].interface.variable
                self.refuse(target, option, name, ERR_PORT_DECLARED % (name, place), "keep one of them")

    def check_vlan(self, target: Target) -> None:
        """A VLAN and what it stands on."""
        vlan = target.interface.vlan
        if vlan is None:
            return
        link = self.state.links.get(target.name)
        if link is not None and link.kind != "vlan":
            kind = link.kind or "a card"
            self.refuse(target, "name", target.name, ERR_OTHER_KIND % (target.name, kind), "choose another name")
        elif link is not None and (link.vlan_id, link.parent) != (vlan.id, vlan.parent):
            rule = ERR_OTHER_VLAN % (target.name, link.vlan_id, link.parent)
            self.refuse(target, "vlan", f"{vlan.id} of {vlan.parent}", rule, "choose another name for the new one")
        for other in self.targets:
            if vlan.parent in other.ports:
                rule = ERR_PARENT_IS_PORT % other.name
                self.refuse(target, "vlan.parent", vlan.parent, rule, f"put the VLAN on {other.name}")
        parent = self.state.links.get(vlan.parent)
        if parent is None and vlan.parent not in self.by_name:
            self.refuse(target, "vlan.parent", vlan.parent, ERR_NO_PARENT % self.present(), FIX_NAMES)
        elif parent is not None and parent.type != "ether":
            rule = ERR_PARENT_KIND % (vlan.parent, parent.type)
            self.refuse(target, "vlan.parent", vlan.parent, rule, FIX_NAMES)

    def check_mtu(self, target: Target) -> None:
        """What the drivers take, and what is below a VLAN."""
        mtu = target.interface.mtu
        if not mtu:
            return
        for name in target.ports or (target.name,):
            link = self.state.links.get(name)
            if link is not None and (mtu < link.min_mtu or mtu > (link.max_mtu or mtu)):
                rule = ERR_DRIVER_MTU % (name, link.min_mtu, link.max_mtu or "any number of")
                self.refuse(target, "mtu", mtu, rule, "choose a value in this range")
        parent = target.interface.vlan.parent if target.interface.vlan else ""
        if parent in self.by_name or parent in self.state.links:
            below = self.mtu_of(parent)
            if mtu > below:
                fix = f"raise the MTU of {parent} in the same list, or choose at most {below}"
                self.refuse(target, "mtu", mtu, ERR_PARENT_MTU % (parent, below), fix)

    def mtu_of(self, name: str) -> int:
        """The MTU that an interface will have, in bytes; a new one gets the kernel's."""
        target, link = self.by_name.get(name), self.state.links.get(name)
        wanted = target.interface.mtu if target else None
        return wanted or (link.mtu if link else NEW_MTU)

    def check_zone(self, target: Target) -> None:
        """NetworkManager takes an unknown zone without a word and uses none."""
        zone = target.interface.zone
        if zone and zone not in self.state.zones:
            rule = ERR_ZONE % (", ".join(self.state.zones) or "none: it is not installed")
            self.refuse(target, "zone", zone, rule, "choose one of them, or create the zone first")

    def check_held(self, target: Target) -> None:
        """An address on an interface that nobody mentioned would be there twice."""
        for number, address in enumerate(target.interface.addresses):
            for link in self.state.links.values():
                if link.name not in self.declared and address.partition("/")[0] in link.hosts:
                    fix = f"take it off {link.name}, or declare {link.name} too"
                    self.refuse(target, f"addresses[{number}]", address, ERR_HELD % link.name, fix)

    def check_gateway(self, target: Target, alone: Sequence[Target]) -> None:
        """No default route is lost, or doubled, by silence."""
        defaults = self.defaults(target)
        carried = [f"{route.device} has the default route via {route.gateway or 'nothing'}" for route in defaults]
        ours = self.state.active.get(target.name) in self.own_uuids
        if self.state.ssh_interface in target.names and not ours:
            carried.append(f"{self.state.ssh_interface} carries Ansible's own ssh connection")
        if carried and target.interface.gateways is None:
            fix = FIX_GATEWAY % ", ".join(route.gateway for route in defaults if route.gateway)
            if not defaults:
                fix = FIX_NO_GATEWAY
            self.refuse(target, "gateway", None, ERR_GATEWAY_UNSAID % " and ".join(carried), fix)
        kept = {name for one in self.targets if one not in alone for name in one.names}
        for version in (4, 6):
            gateway = target.interface.gateway(version)
            others = [one for one in self.state.default_routes if one.version == version and one.device not in kept]
            if gateway and others:
                other = others[0]
                rule = ERR_OTHER_DEFAULT % (other.device, version, other.gateway or "on link")
                fix = f"declare {other.device} too, with gateway: [], or give {target.name} routes instead of a gateway"
                self.refuse(target, "gateway", gateway, rule, fix)

    # --- what follows -------------------------------------------------------------------------------------------------

    def with_dependents(self, changing: Sequence[Target], mine: Sequence[Target]) -> list[Target]:
        """What changes, and what stands on it: a VLAN goes down with its parent."""
        result = list(changing)
        for target in sorted(mine, key=self.depth):
            vlan = target.interface.vlan
            if vlan and target not in result and vlan.parent in {one.name for one in result}:
                result.append(target)
        return result

    def depth(self, target: Target) -> int:
        """Cards first, then bonds, then VLANs, then VLANs on those."""
        if not target.interface.vlan:
            return _BOND if target.interface.bond else _CARD
        below = self.by_name.get(target.interface.vlan.parent)
        return max(_VLAN, self.depth(below) + 1 if below else 0)

    def in_order(self, targets: Sequence[Target]) -> list[Target]:
        """The order of activation; of one kind, those first that hold an address which another one waits for."""
        places = {target.name: number for number, target in enumerate(self.targets)}
        return sorted(targets, key=lambda target: (self.depth(target), not self.gives_up(target), places[target.name]))

    def obsolete(self, mine: Sequence[Target]) -> list[str]:
        """Files that say something else about these interfaces: ifcfg files, and profiles of ours under other names."""
        wanted = {file.path for target in mine for file in target.keyfiles}
        found: set[str] = set()
        readable = {path: text for path, text in self.state.files.items() if path.startswith(ifcfg.FOLDER)}
        readable.update({path: "" for path in self.state.listed if path.startswith(ifcfg.FOLDER)})
        names = {name for target in mine for name in target.names}
        macs = {self.state.links[name].mac: name for name in names if name in self.cards}
        for name in names:
            mac = self.cards[name].mac if name in self.cards else ""
            found |= set(ifcfg.belonging(readable, name, mac))
        for path, text in self.state.files.items():
            if _is_ours(path) and path not in wanted:
                claim = keyfile.claim(text)
                if claim.name in names or (not claim.name and claim.mac in macs):
                    found.add(path)
        return sorted(found)


def _is_ours(path: str) -> bool:
    return path.startswith(f"{keyfile.FOLDER}/{keyfile.PREFIX}")
