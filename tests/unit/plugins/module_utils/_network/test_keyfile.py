# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keyfiles, against what NetworkManager's own nmcli writes for the same wish (recorded in data/offline)."""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network import keyfile, rails
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._network.spec import Interface, parse_interfaces

DATA = Path(__file__).parent / "data" / "offline"
#: nmcli's defaults of its own: the file works the same without them.
IGNORED_SECTIONS = ("proxy", "bond-port")
IGNORED_KEYS = (("connection", "uuid"), ("ipv6", "addr-gen-mode"))

CARD = {
    "name": "eth0",
    "addresses": ["192.0.2.11/24", "198.51.100.11/24", "2001:db8:1::11/64", "2001:db8:2::11/64"],
    "gateway": ["192.0.2.1", "2001:db8:1::1"],
    "dns": ["192.0.2.53", "2001:db8:1::53", "192.0.2.54"],
    "dns_search": ["example.com", "lab.example.com"],
    "routes": [
        {"to": "203.0.113.0/25", "via": "192.0.2.254", "metric": 50, "table": 100},
        {"to": "203.0.113.128/25", "via": "192.0.2.253"},
        {"to": "203.0.113.0/24", "metric": 5},
        {"to": "2001:db8:9::/48", "via": "2001:db8:1::2", "metric": 70, "table": 100},
    ],
    "mtu": 9000,
    "zone": "internal",
}
RAILS = [
    {
        "name": "eth1",
        "addresses": ["192.0.2.21/24"],
        "gateway": ["192.0.2.1"],
        "routes": [{"to": "203.0.113.0/24", "via": "192.0.2.254"}],
    },
    {"name": "eth2", "addresses": ["192.0.2.22/24"]},
]
RAILS_IPV6 = [
    {"name": "eth1", "addresses": ["2001:db8:1::21/64"], "gateway": ["fe80::1"]},
    {"name": "eth2", "addresses": ["2001:db8:1::22/64"]},
]
LACP = {
    "name": "bond0",
    "addresses": ["192.0.2.41/24"],
    "mtu": 9000,
    "bond": {
        "mode": "802.3ad",
        "ports": ["eth0", "eth1"],
        "lacp_rate": "fast",
        "xmit_hash_policy": "layer3+4",
        "min_links": 1,
    },
}
BACKUP = [
    {
        "name": "bond1",
        "bond": {
            "mode": "active-backup",
            "ports": ["eth2", "02-00-00-00-00-13"],
            "primary": "eth2",
            "miimon_ms": 200,
        },
    },
    {"name": "bond1.5", "addresses": ["192.0.2.61/24"], "vlan": {"parent": "bond1", "id": 5}},
]
VLAN = {"name": "eth0.100", "addresses": ["192.0.2.31/24"], "mtu": 1496, "vlan": {"parent": "eth0", "id": 100}}
MAC = {"mac": "02:00:00:00:00:11", "addresses": ["192.0.2.51/24"]}
BOTH = {
    "name": "eth0",
    "mac": "02-00-00-00-00-11",
    "addresses": ["2001:db8:1::51/64"],
    "dns_search": ["example.com"],
}

#: Recorded file, the list of interfaces, which of them, and which of its files (0: its own, then its ports).
CASES: list[tuple[str, list[dict[str, Any]], int, int]] = [
    ("card", [CARD], 0, 0),
    ("rail0", RAILS, 0, 0),
    ("rail1", RAILS, 1, 0),
    ("rail_ipv6", RAILS_IPV6, 0, 0),
    ("vlan", [VLAN], 0, 0),
    ("bond_lacp", [LACP], 0, 0),
    ("bond_lacp_port", [LACP], 0, 1),
    ("bond_backup", BACKUP, 0, 0),
    ("bond_backup_port_mac", BACKUP, 0, 2),
    ("mac", [MAC], 0, 0),
    ("name_and_mac", [BOTH], 0, 0),
]


def files(entries: list[dict[str, Any]], number: int = 0) -> list[keyfile.Keyfile]:
    interfaces = parse_interfaces(entries)
    interface = interfaces[number]
    return keyfile.keyfiles(interface, rails.find(interfaces).get(interface.label))


