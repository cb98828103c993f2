# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From addresses alone to an inventory: ``init`` in a folder of its own, and ``discover``, on real nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from lab_cluster import PROJECT, Cluster, Ended

OURS = "baremetal.gpu_cluster"
CARD = "fab1"
CONSENT = ("-e", "rebuild_accept_host_keys=true")


class Stranger:
    """Somebody who knows the addresses of the nodes and has a key for them."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.hosts = folder / "prod" / "hosts.yml"
        self.addresses = {str(one["ansible_host"]): name for name, one in cluster.hosts.items()}
        shipped = yaml.safe_load((PROJECT / cluster.inventory / "hosts.yml").read_text())
        key = shipped["gpu_cluster"]["vars"]["ansible_ssh_private_key_file"]
        self._key = ("-e", f"ansible_ssh_private_key_file={key}")

    def init(self, *further: str) -> None:
        given = ("-e", f"dest={self.folder}", "-e", f"hosts={','.join([*self.addresses, *further])}")
        ended = self.cluster.run(["ansible-playbook", f"{OURS}.init", *given])
        assert ended.code == 0, ended.text

    def discover(self, *arguments: str) -> Ended:
        command = ["ansible-playbook", f"{OURS}.discover", "-i", str(self.hosts.parent), *self._key, *arguments]
        return self.cluster.run(command, variables={"ANSIBLE_CONFIG": str(self.folder / "ansible.cfg")})

    def changed(self, ended: Ended) -> set[str]:
        """How many tasks changed something, of all hosts."""
        return set(re.findall(r"changed=(\d+)", ended.text))


@pytest.fixture(name="stranger")
def somebody(cluster: Cluster, tmp_path: Path) -> Stranger:
    return Stranger(cluster, tmp_path / "mycluster")


def test_a_stranger_gets_an_inventory(stranger: Stranger) -> None:
    """One machine is not there: the others are asked all the same, and nothing is written until it is left out."""
    nobody = f"{next(iter(stranger.addresses)).rpartition('.')[0]}.250"
    absent = f"gpu{len(stranger.addresses) + 1:02d}"
    stranger.init(nobody)
    before = stranger.hosts.read_text()
    unknown = stranger.discover()
    assert unknown.code != 0 and "the host key is not known yet. It offers" in unknown.text, unknown.text
    assert not (stranger.hosts.parent / ".known_hosts").exists()
    missing = stranger.discover(*CONSENT)
    assert missing.code != 0 and f"1 of {len(stranger.addresses) + 1} machines did not answer" in missing.text
    assert f"{absent}  ansible_host: cannot be reached: " in missing.text, missing.text
    assert stranger.hosts.read_text() == before
    found = stranger.discover("-e", f"discover_leave_out={absent}")
    assert found.code == 0 and f"{stranger.hosts}: written" in found.text, found.text
    written = yaml.safe_load(stranger.hosts.read_text())
    assert written["not_members"]["hosts"] == {absent: {"ansible_host": nobody}}
    assert written["gpu_cluster"]["vars"]["gpu_cluster_fabric_interface"] == "fab0"
    held = stranger.cluster.on_each(stranger.addresses.values(), "ip -oneline -4 address show dev fab0")
    proposed = "# gpu_cluster_fabric_address: " in stranger.hosts.read_text()
    assert proposed == (not all(held.values())), stranger.hosts.read_text()
    # Under their own names they are reached as before, with the same keys, and there is nothing to change.
    again = stranger.discover()
    assert again.code == 0 and stranger.changed(again) == {"0"}, again.text
    assert set(re.findall(r"^ok: \[(\w+)\]", again.text, re.MULTILINE)) >= set(stranger.addresses.values())


@pytest.fixture(name="cabled")
def two_cards_without_addresses(cluster: Cluster) -> Iterator[list[str]]:
    """Two nodes with a further card on the fabric."""
    names = list(cluster.hosts)[:2]
    try:
        for name in names:
            cluster.lab("cable", name, CARD)
            cluster.shell(name, f"ip link set {CARD} up")
        yield names
    finally:
        for name in names:
            cluster.lab("cable", name, CARD, "--pull")


def test_cards_without_addresses_hear_each_other(cluster: Cluster, cabled: list[str]) -> None:
    """And nobody learns anything: the neighbour tables of both nodes stay as they were."""
    one, other = cabled
    where = str(cluster.hosts[other]["ansible_host"])
    cluster.on_each(cabled, f"ip neighbour flush dev {CARD}")
    command = ["ansible", one, "-i", cluster.inventory, "-m", f"{OURS}.discover_node", "-a", f"probe={where}"]
    ended = cluster.run([*command, "--one-line"], variables={"ANSIBLE_LOAD_CALLBACK_PLUGINS": "1"})
    assert ended.code == 0, ended.text
    cards = json.loads(ended.text[ended.text.index("{") :].splitlines()[0])["machine"]["cards"]
    heard = {card["name"]: card["heard"] for card in cards}
    macs = cluster.shell(other, f"cat /sys/class/net/{CARD}/address /sys/class/net/fab0/address").split()
    assert set(heard[CARD]) & set(macs) and heard["eth0"] == [], ended.text
    assert cluster.on_each(cabled, f"ip neighbour show dev {CARD}") == {one: "", other: ""}
