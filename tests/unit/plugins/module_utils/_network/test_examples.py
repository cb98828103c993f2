# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples in docs/examples/network, and the role's own description of the options."""

from __future__ import annotations

import configparser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import keyfile, plan, rails, spec
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.spec import parse_interfaces
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.state import DefaultRoute, Link, NodeState

ROOT = Path(__file__).parents[5]
ROLE = "baremetal.gpu_cluster.static_network"
EXAMPLES = sorted((ROOT / "docs" / "examples" / "network").glob("*.yml"))
SPEC = yaml.safe_load((ROOT / "roles" / "static_network" / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
VARIABLES = SPEC["argument_specs"]["main"]["options"]
#: The keyfiles that each example writes, in the order of its list.
WRITES = {
    "bond_backup_vlan": ["bond0", "bond0-port-eno1", "bond0-port-02-00-00-00-00-0b", "bond0.10", "bond0.20"],
    "bond_lacp": ["bond0", "bond0-port-ens1f0", "bond0-port-ens1f1"],
    "card_jumbo": ["ens1f0"],
    "hostname": [],
    "ipv6": ["eno1", "ens1f0"],
    "management": ["eno1"],
    "match_by_mac": ["02-00-00-00-00-11", "eno1"],
    "move_management": ["eno1"],
    "rails_one_subnet": ["ens1f0", "ens2f0"],
    "rails_two_subnets": ["ens1f0", "ens2f0"],
    "routes": ["ens1f0"],
    "vlan": ["ens1f0", "ens1f0.100"],
}
CARDS = {
    "eno1": "02:00:00:00:00:0a",
    "eno2": "02:00:00:00:00:0b",
    "ens1f0": "02:00:00:00:00:11",
    "ens1f1": "02:00:00:00:00:12",
    "ens2f0": "02:00:00:00:00:13",
}
#: As an installer leaves it: everything comes over one card.
NODE = NodeState(
    links={name: Link(name, mac=mac) for name, mac in CARDS.items()},
    default_routes=(DefaultRoute(4, "eno1", "198.51.100.1"),),
    ssh_interface="eno1",
    listed=frozenset(["/usr/lib/firewalld/zones/internal.xml"]),
)


def play(path: Path) -> dict[str, Any]:
    (found,) = yaml.safe_load(path.read_text(encoding="utf-8"))
    return dict(found)


def variables(path: Path) -> dict[str, Any]:
    """What the example says, at the play or at the role."""
    (role,) = play(path)["roles"]
    assert role["role"] == ROLE
    return {**play(path).get("vars", {}), **role["vars"]}


def entries(path: Path) -> list[dict[str, Any]]:
    return list(variables(path).get("static_network_interfaces", []))


def paths(value: Any, options: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The options that a value uses."""
    for one in value if isinstance(value, list) else [value]:
        for key, inner in one.items():
            yield above + key
            if "options" in options[key]:
                yield from paths(inner, options[key]["options"], f"{above}{key}.")


def all_paths(options: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, option in options.items():
        yield above + key
        yield from all_paths(option.get("options", {}), f"{above}{key}.")


def without_descriptions(options: Mapping[str, Any]) -> dict[str, Any]:
    result = {}
    for key, option in options.items():
        result[key] = {name: value for name, value in option.items() if name != "description"}
        if "options" in option:
            result[key]["options"] = without_descriptions(option["options"])
    return result


def test_every_example_is_known() -> None:
    assert [path.stem for path in EXAMPLES] == sorted(WRITES)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
class TestExample:
    def test_is_a_play_with_the_role(self, path: Path) -> None:
        unknown = {name for name in variables(path) if name not in VARIABLES and name != "ansible_host"}
        assert unknown == set()
        assert {"name", "hosts", "become"} <= set(play(path))

    def test_writes_these_keyfiles(self, path: Path) -> None:
        interfaces = parse_interfaces(entries(path))
        found = rails.find(interfaces)
        files = [file for one in interfaces for file in keyfile.keyfiles(one, found.get(one.label))]
        assert [file.name for file in files] == [f"gpu-cluster-{name}.nmconnection" for name in WRITES[path.stem]]
        for file in files:
            parser = configparser.ConfigParser(interpolation=None)
            parser.read_string(file.text)
            assert parser["connection"]["uuid"] == file.uuid

    def test_can_be_meant_on_a_node(self, path: Path) -> None:
        """Those that leave the management card alone, too."""
        done = plan.make_plan(parse_interfaces(entries(path)), NODE)
        assert [problem.sentence() for problem in done.problems] == []
        assert len(done.activated) == len(entries(path))


def test_which_examples_make_rails() -> None:
    found = {path.stem: sorted(rails.find(parse_interfaces(entries(path)))) for path in EXAMPLES}
    assert {name: labels for name, labels in found.items() if labels} == {"rails_one_subnet": ["ens1f0", "ens2f0"]}


def test_every_option_has_an_example() -> None:
    used = {option for path in EXAMPLES for option in paths(entries(path), spec.INTERFACE_OPTIONS)}
    assert used == set(all_paths(spec.INTERFACE_OPTIONS))


def test_every_variable_has_an_example() -> None:
    assert {name for path in EXAMPLES for name in variables(path)} - {"ansible_host"} == set(VARIABLES)


def test_the_role_describes_the_options_of_the_core() -> None:
    assert without_descriptions(VARIABLES["static_network_interfaces"]["options"]) == spec.INTERFACE_OPTIONS


def test_every_option_is_described() -> None:
    def missing(options: Mapping[str, Any], above: str = "") -> Iterator[str]:
        for key, option in options.items():
            if not option.get("description"):
                yield above + key
            yield from missing(option.get("options", {}), f"{above}{key}.")

    assert list(missing(VARIABLES)) == []
