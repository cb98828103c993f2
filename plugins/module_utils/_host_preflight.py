# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node must be before anything on it is changed. Pure: what was observed and expected in, problems out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import iproute
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    is_loopback_name,
    whole_number,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import ssh
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._kernels import compare_kernels, newest_kernel
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._port_plan import VARIABLE as PORTS

NO_SSH = ssh.Used(frozenset(), 0)

SUPPORTED_MAJORS = (9, 10)
MINIMUM_PYTHON = (3, 9)
GIB = 1024**3
DAY = 86400.0
FABRIC_INTERFACE = "gpu_cluster_fabric_interface"
INTERFACES = "static_network_interfaces"
GPUS = "gpu_cluster_gpus"
HOSTNAME = "static_network_hostname"
#: The number of GPUs that means: not compared.
ANY_GPUS = -1
#: How many members with one name are named.
SHOWN = 8
#: What a node does that runs an older kernel than it has: print it, or take it for a problem.
REPORT, REFUSE = "report", "refuse"
FIREWALLD = "firewalld"
PACKAGES = {"firewall-cmd": FIREWALLD, "ip": "iproute", "nmcli": "NetworkManager"}

ERR_SYSTEM = "expected CentOS Stream, RHEL or their kin, version {}".format(
    " or ".join(str(major) for major in SUPPORTED_MAJORS)
)
ERR_PYTHON = f"expected Python {MINIMUM_PYTHON[0]}.{MINIMUM_PYTHON[1]} or newer for Ansible's modules"
ERR_ROOT = "expected to run as root, found user id %d"
ERR_SYSTEMD = "expected systemd as the first process, found %s"
ERR_MISSING_TOOL = "expected the command %s on the node, found none"
ERR_NETWORK_MANAGER = "expected the service to run, found it %s"
ERR_NO_INTERFACE = "the node has no such interface; it has: %s"
ERR_NO_MAC = "no card of the node has this hardware address; it has: %s"
ERR_OTHER_NAME = "belongs to %s, not to %s"
ERR_NO_LINK = "%s has no link: it is up, but there is no carrier"
ERR_MTU = "the driver of %s takes an MTU of %s"
ERR_DISK = "expected at least %d GiB free below %s, found %.1f GiB"
ERR_INSTALL = "the place of the environment cannot be looked at: %s"
ERR_CLOCK = "expected the node's clock at most %d s off the controller's, found it at least %.1f s %s%s"
ERR_OLD_KERNEL = "%s is installed and newer than the running kernel"
ERR_GPUS = "expected %s, found %d%s"
ERR_LOOPBACK_NAME = "the node's own name means the loopback address on every machine"
ERR_SAME_NAME = "%d members call themselves so: %s"
ERR_OTHERS_NAME = "is the name of the member %s in the inventory"
ERR_ODD = "its answer is not one of this module: something else answers in the place of its Python"
FIX_ODD = "look at ansible_python_interpreter of this host and at that program on the node"
#: What every problem and note of a node has, and how many of them are more than any node has.
ENTRY = ("variable", "value", "rule", "fix")
MOST_ENTRIES = 1000

FIX_INSTALL = "look at the storage that is mounted there (`findmnt`), at its server, and at the network to it"
FIX_FIREWALLD = ", or set cluster_firewall_start_ok: true, with which the role cluster_firewall installs and starts it"
FIX_MISSING_GPU = (
    "compare the PCI addresses with those of a node that shows all; a missing one is a card that is not seated, has no "
    "power or fell off the bus (`journalctl -k -g 'fallen off the bus'`), or a slot that the firmware (BIOS) leaves out"
)
FIX_FURTHER_GPU = f"correct {GPUS} of this host, or take the card out"
FIX_NAME = f"set {HOSTNAME} (the role's README shows how for all hosts at once), or run hostnamectl set-hostname"
FIX_LINK = "check cable, transceiver and switch port; `ip -br link` on the node must say LOWER_UP"

_OS_RELEASE_LINE = re.compile(r"^([A-Z_]+)=(.*)$")
#: Kinds of interfaces that borrow the hardware address of a card.
_BORROWERS = ("bond", "bridge", "ipvlan", "macvlan", "macvtap", "team", "vlan")


