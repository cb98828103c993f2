# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster as the launcher sees it: members in rank order, ports, user and programs. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import (
    LAST_PORT,
    interface_of,
    is_host_name,
    not_a_host,
    port_of,
    whole_number,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown

SCHEMA = 1
#: What torchrun and most scripts take when nobody says anything (torch/distributed/run.py); used where it is in range.
USUAL_PORT = 29500
#: More than any machine has GPUs; catches a slip of the pen.
MOST_SLOTS = 256
#: The number of a member whose GPUs nobody has counted in this run.
UNCOUNTED = -1
#: What useradd of EL accepts, without the trailing ``$`` of Samba's machine accounts.
USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")

ERR_NO_MEMBERS = "the list of members is empty"
ERR_MEMBER = "a member has name, fabric_address and fabric_prefix"
ERR_NAME = "no name of a host"
ERR_ADDRESS = "no address with a prefix length"
ERR_NOT_A_HOST = "it is not the address of a network card (%s)"
ERR_TWICE = "two members have it"
ERR_NODE = "this node is not among the members: %s"
ERR_USER = "no name of a user"
ERR_ROOT = "jobs do not run as root"
ERR_PATH = "no absolute path of a program"
ERR_PORT = f"no port from 1 to {LAST_PORT}"
ERR_RANGE = "the first port is above the last one"
ERR_RENDEZVOUS = "expected first and last, two ports"
ERR_SLOTS = f"expected a whole number up to {MOST_SLOTS}, or one for each member by its name"
ERR_NO_SLOTS = "it has no number for %s"
ERR_ETCD_NAMES = "expected the names of members of the cluster"
ERR_ETCD_MEMBER = "no member of the cluster has this name"
ERR_STRANGER = "it has a number for %s, which is no member"

FIX_MEMBERS = "apply the role with the playbooks, or hand over the list of the filter cluster_members"


class Member(NamedTuple):
    """One node: ``network`` in CIDR form, ``slots`` the ranks that it takes."""

    name: str
    address: str
    network: str
    slots: int
    #: What the inventory calls its interface; only a guess until the node is asked.
    interface: str


class Cluster(NamedTuple):
    """The same on all members."""

    user: str
    python: str
    mpirun: str
    ssh_port: int
    first: int
    last: int
    members: list[Member]
    #: Where the members of etcd listen, ADDRESS:PORT; empty without the role etcd.
    etcd: tuple[str, ...] = ()

    def default_port(self) -> int:
        """The rendezvous port of jobs that do not choose one."""
        return USUAL_PORT if self.first <= USUAL_PORT <= self.last else self.first

    def world_size(self) -> int:
        """Ranks on all members together."""
        return sum(member.slots for member in self.members)

    def member(self, name: str) -> Member:
        """The member of this name."""
        return next(member for member in self.members if member.name == name)


def read(params: Mapping[str, Any], node: str) -> tuple[Cluster | None, list[Problem]]:
    """Read the role's variables by their names without the prefix; no cluster where something is wrong."""
    members, problems = _members(params.get("members"), params.get("slots", 1))
    if members and node not in [member.name for member in members]:
        has = ", ".join(member.name for member in members[:4])
        problems.append(Problem("launcher_node", shown(node), ERR_NODE % has, "add it, or correct its name"))
    user = params.get("user")
    if not isinstance(user, str) or not USER.fullmatch(user):
        problems.append(Problem("launcher_user", shown(user), ERR_USER, "write the name of the user who runs jobs"))
    elif user == "root":
        problems.append(Problem("launcher_user", shown(user), ERR_ROOT, "name a user without rights, such as train"))
    for key in ("python", "mpirun"):
        if not is_path(params.get(key)):
            problems.append(Problem(f"launcher_{key}", shown(params.get(key)), ERR_PATH, "write /where/it/is"))
    ports, found = _ports(params.get("ssh_port"), params.get("rendezvous"))
    problems += found
    etcd, found = _etcd(params.get("etcd_members"), params.get("etcd_port"), members)
    problems += found
    if problems:
        return None, problems
    cluster = Cluster(str(user), str(params["python"]), str(params["mpirun"]), *ports, members, etcd)
    return cluster, []


def is_path(value: Any) -> bool:
    """Whether it can be a program's path: absolute, and one word of a shell."""
    return isinstance(value, str) and bool(re.fullmatch(r"/[A-Za-z0-9_.+@%/-]+", value)) and not value.endswith("/")


def rendezvous_problems(value: Any) -> list[Problem]:
    """The rule of ``launcher_rendezvous`` alone."""
    return _ports(22, value)[1]


def _ports(ssh: Any, rendezvous: Any) -> tuple[tuple[int, int, int], list[Problem]]:
    """The port of sshd, and the first and the last one of the rendezvous range."""
    if not isinstance(rendezvous, Mapping) or not {"first", "last"} <= set(rendezvous):
        fix = "write {first: 29400, last: 29599}"
        return (0, 0, 0), [Problem("launcher_rendezvous", shown(rendezvous), ERR_RENDEZVOUS, fix)]
    problems = []
    named = {
        "launcher_ssh_port": ssh,
        "launcher_rendezvous.first": rendezvous["first"],
        "launcher_rendezvous.last": rendezvous["last"],
    }
    ports = []
    for variable, value in named.items():
        port = port_of(value)
        if port is None:
            problems.append(Problem(variable, shown(value), ERR_PORT, "correct it"))
        else:
            ports.append(port)
    if problems:
        return (0, 0, 0), problems
    if ports[1] > ports[2]:
        problems.append(Problem("launcher_rendezvous", f"{ports[1]}-{ports[2]}", ERR_RANGE, "swap them"))
    return (ports[0], ports[1], ports[2]), problems


