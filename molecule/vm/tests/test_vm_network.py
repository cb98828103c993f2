# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bonds, VLANs and a lost carrier: on a kernel of its own, because containers share one without them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from lab_cluster import Cluster
from lab_network import (
    activation,
    change,
    message_of,
    recap,
    snapshot,
    ssh_answers,
    wait_for,
)
from lab_selinux import state

NODE = "vm1"
#: The address through which the controller comes.
MANAGEMENT = "198.18.30.11/24"
#: The machine is emulated: what takes a real one a second takes it five.
CONFIRM_SECONDS = 20


def bond(mode: str = "active-backup", **more: Any) -> dict[str, Any]:
    return {
        "name": "bond0",
        "addresses": ["198.18.31.11/24"],
        "bond": {"mode": mode, "ports": ["eth1", "eth2"], **more},
    }


@pytest.fixture
def clean(machine: Cluster) -> Iterator[None]:
    """The network as the playbook leaves it: the installer's eth0, and the collection's eth1."""
    yield
    machine.shell(
        NODE,
        "nmcli connection up eth0 >/dev/null; cd /etc/NetworkManager/system-connections; "
        "for file in gpu-cluster-*; do [ $file = gpu-cluster-eth1.nmconnection ] || rm -f $file; done; "
        "nmcli connection reload; for link in bond0.42 bond0 eth0.42; do ip link delete $link 2>/dev/null; done; true",
    )
    back = change(machine, {}, confirm_seconds=180, deadline=400)
    assert back.code == 0, back.text


def taken_back(machine: Cluster, interfaces: list[dict[str, Any]], *words: str) -> None:
    """The change fails for this reason, and leaves nothing behind."""
    before = snapshot(machine, NODE)
    ended = change(machine, {NODE: {"static_network_interfaces": interfaces}}, confirm_seconds=CONFIRM_SECONDS)
    message = message_of(ended, NODE)
    for word in [*words, "The old state is back"]:
        assert word in message, message
    assert ssh_answers(machine, NODE) and snapshot(machine, NODE) == before


@pytest.mark.long
def test_a_vlan_that_nobody_else_has_is_taken_back(machine: Cluster) -> None:
    interfaces = [
        {"name": "eth0", "addresses": [], "gateway": []},
        {"name": "eth0.42", "addresses": [MANAGEMENT], "vlan": {"parent": "eth0", "id": 42}},
    ]
    taken_back(machine, interfaces, "VLAN 42 on eth0", "no fresh ssh connection")


@pytest.mark.long
def test_a_bond_whose_active_port_leads_elsewhere_is_taken_back(machine: Cluster) -> None:
    interfaces = [
        {
            "name": "bond0",
            "addresses": [MANAGEMENT],
            "gateway": [],
            "bond": {"mode": "active-backup", "ports": ["eth0", "eth2"], "primary": "eth2"},
        }
    ]
    taken_back(machine, interfaces, "active-backup bond of eth0 and eth2", "no fresh ssh connection")


@pytest.mark.long
def test_a_bond_over_the_management_card_without_a_carrier_is_taken_back(machine: Cluster) -> None:
    """One of its two ports has no cable, and it needs both."""
    interfaces = [
        {
            "name": "bond0",
            "addresses": [MANAGEMENT],
            "gateway": [],
            "bond": {"mode": "802.3ad", "ports": ["eth0", "eth2"], "min_links": 2},
        }
    ]
    try:
        machine.lab("cable", "eth2", "pull")
        taken_back(machine, interfaces, "802.3ad bond of eth0 and eth2", "bond0")
    finally:
        machine.lab("cable", "eth2", "plug")


def test_a_bond_with_a_vlan_works_and_is_left_alone_by_the_second_run(machine: Cluster, clean: None) -> None:
    wanted = [bond(), {"name": "bond0.42", "addresses": ["198.18.42.11/24"], "vlan": {"parent": "bond0", "id": 42}}]
    ended = change(machine, {NODE: {"static_network_interfaces": wanted}}, confirm_seconds=180, deadline=400)
    assert ended.code == 0 and recap(ended, NODE)["changed"] == 1, ended.text
    status = machine.shell(NODE, "cat /proc/net/bonding/bond0; ip -d -o link show dev bond0.42")
    assert "Slave Interface: eth1" in status and "Slave Interface: eth2" in status and "id 42" in status, status
    before = activation(machine, NODE)
    # The other port takes over, and a run in that state finds nothing to do.
    active = machine.shell(NODE, "cat /sys/class/net/bond0/bonding/active_slave").strip()
    try:
        machine.lab("cable", active, "pull")
        wait_for(
            lambda: machine.shell(NODE, "cat /sys/class/net/bond0/bonding/active_slave").strip() not in ("", active),
            10,
            "the other port",
        )
        again = change(machine, {NODE: {"static_network_interfaces": wanted}})
        assert again.code == 0 and recap(again, NODE)["changed"] == 0, again.text
        assert activation(machine, NODE) == before
    finally:
        machine.lab("cable", active, "plug")


def test_no_change_of_the_network_left_a_wrong_label(machine: Cluster) -> None:
    """The profiles that the bond replaced are in another folder now."""
    assert machine.shell(NODE, "ls /var/lib/gpu-cluster/static_network/*/").split()
    assert state(machine)["wrong labels"] == ""