@dataclass(frozen=True)
class Link:
    """A network interface of the node. ``mac`` is in lower case and the card's own; MTU in bytes, 0 is no limit."""

    name: str
    mac: str = ""
    is_up: bool = True
    has_carrier: bool = True
    min_mtu: int = 0
    max_mtu: int = 0
    kind: str = ""


@dataclass(frozen=True)
class Expected:
    """What the inventory asks of the node. ``interfaces`` is the host's own list, taken as it is."""

    fabric_interface: str
    install_path: str
    min_free_gib: int
    interfaces: tuple[Mapping[str, Any], ...] = ()
    stale_kernel: str = REPORT
    ssh_ports: tuple[int, ...] = ()
    gpus: int = ANY_GPUS


@dataclass(frozen=True)
class Observed:
    """What the node is. ``links`` is None, and ``network_manager`` empty, where there was no way to ask."""

    os_release: str
    python: tuple[int, ...]
    user_id: int
    first_process: str
    commands: dict[str, bool]
    network_manager: str
    links: tuple[Link, ...] | None
    running_kernel: str
    installed_kernels: tuple[str, ...]
    install_path_exists: bool
    free_path: str
    free_bytes: int
    ssh_used: ssh.Used = NO_SSH
    #: PCI addresses of the GPUs, with or without a driver.
    gpus: tuple[str, ...] = ()
    #: Mounts of other machines' files that hang or are stale.
    storage: tuple[Problem, ...] = ()
    #: Whether the place of the environment gives no answer, and what the kernel says of it.
    install_silent: bool = False
    install_error: str = ""


# --- the network cards ----------------------------------------------------------------------------------------------


def parse_links(text: str) -> tuple[Link, ...]:
    """The output of ``ip -d -j link show``; raises ValueError when it is something else."""
    links = [
        Link(
            name=link.name,
            # A port of a bond shows the bond's address, and its own one beside it.
            mac=link.permanent_mac or link.mac,
            is_up="UP" in link.flags,
            has_carrier="LOWER_UP" in link.flags,
            min_mtu=link.min_mtu,
            max_mtu=link.max_mtu,
            kind=link.kind,
        )
        for link in iproute.links(text or "[]")
    ]
    return tuple(sorted(links, key=lambda link: link.name))


def _by_name(name: str, variable: str, links: Sequence[Link], problems: list[Problem]) -> Link | None:
    for link in links:
        if link.name == name:
            return link
    rule = ERR_NO_INTERFACE % (", ".join(link.name for link in links) or "none")
    fix = "set it to one of these for this host, or check the card and its driver"
    problems.append(Problem(variable, shown(name), rule, fix))
    return None


def _by_mac(mac: str, variable: str, links: Sequence[Link], problems: list[Problem]) -> Link | None:
    wanted = mac.lower().replace("-", ":")
    cards = [link for link in links if link.kind not in _BORROWERS and link.mac and link.name != "lo"]
    found = [link for link in cards if link.mac == wanted]
    if not found:
        rule = ERR_NO_MAC % (", ".join(f"{link.name} {link.mac}" for link in cards) or "none")
        fix = "write the address of one of these for this host, or check the card and its driver"
        problems.append(Problem(variable, shown(mac), rule, fix))
    # Several cards with one address are a question for the planner of the change, which knows more.
    return found[0] if len(found) == 1 else None


def _card(text: Any, variable: str, links: Sequence[Link], problems: list[Problem]) -> Link | None:
    """A card that is spelled by its name or by its hardware address, as ports of a bond are."""
    is_mac = re.match(r"^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$", str(text))
    return (_by_mac if is_mac else _by_name)(str(text), variable, links, problems)


