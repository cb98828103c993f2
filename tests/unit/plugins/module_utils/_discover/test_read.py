# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a machine, out of a recorded tree and recorded commands."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover import arp, read
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._discover.machine import machine
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.commands import Answer
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._gpu_node.gather import Node

UP = ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"]


def link(name: str, number: int, **more: Any) -> dict[str, Any]:
    mac = f"02:00:00:00:00:{number:02x}"
    return {"ifname": name, "link_type": "ether", "flags": UP, "mtu": 1500, "address": mac, "addr_info": [], **more}


def address(local: str, prefix: int, scope: str = "global") -> dict[str, Any]:
    return {"local": local, "prefixlen": prefix, "scope": scope}


LINKS = [
    link("lo", 0, link_type="loopback", addr_info=[address("127.0.0.1", 8, "host")]),
    link("eno1", 1, addr_info=[address("10.1.1.11", 24), address("fe80::1", 64, "link")]),
    link("eno2", 2, flags=["BROADCAST", "UP", "NO-CARRIER"]),
    link("eno3", 3, flags=["BROADCAST"]),
    link("ens1", 4),
    link("ens2", 5, master="br0", addr_info=[]),
    link("br0", 5, linkinfo={"info_kind": "bridge"}),
    link("ens1.20", 4, link="ens1", linkinfo={"info_kind": "vlan", "info_data": {"id": 20}}),
    link("ib0", 6, link_type="infiniband", addr_info=[address("10.3.0.1", 24), address("fd00::1", 64)]),
    link("veth1", 7, master="docker0", linkinfo={"info_kind": "veth"}),
    link("ifb0", 8, linkinfo={"info_kind": "ifb"}),
]
COMMANDS = {
    "ip -details": json.dumps(LINKS),
    "ip -4": "default via 10.1.1.1 dev eno1 proto static\n10.1.1.0/24 dev eno1 scope link\n10.7.0.0/16 via 10.1.1.1\n",
    "lldpctl": json.dumps(
        {"lldp": {"interface": {"ens1": {"chassis": {"leaf-1": {}}, "port": {"id": {"value": "7"}}}}}}
    ),
    "sudo": "",
}
FILES = {
    "etc/os-release": 'NAME="CentOS Stream"\nPRETTY_NAME="CentOS Stream 9"\n',
    "proc/meminfo": "MemTotal:       1000 kB\nMemFree: 1 kB\n",
    "usr/bin/python3": "",
    "sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)",
    "sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand",
    "sys/class/infiniband/mlx5_0/device/net/ib0/x": "",
    "sys/class/net/ens1/speed": "25000",
    "sys/bus/pci/devices/0000:1b:00.0/vendor": "0x10de",
    "sys/bus/pci/devices/0000:1b:00.0/device": "0x2330",
    "sys/bus/pci/devices/0000:1b:00.0/class": "0x030200",
    "usr/share/hwdata/pci.ids": "10de  NVIDIA Corporation\n\t2330  GH100 [H100 SXM5 80GB]\n",
}


@pytest.fixture(name="looked")
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The answer; the probes of cards are in ``probed``."""
    physical = {f"sys/class/net/{name}/device/x": "" for name in ("eno1", "eno2", "eno3", "ens1", "ens2", "ib0")}
    known = {f"sys/class/net/{one['ifname']}/address": one["address"] for one in LINKS}
    for path, text in {**FILES, **physical, **known}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    for name in ("ip", "lldpctl", "sudo", "ss", "systemctl", "ethtool"):
        (tmp_path / "usr/bin" / name).write_text("", encoding="utf-8")
        (tmp_path / "usr/bin" / name).chmod(0o755)
    probed: dict[str, Any] = {}

    def probe(cards: dict[str, str], targets: Sequence[str]) -> dict[str, list[str]]:
        probed.update(cards=cards, targets=targets)
        return {"ens1": ["02:00:00:00:01:04"]}

    def ask(argv: Sequence[str], _seconds: float) -> Answer:
        words = " ".join([os.path.basename(argv[0]), *argv[1:]])
        found = [text for start, text in COMMANDS.items() if words.startswith(start)]
        return Answer(out=found[0]) if found else Answer(problem="no")

    monkeypatch.setattr(arp, "probe", probe)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_USER", "ops")
    return {**read.look(Node(str(tmp_path), ask), ["10.1.1.12"]), "probed": probed}


def test_a_machine_is_read(looked: dict[str, Any]) -> None:
    json.dumps(looked)
    assert looked["system"] == "CentOS Stream 9" and looked["memory_bytes"] == 1024000 and looked["system_python"]
    assert (looked["sudo"], looked["became"], looked["user_id"]) == ("root", True, 0)
    assert looked["default_card"] == "eno1" and looked["routes"] == ["10.1.1.0/24", "10.7.0.0/16"]
    assert looked["gpus"] == {"devices": ["GH100 [H100 SXM5 80GB]"], "driver": "", "models": [], "problem": ""}
    found = machine("gpu01", "10.1.1.11", looked)
    assert [card.name for card in found.cards] == ["eno1", "eno2", "eno3", "ens1", "ens1.20", "ib0"]
    assert [card.name for card in found.cards if not card.usable] == ["eno2", "eno3"]


def test_cards_are_read(looked: dict[str, Any]) -> None:
    cards = {one["name"]: one for one in looked["cards"]}
    assert set(cards) == {"eno1", "eno2", "eno3", "ens1", "ens2", "br0", "ens1.20", "ib0"}
    assert cards["eno1"]["addresses"] == ["10.1.1.11/24"] and cards["ens1.20"]["parent"] == "ens1"
    assert (cards["ens1"]["speed_mbit"], cards["ens1"]["switch"], cards["ens1"]["port"]) == (25000, "leaf-1", "7")
    assert (cards["ib0"]["rdma"], cards["ib0"]["rdma_layer"], cards["ib0"]["speed_mbit"]) == (
        "mlx5_0",
        "InfiniBand",
        400000,
    )


def test_only_cards_without_an_address_are_probed(looked: dict[str, Any]) -> None:
    """With a link, of Ethernet, and no part of something else."""
    assert looked["probed"] == {
        "cards": {"ens1": "02:00:00:00:00:04", "ens1.20": "02:00:00:00:00:04"},
        "targets": ["10.1.1.12"],
    }
    assert {one["name"]: one["heard"] for one in looked["cards"] if one["heard"]} == {"ens1": ["02:00:00:00:01:04"]}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(), "yes"),
        (Answer(problem="sudo failed (1): sudo: a password is required"), "password"),
        (Answer(problem="sudo failed (1): ops is not in the sudoers file"), "no"),
    ],
)
def test_how_the_login_becomes_root(
    answer: Answer, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sudo").write_text("", encoding="utf-8")
    (tmp_path / "bin" / "sudo").chmod(0o755)
    assert read.sudo(Node(str(tmp_path), lambda _argv, _seconds: answer)) == expected