def _etcd(names: Any, port: Any, members: list[Member]) -> tuple[tuple[str, ...], list[Problem]]:
    """The endpoints of etcd, in the order of ``names``."""
    if not names:
        return (), []
    if not isinstance(names, list):
        return (), [Problem("launcher_etcd_members", shown(names), ERR_ETCD_NAMES, "write a list of names")]
    addresses = {member.name: member.address for member in members}
    problems = [
        Problem(f"launcher_etcd_members[{index}]", shown(name), ERR_ETCD_MEMBER, "correct etcd_members")
        for index, name in enumerate(names)
        if str(name) not in addresses
    ]
    number = port_of(port)
    if number is None:
        problems.append(Problem("launcher_etcd_port", shown(port), ERR_PORT, "correct gpu_cluster_ports.etcd"))
    if problems:
        return (), problems
    found = [addresses[str(name)] for name in names]
    return tuple(f"[{one}]:{number}" if ":" in one else f"{one}:{number}" for one in found), []


def _members(given: Any, slots: Any) -> tuple[list[Member], list[Problem]]:
    """The members in the order of the list, which is that of the ranks."""
    if not isinstance(given, list) or not given:
        return [], [Problem("launcher_members", "", ERR_NO_MEMBERS, FIX_MEMBERS)]
    problems, members = [], []
    for index, entry in enumerate(given):
        variable = f"launcher_members[{index}]"
        if not isinstance(entry, Mapping) or not {"name", "fabric_address", "fabric_prefix"} <= set(entry):
            problems.append(Problem(variable, shown(entry), ERR_MEMBER, FIX_MEMBERS))
            continue
        name = str(entry["name"])
        if not is_host_name(name):
            problems.append(Problem(f"{variable}.name", shown(name), ERR_NAME, "correct the name in the inventory"))
        text = f"{entry['fabric_address']}/{entry['fabric_prefix']}"
        address = interface_of(text)
        kind = "" if address is None else not_a_host(address.ip)
        if address is None or kind:
            rule = ERR_NOT_A_HOST % kind if kind else ERR_ADDRESS
            fix = "correct gpu_cluster_fabric_address of this host"
            problems.append(Problem(f"{variable}.fabric_address", shown(text), rule, fix))
            continue
        interface = str(entry.get("fabric_interface", ""))
        members.append(Member(name, str(address.ip), str(address.network), 1, interface))
    problems += _doubles("name", [member.name.lower() for member in members])
    problems += _doubles("fabric_address", [member.address for member in members])
    counts, found = _slots(slots, [member.name for member in members])
    return [member._replace(slots=counts.get(member.name, 1)) for member in members], problems + found


def _doubles(key: str, values: list[str]) -> list[Problem]:
    """Values that two members have."""
    twice = sorted({value for value in values if values.count(value) > 1})
    return [Problem(f"launcher_members[].{key}", shown(value), ERR_TWICE, "give each its own") for value in twice]


def kept_slots(text: str) -> dict[str, int]:
    """How many ranks each member takes by the file of an earlier run; empty where that cannot be read."""
    try:
        entries = json.loads(text)["members"]
        found = {entry["name"]: entry["slots"] for entry in entries}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    counted = {name: n for name, n in found.items() if isinstance(n, int) and not isinstance(n, bool)}
    return {name: count for name, count in counted.items() if 1 <= count <= MOST_SLOTS}


def settled_slots(given: Any, names: Sequence[str], kept: Mapping[str, int]) -> tuple[Any, list[str]]:
    """``given`` with a number for the members that nobody counted, and those for which it is only likely.

    ``kept`` is what the node's own file has for them. Where it has nothing, they get what most of the others take.
    """
    counts = {name: whole_number(given.get(name, 0) if isinstance(given, Mapping) else given) for name in names}
    uncounted = [name for name in names if counts[name] == UNCOUNTED]
    if not uncounted:
        return given, []
    known = {name: max(1, count) for name, count in counts.items() if count is not None and count != UNCOUNTED}
    known.update({name: kept[name] for name in uncounted if name in kept})
    usual = Counter(known.values()).most_common(1)[0][0] if known else 1
    settled = dict(given) if isinstance(given, Mapping) else {}
    settled.update({name: known.get(name, usual) for name in uncounted})
    return settled, [name for name in uncounted if name not in known]


def slot_problems(value: Any) -> list[Problem]:
    """The rule of ``launcher_slots`` alone, without the members."""
    return _slots(value, [str(name) for name in value] if isinstance(value, Mapping) else ["every member"])[1]


def _slots(given: Any, names: list[str]) -> tuple[dict[str, int], list[Problem]]:
    """How many ranks each member takes. A node without GPUs (0) takes one, for what runs on CPUs."""
    entries = given if isinstance(given, Mapping) else dict.fromkeys(names, given)
    problems, slots = [], {}
    for name, value in entries.items():
        count = whole_number(value)
        if count is None or not -1 <= count <= MOST_SLOTS:
            variable = f"launcher_slots[{name}]" if isinstance(given, Mapping) else "launcher_slots"
            problems.append(Problem(variable, shown(value), ERR_SLOTS, "write how many ranks the node takes"))
        else:
            slots[str(name)] = max(1, count)
    missing = [name for name in names if name not in entries]
    strangers = [str(name) for name in entries if name not in names]
    if missing:
        problems.append(Problem("launcher_slots", "", ERR_NO_SLOTS % ", ".join(missing), "add it"))
    if strangers:
        problems.append(Problem("launcher_slots", "", ERR_STRANGER % ", ".join(strangers), "remove it"))
    # One wrong number for all is one problem.
    return slots, list(dict.fromkeys(problems))
