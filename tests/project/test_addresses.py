# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preflight and every role agree on what an address, a name and a port is: whatever one refuses, all refuse."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import project
import pytest
import role_readmes

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils import _hosts_file, _port_plan
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._addresses import address_of
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import rules
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import checks, members
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import cluster
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import wishes as network
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import wishes as openmpi
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._ssh_mesh import names as ssh_names
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._tuning import parameters

GOOD_ADDRESSES = ("10.2.0.11", "198.18.1.11", "fd00:21::11")
#: Addresses that no packet of another machine has as its source, or that mean something else on each machine.
NO_HOSTS = {
    "255.255.255.255": "the broadcast address",
    "240.0.0.1": "reserved",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "this network",
    "127.0.0.1": "loopback",
    "224.0.0.1": "multicast",
    "::": "unspecified",
    "::1": "loopback",
    "ff02::1": "multicast",
    "::ffff:10.2.0.11": "IPv4-mapped",
    "fd00:21::11%eth0": "with the name of an interface",
    "4000::1": "reserved",
    "\u0661\u0660.2.0.11": "Arabic digits",
    "1O.2.0.11": "a letter",
    "10.2.0.011": "octal or decimal, by the program that reads it",
}
#: Only some roles can use them: a router, or ssh to this machine itself.
LINK_LOCAL = ("169.254.1.1", "fe80::1")

GOOD_PORTS = (50022, "50022")
#: Digits of Arabic, of Hindi, and wide ones: ``int`` takes them all. Superscripts: only ``isdigit`` does.
FOREIGN = ("\u0662\u0662", "\u0968\u0968", "\uff12\uff12", "\u00b2\u00b2")
NO_PORTS = (*FOREIGN, "2_2", "0x16", "0", "65536", "-1", "22.0", "", True, 0, 65536, -1, 22.5, None)
Taken = Callable[[Any], bool]


def prefix(address: str) -> int:
    return 64 if ":" in address else 24


def member(**changes: Any) -> dict[str, Any]:
    """One member, as the roles get it."""
    plain = {"name": "n1", "fabric_address": "10.1.0.1", "fabric_prefix": 24, "fabric_interface": "fab0"}
    return {**plain, "management_address": "n1", "addresses": [], "rail_addresses": [], **changes}


def peer(value: Any) -> bool:
    try:
        rules.parse_wanted([value], ["29500/tcp"])
    except rules.InputError:
        return False
    return True


def plan(**changes: Any) -> bool:
    try:
        _port_plan.make_port_plan(changes)
    except _port_plan.PortPlanError:
        return False
    return True


def firewall_port(value: Any) -> bool:
    try:
        rules.parse_wanted(["10.1.0.1"], [f"{value}/tcp"])
    except rules.InputError:
        return False
    return True


def inventory_takes(**changes: Any) -> bool:
    variables = {
        host: {
            "ansible_host": f"10.0.0.{number}",
            "gpu_cluster_fabric_address": f"10.1.0.{number}/24",
            "gpu_cluster_fabric_interface": "fab0",
        }
        for number, host in enumerate(("n1", "n2"), 1)
    }
    variables["n1"].update(changes)
    return not checks.inventory_problems(variables, list(variables), "gpu_cluster", {})


def launcher(**changes: Any) -> bool:
    given = {
        "members": [member(), member(name="n2", fabric_address="10.1.0.2")],
        "user": "train",
        "python": "/opt/python",
        "mpirun": "/usr/bin/mpirun",
        "ssh_port": 22,
        "slots": 1,
        "rendezvous": {"first": 29400, "last": 65535},
    }
    return not cluster.read({**given, **changes}, "n1")[1]


def openmpi_takes(**changes: Any) -> bool:
    ports = dict(zip(openmpi.PORTS, (61000, 100, 61000, 100), strict=True))
    return not openmpi.read({"ports": ports, "prefix": "/usr", **changes})[1]


def card(address: str) -> bool:
    own = f"{address}/{prefix(address)}"
    return not network.interface_problems([{"name": "eth0", "addresses": [own]}])


ADDRESSES: dict[str, Taken] = {
    "preflight, fabric": lambda one: not members.fabric_address_problems(f"{one}/{prefix(one)}"),
    "preflight, further": lambda one: not members.further_address_problems([one]),
    "static_network": card,
    "cluster_firewall": peer,
    "launcher": lambda one: launcher(members=[member(fabric_address=one, fabric_prefix=prefix(one))]),
    "openmpi": lambda one: openmpi_takes(networks=[f"{one}/{prefix(one)}"]),
    "ssh_mesh": lambda one: len(ssh_names.addresses(member(addresses=[one]))) == 2,
    "ssh_mesh, management": lambda one: len(ssh_names.addresses(member(management_address=one))) == 2,
    "cluster_hosts, management": lambda one: "-mgmt" in _hosts_file.block_text([member(management_address=one)]),
}
#: Places where an address may mean this machine itself, or one on the same link.
WIDER_ADDRESSES: dict[str, tuple[Taken, tuple[str, ...]]] = {
    "preflight, ssh": (
        lambda one: inventory_takes(ansible_host=one),
        ("127.0.0.1", "::1", *LINK_LOCAL, "fd00:21::11%eth0"),
    ),
}
PORTS: dict[str, Taken] = {
    "plan, ssh": lambda one: plan(ssh=one, reserved=[50022]),
    "plan, rendezvous": lambda one: plan(rendezvous=f"{one}-50099", reserved=["50000-50099"]),
    "plan, ephemeral": lambda one: plan(ephemeral=f"{one}-60999"),
    "plan, mpi": lambda one: plan(mpi=f"{one}-50099", reserved=["50000-50099"]),
    "plan, extra_ports": lambda one: plan(extra_ports=[one], reserved=[50022]),
    "plan, reserved": lambda one: plan(reserved=[one]),
    "cluster_firewall": firewall_port,
    "kernel_tuning, first": lambda one: not parameters.ephemeral_problems({"first": one, "last": 60999}),
    "kernel_tuning, reserved": lambda one: not parameters.reserved_problems([one]),
    "openmpi, ssh": lambda one: openmpi_takes(ssh_port=one),
    "openmpi, first": lambda one: openmpi_takes(ephemeral={"first": one, "last": 60999}),
    "launcher, ssh": lambda one: launcher(ssh_port=one),
    "launcher, first": lambda one: launcher(rendezvous={"first": one, "last": 60999}),
    "preflight, ssh": lambda one: inventory_takes(ansible_port=one),
}


