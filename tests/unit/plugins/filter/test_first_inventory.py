# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory that init writes, as YAML reads it."""

from __future__ import annotations

from typing import Any

import yaml

from ansible_collections.baremetal.gpu_cluster.plugins.filter.first_inventory import first_inventory
from ansible_collections.baremetal.gpu_cluster.plugins.plugin_utils._generated_file import is_unedited


def group(hosts: Any, *user: str) -> dict[str, Any]:
    made = first_inventory(hosts, *user)
    assert made["problems"] == [] and is_unedited(made["text"])
    assert max(len(line) for line in made["text"].splitlines()) <= 160
    found: dict[str, Any] = yaml.safe_load(made["text"])["gpu_cluster"]
    return found


def test_addresses_have_names() -> None:
    found = group("10.1.1.[11:12],fd00::12")
    assert found == {
        "hosts": {
            "gpu01": {"ansible_host": "10.1.1.11"},
            "gpu02": {"ansible_host": "10.1.1.12"},
            "gpu03": {"ansible_host": "fd00::12"},
        },
        "vars": {"ansible_user": "root"},
    }


def test_names_are_texts_whatever_yaml_takes_them_for() -> None:
    names = ["gpu01", "no", "1_0", "1e3", "null", "n-1.site", "10.1e3", "A_1"]
    assert list(group(names)["hosts"]) == ["gpu01", "no", "1_0", "1e3", "null", "n-1.site", "10.1e3", "A_1"]


def test_another_user_than_root_has_sudo() -> None:
    assert group("gpu[1:2]", "ops")["vars"] == {"ansible_user": "ops", "ansible_become": True}
    assert group("gpu[1:2]", "null")["vars"]["ansible_user"] == "null"


def test_the_example_in_the_comment_is_what_can_be_written_there() -> None:
    text = first_inventory("gpu[1:2]")["text"]
    kept = [line.replace("    # gpu_cluster", "    gpu_cluster") for line in text.splitlines()]
    variables = yaml.safe_load("\n".join(kept))["gpu_cluster"]["vars"]
    assert variables["gpu_cluster_fabric_interface"] == "ens1f0"
    assert variables["gpu_cluster_fabric_address"] == "10.1.2.{{ 10 + inventory_hostname[-2:] | int }}/24"


def test_all_problems_and_no_text() -> None:
    made = first_inventory("gpu[2:1]", "a b")
    assert made["text"] == ""
    assert [(one["host"], one["variable"], one["value"]) for one in made["problems"]] == [
        ("command line", "hosts", "'gpu[2:1]'"),
        ("command line", "user", "'a b'"),
    ]
