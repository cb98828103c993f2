# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host lists of SkyPilot and dstack, read back as YAML, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._handoff import host_lists

#: What the programs read: sky/ssh_node_pools/utils.py (prepare_hosts_info) of SkyPilot 0.14.1.
POOL_KEYS = {"user", "identity_file", "password", "hosts"}
POOL_HOST_KEYS = {"ip", "user", "identity_file", "password"}
#: FleetConfiguration, SSHParams and SSHHostParams in dstack/_internal/core/models/fleets.py of dstack 0.22.5.
FLEET_KEYS = {"type", "name", "placement", "blocks", "ssh_config", "env"}
SSH_KEYS = {"user", "port", "identity_file", "proxy_jump", "hosts", "network"}
SSH_HOST_KEYS = {"hostname", "port", "user", "identity_file", "proxy_jump", "internal_ip", "blocks"}

LOGIN = {"ansible_user": "ops", "ansible_ssh_private_key_file": "~/.ssh/id_ed25519"}


def members(count: int = 3) -> list[dict[str, Any]]:
    return [
        {
            "name": f"gpu{number:02}",
            "fabric_address": f"10.9.0.{number}",
            "fabric_prefix": 24,
            "management_address": f"10.1.1.{number}",
        }
        for number in range(1, count + 1)
    ]


def logins(**changed: Any) -> dict[str, dict[str, Any]]:
    return {one["name"]: {**LOGIN, **changed} for one in members()}


def rendered(given: Any = None, variables: Any = None, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    texts, problems = host_lists.files(given or members(), variables or logins(), options)
    assert problems == []
    pools, fleet = (yaml.safe_load(texts[name]) for name in ("ssh_node_pools.yaml", "fleet.dstack.yml"))
    for pool in pools.values():
        assert set(pool) <= POOL_KEYS
        assert all(set(host) <= POOL_HOST_KEYS and "ip" in host for host in pool["hosts"])
    assert set(fleet) <= FLEET_KEYS and set(fleet["ssh_config"]) <= SSH_KEYS
    assert all(set(host) <= SSH_HOST_KEYS and "hostname" in host for host in fleet["ssh_config"]["hosts"])
    return pools, fleet


def refused(given: Any = None, variables: Any = None, **options: Any) -> set[tuple[str, str, str]]:
    texts, problems = host_lists.files(given or members(), variables or logins(), options)
    assert texts == {} and all(problem.fix for problem in problems)
    return {(problem.host, problem.variable, problem.rule) for problem in problems}


def test_both_files() -> None:
    pools, fleet = rendered()
    assert pools == {
        "gpu-cluster": {
            "user": "ops",
            "identity_file": "~/.ssh/id_ed25519",
            "hosts": [{"ip": "10.1.1.1"}, {"ip": "10.1.1.2"}, {"ip": "10.1.1.3"}],
        }
    }
    assert fleet == {
        "type": "fleet",
        "name": "gpu-cluster",
        "placement": "cluster",
        "ssh_config": {
            "user": "ops",
            "identity_file": "~/.ssh/id_ed25519",
            "network": "10.9.0.0/24",
            "hosts": [{"hostname": "10.1.1.1"}, {"hostname": "10.1.1.2"}, {"hostname": "10.1.1.3"}],
        },
    }


def test_one_tool_alone() -> None:
    for tools in ("dstack", ["dstack"]):
        texts, problems = host_lists.files(members(), logins(), {"host_lists_tools": tools})
        assert problems == [] and list(texts) == ["fleet.dstack.yml"]


def test_members_in_several_networks_and_with_several_logins() -> None:
    given, variables = members(), logins()
    given[2]["fabric_address"] = "10.9.1.3"
    variables["gpu02"] |= {"ansible_user": "root", "ansible_ssh_private_key_file": "/keys/of gpu02"}
    pools, fleet = rendered(given, variables)
    other = {"user": "root", "identity_file": "/keys/of gpu02"}
    assert pools["gpu-cluster"]["hosts"][1] == {"ip": "10.1.1.2", **other}
    assert "network" not in fleet["ssh_config"]
    assert fleet["ssh_config"]["hosts"][1] == {"hostname": "10.1.1.2", **other, "internal_ip": "10.9.0.2"}


def test_values_that_yaml_could_misread() -> None:
    given = members()
    given[0]["management_address"], given[1]["management_address"] = "1e3", "fd00::2"
    pools, fleet = rendered(given, logins(ansible_user="on", ansible_ssh_private_key_file="/a: #b"))
    pool = pools["gpu-cluster"]
    assert [host["ip"] for host in pool["hosts"]] == ["1e3", "fd00::2", "10.1.1.3"]
    assert (
        (pool["user"], pool["identity_file"])
        == ("on", "/a: #b")
        == (
            fleet["ssh_config"]["user"],
            fleet["ssh_config"]["identity_file"],
        )
    )


def test_the_command_line_wins() -> None:
    pools, fleet = rendered(host_lists_user="sky", host_lists_key="~/.ssh/sky", host_lists_name="lab1")
    assert pools["lab1"]["user"] == fleet["ssh_config"]["user"] == "sky"
    assert pools["lab1"]["identity_file"] == fleet["ssh_config"]["identity_file"] == "~/.ssh/sky"
    assert fleet["name"] == "lab1"


def test_another_port() -> None:
    texts, problems = host_lists.files(members(), logins(ansible_port="2222"), {"host_lists_tools": "dstack"})
    assert problems == [] and yaml.safe_load(texts["fleet.dstack.yml"])["ssh_config"]["port"] == 2222
    assert refused(variables=logins(ansible_port=2222)) == {
        (one["name"], "ansible_port", host_lists.ERR_PORT) for one in members()
    }


def test_all_bad_values_at_once() -> None:
    given = members(1)
    given[0]["fabric_address"] = "9.9.9.9"
    found = refused(given, {"gpu01": {}}, host_lists_name="A b", host_lists_tools="dstack")
    assert found == {
        ("", "host_lists_name", host_lists.ERR_NAME),
        ("gpu01", "ansible_user", host_lists.ERR_NO_USER),
        ("gpu01", "ansible_ssh_private_key_file", host_lists.ERR_NO_KEY),
        ("gpu01", "gpu_cluster_fabric_address", host_lists.ERR_PUBLIC),
    }


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("host_lists_tools", "skypilt", host_lists.ERR_TOOLS),
        ("host_lists_tools", [], host_lists.ERR_TOOLS),
        ("host_lists_tools", 3, host_lists.ERR_TOOLS),
        ("host_lists_user", "a b", host_lists.ERR_USER),
        ("host_lists_user", 7, host_lists.ERR_USER),
        ("host_lists_key", "a\nb", host_lists.ERR_KEY),
        ("host_lists_name", 7, host_lists.ERR_NAME),
    ],
)
def test_a_bad_value(name: str, value: Any, rule: str) -> None:
    assert ("", name, rule) in refused(**{name: value})