def _named(entry: Mapping[str, Any], path: str, links: Sequence[Link], problems: list[Problem]) -> Link | None:
    """The card of an entry with a name, a hardware address, or both."""
    name, mac = entry.get("name"), entry.get("mac")
    by_mac = _by_mac(str(mac), f"{path}.mac", links, problems) if mac else None
    by_name = _by_name(str(name), f"{path}.name", links, problems) if name else None
    if by_mac and by_name and by_mac != by_name:
        rule = ERR_OTHER_NAME % (by_mac.name, by_name.name)
        problems.append(Problem(f"{path}.mac", shown(mac), rule, "correct one of the two, or leave the name out"))
        return None
    return by_mac or by_name


def _mtu_problem(mtu: Any, variable: str, link: Link) -> Problem | None:
    wanted = whole_number(mtu)
    if wanted is None or (link.min_mtu <= wanted and (not link.max_mtu or wanted <= link.max_mtu)):
        return None
    limits = f"{link.min_mtu} to {link.max_mtu} bytes" if link.max_mtu else f"at least {link.min_mtu} bytes"
    return Problem(variable, str(mtu), ERR_MTU % (link.name, limits), "choose an MTU in this range")


def _entry_problems(path: str, entry: Mapping[str, Any], declared: set[str], links: Sequence[Link]) -> list[Problem]:
    """One declared interface: that its cards exist, have a link, and take its MTU.

    A VLAN or a bond need not exist yet; what it stands on must. A bond has a link when one of its ports has.
    """
    problems: list[Problem] = []
    vlan, bond = entry.get("vlan"), entry.get("bond")
    cards: list[Link | None]
    if isinstance(bond, Mapping):
        ports = bond.get("ports")
        ports = ports.split(",") if isinstance(ports, str) else ports or []
        where = f"{path}.bond.ports"
        cards = [_card(port, f"{where}[{number}]", links, problems) for number, port in enumerate(ports)]
    elif isinstance(vlan, Mapping):
        where = f"{path}.vlan.parent"
        parent = vlan.get("parent")
        cards = [] if parent is None or str(parent) in declared else [_card(parent, where, links, problems)]
    else:
        where = f"{path}.name" if entry.get("name") else f"{path}.mac"
        cards = [_named(entry, path, links, problems)]
    present = [link for link in cards if link is not None]
    dead = [link for link in present if link.is_up and not link.has_carrier]
    if dead and len(dead) == len(cards):
        names = ", ".join(link.name for link in dead)
        problems.append(Problem(where, shown(names), ERR_NO_LINK % names, FIX_LINK))
    for link in present:
        refused = _mtu_problem(entry.get("mtu"), f"{path}.mtu", link)
        if refused is not None:
            problems.append(refused)
    return problems


def interface_problems(expected: Expected, links: Sequence[Link]) -> list[Problem]:
    """Every declared interface; the fabric's card where the host's own list does not name it."""
    declared = {str(entry["name"]) for entry in expected.interfaces if entry.get("name")}
    problems: list[Problem] = []
    for number, entry in enumerate(expected.interfaces):
        problems.extend(_entry_problems(f"{INTERFACES}[{number}]", entry, declared, links))
    by_mac = [_by_mac(str(entry["mac"]), "", links, []) for entry in expected.interfaces if entry.get("mac")]
    covered = declared | {link.name for link in by_mac if link is not None}
    if expected.fabric_interface and expected.fabric_interface not in covered:
        link = _by_name(expected.fabric_interface, FABRIC_INTERFACE, links, problems)
        if link is not None and link.is_up and not link.has_carrier:
            problems.append(Problem(FABRIC_INTERFACE, shown(link.name), ERR_NO_LINK % link.name, FIX_LINK))
    return problems


# --- the GPUs -------------------------------------------------------------------------------------------------------


def gpu_problem(expected: int, addresses: Sequence[str]) -> Problem | None:
    """A number of NVIDIA's GPUs on the PCI bus that is not the one in the inventory."""
    if expected == ANY_GPUS or expected == len(addresses):
        return None
    wanted = "1 GPU" if expected == 1 else f"{expected} GPUs"
    rule = ERR_GPUS % (wanted, len(addresses), f": {', '.join(addresses)}" if addresses else "")
    fix = FIX_MISSING_GPU if len(addresses) < expected else FIX_FURTHER_GPU
    return Problem(GPUS, str(expected), rule, fix)


# --- the kernel -----------------------------------------------------------------------------------------------------


