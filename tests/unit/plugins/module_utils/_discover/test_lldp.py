# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lldpctl prints with one switch and with several, and texts that are something else."""

from __future__ import annotations

import json

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.lldp import neighbours

PORT = {"id": {"type": "ifname", "value": "Ethernet1/1"}, "descr": "to gpu01"}
CHASSIS = {"leaf-1": {"id": {"type": "mac", "value": "02:00:00:00:00:01"}, "mgmt-ip": "10.1.1.1"}}


def test_one_card_and_several() -> None:
    one = {"via": "LLDP", "chassis": CHASSIS, "port": PORT}
    assert neighbours(json.dumps({"lldp": {"interface": {"ens1": one}}})) == {"ens1": ("leaf-1", "Ethernet1/1")}
    several = [{"ens1": one}, {"ens2": {**one, "chassis": {"leaf-2": {}}}}, {"ens1": {**one, "chassis": {"x": {}}}}]
    assert neighbours(json.dumps({"lldp": {"interface": several}})) == {
        "ens1": ("leaf-1", "Ethernet1/1"),
        "ens2": ("leaf-2", "Ethernet1/1"),
    }


def test_a_switch_without_a_name_is_none() -> None:
    chassis = {"id": {"type": "mac", "value": "02:00:00:00:00:01"}}
    assert neighbours(json.dumps({"lldp": {"interface": {"ens1": {"chassis": chassis, "port": PORT}}}})) == {}


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"lldp": []}', '{"lldp": {"interface": "x"}}', '{"lldp": {"interface": [1]}}']
)
def test_anything_else(text: str) -> None:
    assert neighbours(text) == {}
