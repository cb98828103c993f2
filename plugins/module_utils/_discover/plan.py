# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory that describes some machines.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.format import human_bytes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover import expressions, inventory
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover import names as machine_names
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.fabric import (
    Fabric,
    described,
    fabric,
    links,
    named,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.inventory import (
    Inventory,
    Question,
    Values,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.machine import Machine
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.networks import natural, networks
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.labels import label_problems

SYSTEM_PYTHON = "/usr/bin/python3"
SSH = 22


def plan(
    machines: Sequence[Machine],
    kept: Mapping[str, Mapping[str, Any]],
    given: Mapping[str, Mapping[str, Any]],
    group: str,
    groups: Sequence[str] = (),
    written: bool = False,
) -> tuple[Inventory, list[str]]:
    """The inventory, and what is said about the machines.

    kept: variables of the hosts in the inventory that is replaced.  given: what is decided already, such as in
    group_vars.  groups: names of groups.  written: a person has written the names of the hosts.
    """
    names, reasons = machine_names.names(machines, groups, written)
    found = fabric(machines, names, given)
    values = [
        _where(machines, names),
        *found.values,
        *_gpus(machines, names),
        *_labels(machines, names, found),
        *_rdma(machines, names, found),
        *_names(machines, names, reasons),
        *_systems(machines, names),
        *_logins(machines, names),
    ]
    logins = {one.host: _login(one, machines, kept, given) for one in machines}
    values = [one for one in (_undecided(one, names, given) for one in values) if one is not None]
    result = Inventory(
        group=group,
        renamed=names,
        names=sorted(names.values(), key=natural),
        values=values,
        kept={names[one.host]: {**kept.get(one.host, {}), **logins[one.host]} for one in machines},
        head=[what for what, _hosts in groups_of(machines, names, _kind)],
        adds=any(one.variable for one in values) or any(logins.values()) or any(a != b for a, b in names.items()),
    )
    return result, told(machines, names, found)


def _undecided(values: Values, names: Mapping[str, str], given: Mapping[str, Mapping[str, Any]]) -> Values | None:
    """The values for hosts that have none from elsewhere: there, these would have no effect, or two."""
    decided = {names[host] for host, own in given.items() if values.variable in own}
    if not decided & set(values.hosts):
        return values
    left = {name: value for name, value in values.hosts.items() if name not in decided}
    return replace(values, hosts=left) if left else None


def groups_of(
    machines: Sequence[Machine], names: Mapping[str, str], kind: Callable[[Machine], str]
) -> list[tuple[str, list[str]]]:
    """What is said of machines, each once, with the hosts of which it is said."""
    found: dict[str, list[str]] = {}
    for one in machines:
        found.setdefault(kind(one), []).append(one.host)
    return [(f"{named(names, hosts)}: {what}", hosts) for what, hosts in found.items()]


def _kind(machine: Machine) -> str:
    """What does not change from day to day."""
    return f"{machine.system or 'unknown system'}, {machine.architecture}, {count(machine)}"


def count(machine: Machine) -> str:
    """The GPUs in a sentence."""
    return f"{machine.gpus} GPUs" if machine.gpus else "no GPU"


def told(machines: Sequence[Machine], names: Mapping[str, str], found: Fabric) -> list[str]:
    """For the terminal."""

    def kind(one: Machine) -> str:
        # Two machines of one kind differ a little in what the firmware takes.
        memory = human_bytes(round(one.memory / 2**33) * 2**33 if one.memory > 2**35 else one.memory)
        disk = human_bytes(one.disk)
        driver = f" ({one.gpu_model}, driver {one.gpu_driver or 'none'})" if one.gpus else ""
        login = "root" if one.sudo == "root" else f"user with sudo: {one.sudo}"
        parts = [_kind(one) + driver, f"kernel {one.kernel}", f"Python {one.python}", f"memory {memory}, / {disk}"]
        return "; ".join([*parts, f"login {login}", *([one.gpu_problem] if one.gpu_problem else [])])

    lines = [what for what, _hosts in groups_of(machines, names, kind)]
    lines += [f"network {line}" for line in described(networks(machines), len(machines))]
    lines += links(machines, names)
    others: dict[str, list[str]] = {}
    for one in machines:
        for name in one.controllers:
            others.setdefault(f"{name} leads to the BMC: left out", []).append(one.host)
        for card in one.cards:
            if card.infiniband and card.usable and card.address is None:
                others.setdefault(f"{card.name} is InfiniBand without an address: for RDMA only", []).append(one.host)
    return lines + [f"{what} ({named(names, hosts)})" for what, hosts in others.items()]


def _where(machines: Sequence[Machine], names: Mapping[str, str]) -> Values:
    """Where ssh reaches them: as before, so that known_hosts stays true."""
    found = Values(inventory.WHERE, {names[one.host]: one.where for one in machines if one.where != names[one.host]})
    if len(found.hosts) == len(machines):
        best = expressions.by_number(found.hosts)
        found.expression = best if best is not None and len(best.values) >= expressions.FEWEST else None
        if best is not None and len(best.values) < len(machines) * 3 // 4:
            found.expression = None
    return found


def _gpus(machines: Sequence[Machine], names: Mapping[str, str]) -> list[Values]:
    counted = Counter(one.gpus for one in machines)
    usual = counted.most_common(1)[0][0]
    odd = [one for one in machines if one.gpus != usual]
    question = None
    if odd:
        question = Question(
            "is the number of GPUs right? It differs.",
            tuple(
                f"{number} on {named(names, [one.host for one in machines if one.gpus == number])}"
                for number in counted
            ),
            (
                "yes, as below",
                "no: write how many GPUs the machine should have; preflight then refuses it until it has",
            ),
        )
    note = "" if usual or odd else "no NVIDIA GPU is on the PCI bus of any machine"
    return [Values(inventory.GPUS, {names[one.host]: one.gpus for one in machines}, note=note, question=question)]


def _labels(machines: Sequence[Machine], names: Mapping[str, str], found: Fabric) -> list[Values]:
    """The switch of the data network, where LLDP says it."""
    labels = {}
    for host, card in found.cards.items():
        label = {"switch": card.switch}
        if card.switch and not label_problems(label):
            labels[names[host]] = label
    return [Values(inventory.LABELS, labels, note="as the switch itself says (LLDP)")] if labels else []


def _rdma(machines: Sequence[Machine], names: Mapping[str, str], found: Fabric) -> list[Values]:
    """Whether NCCL may use RDMA over Ethernet."""
    with_rdma = [host for host, card in found.cards.items() if card.rdma and not card.infiniband]
    if not with_rdma or not any(one.gpus for one in machines):
        return []
    return [
        Values(
            inventory.NO_RDMA,
            {names[one.host]: True for one in machines},
            active=False,
            question=Question(
                "RoCE or TCP? The cards of the data network can do RDMA over Ethernet.",
                (f"RDMA devices on {named(names, with_rdma)}",),
                (
                    "RoCE: nothing to do; the switches have to be lossless (PFC, ECN)",
                    "TCP: remove the # before the value",
                ),
            ),
        )
    ]


def _names(machines: Sequence[Machine], names: Mapping[str, str], reasons: Mapping[str, str]) -> list[Values]:
    if not reasons:
        return []
    said: dict[str, list[str]] = {}
    for host, reason in reasons.items():
        said.setdefault(reason, []).append(host)
    return [
        Values(
            inventory.HOSTNAME,
            {names[host]: "{{ inventory_hostname }}" for host in names},
            active=False,
            question=Question(
                f"what are {named(names, list(reasons))} called? They have no name of their own.",
                tuple(f"{named(names, hosts)}: {reason}" for reason, hosts in said.items()),
                (
                    "as here: remove the # before the value; a run sets the names",
                    "otherwise: name them with hostnamectl set-hostname, and run discover again",
                ),
            ),
        )
    ]


def _systems(machines: Sequence[Machine], names: Mapping[str, str]) -> list[Values]:
    """Releases that differ: there is no variable for the answer."""
    found: dict[str, list[str]] = {}
    for one in machines:
        found.setdefault(f"{one.system or 'unknown system'} ({one.architecture})", []).append(one.host)
    if len(found) < 2:
        return []
    seen = tuple(f"{system} on {named(names, hosts)}" for system, hosts in list(found.items())[:8])
    choices = ("install one release everywhere", "leave it; driver, CUDA and PyTorch have to exist for all of them")
    return [Values("", question=Question("is it meant that the releases differ?", seen, choices))]


def _logins(machines: Sequence[Machine], names: Mapping[str, str]) -> list[Values]:
    """Users who do not become root."""
    without = [one for one in machines if one.sudo not in ("root", "yes")]
    if not without:
        return []
    asked = [one.host for one in without if one.sudo == "password"]
    never = [one.host for one in without if one.sudo != "password"]
    seen = [f"sudo asks for a password on {named(names, asked)}"] if asked else []
    seen += [f"no sudo for this user on {named(names, never)}"] if never else []
    choices = ("run everything with -K, which asks for that password", "let the user become root without one (sudoers)")
    return [Values("", question=Question("how does the login become root?", tuple(seen), choices))]


def _login(
    machine: Machine,
    machines: Sequence[Machine],
    kept: Mapping[str, Mapping[str, Any]],
    given: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """What ssh and Ansible need, as far as nobody has decided it."""
    wanted: dict[str, Any] = {}
    if machine.became or machine.sudo != "root":
        wanted[inventory.BECOME] = True
    if all(one.system_python for one in machines):
        wanted[inventory.PYTHON] = SYSTEM_PYTHON
    used = sorted({port for one in machines for port in one.ssh_ports})
    if used and used != [SSH]:
        wanted[inventory.PORTS] = {"ssh": used[0] if len(used) == 1 else used}
    own = {**given.get(machine.host, {}), **kept.get(machine.host, {})}
    return {name: value for name, value in wanted.items() if name not in own}