def kernel_problem(running: str, installed: Sequence[str], policy: str) -> Problem | None:
    """A node that runs an older kernel than it has: modules are built for the newer one, and tests ran on the other."""
    newest = newest_kernel(running, installed)
    if not newest or compare_kernels(newest, running) <= 0:
        return None
    fix = "reboot the node, or set preflight_stale_kernel: report" if policy == REFUSE else "reboot the node"
    return Problem("kernel", running, ERR_OLD_KERNEL % newest, fix)


# --- the clock ------------------------------------------------------------------------------------------------------


def clock_offset(before: float, clock: float, after: float) -> float:
    """Seconds that the node's clock lies outside of the controller's times before and after the call, 0 when inside.

    Below zero the node is behind. It is the least offset that explains what was read, so a slow node is never accused.
    """
    return min(clock - before, 0.0) + max(clock - after, 0.0)


def clock_problem(offset: float, limit: float) -> Problem | None:
    """A clock that is further off than the limit, both in seconds."""
    if abs(offset) <= limit:
        return None
    days = f" ({abs(offset) / DAY:.1f} days)" if abs(offset) >= DAY else ""
    rule = ERR_CLOCK % (limit, abs(offset), "ahead" if offset > 0 else "behind", days)
    fix = "set the clock, and let it be kept: systemctl enable --now chronyd && chronyc makestep"
    return Problem("preflight_max_time_offset_seconds", str(int(limit)), rule, fix)


# --- the node -------------------------------------------------------------------------------------------------------


def parse_os_release(text: str) -> dict[str, str]:
    """The keys of ``/etc/os-release`` without their quotes."""
    result = {}
    for line in text.splitlines():
        match = _OS_RELEASE_LINE.match(line.strip())
        if match:
            result[match.group(1)] = match.group(2).strip().strip("\"'")
    return result


def is_supported_system(release: dict[str, str]) -> bool:
    """Whether it is EL of a supported major version."""
    family = {release.get("ID", "")} | set(release.get("ID_LIKE", "").split())
    major = whole_number(release.get("VERSION_ID", "").split(".")[0])
    # Fedora itself is no EL: its ID is fedora, and its versions are far above.
    return bool(family & {"rhel", "centos"}) and major in SUPPORTED_MAJORS


def host_problems(expected: Expected, observed: Observed) -> list[Problem]:
    """Every reason why this node cannot become a member."""
    problems: list[Problem] = []
    release = parse_os_release(observed.os_release)
    if not is_supported_system(release):
        name = release.get("PRETTY_NAME") or f"{release.get('ID', 'unknown')} {release.get('VERSION_ID', '')}".strip()
        fix = "install a supported system, or take the host out of the group"
        problems.append(Problem("operating system", name, ERR_SYSTEM, fix))
    if observed.python[:2] < MINIMUM_PYTHON:
        version = ".".join(str(part) for part in observed.python[:3])
        fix = "set ansible_python_interpreter to a newer one for this host"
        problems.append(Problem("ansible_python_interpreter", version, ERR_PYTHON, fix))
    if observed.user_id != 0:
        fix = "set ansible_become: true, or log in as root with ansible_user: root"
        problems.append(Problem("ansible_become", "", ERR_ROOT % observed.user_id, fix))
    if observed.first_process != "systemd":
        fix = "use a machine, or a container that boots systemd"
        problems.append(Problem("init system", "", ERR_SYSTEMD % shown(observed.first_process), fix))
    for command, present in sorted(observed.commands.items()):
        if not present:
            package = PACKAGES.get(command, command)
            fix = f"dnf install {package}" + (FIX_FIREWALLD if package == FIREWALLD else "")
            problems.append(Problem(package, "", ERR_MISSING_TOOL % command, fix))
    if observed.network_manager not in ("", "active"):
        fix = "systemctl enable --now NetworkManager"
        problems.append(Problem("NetworkManager", "", ERR_NETWORK_MANAGER % observed.network_manager, fix))
    if observed.links is not None:
        problems.extend(interface_problems(expected, observed.links))
    # An environment that is there already shows that it fits; a node must not be refused because it is in use.
    if observed.install_silent or observed.install_error:
        rule = ERR_INSTALL % (observed.install_error or "its storage does not answer")
        problems.append(Problem("torch_runtime_prefix", expected.install_path, rule, FIX_INSTALL))
    elif not observed.install_path_exists and observed.free_bytes < expected.min_free_gib * GIB:
        rule = ERR_DISK % (expected.min_free_gib, observed.free_path, observed.free_bytes / GIB)
        fix = f"free some space, or set torch_runtime_prefix to a larger disk ({expected.install_path} now)"
        problems.append(Problem("preflight_min_free_gib", str(expected.min_free_gib), rule, fix))
    wrong_gpus = gpu_problem(expected.gpus, observed.gpus)
    if wrong_gpus is not None:
        problems.append(wrong_gpus)
    if expected.ssh_ports:
        problems.extend(ssh.problems(expected.ssh_ports, observed.ssh_used, f"{PORTS}.ssh"))
    if expected.stale_kernel == REFUSE:
        problems.extend(_old_kernel(expected, observed))
    return problems


