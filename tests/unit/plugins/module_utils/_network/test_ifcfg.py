# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ifcfg files belong to an interface."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import ifcfg

FOLDER = "/etc/sysconfig/network-scripts"
MAC = "02:00:00:00:00:0a"


def belonging(files: dict[str, str], name: str = "eth0", mac: str = MAC) -> list[str]:
    found = ifcfg.belonging({f"{FOLDER}/{file}": text for file, text in files.items()}, name, mac)
    assert all(path.startswith(FOLDER + "/") for path in found)
    return [path[len(FOLDER) + 1 :] for path in found]


def test_shell_syntax() -> None:
    text = (
        "# a comment\n"
        "TYPE=Ethernet\n"
        'NAME="System eth0" # behind a value\n'
        "DEVICE='eth0'\n"
        "   ONBOOT=yes\n"
        "GATEWAY=192.0.2.1   \n"
        "DOMAIN=\n"
        'BROKEN="open\n'
        "no assignment\n"
        "#IPADDR=192.0.2.9\n"
    )
    assert ifcfg.parse(text) == {
        "TYPE": "Ethernet",
        "NAME": "System eth0",
        "DEVICE": "eth0",
        "ONBOOT": "yes",
        "GATEWAY": "192.0.2.1",
        "DOMAIN": "",
    }


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("ifcfg-eth0", "ONBOOT=yes\n"),
        ("ifcfg-eth0", 'DEVICE="eth0"\n'),
        ("ifcfg-Wired_connection_1", "DEVICE='eth0'\n"),
        ("ifcfg-System_eth0", f"HWADDR={MAC.upper()}\n"),
        ("ifcfg-eth0", "DEVICE=eth0\nHWADDR=02:00:00:00:00:FF\n"),
        ("ifcfg-eth0:1", "DEVICE=eth0:1\n"),
        ("ifcfg-eth0:1", "IPADDR=192.0.2.9\n"),
    ],
)
def test_what_belongs_to_it(file: str, text: str) -> None:
    assert belonging({file: text}) == [file]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("ifcfg-eth1", "ONBOOT=yes\n"),
        ("ifcfg-eth0", "DEVICE=eth1\n"),
        # A VLAN has the hardware address of its card.
        ("ifcfg-eth0.5", f"DEVICE=eth0.5\nHWADDR={MAC}\n"),
        ("ifcfg-eth0", "HWADDR=02:00:00:00:00:FF\n"),
        ("ifcfg-eth0", "#DEVICE=eth0\nDEVICE=eth00\n"),
        ("ifcfg-eth00", ""),
        ("ifcfg-eth0.bak", "DEVICE=eth0\n"),
        ("ifcfg-eth0.rpmsave", "DEVICE=eth0\n"),
        ("ifcfg-eth0~", "DEVICE=eth0\n"),
        ("route-eth0", ""),
        ("network-functions", "DEVICE=eth0\n"),
    ],
)
def test_what_does_not(file: str, text: str) -> None:
    assert belonging({file: text}) == []


def test_companions_follow_the_name_of_the_file() -> None:
    files = {
        "ifcfg-old": "DEVICE=eth0\n",
        "route-old": "",
        "route6-old": "",
        "rule-old": "",
        "rule6-old": "",
        "keys-old": "",
        "route-eth0": "",
        "ifcfg-eth1": "",
        "route-eth1": "",
    }
    assert belonging(files) == ["ifcfg-old", "keys-old", "route-old", "route6-old", "rule-old", "rule6-old"]


def test_an_interface_without_hardware_address() -> None:
    """A bond that does not exist yet; an empty HWADDR matches nothing."""
    assert belonging({"ifcfg-x": "HWADDR=\n", "ifcfg-bond0": ""}, "bond0", "") == ["ifcfg-bond0"]


def test_other_folders() -> None:
    assert ifcfg.belonging({"/var/tmp/ifcfg-eth0": "DEVICE=eth0\n"}, "eth0", MAC) == []


def test_secrets_are_not_read() -> None:
    assert not [pattern for pattern in ifcfg.PATTERNS if "keys-" in pattern]
    assert [f"{FOLDER}/keys-*"] == list(ifcfg.LISTED)
