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
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import members
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.addresses import address_of
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import rules
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import checks
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher_files import cluster
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import spec as openmpi
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


def two_members() -> dict[str, dict[str, Any]]:
    return {
        host: {
            "ansible_host": f"10.0.0.{number}",
            "gpu_cluster_fabric_address": f"10.1.0.{number}/24",
            "gpu_cluster_fabric_interface": "fab0",
        }
        for number, host in enumerate(("n1", "n2"), 1)
    }


def inventory_takes(**changes: Any) -> bool:
    variables = two_members()
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
    return not spec.interface_problems([{"name": "eth0", "addresses": [own]}])


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
    assert not used & own, f"{path} uses {sorted(used & own)}; take the functions of module_utils/_base/addresses.py"


#: The last words of variables that hold an address, a name, a port or a path, by the argument specs.
ENDINGS = """
    address network networks interface interfaces host hcas devices members user users login_user ssh_port ssh_ports
    prefix path home shell folder find_links adopt dir file python mpirun certificate packages requirements version
    ports group
"""
#: Others than texts, numbers and lists of them have rules of their own, which test_checks.py and others show.
PLAIN = ("str", "path", "int", "raw")
#: The user names a version of Open MPI or a driver as the package has it, and a folder as the site called it.
NONSENSE = (" x", "x ", "a\nb", "\x1b[31m", "/a\nb", "", True, None, ["x ", "y"], [None], [""], {"a": 1})
#: What no address, name, port or path on a node can be; folders of the controller are what its user calls them.
WORSE = (
    "a b",
    "\u0662\u0662",
    "\u00e4",
    "-x",
    "../x",
    "relative/path",
    "a;b",
    "$HOME",
    "::ffff:10.2.0.11",
    ["a", "a b"],
)
ON_CONTROLLER = ("_dir", "_file", "_group")


@cache
def all_specs() -> dict[str, dict[str, Any]]:
    """The argument specs of all roles."""
    return {role.name: role_readmes.read_options(role) for role in role_readmes.role_folders()}


def shaped() -> list[tuple[str, dict[str, Any]]]:
    """Name and entry of every variable that holds one, or a list of them."""
    endings = tuple(f"_{word}" for word in ENDINGS.split())
    return [
        (name, option)
        for role in role_readmes.role_folders()
        for name, option in role_readmes.read_options(role).items()
        if name.endswith(endings) and {option["type"], option.get("elements", "str")} <= {*PLAIN, "list"}
    ]


class TestVariables:
    """Every variable of every role, as the inventory sets it: nonsense is refused before a host is contacted."""

    def test_there_are_some(self) -> None:
        """An empty list would make the tests below pass."""
        assert len(shaped()) > 50

    @pytest.mark.parametrize(("name", "option"), shaped(), ids=[name for name, _option in shaped()])
    def test_nonsense_is_refused(self, name: str, option: dict[str, Any]) -> None:
        """What the argument specs take, and a role refuses after an hour or hands to a program."""
        empty = option.get("default", "") == "" or name in ("nccl_version", "torch_runtime_version", "nccl_cuda")
        wrong = [one for one in NONSENSE if not (one == "" and (empty or name.startswith("nvidia_driver")))]
        wrong += [] if name.endswith(ON_CONTROLLER) else list(WORSE)
        taken = [one for one in wrong if self.takes(name, one)]
        assert taken == [], f"{name} takes {taken}"

    @pytest.mark.parametrize("role", role_readmes.role_folders(), ids=lambda role: role.name)
    def test_no_number_is_without_bounds(self, role: Path) -> None:
        """A time limit below zero, or one of centuries, is a typing error."""
        for name, option in role_readmes.read_options(role).items():
            if option["type"] in ("int", "float"):
                taken = [number for number in (-7, 10**12) if self.takes(name, number)]
                assert taken == [], f"{name} takes {taken}"

    @staticmethod
    def takes(name: str, value: Any) -> bool:
        """Whether all members may have it so."""
        variables = {host: {**own, name: value} for host, own in two_members().items()}
        return not checks.inventory_problems(variables, list(variables), "gpu_cluster", all_specs())

    @pytest.mark.parametrize("role", role_readmes.role_folders(), ids=lambda role: role.name)
    def test_defaults_are_taken(self, role: Path) -> None:
        """Else the rules would refuse what the collection itself says."""
        for name, option in role_readmes.read_options(role).items():
            value = option.get("default")
            if value is not None and "{{" not in str(value) and name != "cluster_firewall_peers":
                assert self.takes(name, value), f"{name} = {value}"


#: Where Ansible connects to; a name may have the dot at its end, and an alias of ssh is a name.
GOOD_SSH_HOSTS = ("gpu01", "gpu01.lab.example.com", "gpu01.lab.example.com.", "gpu_1", "10.2.0.11", "FD00:21::11")
NO_SSH_HOSTS: tuple[Any, ...] = (
    True,
    7,
    10.1,
    None,
    ["10.2.0.11"],
    {"a": 1},
    "7",
    "0x7f.1",
    "10.2.0.011",
    " 10.2.0.11",
    "10.2.0.11 ",
)
NO_SSH_HOSTS += ("-oProxyCommand=x", "root@gpu01", "gpu01..lab", "10.2.0.11/24", "gpu\u0661", "a b", "a\nb", "a" * 64)


def test_where_ssh_leads() -> None:
    """ssh and Ansible would take most of these, for another machine or for an option."""
    assert [one for one in GOOD_SSH_HOSTS if not inventory_takes(ansible_host=one)] == []
    assert [one for one in NO_SSH_HOSTS if inventory_takes(ansible_host=one)] == []


@pytest.mark.parametrize(
    "name", ["7", "10.0.0.011", "0x7f.1", "a..b", "a.-b", "a" * 64, "-n1", "n1.", "n\u0661", "10.0.0.1"]
)
def test_names_that_are_none(name: str) -> None:
    """Programs take a name of numbers for an address, and no name server has the others."""
    assert not launcher(members=[member(), member(name=name, fabric_address="10.1.0.2")])
    found = checks.inventory_problems({name: {}}, [name], "gpu_cluster", {})
    assert "inventory_hostname" in [one.variable for one in found]


@pytest.mark.parametrize("path", judges(), ids=lambda path: str(path.relative_to(project.ROOT)))
def test_digits_of_versions_are_those_of_ascii(path: Path) -> None:
    """The classes d and w of a pattern hold the digits and letters of all scripts."""
    if path.name not in (
        "versions.py",
        "spec.py",
        "settings.py",
        "labels.py",
        "members.py",
        "cluster.py",
        "shapes.py",
    ):
        return
    patterns = [
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value
    ]
    assert [one for one in patterns if "\\d" in one or "\\w" in one] == []


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