def host_notes(expected: Expected, observed: Observed) -> list[Problem]:
    """What a person should know about this node, and what stops nobody."""
    kernel = _old_kernel(expected, observed) if expected.stale_kernel == REPORT else []
    return [*kernel, *observed.storage]


def _old_kernel(expected: Expected, observed: Observed) -> list[Problem]:
    found = kernel_problem(observed.running_kernel, observed.installed_kernels, expected.stale_kernel)
    return [] if found is None else [found]


def is_answer(result: object) -> bool:
    """Whether the lists in a result are what the module answers: root of a node, who may be hostile, decides that."""
    return isinstance(result, dict) and all(
        isinstance(entries, (list, tuple)) and len(entries) <= MOST_ENTRIES and all(map(_is_entry, entries))
        for entries in (result.get("problems", []), result.get("notes", []))
    )


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and all(isinstance(entry.get(name), str) for name in ENTRY)


def name_problems(names: Mapping[str, str]) -> list[Problem]:
    """Names of nodes that mean no single machine; ``names`` is what each member calls itself, or is going to.

    Gloo and Open MPI look up the node's own name, and NCCL takes GPUs on nodes of one name for those of one machine.
    """
    holders: dict[str, list[str]] = {}
    for host, name in names.items():
        holders.setdefault(_plain(name), []).append(host)
    members = {_plain(host): host for host in names}
    problems = []
    for host, name in names.items():
        alike = holders[_plain(name)]
        if is_loopback_name(name):
            problems.append(Problem("host name", shown(name), ERR_LOOPBACK_NAME, FIX_NAME, host))
        elif len(alike) > 1:
            rule = ERR_SAME_NAME % (len(alike), ", ".join(alike[:SHOWN]) + (", ..." if len(alike) > SHOWN else ""))
            problems.append(Problem("host name", shown(name), rule, FIX_NAME, host))
        elif members.get(_plain(name), host) != host:
            rule = ERR_OTHERS_NAME % members[_plain(name)]
            problems.append(Problem("host name", shown(name), rule, FIX_NAME, host))
    return problems


def _plain(name: str) -> str:
    """A name without what makes no difference to who looks it up."""
    return name.lower().rstrip(".")


def own_name(result: object, wanted: object) -> str:
    """What a node is going to call itself: as the inventory wants it, or else as it answered; empty without either."""
    observed = result.get("observed") if isinstance(result, dict) else None
    found = observed.get("hostname") if isinstance(observed, dict) else None
    return next((str(name) for name in (wanted, found) if isinstance(name, str) and name), "")


def collected_notes(results: Sequence[tuple[str, object]]) -> list[Problem]:
    """What the hosts reported without refusing it."""
    return [note for host, result in results for note in entries(host, result, "notes")]


def entries(host: str, result: object, key: str) -> list[Problem]:
    found = result.get(key, ()) if isinstance(result, dict) and is_answer(result) else ()
    return [Problem(**{name: str(entry[name]) for name in ENTRY}, host=host) for entry in found]