def sections(text: str) -> dict[str, dict[str, str]]:
    """A keyfile as NetworkManager reads it: a gateway may stand behind an address, empty sections mean nothing."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    found = {}
    for name in parser.sections():
        values = {key: value for key, value in parser[name].items() if (name, key) not in IGNORED_KEYS}
        for key in [key for key in values if key.startswith("address") and "," in values[key]]:
            values[key], values["gateway"] = values[key].split(",")
        if values and name not in IGNORED_SECTIONS:
            found[name] = values
    return found


@pytest.mark.parametrize(("recorded", "entries", "number", "file"), CASES, ids=[case[0] for case in CASES])
def test_the_keyfile_is_that_of_nmcli(recorded: str, entries: list[dict[str, Any]], number: int, file: int) -> None:
    theirs = sections((DATA / f"{recorded}.nmconnection").read_text(encoding="utf-8"))
    assert sections(files(entries, number)[file].text) == theirs


def test_every_recording_is_compared() -> None:
    assert {path.stem for path in DATA.iterdir()} == {case[0] for case in CASES}


def test_the_whole_text() -> None:
    (file,) = files([{"name": "eth0", "addresses": ["192.0.2.11/24"], "gateway": ["192.0.2.1"]}])
    assert file.path == "/etc/NetworkManager/system-connections/gpu-cluster-eth0.nmconnection"
    assert file.text == (
        "# Managed by Ansible (baremetal.gpu_cluster): changes in this file are lost.\n"
        "[connection]\n"
        "id=gpu-cluster-eth0\n"
        f"uuid={file.uuid}\n"
        "type=ethernet\n"
        "interface-name=eth0\n"
        "autoconnect-priority=999\n"
        "\n"
        "[ethernet]\n"
        "\n"
        "[ipv4]\n"
        "method=manual\n"
        "address1=192.0.2.11/24\n"
        "gateway=192.0.2.1\n"
        "\n"
        "[ipv6]\n"
        "method=link-local\n"
    )


def test_names_and_uuids() -> None:
    found = [file for entries in ([CARD], [LACP], [MAC]) for file in files(entries)]
    assert [file.name for file in found] == [
        "gpu-cluster-eth0.nmconnection",
        "gpu-cluster-bond0.nmconnection",
        "gpu-cluster-bond0-port-eth0.nmconnection",
        "gpu-cluster-bond0-port-eth1.nmconnection",
        "gpu-cluster-02-00-00-00-00-11.nmconnection",
    ]
    assert len({file.uuid for file in found}) == len(found)
    # The uuid of a name never changes: profiles of earlier versions are replaced, not joined by a second one.
    assert found[0].uuid == "9cff1b8e-fd69-5d23-b844-cac04d7d2033"


def test_the_same_wish_gives_the_same_bytes() -> None:
    assert files([CARD]) == files([dict(reversed(CARD.items()))])


def test_a_port_has_nothing_but_its_bond() -> None:
    port = files([LACP])[1]
    assert set(sections(port.text)) == {"connection", "ethernet"}
    zoned = files([dict(LACP, zone="internal")])
    assert ["zone=" in file.text for file in zoned] == [True, False, False]


def test_hardware_addresses_are_written_as_nmcli_writes_them() -> None:
    (file,) = files([{"mac": "02-00-00-00-0a-bc", "addresses": ["192.0.2.51/24"]}])
    assert "mac-address=02:00:00:00:0A:BC\n" in file.text


def test_a_route_without_router_and_with_metric_of_ipv6() -> None:
    entry = {"name": "eth0", "addresses": ["2001:db8::1/64"], "routes": [{"to": "2001:db8:9::/48", "metric": 0}]}
    assert sections(files([entry])[0].text)["ipv6"]["route1"] == "2001:db8:9::/48,::,0"


def test_claims() -> None:
    texts = [file.text for file in (*files([BOTH]), *files(BACKUP))]
    assert [(claim.name, claim.mac) for claim in map(keyfile.claim, texts)] == [
        ("eth0", "02:00:00:00:00:11"),
        ("bond1", ""),
        ("eth2", ""),
        ("", "02:00:00:00:00:13"),
    ]
    assert keyfile.claim(texts[0]).uuid == files([BOTH])[0].uuid
    assert keyfile.claim("no keyfile") == keyfile.claim("") == keyfile.Claim("", "", "")


def test_an_interface_is_rendered_without_rails_too() -> None:
    assert "routing-rule" not in keyfile.text(Interface(name="eth0", addresses=("192.0.2.1/24",)))
