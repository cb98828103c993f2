# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of the wrong type, for every variable of every role: the cases are made from the argument specs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.filter.inventory_problems import inventory_problems, role_specs
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory import checks
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._inventory.value_types import type_problem

SPECS = role_specs(Path(__file__).resolve().parents[5] / "roles")
OPTIONS = {name: option for options in SPECS.values() for name, option in options.items()}

#: Of each type of the specs, what is not of it.
WRONG: dict[str, list[Any]] = {
    "str": [["a"], {"a": 1}, True, None],
    "path": [["a"], {"a": 1}, True, None, 7],
    "list": [7, 1.5, True, None, "text", {"a": 1}],
    "dict": [7, 1.5, True, None, "text", "a=b", ["a"]],
    "int": [["a"], {"a": 1}, True, None, "x", 1.5, float("inf"), float("nan"), "\u0662"],
    "float": [["a"], {"a": 1}, True, None, "x", float("nan"), "inf", "\u0662"],
    "bool": [["a"], {"a": 1}, None, "maybe", 7],
    # What raw takes is in the rules of its own that each such variable has.
    "raw": [None, 1.5],
}
#: true is a right answer where a choice is spelled true.
BOOLEAN_CHOICES = [name for name, option in OPTIONS.items() if "true" in (option.get("choices") or [])]


def hostvars(**values: Any) -> dict[str, dict[str, Any]]:
    members = {
        f"n{number}": {
            "ansible_host": f"10.0.0.{number}",
            "gpu_cluster_fabric_address": f"10.1.0.{number}/24",
            "gpu_cluster_fabric_interface": "fab0",
        }
        for number in (1, 2)
    }
    members["n2"].update(values)
    return members


def cases() -> list[Any]:
    found = []
    for name, option in OPTIONS.items():
        kind = option.get("type", "str")
        values = WRONG[kind] + [[wrong] for wrong in WRONG[option.get("elements", "raw")] if kind == "list"]
        found += [(name, value) for value in values if not (value is True and name in BOOLEAN_CHOICES)]
    return found


def test_every_variable_of_a_wrong_type_is_refused() -> None:
    passed = []
    for name, value in cases():
        found = inventory_problems(hostvars(**{name: value}), ["n1", "n2"], "gpu_cluster")
        if not [one for one in found if one["host"] == "n2" and one["variable"].startswith(name)]:
            passed.append(f"{name}: {value!r}")
    assert passed == []


@pytest.mark.parametrize("name", checks.CLUSTER_VARIABLES)
def test_every_variable_of_the_cluster_has_a_type_too(name: str) -> None:
    """They stand in no argument spec. A number is right for the GPUs, and a dictionary for labels and ports."""
    for value in (7, 1.5, True, ["a"], [["a"]], {"a b": 1}):
        if (name, value) != ("gpu_cluster_gpus", 7):
            found = inventory_problems(hostvars(**{name: value}), ["n1", "n2"], "gpu_cluster")
            assert [one for one in found if one["host"] == "n2" and one["variable"].startswith(name)], value


def test_every_default_is_of_the_right_type() -> None:
    for name, option in OPTIONS.items():
        default = option.get("default")
        if default is not None and "{{" not in str(default):
            assert type_problem(name, default, option) is None, name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nvidia_driver_version", 580),
        ("cluster_check_iterations", "3"),
        ("cluster_check_sizes_bytes", ["4096", 8]),
        ("kernel_tuning_link_gbit", "100"),
        ("nccl_ib_disabled", "yes"),
        ("cluster_check_openmpi", True),
        ("cluster_firewall_ports", ["29500/tcp"]),
        ("launcher_slots", {"n1": 8, "n2": "4"}),
    ],
)
def test_what_yaml_and_the_command_line_make_of_right_values_passes(name: str, value: Any) -> None:
    assert type_problem(name, value, OPTIONS[name]) is None
    found = checks.inventory_problems(hostvars(**{name: value}), ["n1", "n2"], "gpu_cluster", SPECS)
    assert [one.variable for one in found] == []


@pytest.mark.parametrize(
    ("name", "value", "place", "rule"),
    [
        ("cluster_firewall_ports", 29500, "cluster_firewall_ports", "expected a list, found a number"),
        ("cluster_firewall_peers", "10.1.0.1", "cluster_firewall_peers", "expected a list, found a string"),
        ("torch_runtime_packages", 7, "torch_runtime_packages", "expected a list, found a number"),
        ("torch_runtime_packages", [["torch"]], "torch_runtime_packages[0]", "expected a string, found a list"),
        ("monitoring_packages", None, "monitoring_packages", "expected a list, found nothing (null)"),
        (
            "cluster_check_iterations",
            True,
            "cluster_check_iterations",
            "expected a whole number, in the digits 0 to 9, found true or false",
        ),
    ],
)
def test_the_message_names_place_and_both_types(name: str, value: Any, place: str, rule: str) -> None:
    assert type_problem(name, value, OPTIONS[name]) == (place, rule)


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("cluster_firewall_ports", [29500], "cluster_firewall_ports[0]"),
        ("cluster_firewall_ports", ["29500/tcp", "9-5/tcp"], "cluster_firewall_ports[1]"),
        ("cluster_firewall_peers", ["10.1.0.1", "n2"], "cluster_firewall_peers[1]"),
        ("cluster_firewall_peers", [], "cluster_firewall_peers"),
    ],
)
def test_the_firewalls_own_rules_are_asked_before_anything_changes(name: str, value: Any, place: str) -> None:
    (found,) = inventory_problems(hostvars(**{name: value}), ["n1", "n2"], "gpu_cluster")
    assert (found["host"], found["variable"]) == ("n2", place)