class TestAddresses:
    """One definition of the address of a host."""

    @pytest.mark.parametrize("place", ADDRESSES)
    def test_all_take_the_same(self, place: str) -> None:
        """Else a role is red after preflight was green, or an address that nobody has reaches a firewall."""
        taken = ADDRESSES[place]
        assert [one for one in GOOD_ADDRESSES if not taken(one)] == [], f"{place} refuses a good address"
        wrong = [one for one in (*NO_HOSTS, *LINK_LOCAL) if taken(one)]
        assert wrong == [], f"{place} takes {wrong}"

    @pytest.mark.parametrize("place", WIDER_ADDRESSES)
    def test_wider_places(self, place: str) -> None:
        """They take what they say, and nothing else."""
        taken, wider = WIDER_ADDRESSES[place]
        assert [one for one in (*GOOD_ADDRESSES, *wider) if not taken(one)] == []
        addresses = [one for one in NO_HOSTS if address_of(one) is not None and one not in wider]
        assert [one for one in addresses if taken(one)] == []


class TestPorts:
    """One definition of the number of a port."""

    @pytest.mark.parametrize("place", PORTS)
    def test_all_take_the_same(self, place: str) -> None:
        """``int`` takes digits of any script, and the programs on the nodes do not."""
        taken = PORTS[place]
        assert [one for one in GOOD_PORTS if not taken(one)] == [], f"{place} refuses a good port"
        # Nothing, or an empty text, stands for "not said" in some places.
        wrong = [one for one in NO_PORTS if one not in (None, "") and taken(one)]
        assert wrong == [], f"{place} takes {wrong}"

    @pytest.mark.parametrize("role", role_readmes.role_folders(), ids=lambda role: role.name)
    def test_numbers_of_roles(self, role: Path) -> None:
        """Ansible makes a number of more texts than an operator would."""
        for name, option in role_readmes.read_options(role).items():
            kinds = (option.get("type"), option.get("elements"))
            if "int" in kinds:
                for text in (*FOREIGN, "2_2"):
                    value = [text] if kinds[0] == "list" else text
                    assert checks.option_problem(name, value, option, role.name), f"{name} takes {text}"


@cache
def judges() -> tuple[Path, ...]:
    """The Python files that say what is wrong with what a user wrote: they make problems."""
    files = [project.ROOT / one for one in project.source_files() if one.parts[0] == "plugins" and one.suffix == ".py"]
    return tuple(one for one in files if "import Problem" in one.read_text(encoding="utf-8"))


def test_there_are_judges() -> None:
    """An empty list would make the tests below pass."""
    assert len(judges()) > 20


@pytest.mark.parametrize("path", judges(), ids=lambda path: str(path.relative_to(project.ROOT)))
def test_nobody_has_a_definition_of_its_own(path: Path) -> None:
    """``_addresses`` asks what kind of address it is, and what a number is."""
    kinds = {"is_loopback", "is_multicast", "is_unspecified", "is_link_local", "is_reserved", "ipv4_mapped"}
    own = {"isdigit", "isdecimal", "isnumeric", *kinds}
    used = {
        node.attr for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Attribute)
    }
    assert not used & own, f"{path} uses {sorted(used & own)}; take the functions of module_utils/_addresses.py"


def test_names_that_differ_in_case_only() -> None:
    """They are one name in /etc/hosts, in DNS and in certificates."""
    variables = {
        host: {
            "ansible_host": f"10.0.0.{number}",
            "gpu_cluster_fabric_address": f"10.1.0.{number}/24",
            "gpu_cluster_fabric_interface": "fab0",
        }
        for number, host in enumerate(("n1", "N1", "n2"), 1)
    }
    found = checks.inventory_problems(variables, list(variables), "gpu_cluster", {})
    assert [(one.host, one.variable) for one in found] == [("n1", "inventory_hostname"), ("N1", "inventory_hostname")]
    assert launcher(members=[member(), member(name="n2", fabric_address="10.1.0.2")])
    assert not launcher(members=[member(), member(name="N1", fabric_address="10.1.0.2")])
